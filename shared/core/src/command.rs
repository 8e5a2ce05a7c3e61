//! What surrounds a command on its way to a decision.

use serde::Serialize;
use serde_json::Value;

use crate::{Context, Metadata, Position};

/// A command's surroundings: who, when, why, and how often it may take effect.
#[derive(Clone, Debug, Default)]
pub struct Envelope {
    /// What the decision may know.
    pub context: Context,
    /// What each event of the command carries.
    pub metadata: Metadata,
    /// With a key, the command takes effect once, however often it is sent.
    pub idempotency_key: Option<String>,
    /// The event that caused the command: its effects get later positions.
    pub cause: Option<Position>,
    /// When to give up, in milliseconds since 1970; `None` leaves it to the log's own bounds.
    pub deadline_ms: Option<u64>,
}

/// Identifies a command that takes effect once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRecord {
    /// The slice; keys of different slices do not meet.
    pub slice: &'static str,
    /// The caller's idempotency key.
    pub key: String,
    /// The command in canonical JSON, which tells a repeat from another command.
    pub command: String,
}

impl CommandRecord {
    /// The record of `command` under `key`.
    pub fn new(slice: &'static str, key: &str, command: &impl Serialize) -> Self {
        Self { slice, key: key.to_owned(), command: canonical_json(command) }
    }
}

/// JSON with sorted keys, without nulls and without white space: equal values have equal texts, and a
/// new field that is `None` changes nothing. Nulls in a list have a place and stay.
pub fn canonical_json(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("commands are maps with text keys");
    sorted(value).to_string()
}

/// Sorts by hand: with serde_json's `preserve_order`, which any crate of a build can switch on,
/// maps keep the order of insertion.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> =
                map.into_iter().filter(|(_, value)| !value.is_null()).collect();
            entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
            entries.into_iter().map(|(key, value)| (key, sorted(value))).collect()
        }
        Value::Array(values) => values.into_iter().map(sorted).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_null_is_what_is_not_there() {
        let check = |value: Value, expected: &str| assert_eq!(canonical_json(&value), expected);
        check(json!({ "b": { "d": null, "c": 1 }, "a": null }), r#"{"b":{"c":1}}"#);
        check(json!({ "b": [{ "a": null }, null, 1] }), r#"{"b":[{},null,1]}"#);
    }
}
