//! Events: what a context declares, what a decision writes, what a log returns.

use std::{borrow::Cow, collections::HashSet};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{BoundaryId, Metadata, Name, Place, Position, Sequence, Tag, unescape};

/// A type of event. Derive it: fields named `*_id` and `*_ids` become tags.
pub trait Event: Serialize + DeserializeOwned {
    /// Type name, as in the schema.
    const NAME: &'static str;
    /// Name, tags and scopes.
    const SCHEMA: EventSchema;

    /// The tags of this event, in the order of its fields.
    fn tags(&self) -> Vec<Tag>;
}

/// What the catalog knows about an event type.
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
    /// Whether some decision reads the type alone, whatever the tags, because its command has no tag that
    /// the type carries. All events of the type then share one hot fence. It takes at most about a thousand
    /// appends a second, each of which conflicts with every decision under way.
    pub read_by_type: bool,
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
    /// Whether a cross-partition tag is read by index items, which can be read strongly. A tag that can have
    /// several values in an event always is.
    pub strong: bool,
    /// Whether it can have several values (a list).
    pub many: bool,
    /// Whether it always has a value.
    pub required: bool,
}

/// An event that is not yet in a log.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// Type name.
    pub event_type: Name,
    /// What it is about.
    pub tags: Vec<Tag>,
    /// The payload.
    pub data: Value,
}

/// The event would be in the log for ever, and nobody could read it.
#[derive(Debug, thiserror::Error)]
#[error("an event of type {event_type} can't be read back from its JSON")]
pub struct EventError {
    /// The event type.
    pub event_type: Name,
    /// Why it can't be written as JSON, or why its JSON can't be read.
    pub source: serde_json::Error,
}

impl NewEvent {
    /// The event as it is written. Its JSON is read back first: JSON can't hold every value (NaN becomes
    /// null, an integer has 64 bits), and a log keeps its events for ever.
    ///
    /// # Errors
    /// The event can't be read back.
    pub fn new<E: Event>(event: &E) -> Result<Self, EventError> {
        let error = |source| EventError { event_type: E::NAME.into(), source };
        let data = serde_json::to_value(event).map_err(error)?;
        E::deserialize(&data).map_err(error)?;
        let mut tags = event.tags();
        let mut seen = HashSet::new();
        tags.retain(|tag| seen.insert(tag.clone()));
        Ok(Self { event_type: E::NAME.into(), tags, data })
    }
}

/// For facts that are stated in code, such as in cases. Panics if the event can't be read back.
impl<E: Event> From<E> for NewEvent {
    fn from(event: E) -> Self {
        Self::new(&event).unwrap_or_else(|error| panic!("{error}: {}", error.source))
    }
}

/// An event with its place in a log: in the DCB log, or, as a [`FedEvent`], in any log.
#[derive(Clone, Debug, PartialEq)]
pub struct SequencedEvent<P = Position> {
    /// Its place among the events of its partition; a [`Position`] is also its id.
    pub position: P,
    /// The partition that stores it.
    pub partition: BoundaryId,
    /// Type name.
    pub event_type: String,
    /// The context that declares the type.
    pub context: String,
    /// What it is about.
    pub tags: Vec<Tag>,
    /// The payload.
    pub data: Value,
    /// What travels beside the payload.
    pub metadata: Metadata,
    /// When it was recorded, by the writer's clock: RFC 3339, UTC, milliseconds.
    pub recorded_at: String,
}

/// An event of any log, as the EventTopic, the index and views have it.
pub type FedEvent = SequencedEvent<Sequence>;

impl From<SequencedEvent> for FedEvent {
    fn from(event: SequencedEvent) -> Self {
        Self {
            position: event.position.into(),
            partition: event.partition,
            event_type: event.event_type,
            context: event.context,
            tags: event.tags,
            data: event.data,
            metadata: event.metadata,
            recorded_at: event.recorded_at,
        }
    }
}

impl<P: Place> SequencedEvent<P> {
    /// When it was recorded, in milliseconds since 1970; `None` if another program wrote a time that can't
    /// be read.
    #[must_use]
    pub fn ms(&self) -> Option<u64> {
        self.position.ms(&self.recorded_at)
    }

    /// The id of the event's stream, without the store or the category before it; `None` for an event
    /// of the DCB log.
    #[must_use]
    pub fn stream_id(&self) -> Option<String> {
        self.position.version()?;
        let partition = self.partition.as_str();
        match partition.split_once('#') {
            Some((_, id)) => Some(id.to_owned()),
            None => unescape(partition.split_once('-')?.1),
        }
    }
}

impl FedEvent {
    /// Unique among the events of all logs: the position, or stream and version.
    #[must_use]
    pub fn id(&self) -> String {
        match &self.position {
            Sequence::Position(position) => position.to_string(),
            Sequence::Version(version) => format!("{}/{version}", self.partition),
        }
    }
}

/// Names one event of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct EventRef<P = Position> {
    /// Type name.
    #[serde(rename = "type")]
    pub event_type: String,
    /// Its place.
    pub position: P,
    /// The partition that stores it, by which a reader waits for it in a view. Outcomes that were recorded
    /// before answers had this field lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
}

impl<P: Clone> From<&SequencedEvent<P>> for EventRef<P> {
    fn from(event: &SequencedEvent<P>) -> Self {
        Self {
            event_type: event.event_type.clone(),
            position: event.position.clone(),
            partition: Some(event.partition.to_string()),
        }
    }
}
