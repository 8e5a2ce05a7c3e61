//! The index, for writing.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use aws_sdk_dynamodb::Client;
use ringfence_aws::{Clock, Item, Meter, Retry};
use ringfence_core::LogKind;
use ringfence_log::OpenSource;
use ringfence_log::news::StreamError;

use crate::checkpoint::EpochEntries;
use crate::error::IndexError;
use crate::index::Index;
use crate::news::News;
use crate::partition::Partition;
use crate::tail::Tail;

/// The result for a partition: how many of its events this call has put into the index, or why not all are there.
/// Events whose answer was lost are not counted.
pub type Indexed = Result<u64, IndexError>;

/// Appends the new events of partitions to the index: each once, in the order of its partition, without gaps. This
/// holds whatever runs at the same time, and wherever a run breaks off.
pub struct Indexer {
    pub(crate) index: Index,
    pub(crate) epoch_entries: EpochEntries,
    clock: Clock,
    /// Its name on the lease.
    owner: String,
    /// `None` before it is known.
    end: Mutex<Option<End>>,
}

/// The end of the index as an indexer remembers it.
#[derive(Clone, Debug, Default)]
pub(crate) struct End {
    /// There may be later pages.
    pub(crate) tail: Tail,
    /// For how many more rounds the indexer looks for pages of others first. That costs less than to have a page
    /// refused.
    pub(crate) shared: u32,
    /// For how many more rounds the indexer takes the lease, because others were in its way.
    pub(crate) crowd: u32,
}

impl Indexer {
    /// An indexer from `logs` to the index in `table`. The client's own retries must be off.
    #[must_use]
    pub fn new(
        logs: impl IntoIterator<Item = OpenSource>,
        client: Client,
        table: impl Into<String>,
    ) -> Self {
        let index = Index::new(client, table, logs);
        let (epoch_entries, clock) = (EpochEntries::MAX, Clock::system());
        let owner = clock.uuid().to_string();
        Self { index, epoch_entries, clock, owner, end: Mutex::default() }
    }

    /// The same with epochs of this many entries.
    #[must_use]
    pub fn epoch_entries(self, entries: EpochEntries) -> Self {
        Self { epoch_entries: entries, ..self }
    }

    /// The same with another clock than the machine's.
    #[must_use]
    pub fn clocked(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// The cost of the index's requests so far; each log has another meter.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.index.meter()
    }

    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// The logs that are indexed.
    pub(crate) fn logs(&self) -> &[OpenSource] {
        &self.index.logs
    }

    /// A log that is indexed.
    pub(crate) fn log(&self, log: LogKind) -> Result<&OpenSource, StreamError> {
        self.logs().iter().find(|it| it.source.facts().kind == log).ok_or(StreamError::NoLog)
    }

    /// The events after slot `after`: all, or some with the mark that there may be more. `known`: events that the
    /// partition has, even if a read does not show them yet.
    pub(crate) async fn news(
        &self,
        partition: &Partition,
        after: Option<u64>,
        known: &BTreeMap<u64, Item>,
        retry: Retry,
    ) -> Result<News, IndexError> {
        let log = self.log(partition.log)?;
        let found = log.table.news(&partition.id, after, known, retry).await?;
        Ok(News::of(log.source, partition, found))
    }

    /// The end of the index that was remembered last.
    pub(crate) fn end(&self) -> Option<End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn remember(&self, end: End) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
    }
}
