//! A team's settings of what is written: under `Metadata`, `Ringfence`, by logical id.

use serde_yaml_ng::{Mapping, Value};

use super::error::WriteError;

/// The settings, by logical id; `Globals` are those of all functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Settings(pub(super) Mapping);

/// The attributes of a resource that are not properties.
const OF_RESOURCE: [&str; 4] = ["Condition", "DependsOn", "DeletionPolicy", "UpdateReplacePolicy"];

impl Settings {
    pub(super) fn of(template: &Value) -> Self {
        let found = template.get("Metadata").and_then(|it| it.get("Ringfence"));
        Self(found.and_then(Value::as_mapping).cloned().unwrap_or_default())
    }

    /// Sets something.
    pub(super) fn set(&mut self, id: &str, name: &str, value: Value) {
        let of = self.0.entry(id.into()).or_insert_with(|| Mapping::new().into());
        of.as_mapping_mut().get_or_insert(&mut Mapping::new()).insert(name.into(), value);
    }

    /// Whether the API asks for tokens.
    pub(super) fn takes_tokens(&self) -> bool {
        self.get("Api", "Auth").is_some_and(|auth| flow(auth).contains("JwtConfiguration"))
    }

    /// One setting of a resource.
    pub(super) fn get(&self, id: &str, name: &str) -> Option<&Value> {
        self.0.get(id)?.get(name)
    }

    /// The variables that a function gets besides those that are written.
    pub(super) fn variables(&self, id: &str) -> Mapping {
        let found = self.get(id, "Environment").and_then(|it| it.get("Variables"));
        found.and_then(Value::as_mapping).cloned().unwrap_or_default()
    }

    /// Checks that each setting is of something that is written.
    pub(super) fn check(&self, bodies: &[(&str, String)]) -> Result<(), WriteError> {
        for (id, settings) in &self.0 {
            let (id, is_map) = (flow(id), settings.is_mapping());
            let is_written = |(section, body): &(&str, String)| match *section {
                "Parameters" | "Resources" => range(body, &id).is_some(),
                section => section == id && id == "Globals",
            };
            if !is_map || !bodies.iter().any(is_written) {
                let what = if is_map {
                    "no such function or other resource is written"
                } else {
                    "settings are a map"
                };
                return Err(WriteError::Settings(format!("Metadata: Ringfence: {id}: {what}")));
            }
        }
        Ok(())
    }

    /// A section's text with the settings of what is in it.
    pub(super) fn apply(&self, section: &str, text: String) -> Result<String, WriteError> {
        let mut text = text;
        for (id, settings) in &self.0 {
            let (id, Some(settings)) = (flow(id), settings.as_mapping()) else { continue };
            let of = match (section, &*id) {
                ("Globals", "Globals") => "Function",
                ("Parameters" | "Resources", id) if range(&text, id).is_some() => id,
                _ => continue,
            };
            let applied = applied(&text, of, settings, section == "Resources");
            let wrong = || WriteError::Settings(format!("Metadata: Ringfence: {id} can't be set"));
            text = applied.ok_or_else(wrong)?;
        }
        Ok(text)
    }
}

/// Where a resource begins and ends in a text.
pub(super) fn range(text: &str, id: &str) -> Option<(usize, usize)> {
    let head = format!("  {id}:");
    let (mut at, mut begin) = (0, None);
    for line in text.split_inclusive('\n') {
        let is_outer = !line.starts_with("   ") && !line.trim().is_empty();
        match begin {
            Some(begin) if is_outer => {
                return Some((begin, begin + text[begin..at].trim_end().len() + 1));
            }
            None if line
                .strip_prefix(&head)
                .is_some_and(|rest| rest.trim().is_empty() || rest.starts_with(' ')) =>
            {
                begin = Some(at);
            }
            _ => {}
        }
        at += line.len();
    }
    begin.map(|begin| (begin, begin + text[begin..].trim_end().len() + 1))
}

/// The properties of a resource, or the lines of a parameter or of `Globals`, with the settings.
fn applied(text: &str, id: &str, settings: &Mapping, is_resource: bool) -> Option<String> {
    let (begin, end) = range(text, id)?;
    let mut block = text[begin..end].to_owned();
    let (depth, head) = if is_resource { (6, "    Properties:") } else { (4, "  ") };
    let yaml: Value = serde_yaml_ng::from_str(&block).ok()?;
    let of = if is_resource { yaml.get(id)?.get("Properties")? } else { yaml.get(id)? };
    // What stands in one line gets a line for each property.
    let first = block.lines().position(|line| line.starts_with(head))?;
    let is_flow = |line: &str| line.trim_start().starts_with('{') || line.contains(": {");
    let is_flow = block.lines().skip(first).take(if is_resource { 1 } else { 2 }).any(is_flow);
    if is_flow && (is_resource || block.lines().count() < 5) {
        let lines = of.as_mapping()?.iter();
        let lines = lines
            .map(|(name, value)| format!("{}{}: {}\n", " ".repeat(depth), flow(name), flow(value)));
        let before: String = block.lines().take(first).map(|line| format!("{line}\n")).collect();
        let head = if is_resource { head.to_owned() } else { format!("  {id}:") };
        block = format!("{before}{head}\n{}", lines.collect::<String>());
    }
    for (name, value) in settings {
        let name = name.as_str()?;
        let mut value = value.clone();
        if name == "Environment" {
            let mut all = of.get(name).and_then(|it| it.get("Variables")?.as_mapping().cloned());
            let all = all.get_or_insert_default();
            all.extend(value.get("Variables")?.as_mapping()?.clone());
            value =
                Value::Mapping([("Variables".into(), all.clone().into())].into_iter().collect());
        }
        let (depth, after) = match is_resource && OF_RESOURCE.contains(&name) {
            true => (4, "    Type:"),
            false => (depth, head),
        };
        block = with_line(&block, depth, name, &flow(&value), after)?;
    }
    Some(format!("{}{block}{}", &text[..begin], &text[end..]))
}

/// The block with the line in place of the one of its name, or after the line that begins with `after`.
fn with_line(block: &str, depth: usize, name: &str, value: &str, after: &str) -> Option<String> {
    let indent = " ".repeat(depth);
    let (head, line) = (format!("{indent}{name}:"), format!("{indent}{name}: {value}\n"));
    let lines: Vec<&str> = block.split_inclusive('\n').collect();
    let deeper = |line: &&&str| line.starts_with(&format!("{indent} "));
    let (at, skip) = match lines.iter().position(|line| line.starts_with(&head)) {
        Some(at) => (at, 1 + lines[at + 1..].iter().take_while(deeper).count()),
        None => (lines.iter().position(|line| line.starts_with(after))? + 1, 0),
    };
    Some([&lines[..at], &[&*line], &lines[at + skip..]].concat().concat())
}

/// A value in one line.
pub(super) fn flow(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(is) => is.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => plain(text),
        Value::Sequence(all) => {
            format!("[{}]", all.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Value::Mapping(all) if all.is_empty() => "{}".to_owned(),
        Value::Mapping(all) => {
            let all = all.iter().map(|(name, value)| format!("{}: {}", flow(name), flow(value)));
            format!("{{ {} }}", all.collect::<Vec<_>>().join(", "))
        }
        Value::Tagged(tagged) => format!("{} {}", tagged.tag, flow(&tagged.value)),
    }
}

/// A text without quotes, if YAML reads it as that text.
fn plain(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./$ ".contains(c);
    let reads = |text: &str| {
        serde_yaml_ng::from_str::<Value>(text).is_ok_and(|it| it.as_str() == Some(text))
    };
    match text.chars().all(is_plain) && text.trim() == text && reads(text) {
        true => text.to_owned(),
        false => serde_json::to_string(text).unwrap_or_default(),
    }
}
