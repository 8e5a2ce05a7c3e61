//! Versions of a type of events. Upcasts convert payloads of older shapes to the newest one.
//!
//! A version is the shape of a payload, numbered from 1. An upcast converts a payload from one version to the next.
//! It is pure: payload in, payload out. It changes no tag, no partition and no type, and makes exactly one event from
//! one event, because slots, ids and fences count events as they are stored.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// Converts a payload from one version to another.
pub type Upcast = fn(Fields) -> Result<Fields, FieldError>;

/// The upcasts of a type, from version 1 on. The type's newest version is their number plus one.
///
/// Two values are equal if they have the same length, because addresses of functions can't be compared.
#[derive(Clone, Copy, Debug)]
pub struct Upcasts(pub &'static [Upcast]);

impl Upcasts {
    /// The upcasts of a type whose payload never changed.
    pub const NONE: Self = Self(&[]);

    /// The newest version.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "each upcast is written by hand")]
    pub const fn version(self) -> u32 {
        1 + self.0.len() as u32
    }

    /// Upcasts a payload of the version `from` to the newest version.
    ///
    /// # Errors
    /// An upcast fails.
    pub fn apply(self, event_type: &str, from: u32, data: Value) -> Result<Value, UpcastError> {
        let failed =
            |version| move |why| UpcastError { event_type: event_type.to_owned(), version, why };
        let from = from.max(1);
        let mut fields = fields(data).map_err(failed(from))?;
        for (version, upcast) in (1..).zip(self.0).skip(from as usize - 1) {
            fields = upcast(fields).map_err(failed(version))?;
        }
        Ok(Value::Object(fields.0))
    }
}

impl PartialEq for Upcasts {
    fn eq(&self, other: &Self) -> bool {
        self.version() == other.version()
    }
}

impl Eq for Upcasts {}

impl PartialOrd for Upcasts {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Upcasts {
    fn cmp(&self, other: &Self) -> Ordering {
        self.version().cmp(&other.version())
    }
}

impl Hash for Upcasts {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.version().hash(state);
    }
}

/// The older version in which new events of a type are stored.
#[derive(Clone, Copy, Debug)]
pub struct WrittenVersion {
    /// Its number.
    pub number: u32,
    /// Converts a payload of the newest version to this one. It is pure, and the upcasts make the same payload again.
    pub downcast: Upcast,
}

/// Two values are equal if they have the same number, because addresses of functions can't be compared.
impl PartialEq for WrittenVersion {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for WrittenVersion {}

/// The fields of a payload by their JSON names, during an upcast or a downcast.
#[derive(Clone, Debug, PartialEq)]
pub struct Fields(pub(super) Map<String, Value>);

/// The fields of a payload.
pub(super) fn fields(data: Value) -> Result<Fields, FieldError> {
    match data {
        // An event of a stream may have no payload at all.
        Value::Null => Ok(Fields(Map::new())),
        Value::Object(fields) => Ok(Fields(fields)),
        _ => Err(FieldError::NoObject),
    }
}

impl Fields {
    /// Whether the field exists. A `null` field exists.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The value of a field.
    ///
    /// # Errors
    /// The field is missing, or has another type.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<T, FieldError> {
        let value = self.0.get(name).ok_or_else(|| FieldError::Missing(name.to_owned()))?;
        T::deserialize(value).map_err(|error| wrong(name, error))
    }

    /// Gives a field another name.
    ///
    /// # Errors
    /// The field is missing, or the other name is taken.
    pub fn rename(&mut self, from: &str, to: &str) -> Result<(), FieldError> {
        if self.has(to) {
            return Err(FieldError::Taken(to.to_owned()));
        }
        let value = self.0.remove(from).ok_or_else(|| FieldError::Missing(from.to_owned()))?;
        self.0.insert(to.to_owned(), value);
        Ok(())
    }

    /// Sets a field that is missing.
    ///
    /// # Errors
    /// The value has no JSON.
    pub fn default(&mut self, name: &str, value: impl Serialize) -> Result<(), FieldError> {
        if self.has(name) { Ok(()) } else { self.set(name, value) }
    }

    /// Sets a field, whether it exists or not.
    ///
    /// # Errors
    /// The value has no JSON.
    pub fn set(&mut self, name: &str, value: impl Serialize) -> Result<(), FieldError> {
        let value = serde_json::to_value(value).map_err(|error| wrong(name, error))?;
        self.0.insert(name.to_owned(), value);
        Ok(())
    }

    /// Replaces the value of a field by the result of `convert`. `convert` may fail with a reason.
    ///
    /// # Errors
    /// The field is missing, has another type, or can't be converted.
    pub fn convert<A: DeserializeOwned, B: Serialize>(
        &mut self,
        name: &str,
        convert: impl FnOnce(A) -> Result<B, String>,
    ) -> Result<(), FieldError> {
        let converted = convert(self.remove(name)?).map_err(|why| wrong(name, why))?;
        self.set(name, converted)
    }

    /// Removes a field and returns its value.
    ///
    /// # Errors
    /// The field is missing, or has another type.
    pub fn remove<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, FieldError> {
        let value = self.get(name)?;
        self.0.remove(name);
        Ok(value)
    }
}

fn wrong(field: &str, why: impl ToString) -> FieldError {
    FieldError::Wrong { field: field.to_owned(), why: why.to_string() }
}

/// The reason why an upcast fails: the payload does not have the shape of its version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// A field is missing.
    #[error("field `{0}` is missing")]
    Missing(String),
    /// The new name of a field is taken.
    #[error("field `{0}` is there already")]
    Taken(String),
    /// The value of a field is not valid in the version.
    #[error("field `{field}`: {why}")]
    Wrong {
        /// The field.
        field: String,
        /// The reason.
        why: String,
    },
    /// The payload has no fields.
    #[error("the payload is not an object")]
    NoObject,
}

/// A payload that can't be upcast.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{event_type} can't be upcast from version {version} to {to}: {why}", to = version + 1)]
pub struct UpcastError {
    /// The type.
    pub event_type: String,
    /// The version whose upcast fails.
    pub version: u32,
    /// The reason.
    pub why: FieldError,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn fields(json: Value) -> Fields {
        serde_json::from_value(json).map(Fields).expect("an object")
    }

    #[test]
    fn fields_are_renamed_defaulted_converted_and_removed() {
        let mut data = fields(json!({ "name": "mug", "price": 4, "old": null }));
        data.rename("name", "title").unwrap();
        data.default("title", "cup").unwrap();
        data.default("tags", Vec::<String>::new()).unwrap();
        data.convert("price", |euros: u64| Ok(euros * 100)).unwrap();
        let old: Option<u32> = data.remove("old").unwrap();
        data.set("unit", "cent").unwrap();
        let expected = json!({ "title": "mug", "price": 400, "tags": [], "unit": "cent" });
        assert_eq!((old, data), (None, fields(expected)));
    }

    #[test]
    fn a_change_that_does_not_fit_names_the_field() {
        let data = || fields(json!({ "name": "mug", "title": "cup" }));
        let text = |changed: Result<(), FieldError>| changed.unwrap_err().to_string();
        let upper = |name: String| Ok(name.to_uppercase());
        assert_eq!(text(data().rename("label", "other")), "field `label` is missing");
        assert_eq!(text(data().rename("name", "title")), "field `title` is there already");
        assert_eq!(text(data().convert("nothing", upper)), "field `nothing` is missing");
        let no_json = BTreeMap::from([([1], 2)]);
        let said = "field `unit`: key must be a string";
        assert_eq!(text(data().default("unit", &no_json)), said);
        assert_eq!(text(data().set("unit", no_json)), said);
        let refused = data().convert("name", |_: String| Err::<u32, _>("no number".to_owned()));
        assert_eq!(text(refused), "field `name`: no number");
        let of_another_type = data().get::<u32>("name").map(drop);
        assert!(text(of_another_type).starts_with("field `name`: invalid type"));
    }

    /// Notes its number, to show the order of a chain.
    fn note(mut data: Fields, number: u32) -> Result<Fields, FieldError> {
        let mut met: Vec<u32> = data.remove("met")?;
        met.push(number);
        data.set("met", met)?;
        Ok(data)
    }

    const CHAIN: Upcasts =
        Upcasts(&[|data| note(data, 1), |data| note(data, 2), |data| note(data, 3)]);

    proptest! {
        #[test]
        fn each_later_upcast_is_applied_once_in_order(from in 1..=4_u32, step in 1..=4_u32) {
            let data = json!({ "met": [] });
            let met: Vec<u32> = (from..4).collect();
            prop_assert_eq!(CHAIN.apply("Placed", from, data.clone()), Ok(json!({ "met": met })));
            // The result is the same by way of any version in between.
            let step = step.max(from);
            let (begin, end) = (Upcasts(&CHAIN.0[..step as usize - 1]), CHAIN);
            let there = begin.apply("Placed", from, data).unwrap();
            prop_assert_eq!(end.apply("Placed", step, there), Ok(json!({ "met": met })));
        }
    }

    #[test]
    fn chains_are_compared_by_their_length() {
        assert_eq!(Upcasts(&[Ok]), Upcasts(&[Ok]));
        assert_ne!(Upcasts(&[Ok]), Upcasts::NONE);
    }

    #[test]
    fn an_error_names_type_and_version() {
        let error = |from, data| CHAIN.apply("Placed", from, data).unwrap_err().to_string();
        let text = "Placed can't be upcast from version 2 to 3: field `met` is missing";
        assert_eq!(error(2, json!({})), text);
        assert_eq!(error(2, Value::Null), text, "no payload has no fields");
        let text = "Placed can't be upcast from version 3 to 4: the payload is not an object";
        assert_eq!(error(3, json!([1])), text);
    }
}
