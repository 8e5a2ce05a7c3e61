//! Events: declared by a context, written by a slice, returned by a log.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{
    Serialize,
    de::{DeserializeOwned, Error as _},
};
use serde_json::Value;

use crate::{
    BoundaryId, CommandRecord, Metadata, Name, Place, Subjects, Tag, Upcasts, WrittenVersion,
    model::tag::distinct, rfc3339,
};

/// A type of event. Derive it: fields named `*_id` and `*_ids` become tags.
pub trait Event: Serialize + DeserializeOwned + JsonSchema {
    /// Type name, as in the schema.
    const NAME: &'static str;
    /// Name, tags and scopes.
    const SCHEMA: EventSchema;
    /// The upcasts from its older payloads to its newest version.
    const UPCASTS: Upcasts = Upcasts::NONE;

    /// The tags of this event, in the order of its fields.
    fn tags(&self) -> Vec<Tag>;
}

/// The catalog's knowledge of an event type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSchema {
    /// Type name, unique in the stack: `OrderPlaced`.
    pub name: Name,
    /// Its tags, in the order of its fields.
    pub tags: Cow<'static, [TagSchema]>,
    /// Joins the values of a composite partition: one of `/ | ~ ,`.
    pub separator: char,
    /// Whether some decision reads the type by its whole set of tags.
    pub read_as_composite: bool,
    /// Whether a decision reads the type alone, with any tags, because its command has no tag that the type carries.
    /// All events of the type then share one hot fence. It takes at most about a thousand appends a second, and each
    /// append conflicts with every decision under way.
    pub read_by_type: bool,
    /// Whether a fence of its partition counts the type. If a decision writes to other partitions, and reads no other
    /// types of this one, it depends on that fence and not on the partition's other events.
    pub fenced: bool,
    /// How many copies a new fence gets, so that decisions check a copy and not the fence; 0 for none. A fence that has
    /// copies names their number itself.
    pub copies: u16,
    /// The upcasts from its older payloads to its newest version. Their number determines the newest version.
    pub upcasts: Upcasts,
    /// The older version in which new events are stored; `None` for the newest.
    pub write: Option<WrittenVersion>,
    /// Whether the type is only read, because no slice writes it any more.
    pub retired: bool,
    /// The subjects of its personal data.
    pub subjects: Subjects,
}

/// One tag of an event type or a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagSchema {
    /// The key, in camelCase.
    pub key: Name,
    /// Whether it is (part of) the partition tag.
    pub partition: bool,
    /// Whether decisions read all events with the tag, in any partition.
    pub cross_partition: bool,
    /// Whether a cross-partition tag is read by index items, which can be read strongly. A tag that can have several
    /// values in an event is always read so.
    pub strong: bool,
    /// Whether it can have several values (a list).
    pub many: bool,
    /// Whether it always has a value.
    pub required: bool,
    /// Whether the tag is computed, and so is not the field of its key. A log of single streams leaves the field of
    /// the partition tag out of the payload, because the stream's name contains it. Computed tags are not left out.
    pub computed: bool,
    /// Whether the value is personal. The tag then has an HMAC in its place, under a key of the stack.
    pub blind: bool,
}

/// An event that is not yet in a log, in the newest version of its type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NewEvent {
    /// Type name.
    #[serde(rename = "type")]
    pub event_type: Name,
    /// The things that the event is about.
    pub tags: Vec<Tag>,
    /// The payload.
    pub data: Value,
}

/// The event can't be read back from its JSON. In a log it would be unreadable for ever.
#[derive(Debug, thiserror::Error)]
#[error("an event of type {event_type} can't be read back from its JSON")]
pub struct EventError {
    /// The event type.
    pub event_type: Name,
    /// The reason why it can't be written as JSON, or why its JSON can't be read.
    pub source: serde_json::Error,
}

impl NewEvent {
    /// The event for a log. Its JSON is read back first, because JSON can't hold every value (NaN becomes null, an
    /// integer has 64 bits), and a log keeps its events for ever.
    ///
    /// # Errors
    /// The event can't be read back.
    pub fn new<E: Event>(event: &E) -> Result<Self, EventError> {
        let error = |source| EventError { event_type: E::NAME.into(), source };
        let mut data = serde_json::to_value(event).map_err(error)?;
        E::SCHEMA.subjects.name(&mut data).map_err(|why| error(serde_json::Error::custom(why)))?;
        E::deserialize(&data).map_err(error)?;
        Ok(Self { event_type: E::NAME.into(), tags: distinct(event.tags()), data })
    }
}

impl EventSchema {
    /// The fields in the name of an event's stream: all fields marked `#[tag(partition)]`. A computed tag is not a
    /// field.
    pub fn of_stream(&self) -> impl Iterator<Item = &str> {
        let tags = self.tags.iter().filter(|tag| tag.partition && !tag.computed);
        tags.map(|tag| &*tag.key)
    }

    /// Removes the field from a payload that is in the name of the event's stream, if its JSON is the id of the
    /// stream.
    pub fn leave_out_id(&self, id: &str, data: &mut Value) {
        let Some(fields) = data.as_object_mut() else { return };
        for key in self.of_stream() {
            if fields.get(key).and_then(Value::as_str) == Some(id) {
                fields.remove(key);
            }
        }
    }
}

/// For facts in code, such as in cases. Panics if the event can't be read back.
impl<E: Event> From<E> for NewEvent {
    fn from(event: E) -> Self {
        Self::new(&event).unwrap_or_else(|error| panic!("{error}: {}", error.source))
    }
}

/// Visits the Rust types of events.
pub trait EventVisitor {
    /// Visits one type of events.
    fn event<E: Event>(&mut self);
}

/// The events that a slice writes: one event type, or a derived enum of several.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be written by a slice",
    label = "no event that slices write",
    note = "derive `Event` for it; a type marked `#[event(retired)]` is only read: write the type that took its place"
)]
pub trait Writes: Send {
    /// Their schemas.
    const SCHEMAS: &'static [EventSchema];

    /// Shows each of their types to a visitor.
    fn visit(visitor: &mut impl EventVisitor);

    /// Converts the event for a log.
    ///
    /// # Errors
    /// The event can't be read back.
    fn to_event(&self) -> Result<NewEvent, EventError>;
}

/// An event with its place in any log.
#[derive(Clone, Debug, PartialEq)]
pub struct SequencedEvent {
    /// The partition that stores it: a partition of the DCB log, or the stream in a log of single streams.
    pub partition: BoundaryId,
    /// Its number among the events of its partition, which have no gaps. The DCB log and the aggregate log count from
    /// 1, the document log from 0.
    pub slot: u64,
    /// The time when it was recorded, in milliseconds since 1970. In the DCB log, and for decisions' appends to the
    /// aggregate log, it is later than every earlier event in its boundaries. It is also later than the events that
    /// its writer had read elsewhere, unless they lie more than a minute ahead of the writer's clock. Otherwise it is
    /// the time of the writer's clock. It is 0 if another writer's time can't be read.
    pub at: u64,
    /// The number of events of the same append that follow in the partition. It is 0 in the document log, and if
    /// another writer does not store it.
    pub rest: u64,
    /// Type name.
    pub event_type: String,
    /// The context that declares the type.
    pub context: String,
    /// The things that it is about.
    pub tags: Vec<Tag>,
    /// The version of its payload, from 1 on.
    pub version: u32,
    /// The payload as stored. [`Catalog::current`](crate::Catalog::current) returns it in its newest shape.
    pub data: Value,
    /// Data beside the payload.
    pub metadata: Metadata,
}

impl SequencedEvent {
    /// Unique among the events of all logs: `<partition>/<slot>`.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}/{}", self.partition, self.slot)
    }

    /// A slot without an event, which stays empty: other writers of a table leave such gaps. Decisions read no events
    /// of its type. `at` is the time of the event before it.
    #[must_use]
    pub fn gap(partition: BoundaryId, slot: u64, at: u64) -> Self {
        Self {
            partition,
            slot,
            at,
            rest: 0,
            event_type: String::new(),
            context: String::new(),
            tags: Vec::new(),
            version: 1,
            data: Value::Null,
            metadata: Metadata::default(),
        }
    }

    /// The event as a read shows it if the plan does not include its type: its slot and the marks of its command.
    #[must_use]
    pub fn place_only(self) -> Self {
        let mut metadata = Metadata::default();
        for mark in CommandRecord::MARKS.into_iter().chain([CommandRecord::REJECTION]) {
            if let Some(text) = self.metadata.text(mark) {
                metadata.insert(mark, text).expect("the log reserves none of the marks");
            }
        }
        Self { tags: Vec::new(), data: Value::Null, metadata, ..self }
    }

    /// The event as a read of an index shows it: without its metadata and [`SequencedEvent::rest`], even if the index
    /// has them.
    #[must_use]
    pub fn of_index(self) -> Self {
        Self { rest: 0, metadata: Metadata::default(), ..self }
    }

    /// Its place in the order in which events are folded.
    #[must_use]
    pub fn place(&self) -> Place {
        Place { at: self.at, partition: self.partition.clone(), slot: self.slot }
    }

    /// The time when it was recorded: RFC 3339, UTC, milliseconds.
    #[must_use]
    pub fn recorded_at(&self) -> String {
        rfc3339(self.at)
    }

    /// The id of the event's stream, without the store or the category before it; `None` for an event
    /// of the DCB log.
    #[must_use]
    pub fn stream_id(&self) -> Option<String> {
        self.partition.stream_id()
    }
}

/// Refers to one event of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct EventRef {
    /// Type name.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The partition that stores it.
    pub partition: String,
    /// Its number in the partition.
    pub slot: u64,
}

impl EventRef {
    /// As [`SequencedEvent::id`].
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}/{}", self.partition, self.slot)
    }
}

impl From<&SequencedEvent> for EventRef {
    fn from(event: &SequencedEvent) -> Self {
        Self {
            event_type: event.event_type.clone(),
            partition: event.partition.to_string(),
            slot: event.slot,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(partition: &str) -> SequencedEvent {
        SequencedEvent {
            partition: BoundaryId::stored(partition),
            slot: 3,
            at: 1_719_100_800_120,
            rest: 0,
            event_type: "Placed".to_owned(),
            context: "ordering".to_owned(),
            tags: Vec::new(),
            version: 1,
            data: Value::Null,
            metadata: Metadata::default(),
        }
    }

    #[test]
    fn an_event_is_named_by_its_partition_and_slot() {
        let event = of("orderId:o-1");
        assert_eq!(event.id(), "orderId:o-1/3");
        assert_eq!(event.place().to_string(), "1719100800120/orderId:o-1/3");
        assert_eq!(event.recorded_at(), "2024-06-23T00:00:00.120Z");
        let named = serde_json::json!({ "type": "Placed", "partition": "orderId:o-1", "slot": 3 });
        assert_eq!(serde_json::to_value(EventRef::from(&event)).unwrap(), named);
    }

    #[test]
    fn the_partition_determines_the_log_and_the_id_of_the_stream() {
        for (partition, is_of_dcb_log, stream_id) in [
            ("dcb", true, None),
            ("orderId:o-1", true, None),
            ("orderId+line:o-1/3", true, None),
            ("CUSTOMERS#a:b#c", false, Some("a:b#c")),
            ("Basket-x%2F1", false, Some("x/1")),
        ] {
            let event = of(partition);
            assert_eq!(event.partition.is_of_dcb_log(), is_of_dcb_log, "{partition}");
            assert_eq!(event.stream_id().as_deref(), stream_id, "{partition}");
        }
    }
}
