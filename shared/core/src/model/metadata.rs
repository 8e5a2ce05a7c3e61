//! Metadata: data beside an event's payload.

use std::collections::BTreeMap;

use ringfence_derive::value;
use serde_json::Value;

/// Metadata by key, in the order of keys. Each key is a top-level attribute of the item. So keys that any kind of
/// item uses are refused.
#[value]
#[derive(Clone, Debug, Default, PartialEq)]
#[serde(try_from = "BTreeMap<String, Value>")]
pub struct Metadata(BTreeMap<String, Value>);

/// A metadata key that items use themselves.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("metadata key {0:?} is reserved for the log; choose another")]
pub struct MetadataError(String);

/// Attributes of event, fence, index, command and import items.
const RESERVED: [&str; 20] = [
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
    "schema",
];
const RESERVED_PREFIXES: [&str; 2] = ["tag_", "cnt#"];

impl Metadata {
    /// Whether the log uses `key`.
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

    /// The key for the version of an event's payload. In the layout of another program, the log keeps the version in
    /// the metadata.
    pub const SCHEMA: &str = "schema";

    /// The value of [`Metadata::SCHEMA`] in the layout of another program; `None` for version 1. It contains the
    /// type's name, so that another writer's value under this key is not taken for it.
    #[must_use]
    pub fn schema(event_type: &str, version: u32) -> Option<Value> {
        (version > 1).then(|| serde_json::json!({ event_type: version }))
    }

    /// The metadata in the layout of another program, and the version of the payload. The version is 1 unless this
    /// crate has marked another one. The members of an object stay as they are. If one of them has a name that the
    /// log uses, or if the value is not an object, it becomes one value under `metadata`.
    #[must_use]
    pub fn foreign(mut value: Value, event_type: &str) -> (Self, u32) {
        let version = Self::take_version(&mut value, event_type);
        let whole = |value| Self(BTreeMap::from([("metadata".to_owned(), value)]));
        let metadata = match value {
            Value::Null => Self::default(),
            Value::Object(map)
                if map.keys().any(|key| key.is_empty() || Self::is_reserved(key)) =>
            {
                whole(Value::Object(map))
            }
            Value::Object(map) => Self(map.into_iter().collect()),
            value => whole(value),
        };
        (metadata, version)
    }

    /// Removes the mark of [`Metadata::schema`], and returns its version.
    fn take_version(value: &mut Value, event_type: &str) -> u32 {
        let version = || {
            let marked = value.get(Self::SCHEMA)?.as_object().filter(|marked| marked.len() == 1)?;
            let version = u32::try_from(marked.get(event_type)?.as_u64()?).ok()?;
            (version > 1).then_some(version)
        };
        let Some(version) = version() else { return 1 };
        value.as_object_mut().and_then(|map| map.remove(Self::SCHEMA));
        version
    }

    /// The value under `key`, if it is a string.
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
            let (metadata, version) = Metadata::foreign(value, "Placed");
            assert_eq!((serde_json::to_value(metadata).unwrap(), version), (expected, 1));
        };
        check(json!(null), json!({}));
        check(json!({ "user": 1 }), json!({ "user": 1 }));
        check(json!({ "id": 1, "a": 2 }), json!({ "metadata": { "id": 1, "a": 2 } }));
        check(json!([1]), json!({ "metadata": [1] }));
        // Another writer may have any value under the key of the version.
        for schema in [json!(2), json!("v2"), json!({ "Placed": "2" }), json!({ "Placed": 1 })] {
            check(json!({ "schema": schema }), json!({ "metadata": { "schema": schema } }));
        }
        for schema in [json!({ "Other": 2 }), json!({ "Placed": 2, "Other": 2 })] {
            check(json!({ "schema": schema }), json!({ "metadata": { "schema": schema } }));
        }
    }

    #[test]
    fn a_version_above_the_first_is_marked_beside_the_metadata() {
        assert_eq!(Metadata::schema("Placed", 1), None);
        let marked = json!({ "user": 1, "schema": Metadata::schema("Placed", 3) });
        let (metadata, version) = Metadata::foreign(marked, "Placed");
        assert_eq!((serde_json::to_value(metadata).unwrap(), version), (json!({ "user": 1 }), 3));
    }
}
