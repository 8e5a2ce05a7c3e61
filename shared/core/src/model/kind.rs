//! The kinds of logs.

use serde::{Deserialize, Serialize};

use crate::{BoundaryId, Catalog, CatalogError, EventSchema, Name};

/// One of the logs.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "camelCase")]
pub enum LogKind {
    /// The DCB log: events with tags, in one table.
    #[default]
    Dcb,
    /// The aggregate log: one stream of events for each aggregate.
    Aggregates,
    /// The document log: one document for each stream.
    Documents,
}

impl LogKind {
    /// The log of a partition. Of the partitions of all logs, only an aggregate's has a `#`, and a document's stream
    /// is escaped.
    #[must_use]
    pub fn of(partition: &BoundaryId) -> Self {
        match () {
            () if partition.is_of_dcb_log() => Self::Dcb,
            () if partition.as_str().contains('#') => Self::Aggregates,
            () => Self::Documents,
        }
    }

    /// The number of a partition's first event.
    #[must_use]
    pub fn first_slot(self) -> u64 {
        match self {
            Self::Dcb | Self::Aggregates => 1,
            Self::Documents => 0,
        }
    }

    /// The slot after `after`, or the first one.
    #[must_use]
    pub fn slot_after(self, after: Option<u64>) -> u64 {
        after.map_or(self.first_slot(), |after| after.saturating_add(1))
    }

    /// The catalog of a context with these events, if it is on this log.
    ///
    /// # Errors
    /// The schemas contradict each other, or a type has other tags than the log allows.
    pub fn catalog(
        self,
        context: impl Into<Name>,
        schemas: impl IntoIterator<Item = EventSchema>,
    ) -> Result<Catalog, CatalogError> {
        match self {
            Self::Dcb | Self::Documents => Catalog::new(context, schemas),
            Self::Aggregates => Catalog::of_streams(context, schemas),
        }
    }
}

/// A log, by its name in a context, such as the `Dcb` of the DCB log's crate.
pub trait LogName: 'static {
    /// The log.
    const KIND: LogKind;

    /// The types of the snapshots that the streams of the context have beside their events.
    #[must_use]
    fn snapshots() -> Vec<&'static str> {
        Vec::new()
    }
}
