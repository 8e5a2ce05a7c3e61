//! Event patterns: one matcher for the rules of a bus and the filters of an event source mapping. It guesses nothing:
//! an unsupported operator is an error when the pattern is parsed.

use serde_json::{Map, Value};

/// An event pattern, parsed.
#[derive(Clone, Debug)]
pub struct Pattern {
    fields: Vec<(String, Node)>,
}

#[derive(Clone, Debug)]
enum Node {
    Fields(Pattern),
    AnyOf(Vec<Test>),
}

#[derive(Clone, Debug)]
enum Test {
    Equals(Value),
    Exists(bool),
    Prefix(String),
    Suffix(String),
    AnythingBut(Vec<Value>),
}

/// A value that is not a pattern, or has an unsupported operator.
#[derive(Debug, thiserror::Error)]
#[error("pattern not understood: {what}")]
pub struct PatternError {
    /// The part that is not understood.
    pub what: String,
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// It is not a JSON object, is empty, or has an unsupported operator.
    pub fn parse(value: &Value) -> Result<Self, PatternError> {
        let map = value.as_object().filter(|map| !map.is_empty());
        let map = map.ok_or_else(|| PatternError { what: value.to_string() })?;
        let mut fields = Vec::with_capacity(map.len());
        for (key, value) in map {
            let node = match value {
                Value::Object(_) => Node::Fields(Self::parse(value)?),
                Value::Array(tests) if !tests.is_empty() && !key.starts_with('$') => {
                    Node::AnyOf(tests.iter().map(Test::parse).collect::<Result<_, _>>()?)
                }
                other => return Err(PatternError { what: format!("{key}: {other}") }),
            };
            fields.push((key.clone(), node));
        }
        Ok(Self { fields })
    }

    /// Whether the event has every field of the pattern with one of the field's values.
    #[must_use]
    pub fn matches(&self, event: &Value) -> bool {
        self.matches_value(Some(event))
    }

    fn matches_value(&self, value: Option<&Value>) -> bool {
        match value {
            // An absent field must be absent from every object of a list.
            Some(Value::Array(items)) if self.is_of_absence() => {
                items.iter().all(|item| self.matches_value(Some(item)))
            }
            // One object of a list must match, as one value of a list of plain values must.
            Some(Value::Array(items)) => items.iter().any(|item| self.matches_value(Some(item))),
            Some(Value::Object(map)) => self.matches_fields(map),
            // A plain value has no fields.
            _ => self.matches_fields(&Map::new()),
        }
    }

    /// Whether it only requires that fields are absent.
    fn is_of_absence(&self) -> bool {
        self.fields.iter().all(|(_, node)| match node {
            Node::Fields(pattern) => pattern.is_of_absence(),
            Node::AnyOf(tests) => matches!(tests[..], [Test::Exists(false)]),
        })
    }

    fn matches_fields(&self, map: &Map<String, Value>) -> bool {
        self.fields.iter().all(|(key, node)| match node {
            Node::Fields(pattern) => pattern.matches_value(map.get(key)),
            Node::AnyOf(tests) => tests.iter().any(|test| test.holds(map.get(key))),
        })
    }
}

impl Test {
    fn parse(value: &Value) -> Result<Self, PatternError> {
        let unknown = || PatternError { what: value.to_string() };
        let operator = match value {
            Value::Array(_) => return Err(unknown()),
            Value::Object(map) if map.len() == 1 => map.iter().next().ok_or_else(unknown)?,
            Value::Object(_) => return Err(unknown()),
            plain => return Ok(Self::Equals(plain.clone())),
        };
        match (operator.0.as_str(), operator.1) {
            ("exists", Value::Bool(exists)) => Ok(Self::Exists(*exists)),
            ("prefix", Value::String(prefix)) => Ok(Self::Prefix(prefix.clone())),
            ("suffix", Value::String(suffix)) => Ok(Self::Suffix(suffix.clone())),
            ("anything-but", Value::Array(values)) if values.iter().all(is_plain) => {
                Ok(Self::AnythingBut(values.clone()))
            }
            ("anything-but", value) if is_plain(value) => {
                Ok(Self::AnythingBut(vec![value.clone()]))
            }
            _ => Err(unknown()),
        }
    }

    fn holds(&self, value: Option<&Value>) -> bool {
        match (self, value) {
            (Self::Exists(wanted), found) => *wanted == found.is_some_and(has_plain),
            (_, Some(Value::Array(items))) => items.iter().any(|item| self.holds(Some(item))),
            (Self::Equals(wanted), Some(found)) => wanted == found,
            (Self::Prefix(prefix), Some(Value::String(text))) => text.starts_with(prefix),
            (Self::Suffix(suffix), Some(Value::String(text))) => text.ends_with(suffix),
            (Self::AnythingBut(refused), Some(found)) => {
                is_plain(found) && !refused.contains(found)
            }
            _ => false,
        }
    }
}

/// Only plain values count as existing, alone or in a list. An object is a path to values, and an empty list has no
/// value.
fn has_plain(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_plain),
        value => is_plain(value),
    }
}

fn is_plain(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(pattern: Value, event: Value, matches: bool) {
        let parsed = Pattern::parse(&pattern).expect("a pattern");
        assert_eq!(parsed.matches(&event), matches, "{pattern} on {event}");
    }

    #[test]
    fn equality_takes_one_of_a_list() {
        let pattern = json!({ "source": ["ordering"], "detail-type": ["A", "B"] });
        check(pattern.clone(), json!({ "source": "ordering", "detail-type": "B" }), true);
        check(pattern.clone(), json!({ "source": "ordering", "detail-type": "C" }), false);
        check(pattern.clone(), json!({ "source": "catalog", "detail-type": "A" }), false);
        check(pattern, json!({ "source": "ordering" }), false);
    }

    #[test]
    fn fields_nest() {
        let pattern = json!({ "detail": { "data": { "quantity": [1] } } });
        check(pattern.clone(), json!({ "detail": { "data": { "quantity": 1 } } }), true);
        check(pattern.clone(), json!({ "detail": { "data": { "quantity": "1" } } }), false);
        check(pattern, json!({ "detail": 1 }), false);
    }

    #[test]
    fn existence_tells_events_from_fences() {
        let pattern = json!({
            "eventName": ["INSERT"],
            "dynamodb": { "NewImage": { "event": { "S": [{ "exists": true }] } } },
        });
        let image =
            |image: Value| json!({ "eventName": "INSERT", "dynamodb": { "NewImage": image } });
        check(pattern.clone(), image(json!({ "event": { "S": "OrderPlaced" } })), true);
        check(pattern.clone(), image(json!({ "indexOf": { "S": "OrderPlaced" } })), false);
        let mut modified = image(json!({ "event": { "S": "OrderPlaced" } }));
        modified["eventName"] = json!("MODIFY");
        check(pattern, modified, false);
        // A path to values is not a value.
        check(json!({ "a": [{ "exists": true }] }), json!({ "a": { "b": 1 } }), false);
    }

    #[test]
    fn absence_holds_below_a_missing_path() {
        let pattern = json!({ "a": { "b": [{ "exists": false }] } });
        check(pattern.clone(), json!({}), true);
        check(pattern.clone(), json!({ "a": {} }), true);
        check(pattern, json!({ "a": { "b": null } }), false);
    }

    #[test]
    fn a_list_exists_if_it_has_a_plain_value() {
        let exists = json!({ "a": [{ "exists": true }] });
        for (list, found) in
            [(json!([]), false), (json!([{ "b": 1 }]), false), (json!([[], [1]]), true)]
        {
            check(exists.clone(), json!({ "a": list }), found);
            check(json!({ "a": [{ "exists": false }] }), json!({ "a": list }), !found);
        }
        let absent = json!({ "items": { "gift": [{ "exists": false }] } });
        check(absent.clone(), json!({ "items": [{ "gift": 1 }, {}] }), false);
        check(absent.clone(), json!({ "items": [{ "size": 1 }, {}] }), true);
        check(absent, json!({ "items": [] }), true);
    }

    #[test]
    fn operators() {
        check(json!({ "a": [{ "prefix": "ord-" }] }), json!({ "a": "ord-1" }), true);
        check(json!({ "a": [{ "prefix": "ord-" }] }), json!({ "a": "p-1" }), false);
        check(json!({ "a": [{ "suffix": ".png" }] }), json!({ "a": "x.png" }), true);
        check(json!({ "a": [{ "suffix": ".png" }] }), json!({ "a": "x.jpg" }), false);
        check(json!({ "a": [{ "anything-but": ["x", "y"] }] }), json!({ "a": "z" }), true);
        check(json!({ "a": [{ "anything-but": "x" }] }), json!({ "a": "x" }), false);
        check(json!({ "a": [{ "anything-but": "x" }] }), json!({}), false);
    }

    #[test]
    fn one_element_of_a_list_has_to_match() {
        check(json!({ "a": ["x"] }), json!({ "a": ["y", "x"] }), true);
        let pattern = json!({ "tags": { "key": ["orderId"] } });
        check(pattern.clone(), json!({ "tags": [{ "key": "a" }, { "key": "orderId" }] }), true);
        check(pattern, json!({ "tags": [{ "key": "a" }] }), false);
    }

    #[test]
    fn unknown_operators_are_refused() {
        for pattern in [
            json!({ "a": [{ "numeric": [">", 1] }] }),
            json!({ "$or": [{ "a": [1] }] }),
            json!({ "a": "x" }),
            json!({ "a": [] }),
            json!({}),
            json!([]),
        ] {
            assert!(Pattern::parse(&pattern).is_err(), "{pattern}");
        }
    }
}
