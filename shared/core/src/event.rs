//! Events: what a context declares, what a decision writes, what a log returns.

use std::collections::HashSet;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{BoundaryId, Metadata, Position, Tag};

/// A type of event. Derive it: fields named `*_id` and `*_ids` become tags.
pub trait Event: Serialize + DeserializeOwned {
    /// Name, tags and scopes.
    const SCHEMA: EventSchema;

    /// The tags of this event, in the order of its fields.
    fn tags(&self) -> Vec<Tag>;
}

/// What the catalog knows of an event type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSchema {
    /// Type name, unique in the stack: `OrderPlaced`.
    pub name: &'static str,
    /// Its tags, in the order of its fields.
    pub tags: &'static [TagSchema],
    /// What joins the values of a composite partition: one of `/ | ~ ,`.
    pub separator: char,
    /// Whether some decision reads the type by its whole set of tags.
    pub read_as_composite: bool,
    /// Whether some decision reads the type alone, whatever the tags. All of its events then share
    /// one hot fence: about a thousand appends a second at most, each of which conflicts with every
    /// decision under way.
    pub read_by_type: bool,
}

/// One tag of an event type or a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagSchema {
    /// The key, in camelCase.
    pub key: &'static str,
    /// Whether it is (part of) the partition tag.
    pub partition: bool,
    /// Whether decisions read every carrier of the tag, in whatever partition it is stored.
    pub cross_partition: bool,
    /// Whether a cross-partition tag is read by index items, which can be read strongly; a tag with
    /// several values an event always is.
    pub strong: bool,
    /// Whether it can have several values (a list).
    pub many: bool,
    /// Whether it is always there.
    pub required: bool,
}

/// An event that is not yet in a log.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// Type name.
    pub event_type: &'static str,
    /// What it is about.
    pub tags: Vec<Tag>,
    /// The payload.
    pub data: Value,
}

impl<E: Event> From<E> for NewEvent {
    fn from(event: E) -> Self {
        let mut tags = event.tags();
        let mut seen = HashSet::new();
        tags.retain(|tag| seen.insert(tag.clone()));
        let data = serde_json::to_value(&event).expect("derived events are maps with text keys");
        Self { event_type: E::SCHEMA.name, tags, data }
    }
}

/// An event with its place in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct SequencedEvent {
    /// Its position, which is its id.
    pub position: Position,
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
    /// When the writer's clock said it was recorded: RFC 3339, UTC, milliseconds.
    pub recorded_at: String,
}

/// Names one event of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct EventRef {
    /// Type name.
    #[serde(rename = "type")]
    pub event_type: String,
    /// Where it is.
    pub position: Position,
    /// The partition that stores it, by which a reader waits for it in a view; outcomes that were
    /// recorded before answers named it have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
}

impl From<&SequencedEvent> for EventRef {
    fn from(event: &SequencedEvent) -> Self {
        Self {
            event_type: event.event_type.clone(),
            position: event.position.clone(),
            partition: Some(event.partition.to_string()),
        }
    }
}
