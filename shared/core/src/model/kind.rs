//! Which log a context is on.

use serde::{Deserialize, Serialize};

use crate::{Catalog, CatalogError, EventSchema, Name};

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
    /// The number of a partition's first event.
    #[must_use]
    pub fn first_slot(self) -> u64 {
        match self {
            Self::Dcb | Self::Aggregates => 1,
            Self::Documents => 0,
        }
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

/// A log, by the name that a context has for it: [`Dcb`], [`Aggregates`], or the `Documents` of the crate of that log.
pub trait LogName: 'static {
    /// The log.
    const KIND: LogKind;

    /// The types of the snapshots that the streams of the context have beside their events.
    #[must_use]
    fn snapshots() -> Vec<&'static str> {
        Vec::new()
    }
}

/// Names the DCB log as the log of a context.
pub enum Dcb {}

/// Names the aggregate log as the log of a context: each of its events is in one aggregate, which its one tag names.
pub enum Aggregates {}

impl LogName for Dcb {
    const KIND: LogKind = LogKind::Dcb;
}

impl LogName for Aggregates {
    const KIND: LogKind = LogKind::Aggregates;
}
