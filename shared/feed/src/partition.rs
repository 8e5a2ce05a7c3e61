//! Partitions of the logs, and what wakes the indexer for one.

use std::{collections::BTreeMap, fmt};

use ringfence_aws::Item;
use ringfence_core::{BoundaryId, LogKind, SequencedEvent};
use ringfence_document_log::StreamName;

/// Events that have one order: a partition of the DCB log, an aggregate, a document's stream.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    /// Its log.
    pub log: LogKind,
    /// Its name among the partitions of all logs.
    pub id: BoundaryId,
}

impl Partition {
    /// The partition of the aggregate whose events have this partition key.
    #[must_use]
    pub fn of_aggregate(key: &str) -> Self {
        Self { log: LogKind::Aggregates, id: BoundaryId::stored(key) }
    }

    /// The partition of a document's stream.
    #[must_use]
    pub fn of_document(stream: &StreamName) -> Self {
        Self { log: LogKind::Documents, id: stream.partition() }
    }

    /// The one of this name: of the partitions of all logs, only an aggregate's has a `#`, and a
    /// document's stream is escaped.
    #[must_use]
    pub fn named(id: BoundaryId) -> Self {
        let log = match () {
            () if id.is_of_dcb_log() => LogKind::Dcb,
            () if id.as_str().contains('#') => LogKind::Aggregates,
            () => LogKind::Documents,
        };
        Self { log, id }
    }

    /// Whether a system keeps its own state there, which is not for the index.
    pub(crate) fn is_internal(&self) -> bool {
        self.log == LogKind::Documents && self.id.as_str().starts_with('$')
    }

    /// That of an event.
    #[must_use]
    pub fn of(event: &SequencedEvent) -> Self {
        Self::named(event.partition.clone())
    }
}

impl From<BoundaryId> for Partition {
    fn from(id: BoundaryId) -> Self {
        Self { log: LogKind::Dcb, id }
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}

/// A partition that has something new. [`Doorbell::of_image`] makes that of a stream record.
#[derive(Clone, Debug, PartialEq)]
pub struct Doorbell {
    /// The partition.
    pub partition: Partition,
    /// Events that the partition is known to have, by slot, each as an entry of the index has it. Those
    /// that continue what is indexed are taken as they are. If there are others, or none at all, the
    /// partition is read.
    pub events: BTreeMap<u64, Item>,
}

impl<P: Into<Partition>> From<P> for Doorbell {
    fn from(partition: P) -> Self {
        Self { partition: partition.into(), events: BTreeMap::new() }
    }
}
