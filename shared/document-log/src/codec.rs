//! Typed events: a variant's name is the type, its content the payload.

use std::cell::Cell;

use serde::de::{DeserializeOwned, Deserializer, Visitor};
use serde::{Serialize, de, forward_to_deserialize_any, ser};
use serde_json::{Error, Map, Value};

/// The type and payload of an event; a variant without content has no payload.
pub(crate) fn encode(event: &impl Serialize) -> Result<(String, Option<Value>), Error> {
    match serde_json::to_value(event)? {
        Value::String(event_type) => Ok((event_type, None)),
        Value::Object(map) if map.len() == 1 => {
            let (event_type, data) = map.into_iter().next().expect("it has one entry");
            Ok((event_type, Some(data)))
        }
        _ => Err(ser::Error::custom("events are the variants of an enum, tagged by name alone")),
    }
}

/// The same as [`encode`], of an event that can be read back. JSON can't hold every value: NaN becomes null. And a
/// reader refuses what nests too deep.
pub(crate) fn encode_readable<E: Serialize + DeserializeOwned>(
    event: &E,
) -> Result<(String, Option<Value>), Error> {
    let (event_type, data) = encode(event)?;
    let text = data.as_ref().map(Value::to_string);
    let read = text.as_deref().map(serde_json::from_str).transpose()?;
    decode::<E>(&event_type, read)?;
    Ok((event_type, data))
}

/// The event of a type that the enum knows.
///
/// # Errors
/// It does not know the type, or the payload has another shape.
pub fn decode<E: DeserializeOwned>(event_type: &str, data: Option<Value>) -> Result<E, Error> {
    let alone = || serde_json::from_value(Value::from(event_type));
    let Some(data) = data else { return alone() };
    let empty = data.as_object().is_some_and(Map::is_empty);
    let tagged = Map::from_iter([(event_type.to_owned(), data)]);
    match serde_json::from_value(Value::Object(tagged)) {
        // Other writers give a variant without content an empty payload.
        Err(error) if empty => alone().map_err(|_| error),
        decoded => decoded,
    }
}

/// The types that the enum knows; empty unless it is an enum that is tagged by the names of its variants
/// alone.
pub(crate) fn types<E: DeserializeOwned>() -> &'static [&'static str] {
    let found = Cell::new(&[][..]);
    // It always fails; only what it asks for matters.
    let _ = E::deserialize(Names(&found));
    found.get()
}

struct Names<'a>(&'a Cell<&'static [&'static str]>);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = Error;

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        self.0.set(variants);
        Err(de::Error::custom("only the names are wanted"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(de::Error::custom("only an enum has names"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all_fields = "camelCase")]
    enum Event {
        Added {
            item_id: String,
        },
        #[serde(rename = "Gone")]
        Removed(String),
        Closed,
    }

    #[derive(Debug, Serialize, Deserialize)]
    #[serde(tag = "type")]
    enum Tagged {
        Closed,
    }

    #[test]
    fn a_variant_is_a_type_and_a_payload() {
        for (event, event_type, data) in [
            (Event::Added { item_id: "a".into() }, "Added", Some(json!({ "itemId": "a" }))),
            (Event::Removed("a".into()), "Gone", Some(json!("a"))),
            (Event::Closed, "Closed", None),
        ] {
            let encoded = encode(&event).expect("it has a form");
            assert_eq!(encoded, (event_type.to_owned(), data.clone()));
            assert_eq!(decode::<Event>(event_type, data).expect("it was written so"), event);
        }
        assert_eq!(decode::<Event>("Closed", Some(json!({}))).expect("no content"), Event::Closed);
        assert_eq!(decode::<Event>("Closed", Some(json!(null))).expect("null"), Event::Closed);
    }

    #[test]
    fn an_error_says_that_events_must_be_variants_of_an_enum() {
        let error = decode::<Event>("Added", Some(json!({}))).expect_err("no item");
        assert!(error.to_string().contains("itemId"), "{error}");
        let error = decode::<Event>("Added", Some(json!({ "x": 1 }))).expect_err("no item");
        assert!(error.to_string().contains("itemId"), "{error}");
        let error = encode(&vec![1]).expect_err("no enum");
        assert!(error.to_string().contains("variants of an enum"), "{error}");
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Measured {
        Metres(f64),
        Nested(Nested),
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Nested(Option<Box<Nested>>, ());

    #[test]
    fn what_no_reader_could_read_is_not_encoded() {
        let whole = 0.01 + 0.2;
        let (event_type, data) = encode_readable(&Measured::Metres(whole)).expect("a number");
        assert_eq!(decode::<Measured>(&event_type, data).expect("read"), Measured::Metres(whole));
        for number in [f64::NAN, f64::INFINITY, 1.7e308 + 1.7e308] {
            let error = encode_readable(&Measured::Metres(number)).expect_err("JSON has none");
            assert!(error.to_string().contains("null"), "{error}");
        }
        let nested = |levels: u32| {
            let level = |inner, _| Nested(Some(Box::new(inner)), ());
            Measured::Nested((0..levels).fold(Nested(None, ()), level))
        };
        encode_readable(&nested(100)).expect("it can be read");
        let error = encode_readable(&nested(200)).expect_err("no reader goes as deep");
        assert!(error.to_string().contains("recursion limit"), "{error}");
    }

    #[test]
    fn an_enum_knows_its_types() {
        assert_eq!(types::<Event>(), ["Added", "Gone", "Closed"]);
        assert!(types::<Tagged>().is_empty() && types::<String>().is_empty());
    }
}
