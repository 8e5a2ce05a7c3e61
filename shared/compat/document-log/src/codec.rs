//! The payloads of events. A stored payload leaves out the field marked `#[tag(partition)]`, because the stream's name
//! has its value. A decision that reads the event gets the field back.

use ringfence_core::{DowncastError, EventSchema, NewEvent, SequencedEvent, Tag};
use serde_json::{Map, Value};

/// An event or unfold to write.
#[derive(Clone, Debug, PartialEq)]
pub struct Payload {
    /// The type name.
    pub event_type: String,
    /// The version of the type; for a snapshot, its number.
    pub version: u32,
    /// The payload, if it has one.
    pub data: Option<Value>,
}

impl Payload {
    /// A payload of a type with only one version.
    pub fn new(event_type: impl Into<String>, data: Option<Value>) -> Self {
        Self { event_type: event_type.into(), version: 1, data }
    }
}

/// The stored payload of an event of the stream with this id. It leaves out the field that names the stream; [`whole`]
/// adds it again. If no field is left, the event has no payload.
pub(crate) fn stored(
    event: &NewEvent,
    schema: &EventSchema,
    id: &str,
) -> Result<Payload, DowncastError> {
    let (version, mut data) = schema.stored(event.data.clone())?;
    schema.leave_out_id(id, &mut data);
    let is_empty = data.is_null() || data.as_object().is_some_and(Map::is_empty);
    let event_type = event.event_type.clone().into_owned();
    Ok(Payload { event_type, version, data: (!is_empty).then_some(data) })
}

/// The event as a decision reads it, with the tag that names its stream and the tag's field.
pub(crate) fn whole(mut event: SequencedEvent, key: &str, id: &str) -> SequencedEvent {
    if event.data.is_null() {
        event.data = Value::Object(Map::new());
    }
    if let Some(fields) = event.data.as_object_mut() {
        fields.entry(key).or_insert_with(|| id.into());
    }
    event.tags = vec![Tag::new(key.to_owned(), id)];
    event
}

#[cfg(test)]
mod tests {
    use ringfence_core::{BoundaryId, Event, EventRef, Metadata};
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Event)]
    struct Added {
        #[tag(partition)]
        cart_id: String,
        quantity: f64,
    }

    #[derive(Debug, PartialEq, Event)]
    struct Closed {
        #[tag(partition)]
        cart_id: String,
    }

    /// Its readers outside the log need the cart's id.
    #[derive(Debug, PartialEq, Event)]
    #[tag(partition, key = "cartId", value = cart_id)]
    struct CheckedOut {
        #[tag(skip)]
        cart_id: String,
    }

    /// An id that is not a text.
    #[derive(Debug, PartialEq, Event)]
    struct Counted {
        #[tag(partition, key = "cartId")]
        cart_id: u32,
    }

    #[derive(Debug, PartialEq, Event)]
    struct Named {
        #[tag(partition, key = "cartId")]
        #[serde(rename = "id")]
        cart: String,
    }

    /// The stored payload of the event. Checks that a read returns the same event.
    fn kept<E: Event + std::fmt::Debug + PartialEq>(event: E) -> Option<Value> {
        let new = NewEvent::new(&event).expect("it has a JSON");
        let id = new.tags[0].value.clone();
        let Payload { event_type, version, data } =
            stored(&new, &E::SCHEMA, &id).expect("it is the newest version");
        assert_eq!(event_type, E::NAME);
        let read = SequencedEvent {
            partition: BoundaryId::stored(format!("carts-{id}")),
            slot: 0,
            at: 0,
            rest: 0,
            event_type,
            context: "carts".to_owned(),
            tags: Vec::new(),
            version,
            data: data.clone().unwrap_or(Value::Null),
            metadata: Metadata::default(),
        };
        let read = whole(read, "cartId", &id);
        assert_eq!(read.tags, new.tags, "{:?}", EventRef::from(&read));
        assert_eq!(E::deserialize(&read.data).expect("it is whole"), event);
        data
    }

    #[test]
    fn the_field_that_names_the_stream_is_not_stored_and_is_read() {
        let cart_id = || "a".to_owned();
        let added = kept(Added { cart_id: cart_id(), quantity: 0.01 + 0.2 });
        assert_eq!(added, Some(json!({ "quantity": 0.01 + 0.2 })));
        assert_eq!(kept(Closed { cart_id: cart_id() }), None);
        assert_eq!(kept(CheckedOut { cart_id: cart_id() }), Some(json!({ "cartId": "a" })));
        assert_eq!(kept(Counted { cart_id: 7 }), Some(json!({ "cartId": 7 })));
        assert_eq!(kept(Named { cart: cart_id() }), Some(json!({ "id": "a" })));
    }

    #[test]
    fn a_number_that_json_does_not_have_is_refused() {
        for quantity in [f64::NAN, f64::INFINITY, 1.7e308 + 1.7e308] {
            let error = NewEvent::new(&Added { cart_id: "a".to_owned(), quantity });
            let error = error.expect_err("JSON has none").source.to_string();
            assert!(error.contains("null"), "{error}");
        }
    }
}
