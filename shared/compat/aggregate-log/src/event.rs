//! Events of the log, and the places of new ones.

use ringfence_core::{Catalog, SequencedEvent, Tag};
use serde_json::Value;

use crate::AggregateKey;

/// A version that a read has found. An event pushed directly after it leaves no gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub(crate) u64);

impl Version {
    /// The version of an aggregate before its first event. It needs no read.
    pub const NONE: Self = Self(0);

    /// The number: 1 for the first event.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

/// The place of new events in an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushPlace {
    /// After the last event that the decision has read. Conflicts if there are newer events.
    After(Version),
    /// At this version. Conflicts if the version is taken; fails if the push would leave a gap. One strong read finds a
    /// gap.
    At(u64),
    /// After the newest event, which one strong read finds.
    End,
    /// From this version on. Replaces existing events; for migrations without other writers.
    Forced(u64),
}

/// An event that is not yet in a log.
#[derive(Clone, Debug, PartialEq)]
pub struct NewAggregateEvent {
    /// Type name.
    pub event_type: String,
    /// The payload, for types that have one.
    pub payload: Option<Value>,
    /// The metadata.
    pub metadata: Option<Value>,
    /// The time of the event, in milliseconds since 1970. If absent, the log's clock gives it.
    pub timestamp_ms: Option<u64>,
}

/// New events of one aggregate, one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct Push {
    /// The aggregate.
    pub key: AggregateKey,
    /// The place of the first event.
    pub place: PushPlace,
    /// At least one.
    pub events: Vec<NewAggregateEvent>,
}

/// An event with its place in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateEvent {
    /// The aggregate.
    pub key: AggregateKey,
    /// Its place among the aggregate's events, from 1.
    pub version: Version,
    /// Type name.
    pub event_type: String,
    /// The time of the event. This crate writes RFC 3339 in UTC with milliseconds.
    pub timestamp: String,
    /// The payload, if it has one.
    pub payload: Option<Value>,
    /// The metadata, if it has some.
    pub metadata: Option<Value>,
    /// The number of events of the same push that follow in the aggregate. 0 if another writer of the layout wrote the
    /// event.
    pub rest: u64,
}

/// The event of an aggregate as a decision reads it. It gets the tag that names the aggregate, and the tag's field if
/// the payload leaves it out. `catalog` is the catalog of the event's context.
#[must_use]
pub fn whole(event: SequencedEvent, catalog: &Catalog) -> SequencedEvent {
    let tag = catalog.schema(&event.event_type).and_then(|schema| schema.tags.first());
    let (Some(tag), Some(id)) = (tag, event.stream_id()) else { return event };
    let mut data = match event.data {
        Value::Null => Value::Object(serde_json::Map::new()),
        data => data,
    };
    if let Value::Object(fields) = &mut data {
        fields.entry(&*tag.key).or_insert_with(|| id.as_str().into());
    }
    SequencedEvent { tags: vec![Tag::new(tag.key.clone(), id)], data, ..event }
}

/// The events of an aggregate to read; by default all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The lowest version to read.
    pub min_version: Option<u64>,
    /// The highest version to read.
    pub max_version: Option<u64>,
    /// At most this many events.
    pub limit: Option<u32>,
    /// From the newest to the oldest.
    pub reverse: bool,
}

impl Range {
    /// The newest event alone.
    pub const NEWEST: Self =
        Self { min_version: None, max_version: None, limit: Some(1), reverse: true };

    /// Whether the range has no versions. DynamoDB refuses a query of such a range.
    pub(crate) fn is_empty(&self) -> bool {
        let (min, max) = (self.min_version.unwrap_or(0), self.max_version.unwrap_or(u64::MAX));
        self.limit == Some(0) || min > max
    }
}

/// The options of a list of aggregates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// At most this many aggregates. A page can have fewer and still not be the last.
    pub limit: Option<std::num::NonZeroU32>,
    /// A [`AggregatePage::next_page_token`]. Options set beside it replace the token's options.
    pub page_token: Option<String>,
    /// Lists only aggregates whose first event is not older than this timestamp.
    pub initial_event_after: Option<String>,
    /// Lists only aggregates whose first event is not newer than this timestamp.
    pub initial_event_before: Option<String>,
    /// From the youngest to the oldest.
    pub reverse: Option<bool>,
}

/// One page of a store's aggregates, in the order of their first events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregatePage {
    /// The aggregates.
    pub aggregates: Vec<ListedAggregate>,
    /// Continues the list; `None` on the last page.
    pub next_page_token: Option<String>,
}

/// One aggregate of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedAggregate {
    /// Its id in the store.
    pub id: String,
    /// The time of its first event.
    pub initial_event_timestamp: String,
}
