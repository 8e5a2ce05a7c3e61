//! The edits of a person between the marks, and the lines that keep them.

use ringfence_new::marks::{Section, sections};
use serde_yaml_ng::{Mapping, Value};

use super::error::WriteError;
use super::flow::flow;
use super::line_ends::unix;
use super::policy::{is_covered, statements};
use super::way_out::{LISTS, of_name, way_out};

/// A change of a written part.
pub(super) enum Change {
    /// A setting keeps it.
    Set { id: String, name: String, value: Value },
    /// A statement of a role; a policy beside the role keeps it.
    Statement { role: String, statement: Value },
    /// A written part is missing. A newer release may have added it.
    Lacks(String),
    /// Nothing keeps the change. The line names it, and says what to do.
    Lost(String),
}

/// The entries of a section.
pub(super) fn entries(body: &str) -> Result<Mapping, WriteError> {
    Ok(serde_yaml_ng::from_str::<Option<Mapping>>(body)?.unwrap_or_default())
}

/// The differences between an entry and the written one. `any` is the entry that a stack with everything has.
pub(super) fn changes(
    section: &str,
    id: &str,
    found: &Value,
    fresh: &Value,
    any: &Value,
) -> Vec<Change> {
    let compared = |found, fresh, any| Compared { section, id, any }.all(found, fresh);
    let maps = |name: &str| Some((found.get(name)?.as_mapping()?, fresh.get(name)?.as_mapping()?));
    let (whole, written) = (found.as_mapping(), fresh.as_mapping());
    match (section, whole.zip(written)) {
        ("Resources", Some((whole, written))) => {
            if found.get("Type") != fresh.get("Type") {
                let is = found.get("Type").map(flow).unwrap_or_default();
                return vec![Change::Lost(format!(
                    "{id}: it is of the type {is}, and the list needs the name: give it another one"
                ))];
            }
            let mut all = compared(whole, written, any);
            if let Some((found, fresh)) = maps("Properties") {
                all.extend(compared(found, fresh, any.get("Properties").unwrap_or(any)));
            } else if fresh.get("Properties").is_some() {
                all.push(Change::Lost(format!(
                    "Properties of {id} are gone, and the list needs them"
                )));
            }
            all
        }
        ("Parameters" | "Globals", Some((whole, written))) => compared(whole, written, any),
        _ if found == fresh || found == any => Vec::new(),
        _ => vec![Change::Lost(format!(
            "{section}: {id} follows from the list: write yours by another name below the closing mark of {section}"
        ))],
    }
}

/// Compares a map with the written one.
struct Compared<'a> {
    section: &'a str,
    id: &'a str,
    any: &'a Value,
}

impl Compared<'_> {
    fn all(&self, found: &Mapping, fresh: &Mapping) -> Vec<Change> {
        let names = found.keys().chain(fresh.keys().filter(|name| !found.contains_key(name)));
        let names = names.filter(|name| *name != "Properties");
        names.flat_map(|name| self.one(&flow(name), found.get(name), fresh.get(name))).collect()
    }

    fn one(&self, name: &str, is: Option<&Value>, was: Option<&Value>) -> Vec<Change> {
        let id = if self.section == "Globals" { "Globals" } else { self.id };
        let set = |value| Change::Set { id: id.to_owned(), name: name.to_owned(), value };
        let some = |value: Option<Value>| value.map(set).into_iter().collect();
        let lost = |why: &str| vec![Change::Lost(format!("{name} of {id}: {why}"))];
        let any = self.any.get(name);
        let Some(is) = is else {
            let what = format!("{name} of {id}: it is gone");
            return vec![match way_out(self.section, name) {
                Some(way_out) => Change::Lost(format!("{what}: {way_out}")),
                None => {
                    let setting = setting(id, name, "!Ref \"AWS::NoValue\"");
                    Change::Lacks(format!("{what}; to leave it out, {setting}"))
                }
            }];
        };
        let nothing = Value::Mapping(Mapping::new());
        let mut all = match (name, way_out(self.section, name)) {
            _ if was == Some(is) => Vec::new(),
            ("Environment", None) => {
                // Variables that the list gives to other stacks, for logs that this one does not have, are not a
                // person's.
                let more = without(is, was.unwrap_or(&nothing));
                some(more.and_then(|more| without(&more, any.unwrap_or(&nothing))))
            }
            ("Metadata", None) => match without(is, was.unwrap_or(&nothing)) {
                Some(more)
                    if more.get("BuildProperties").is_some_and(|it| it.get("Binary").is_some()) =>
                {
                    lost("the name of the binary follows from the list")
                }
                more => some(more),
            },
            ("Policies", _) => self.policies(is, was, any),
            // These are streams of logs that this stack does not have.
            ("Events", Some(way_out)) if without(is, any.unwrap_or(&nothing)).is_none() => {
                vec![Change::Lacks(format!("{name} of {id}: they lack something: {way_out}"))]
            }
            (_, Some(_)) if any == Some(is) => Vec::new(),
            (_, Some(way_out)) => lost(way_out),
            _ => match LISTS.iter().find(|(list, _)| *list == name) {
                Some((_, key)) => self.list(name, key, is, was),
                None => vec![set(is.clone())],
            },
        };
        all.extend(was.into_iter().flat_map(|was| self.gone(name, is, was)));
        all
    }

    /// The parts of what is written that are gone. No setting leaves them out.
    fn gone(&self, name: &str, is: &Value, was: &Value) -> Vec<Change> {
        let list = LISTS.iter().find(|(list, _)| *list == name);
        let gone: Vec<_> = match (name, list) {
            ("Environment" | "Metadata", _) => {
                let mut gone = Vec::new();
                lacking(was, is, &mut gone);
                gone
            }
            ("Policies", _) => {
                let found = statements(is).unwrap_or_default();
                let written = statements(was).unwrap_or_default().into_iter();
                written.filter(|statement| !is_covered(statement, &found)).map(flow).collect()
            }
            (_, Some((_, key))) => {
                let found = is.as_sequence().map(Vec::as_slice).unwrap_or_default();
                let names = was.as_sequence().into_iter().flatten().filter_map(|it| it.get(key));
                names.filter(|of| of_name(found, key, of).is_none()).map(flow).collect()
            }
            _ => Vec::new(),
        };
        let line = |gone| format!("{name} of {}: {gone} is gone, and the list needs it", self.id);
        gone.into_iter().map(|gone| Change::Lacks(line(gone))).collect()
    }

    /// The items of a list that are not written.
    fn list(&self, name: &str, key: &str, is: &Value, was: Option<&Value>) -> Vec<Change> {
        let written = was.and_then(Value::as_sequence).map(Vec::as_slice).unwrap_or_default();
        let Value::Sequence(items) = is else {
            let why = "it is no list: write the items that are yours as a list";
            return vec![Change::Lost(format!("{name} of {}: {why}", self.id))];
        };
        let (mut more, mut all) = (Vec::new(), Vec::new());
        for item in items {
            match item.get(key).map(|of| (of, of_name(written, key, of))) {
                Some((_, Some(written))) if written == item => {}
                Some((of, Some(_))) => all.push(Change::Lost(format!(
                    "{} in {name} of {}: it follows from the list, and is another one there",
                    flow(of),
                    self.id
                ))),
                _ => more.push(item.clone()),
            }
        }
        if !more.is_empty() {
            let (id, name) = (self.id.to_owned(), name.to_owned());
            all.push(Change::Set { id, name, value: more.into() });
        }
        all
    }

    /// The statements of a role that are not written, neither here nor for other stacks.
    fn policies(&self, is: &Value, was: Option<&Value>, any: Option<&Value>) -> Vec<Change> {
        let written = [was, any].into_iter().flatten().flat_map(statements).flatten();
        let written: Vec<_> = written.collect();
        let (Some(found), false) = (statements(is), written.is_empty()) else {
            let way_out = way_out(self.section, "Policies").unwrap_or_default();
            return vec![Change::Lost(format!("Policies of {}: {way_out}", self.id))];
        };
        let own = found.into_iter().filter(|statement| !is_covered(statement, &written));
        let role = || self.id.to_owned();
        own.map(|statement| Change::Statement { role: role(), statement: statement.clone() })
            .collect()
    }
}

/// Adds the names in a map, and in the maps in it, that another one does not have.
fn lacking(map: &Value, other: &Value, names: &mut Vec<String>) {
    for (name, value) in map.as_mapping().into_iter().flatten() {
        match other.get(name) {
            Some(other) => lacking(value, other, names),
            None => names.push(flow(name)),
        }
    }
}

/// The parts of a value that another one does not have. `None` if there are none.
fn without(value: &Value, other: &Value) -> Option<Value> {
    let (Value::Mapping(all), Value::Mapping(other)) = (value, other) else {
        return (value != other).then(|| value.clone());
    };
    let more: Mapping = all
        .iter()
        .filter_map(|(name, value)| {
            let more = match other.get(name) {
                Some(other) => without(value, other)?,
                None => value.clone(),
            };
            Some((name.clone(), more))
        })
        .collect();
    (!more.is_empty()).then(|| more.into())
}

/// The edits of a person between the marks, as lines that say how to keep them. A block whose hash fits has no edits.
///
/// # Errors
/// As [`super::written`].
pub fn edits(text: &str, fresh: &str) -> Result<Vec<String>, WriteError> {
    let (text, fresh) = (unix(text)?, unix(fresh)?);
    let (mut lines, fresh) = (Vec::new(), sections(&fresh));
    for Section { name: section, block, .. } in sections(&text) {
        let new = fresh.iter().find(|it| it.name == section).and_then(|section| section.block);
        let Some(block) =
            block.filter(|block| !block.is_intact && Some(block.body) != new.map(|it| it.body))
        else {
            continue;
        };
        let before = lines.len();
        let new = entries(new.map(|it| it.body).unwrap_or_default())?;
        let found = entries(block.body)?;
        for (id, entry) in &found {
            let name = flow(id);
            match new.get(id) {
                None => lines.push(format!(
                    "{section}: {name} does not follow from the list: move it below the closing mark of {section}"
                )),
                Some(new) => lines.extend(changes(section, &name, entry, new, new).into_iter().map(line)),
            }
        }
        let gone = new.keys().filter(|id| !found.contains_key(id));
        lines.extend(
            gone.map(|id| format!("{section}: {} is gone, and the list needs it", flow(id))),
        );
        if lines.len() == before {
            lines.push(format!(
                "{section}: a comment or the order has changed: write comments outside of the marks"
            ));
        }
    }
    Ok(lines)
}

/// The line that says how to keep a change.
pub(super) fn line(change: Change) -> String {
    match change {
        Change::Set { id, name, value } => {
            format!("{name} of {id}: {}", setting(&id, &name, &flow(&value)))
        }
        Change::Statement { role, statement } => format!(
            "Policies of {role}: write an AWS::IAM::RolePolicy below the closing mark of Resources, with the statement {}",
            flow(&statement)
        ),
        Change::Lacks(line) | Change::Lost(line) => line,
    }
}

/// How to write a setting.
pub(super) fn setting(id: &str, name: &str, value: &str) -> String {
    format!("write `{id}: {{ {name}: {value} }}` below `Ringfence:` in the section Metadata")
}
