//! The index, for writing.

use aws_sdk_dynamodb::Client;
use ringfence_dynamo::{Meter, Table};

use crate::checkpoint::EpochEntries;
use crate::error::IndexError;
use crate::logs::Logs;

/// What became of a partition: how many of its events this call has put into the index (without those
/// whose answer was lost), or why the rest is not there.
pub type Outcome = Result<u64, IndexError>;

/// Appends the new events of partitions to the index: each once, in the order of its partition, without
/// gaps, whatever else runs at the same time and wherever a run breaks off.
pub struct Indexer {
    pub(crate) logs: Logs,
    pub(crate) table: Table,
    pub(crate) epoch_entries: EpochEntries,
}

impl Indexer {
    /// An indexer from `logs` to the index in `table`. The client's own retries must be off.
    #[must_use]
    pub fn new(logs: impl Into<Logs>, client: Client, table: impl Into<String>) -> Self {
        let (logs, table) = (logs.into(), Table::new(client, table));
        Self { logs, table, epoch_entries: EpochEntries::MAX }
    }

    /// The same with epochs of this many entries.
    #[must_use]
    pub fn epoch_entries(self, entries: EpochEntries) -> Self {
        Self { epoch_entries: entries, ..self }
    }

    /// What the index's requests cost so far; each log has a meter of its own.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.table.meter()
    }

    /// The logs that are indexed.
    #[must_use]
    pub fn logs(&self) -> &Logs {
        &self.logs
    }
}
