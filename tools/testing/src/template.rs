//! `template.yaml` as text, and the messages of checks about it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use ringfence_local::template::Model;
use serde_json::{Value, json};

/// The template of the stack in this folder as JSON. A tag such as `!Ref x` is `{"!Ref": x}`.
#[must_use]
pub fn template(root: &Path) -> Value {
    json_of(&fs::read_to_string(root.join("template.yaml")).expect("the shape of a template"))
}

pub(crate) fn json_of(text: &str) -> Value {
    let yaml: serde_yaml_ng::Value =
        serde_yaml_ng::from_str(text).expect("the shape of a template");
    serde_json::to_value(yaml).expect("the shape of a template")
}

/// The properties of the resources of a kind, by logical id.
#[must_use]
pub fn resources(template: &Value, kind: &str) -> BTreeMap<String, Value> {
    let all = template["Resources"].as_object().expect("the shape of a template").iter();
    let of_kind = all.filter(|(_, resource)| resource["Type"] == kind);
    of_kind.map(|(id, resource)| (id.clone(), resource["Properties"].clone())).collect()
}

/// The event source mappings of a function, by the names of its events.
pub fn mappings(function: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let events = function["Events"].as_object().into_iter().flatten();
    events
        .filter(|(_, event)| event["Type"] == "DynamoDB")
        .map(|(name, event)| (name, &event["Properties"]))
}

/// The ARN of a resource, in the template's notation.
#[must_use]
pub fn arn(resource: &str) -> Value {
    json!({ "!GetAtt": format!("{resource}.Arn") })
}

/// The ARN of a table, in the template's notation. It is in a parameter of Systems Manager, because it may be the ARN
/// of the stack's table or of a table in its place.
#[must_use]
pub fn table_arn(table: &str) -> Value {
    json!({ "!GetAtt": format!("{table}Arn.Value") })
}

/// The queue of events on which an automation failed.
pub const AUTOMATIONS_QUEUE: &str = "AutomationsDeadLetters";

/// A line for each missing thing, with the text to write, and a line for each unexpected thing.
pub fn differences<T: Ord>(
    found: &BTreeSet<T>,
    expected: &BTreeSet<T>,
    missing: impl Fn(&T) -> String,
    extra: impl Fn(&T) -> String,
) -> Vec<String> {
    let missing = expected.difference(found).map(missing);
    missing.chain(found.difference(expected).map(extra)).collect()
}

/// Panics with the lines, if there are any.
#[track_caller]
pub fn check_none(lines: &[String]) {
    assert!(lines.is_empty(), "\n{}", lines.join("\n"));
}

/// The binary of the function of this logical id, if the stack needs the function. The functions that serve all
/// contexts have binaries with other names in each stack of a workspace, because cargo builds all of them into one
/// folder.
pub(crate) fn binary<'m>(model: &'m Model, id: &str) -> Option<&'m str> {
    let function = model.functions.iter().find(|function| function.id == id);
    function.map(|function| &*function.binary)
}
