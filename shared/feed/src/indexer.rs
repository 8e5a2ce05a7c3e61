//! The index, for writing.

use std::sync::{Mutex, PoisonError};

use aws_sdk_dynamodb::Client;
use ringfence_aws::Meter;

use crate::checkpoint::{Checkpoint, EpochEntries};
use crate::error::IndexError;
use crate::index::Index;
use crate::logs::Logs;

/// What became of a partition: how many of its events this call has put into the index (without those
/// whose answer was lost), or why the rest is not there.
pub type Indexed = Result<u64, IndexError>;

/// Appends the new events of partitions to the index: each once, in the order of its partition, without
/// gaps, whatever else runs at the same time and wherever a run breaks off.
pub struct Indexer {
    pub(crate) logs: Logs,
    pub(crate) index: Index,
    pub(crate) epoch_entries: EpochEntries,
    /// `None` before it is known.
    end: Mutex<Option<End>>,
}

/// The end of the index as an indexer remembers it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// All pages before it were settled; there may be later pages.
    pub(crate) at: Checkpoint,
    /// Whether others put pages too, as it seems: then a look whether the place is free costs less than a page that is
    /// refused.
    pub(crate) shared: bool,
}

impl Indexer {
    /// An indexer from `logs` to the index in `table`. The client's own retries must be off.
    #[must_use]
    pub fn new(logs: impl Into<Logs>, client: Client, table: impl Into<String>) -> Self {
        let (logs, index) = (logs.into(), Index::new(client, table));
        Self { logs, index, epoch_entries: EpochEntries::MAX, end: Mutex::default() }
    }

    /// The same with epochs of this many entries.
    #[must_use]
    pub fn epoch_entries(self, entries: EpochEntries) -> Self {
        Self { epoch_entries: entries, ..self }
    }

    /// What the index's requests cost so far; each log has a meter of its own.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.index.meter()
    }

    /// The logs that are indexed.
    #[must_use]
    pub fn logs(&self) -> &Logs {
        &self.logs
    }

    /// The end of the index that was remembered last.
    pub(crate) fn end(&self) -> Option<End> {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn remember(&self, end: End) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
    }
}
