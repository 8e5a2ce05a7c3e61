//! Metadata: what travels beside an event's payload.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Metadata by key, in the order of keys. Each key is a top-level attribute of the item, so a key
/// that any kind of item uses for itself is refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, Value>", into = "BTreeMap<String, Value>")]
pub struct Metadata(BTreeMap<String, Value>);

/// A metadata key that an item uses for itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("metadata key {0:?} is reserved for the log; choose another")]
pub struct MetadataError(String);

/// Attributes of event, fence, index, command and import items.
const RESERVED: [&str; 19] = [
    "id",
    "position",
    "at",
    "appendId",
    "rest",
    "slot",
    "event",
    "context",
    "data",
    "recordedAt",
    "tags",
    "head",
    "repaired",
    "indexOf",
    "partition",
    "commandHash",
    "events",
    "expiresAt",
    "eventId",
];
const RESERVED_PREFIXES: [&str; 2] = ["tag_", "cnt#"];

impl Metadata {
    /// Whether `key` belongs to the log.
    pub fn is_reserved(key: &str) -> bool {
        RESERVED.contains(&key) || RESERVED_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
    }

    /// Sets `key`. Fails, and changes nothing, if the log itself uses the key.
    pub fn insert(
        &mut self,
        key: impl Into<String>,
        value: impl Into<Value>,
    ) -> Result<(), MetadataError> {
        let key = key.into();
        if key.is_empty() || Self::is_reserved(&key) {
            return Err(MetadataError(key));
        }
        self.0.insert(key, value.into());
        Ok(())
    }

    /// The metadata of a writer that does not know these keys: the members of an object as they are. If one
    /// of them has a name that the log itself uses, or if it is not an object, it becomes one value under
    /// `metadata`.
    #[must_use]
    pub fn foreign(value: Value) -> Self {
        let whole = |value| Self(BTreeMap::from([("metadata".to_owned(), value)]));
        match value {
            Value::Null => Self::default(),
            Value::Object(map)
                if map.keys().any(|key| key.is_empty() || Self::is_reserved(key)) =>
            {
                whole(Value::Object(map))
            }
            Value::Object(map) => Self(map.into_iter().collect()),
            value => whole(value),
        }
    }

    /// The value under `key`, if it is text.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.as_str()
    }

    /// All keys and values, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }
}

impl TryFrom<BTreeMap<String, Value>> for Metadata {
    type Error = MetadataError;

    fn try_from(entries: BTreeMap<String, Value>) -> Result<Self, MetadataError> {
        let mut metadata = Self::default();
        for (key, value) in entries {
            metadata.insert(key, value)?;
        }
        Ok(metadata)
    }
}

impl From<Metadata> for BTreeMap<String, Value> {
    fn from(metadata: Metadata) -> Self {
        metadata.0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_key_of_the_log_can_be_overwritten() {
        let mut metadata = Metadata::default();
        for key in ["", "id", "event", "expiresAt", "tag_orderId", "at", "cnt#A", "head"] {
            assert_eq!(metadata.insert(key, "x"), Err(MetadataError(key.to_owned())));
        }
        let json = r#"{ "tag_orderId": "o" }"#;
        assert!(serde_json::from_str::<Metadata>(json).is_err());
        metadata.insert("correlationId", "c").unwrap();
        assert_eq!(metadata.text("correlationId"), Some("c"));
        assert_eq!(metadata.iter().count(), 1);
    }

    #[test]
    fn the_metadata_of_another_writer_is_kept() {
        let check = |value: Value, expected: Value| {
            assert_eq!(serde_json::to_value(Metadata::foreign(value)).unwrap(), expected);
        };
        check(json!(null), json!({}));
        check(json!({ "user": 1 }), json!({ "user": 1 }));
        check(json!({ "id": 1, "a": 2 }), json!({ "metadata": { "id": 1, "a": 2 } }));
        check(json!([1]), json!({ "metadata": [1] }));
    }
}
