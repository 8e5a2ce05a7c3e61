//! What a person has changed between the marks, and which line keeps it.

use ringfence_new::marks::{Section, sections};
use serde_yaml_ng::{Mapping, Value};

use super::error::WriteError;
use super::settings::flow;

/// What follows from the list alone, so that no setting takes its place.
pub(super) const FROM_LIST: [&str; 9] = [
    "AlarmDescription",
    "AttributeDefinitions",
    "AssumeRolePolicyDocument",
    "DashboardBody",
    "Dimensions",
    "Events",
    "GlobalSecondaryIndexes",
    "Metrics",
    "Policies",
];

/// A change of something that is written.
pub(super) enum Change {
    /// A setting keeps it.
    Set { id: String, name: String, value: Value },
    /// Nothing keeps it.
    Lost(String),
}

/// The entries of a section.
pub(super) fn entries(body: &str) -> Result<Mapping, WriteError> {
    Ok(serde_yaml_ng::from_str::<Option<Mapping>>(body)?.unwrap_or_default())
}

/// How an entry differs from the one that is written.
pub(super) fn changes(section: &str, id: &str, found: &Value, fresh: &Value) -> Vec<Change> {
    let lost = |what: &str| vec![Change::Lost(format!("{section}: {id}{what}"))];
    let id = if section == "Globals" { "Globals" } else { id };
    let maps = |name: &str| Some((found.get(name)?.as_mapping()?, fresh.get(name)?.as_mapping()?));
    match section {
        "Resources" => {
            let mut all = differing(id, found.as_mapping(), fresh.as_mapping());
            if let Some((found, fresh)) = maps("Properties") {
                all.extend(differing(id, Some(found), Some(fresh)));
            }
            all
        }
        "Parameters" | "Globals" => differing(id, found.as_mapping(), fresh.as_mapping()),
        _ if found == fresh => Vec::new(),
        _ => lost(""),
    }
}

fn differing(id: &str, found: Option<&Mapping>, fresh: Option<&Mapping>) -> Vec<Change> {
    let (Some(found), Some(fresh)) = (found, fresh) else { return Vec::new() };
    let names = found.keys().chain(fresh.keys().filter(|name| !found.contains_key(name)));
    let mut all = Vec::new();
    for name in names.filter(|name| *name != "Properties" && *name != "Metadata") {
        let (was, is, name) = (fresh.get(name), found.get(name), flow(name));
        match is.filter(|_| !FROM_LIST.contains(&&*name)) {
            _ if was == is => {}
            Some(value) => {
                let value = if name == "Environment" { more(value, was) } else { value.clone() };
                all.push(Change::Set { id: id.to_owned(), name, value });
            }
            None => all.push(Change::Lost(format!("{name} of {id}"))),
        }
    }
    all
}

/// The variables that are not written.
fn more(found: &Value, fresh: Option<&Value>) -> Value {
    let of = |value: &Value| {
        value.get("Variables").and_then(Value::as_mapping).cloned().unwrap_or_default()
    };
    let (mut all, written) = (of(found), fresh.map(of).unwrap_or_default());
    all.retain(|name, value| written.get(name) != Some(value));
    Value::Mapping([("Variables".into(), all.into())].into_iter().collect())
}

/// What a person has changed between the marks, as lines that say how to keep it. Blocks whose marks say that they are as
/// they were written have none.
///
/// # Errors
/// As [`super::written`].
pub fn edits(text: &str, fresh: &str) -> Result<Vec<String>, WriteError> {
    let (mut lines, fresh) = (Vec::new(), sections(fresh));
    for Section { name: section, block, .. } in sections(text) {
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
                Some(new) => lines.extend(changes(section, &name, entry, new).into_iter().map(|change| match change {
                    Change::Set { id, name, value } => format!(
                        "{name} of {id}: write `{id}: {{ {name}: {} }}` below `Ringfence:` in the section Metadata",
                        flow(&value)
                    ),
                    Change::Lost(what) => format!("{what} follows from the list, and no setting changes it"),
                })),
            }
        }
        let gone = new.keys().filter(|id| !found.contains_key(id));
        lines.extend(
            gone.map(|id| format!("{section}: {} is gone, and the list needs it", flow(id))),
        );
        if lines.len() == before {
            lines.push(format!(
                "{section}: a comment or the order has changed, and that is written anew"
            ));
        }
    }
    Ok(lines)
}
