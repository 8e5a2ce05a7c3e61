//! Partitions of the logs, and what wakes the indexer for one.

use std::fmt;

use ringfence::{BoundaryId, FedEvent, Position, Sequence};
use ringfence_document_log::StreamName;
use serde::{Deserialize, Serialize};

/// A log of the stack.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "camelCase")]
pub enum Log {
    /// The DCB log.
    #[default]
    Dcb,
    /// The aggregate log.
    Aggregates,
    /// The document log.
    Documents,
}

/// Events that have one order: a partition of the DCB log, an aggregate, a document's stream.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    /// Its log.
    pub log: Log,
    /// Its name among the partitions of all logs.
    pub id: BoundaryId,
}

impl Partition {
    /// The partition of the aggregate whose events have this partition key.
    #[must_use]
    pub fn of_aggregate(key: &str) -> Self {
        Self { log: Log::Aggregates, id: BoundaryId::stored(key) }
    }

    /// The partition of a document's stream.
    #[must_use]
    pub fn of_document(stream: &StreamName) -> Self {
        Self { log: Log::Documents, id: stream.partition() }
    }

    /// The partition of this name. Only those of the DCB log have a `:` and no `#`, or are `dcb`.
    #[must_use]
    pub fn named(id: BoundaryId) -> Self {
        let log = match id.as_str() {
            name if name.contains('#') => Log::Aggregates,
            name if name.contains(':') || id == BoundaryId::tagless() => Log::Dcb,
            _ => Log::Documents,
        };
        Self { log, id }
    }

    /// Whether a system keeps its own state there, which is not for the index.
    pub(crate) fn is_internal(&self) -> bool {
        self.log == Log::Documents && self.id.as_str().starts_with('$')
    }

    /// The partition of an event. Among the names of streams, only an aggregate's has a `#`.
    #[must_use]
    pub fn of(event: &FedEvent) -> Self {
        let log = match &event.position {
            Sequence::Position(_) => Log::Dcb,
            Sequence::Version(_) if event.partition.as_str().contains('#') => Log::Aggregates,
            Sequence::Version(_) => Log::Documents,
        };
        Self { log, id: event.partition.clone() }
    }
}

impl From<BoundaryId> for Partition {
    fn from(id: BoundaryId) -> Self {
        Self { log: Log::Dcb, id }
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}

/// A partition that has something new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doorbell {
    /// The partition.
    pub partition: Partition,
    /// An event of the DCB log that a record of the stream shows in it. The partition is not done before
    /// its fence counts this event: a fence that is read in the middle of an append can be older than the
    /// event. The other logs have no fences.
    pub event: Option<Position>,
}

impl<P: Into<Partition>> From<P> for Doorbell {
    fn from(partition: P) -> Self {
        Self { partition: partition.into(), event: None }
    }
}
