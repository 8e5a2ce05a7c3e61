//! Checks that no resource names another one that a condition may leave out.

use std::collections::BTreeMap;

use serde_yaml_ng::{Mapping, Value};

use super::edits::entries;
use super::error::WriteError;
use super::flow::flow;

/// Checks that resources and outputs name each resource that has a condition only under that condition.
///
/// # Errors
/// Names the first resource or output that does not.
pub(super) fn check_conditions(bodies: &[(&str, String)]) -> Result<(), WriteError> {
    let of = |section: &str| {
        let body = bodies.iter().find(|(name, _)| *name == section);
        body.map_or_else(|| Ok(Mapping::new()), |(_, body)| entries(body))
    };
    let resources = of("Resources")?;
    let mut conditions = BTreeMap::new();
    for (id, entry) in &resources {
        if let Some(condition) = entry.get("Condition").map(flow) {
            let events = entry.get("Properties").and_then(|of| of.get("Events")?.as_mapping());
            // SAM makes a mapping for an event, with this name.
            let events = events.into_iter().flat_map(Mapping::keys);
            let made = events.map(|event| format!("{}{}", flow(id), flow(event)));
            let ids: Vec<_> = [flow(id)].into_iter().chain(made).collect();
            conditions.extend(ids.into_iter().map(|id| (id, condition.clone())));
        }
    }
    for (id, entry) in resources.iter().chain(&of("Outputs")?) {
        let mut walk = Walk { conditions: &conditions, under: Vec::new(), wrong: None };
        walk.under.extend(entry.get("Condition").map(flow));
        walk.value(entry);
        if let Some(named) = walk.wrong {
            let condition = &conditions[&named];
            return Err(WriteError::Settings(format!(
                "{0} needs {named}, which the condition {condition} may leave out: set no Condition of {named} below \
                 Metadata: Ringfence, or the same one of {0}",
                flow(id)
            )));
        }
    }
    Ok(())
}

struct Walk<'a> {
    conditions: &'a BTreeMap<String, String>,
    /// The conditions that hold here.
    under: Vec<String>,
    /// The first resource that is named without its condition.
    wrong: Option<String>,
}

impl Walk<'_> {
    fn value(&mut self, value: &Value) {
        match value {
            Value::Tagged(tagged) => self.intrinsic(&tagged.tag.to_string(), &tagged.value),
            Value::Mapping(all) => {
                for (name, value) in all {
                    match flow(name).trim_matches('"') {
                        name @ ("Ref" | "Fn::GetAtt" | "Fn::Sub" | "Fn::If") => {
                            self.intrinsic(name, value)
                        }
                        _ => self.value(value),
                    }
                }
            }
            Value::Sequence(all) => all.iter().for_each(|value| self.value(value)),
            _ => {}
        }
    }

    fn intrinsic(&mut self, name: &str, value: &Value) {
        let first = || value.get(0).and_then(Value::as_str).or(value.as_str()).unwrap_or_default();
        match name.trim_start_matches('!').trim_start_matches("Fn::") {
            "Ref" => self.names(first()),
            "GetAtt" => self.names(first().split('.').next().unwrap_or_default()),
            "If" => {
                self.under.push(first().to_owned());
                value.get(1).into_iter().for_each(|value| self.value(value));
                self.under.pop();
                value.get(2).into_iter().for_each(|value| self.value(value));
            }
            "Sub" => {
                let given = value.get(1);
                for part in first().split("${").skip(1) {
                    let id = part.split(['}', '.']).next().unwrap_or_default();
                    if given.and_then(|given| given.get(id)).is_none() {
                        self.names(id);
                    }
                }
                given.into_iter().for_each(|value| self.value(value));
            }
            _ => self.value(value),
        }
    }

    fn names(&mut self, id: &str) {
        if self.conditions.get(id).is_some_and(|needs| !self.under.contains(needs)) {
            self.wrong.get_or_insert_with(|| id.to_owned());
        }
    }
}
