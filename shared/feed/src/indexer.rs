//! The index, to be written.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::Client;
use ringfence_dynamo::{Meter, Retry};

use crate::group::GROUP_PARTITIONS_MAX;
use crate::round::Round;
use crate::{Doorbell, EpochEntries, IndexError, Logs, Partition};

/// What became of a partition: how many of its events this call has put into the index (not
/// counted are those whose answer was lost), or why the rest is not there.
pub type Outcome = Result<u64, IndexError>;

/// Appends what is new in partitions to the index: each event once, in the order of its partition,
/// without gaps, whatever runs at once and wherever it is broken off.
pub struct Indexer {
    pub(crate) logs: Logs,
    pub(crate) client: Client,
    pub(crate) table: String,
    pub(crate) epoch_entries: EpochEntries,
    pub(crate) meter: Meter,
}

impl Indexer {
    /// From `logs` to the index in `table`. The client's own retries must be off.
    #[must_use]
    pub fn new(logs: impl Into<Logs>, client: Client, table: impl Into<String>) -> Self {
        let (logs, table, meter) = (logs.into(), table.into(), Meter::default());
        Self { logs, client, table, epoch_entries: EpochEntries::MAX, meter }
    }

    /// The same with epochs of so many entries.
    #[must_use]
    pub fn epoch_entries(self, entries: EpochEntries) -> Self {
        Self { epoch_entries: entries, ..self }
    }

    /// What the index's requests cost so far; each log has a meter of its own.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The logs that are indexed.
    #[must_use]
    pub fn logs(&self) -> &Logs {
        &self.logs
    }

    /// Indexes what is new in each of the partitions, within the deadline of `retry`. Each partition
    /// succeeds or fails for itself. Memory: a few pages of queries, however much is new.
    pub async fn index(
        &self,
        doorbells: impl IntoIterator<Item = impl Into<Doorbell>>,
        retry: Retry,
    ) -> BTreeMap<Partition, Outcome> {
        let mut partitions = BTreeMap::new();
        for Doorbell { partition, event } in doorbells.into_iter().map(Into::into) {
            let known: &mut Option<_> = partitions.entry(partition).or_default();
            *known = known.take().max(event);
        }
        let doorbells: Vec<_> = partitions
            .into_iter()
            .map(|(partition, event)| Doorbell { partition, event })
            .collect();
        let mut outcomes = BTreeMap::new();
        for chunk in doorbells.chunks(GROUP_PARTITIONS_MAX) {
            outcomes.extend(Round::new(self, retry).run(chunk).await);
        }
        outcomes
    }
}
