//! From a stream record to a bus entry.

use std::mem::take;

use ringfence_aws::Item;
use ringfence_core::{Catalog, SequencedEvent, TopicEvent};
use ringfence_lambda::{RecordError, new_image};
use ringfence_log::{EntryError, Sources};
use serde_json::Value;

/// Largest entry, in bytes, as EventBridge counts them. It takes 1 MB a call, and the limit of a call bounds an entry
/// too.
/// <https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html>
pub const ENTRY_BYTES_MAX: usize = 1_000_000;

/// Before the context in the source of an entry that a replay sends. A rule that wants replays
/// matches it: `{"source": [{"prefix": "replay."}]}`.
pub const REPLAY_SOURCE_PREFIX: &str = "replay.";

/// What EventBridge counts for the time of an entry, in bytes.
const TIME_BYTES: usize = 14;

/// One event, ready for the bus.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicEntry {
    /// The context that declares the event.
    pub source: String,
    /// The event type.
    pub detail_type: String,
    /// The event as JSON.
    pub detail: String,
    /// Unique to the event.
    pub id: String,
    /// When the event was recorded, in milliseconds since 1970. Without it the bus takes the time of arrival.
    pub time_ms: Option<u64>,
}

/// Why a record can never be published.
#[derive(Debug, thiserror::Error)]
pub enum TopicEntryError {
    /// It is not a record of a table's stream.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Its image is not a complete event.
    #[error("not an event")]
    Image(#[from] EntryError),
    /// Neither the event nor the catalog names its context.
    #[error(
        "the event names no context, and the catalog does not declare its type {0}; add the type"
    )]
    NoContext(String),
    /// The bus takes no entry of this size.
    #[error("the entry has {0} bytes, limit {ENTRY_BYTES_MAX}")]
    TooLarge(usize),
}

impl TopicEntry {
    /// The entry of an event that a replay of this name sends again: marked in its source, so that
    /// no rule that names a context takes it, and in its detail, so that its consumer can tell.
    pub fn of_replay(event: SequencedEvent, replay: &str) -> Result<Self, TopicEntryError> {
        Self::new(event, Some(replay))
    }

    /// The entry of a new event.
    pub fn of_event(event: SequencedEvent) -> Result<Self, TopicEntryError> {
        Self::new(event, None)
    }

    /// The entries of a stream record of these logs: one for each event that it shows. Each is published or fails
    /// alone. If an event of another writer names no context, it has the context of its type.
    pub fn of_record(
        record: &Value,
        sources: &Sources,
        catalog: &Catalog,
    ) -> Vec<Result<Self, TopicEntryError>> {
        match new_image(record) {
            Ok(None) => Vec::new(),
            Ok(Some(image)) => Self::of_image(image, sources, catalog),
            Err(error) => vec![Err(error.into())],
        }
    }

    /// The entries of the item that a stream record shows.
    pub fn of_image(
        image: Item,
        sources: &Sources,
        catalog: &Catalog,
    ) -> Vec<Result<Self, TopicEntryError>> {
        let entry = |event: Result<SequencedEvent, _>| {
            let mut event = event?;
            if event.context.is_empty() {
                let context = catalog.context(&event.event_type);
                event.context = context.unwrap_or_default().to_owned();
            }
            Self::of_event(event)
        };
        match sources.events(image) {
            Ok(events) => events.into_iter().map(entry).collect(),
            Err(error) => vec![Err(error.into())],
        }
    }

    fn new(mut event: SequencedEvent, replay: Option<&str>) -> Result<Self, TopicEntryError> {
        let context = take(&mut event.context);
        if context.is_empty() {
            return Err(TopicEntryError::NoContext(event.event_type));
        }
        let source = match replay {
            None => context,
            Some(_) => format!("{REPLAY_SOURCE_PREFIX}{context}"),
        };
        let time_ms = (event.at > 0).then_some(event.at);
        let event = TopicEvent { replay: replay.map(str::to_owned), ..TopicEvent::new(event) };
        let detail = serde_json::to_string(&event).expect("an event is a map with string keys");
        let TopicEvent { id, event_type: detail_type, .. } = event;
        let entry = Self { source, detail_type, detail, id, time_ms };
        match entry.bytes() {
            bytes if bytes > ENTRY_BYTES_MAX => Err(TopicEntryError::TooLarge(bytes)),
            _ => Ok(entry),
        }
    }

    /// The partition of its event: its id without the slot.
    pub(crate) fn partition(&self) -> &str {
        self.id.rsplit_once('/').map_or(&self.id, |(partition, _)| partition)
    }

    /// Its size as EventBridge counts it, in bytes.
    pub fn bytes(&self) -> usize {
        TIME_BYTES + self.source.len() + self.detail_type.len() + self.detail.len()
    }

    /// Its size in a request, in bytes: there the detail is a JSON string, whose quotes are escaped.
    pub fn sent_bytes(&self) -> usize {
        let escaped = self.detail.bytes().filter(|byte| matches!(byte, b'"' | b'\\'));
        self.bytes() + escaped.count()
    }
}
