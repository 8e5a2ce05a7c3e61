//! A team's settings of written parts: under `Metadata`, `Ringfence`, by logical id.

use serde_yaml_ng::{Mapping, Value};

use super::error::WriteError;
use super::flow::flow;
use super::way_out::{LISTS, OF_RESOURCE, of_name, way_out};

/// The settings, by logical id. `Globals` has the settings of all functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Settings(pub(super) Mapping);

/// The error for a wrong setting. `what` is the path to it.
fn wrong(what: &str, why: &str) -> WriteError {
    WriteError::Settings(format!("Metadata: Ringfence: {what}: {why}"))
}

/// Whether any map in the value has a merge key.
fn merges(value: &Value) -> bool {
    match value {
        Value::Mapping(all) => all.iter().any(|(name, of)| *name == "<<" || merges(of)),
        Value::Sequence(all) => all.iter().any(merges),
        Value::Tagged(tagged) => merges(&tagged.value),
        _ => false,
    }
}

impl Settings {
    /// The settings of a template.
    ///
    /// # Errors
    /// The settings have another form.
    pub(super) fn of(template: &Value) -> Result<Self, WriteError> {
        let metadata = template.get("Metadata");
        let Some(found) = metadata.and_then(|metadata| metadata.get("Ringfence")) else {
            return Ok(Self::default());
        };
        let form = "it is a map by logical id, such as `PlaceOrder: { MemorySize: 512 }`: write one, or leave it out";
        let all = found.as_mapping().ok_or_else(|| {
            WriteError::Settings(format!("Metadata: Ringfence is not a map: {form}"))
        })?;
        for (id, of) in all {
            let id = flow(id);
            if !of.is_mapping() {
                return Err(wrong(&id, "settings are a map, such as `{ MemorySize: 512 }`"));
            }
            if merges(of) {
                return Err(wrong(
                    &id,
                    "CloudFormation knows no merge keys (<<): write the settings themselves",
                ));
            }
        }
        Ok(Self(all.clone()))
    }

    /// Adds a setting.
    pub(super) fn set(&mut self, id: &str, name: &str, value: Value) {
        let of = self.0.entry(id.into()).or_insert_with(|| Mapping::new().into());
        of.as_mapping_mut().get_or_insert(&mut Mapping::new()).insert(name.into(), value);
    }

    /// Whether the API asks for tokens.
    pub(super) fn takes_tokens(&self) -> bool {
        self.get("Api", "Auth").is_some_and(|auth| flow(auth).contains("JwtConfiguration"))
    }

    /// Whether the API takes the tokens of the stack's user pool.
    pub(super) fn makes_pool(&self) -> bool {
        self.get("Api", "Auth").is_some_and(|auth| flow(auth).contains("MakesUserPool"))
    }

    /// One setting of a resource.
    pub(super) fn get(&self, id: &str, name: &str) -> Option<&Value> {
        self.0.get(id)?.get(name)
    }

    /// The variables that all functions get from settings.
    pub(super) fn variables_of_all(&self) -> Mapping {
        let found = self.get("Globals", "Environment").and_then(|it| it.get("Variables"));
        found.and_then(Value::as_mapping).cloned().unwrap_or_default()
    }

    /// Checks that each setting is of a written part.
    pub(super) fn check(&self, bodies: &[(&str, String)]) -> Result<(), WriteError> {
        for id in self.0.keys().map(flow) {
            let is_written = |(section, body): &(&str, String)| match *section {
                "Parameters" | "Resources" => range(body, &id).is_some(),
                section => section == id && id == "Globals",
            };
            if !bodies.iter().any(is_written) {
                return Err(wrong(&id, "no such function or other resource is written"));
            }
        }
        Ok(())
    }

    /// A section's text with the settings of its parts.
    pub(super) fn apply(&self, section: &str, text: String) -> Result<String, WriteError> {
        let mut text = text;
        for (id, settings) in &self.0 {
            let (id, Some(settings)) = (flow(id), settings.as_mapping()) else { continue };
            let of = match (section, &*id) {
                ("Globals", "Globals") => "Function",
                ("Parameters" | "Resources", id) if range(&text, id).is_some() => id,
                _ => continue,
            };
            for (name, value) in settings.iter().map(|(name, value)| (flow(name), value)) {
                let empty = "it has no value: write one, or leave the line out";
                let why = way_out(section, &name).or_else(|| value.is_null().then_some(empty));
                if let Some(why) = why {
                    return Err(wrong(&format!("{id}: {name}"), why));
                }
            }
            text = applied(&text, of, settings, section == "Resources")
                .map_err(|(name, why)| wrong(&format!("{id}: {name}"), &why))?;
        }
        Ok(text)
    }
}

/// The beginning and the end of a resource in a text.
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

/// Applies settings to the properties of a resource, or to the lines of a parameter or of `Globals`. An error names the
/// setting and its fault.
fn applied(
    text: &str,
    id: &str,
    settings: &Mapping,
    is_resource: bool,
) -> Result<String, (String, String)> {
    let form = || (id.to_owned(), "it can't be set".to_owned());
    let (begin, end) = range(text, id).ok_or_else(form)?;
    let mut block = text[begin..end].to_owned();
    let (depth, head) = if is_resource { (6, "    Properties:") } else { (4, "  ") };
    let yaml: Value = serde_yaml_ng::from_str(&block).map_err(|_| form())?;
    let whole = yaml.get(id).ok_or_else(form)?;
    let of = if is_resource { whole.get("Properties").ok_or_else(form)? } else { whole };
    // Properties in one line get a line each.
    let first = block.lines().position(|line| line.starts_with(head)).ok_or_else(form)?;
    let is_flow = |line: &str| line.trim_start().starts_with('{') || line.contains(": {");
    let is_flow = block.lines().skip(first).take(if is_resource { 1 } else { 2 }).any(is_flow);
    if is_flow && (is_resource || block.lines().count() < 5) {
        let lines = of.as_mapping().ok_or_else(form)?.iter();
        let lines = lines
            .map(|(name, value)| format!("{}{}: {}\n", " ".repeat(depth), flow(name), flow(value)));
        let before: String = block.lines().take(first).map(|line| format!("{line}\n")).collect();
        let head = if is_resource { head.to_owned() } else { format!("  {id}:") };
        block = format!("{before}{head}\n{}", lines.collect::<String>());
    }
    for (name, value) in settings {
        let name = flow(name);
        let is_attribute = is_resource && OF_RESOURCE.contains(&&*name);
        let written = if is_attribute { whole.get(&name) } else { of.get(&name) };
        let value = with_written(&name, value, written).map_err(|why| (name.clone(), why))?;
        let (depth, after) = if is_attribute { (4, "    Type:") } else { (depth, head) };
        block = with_line(&block, depth, &name, &flow(&value), after).ok_or_else(form)?;
    }
    Ok(format!("{}{block}{}", &text[..begin], &text[end..]))
}

/// The value of a setting. Some settings add to the written value; the others replace it.
fn with_written(name: &str, value: &Value, written: Option<&Value>) -> Result<Value, String> {
    if let Some((_, key)) = LISTS.iter().find(|(list, _)| *list == name) {
        let mut all = written.and_then(Value::as_sequence).cloned().unwrap_or_default();
        let Value::Sequence(more) = value else {
            return Err(format!("it is a list of maps with {key}"));
        };
        for one in more {
            let of = one.get(key).ok_or_else(|| format!("each of them has {key}"))?;
            match of_name(&all, key, of) {
                Some(written) if written == one => {}
                Some(_) => {
                    return Err(format!("{} follows from the list: leave it out", flow(of)));
                }
                None => all.push(one.clone()),
            }
        }
        return Ok(all.into());
    }
    let nothing = Value::Mapping(Mapping::new());
    match name {
        "Environment" => {
            let is_it = value.as_mapping().is_some_and(|it| it.len() == 1);
            if !is_it || !value.get("Variables").is_some_and(Value::is_mapping) {
                return Err("it has one entry, Variables, a map".to_owned());
            }
            Ok(merged(written.unwrap_or(&nothing), value))
        }
        "Metadata" => {
            if !value.is_mapping() {
                return Err("it is a map".to_owned());
            }
            if value.get("BuildProperties").is_some_and(|it| it.get("Binary").is_some()) {
                return Err(
                    "BuildProperties: Binary follows from the list: leave it out".to_owned()
                );
            }
            Ok(merged(written.unwrap_or(&nothing), value))
        }
        _ => Ok(value.clone()),
    }
}

/// A map with the entries of another one, which replace its own.
fn merged(written: &Value, more: &Value) -> Value {
    let (Value::Mapping(written), Value::Mapping(more)) = (written, more) else {
        return more.clone();
    };
    let mut all = written.clone();
    for (name, value) in more {
        let value = all.get(name).map_or_else(|| value.clone(), |was| merged(was, value));
        all.insert(name.clone(), value);
    }
    all.into()
}

/// The block with a line that replaces the one of its name, or follows the line that begins with `after`.
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
