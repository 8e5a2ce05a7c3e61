//! The logs whose events go into one index: which there are, and what is new in them.
//!
//! A partition of the DCB log is compared with its fence. A stream of the other two needs no fence:
//! its events are counted without gaps, so what follows on the last one that is indexed is known to
//! be the next, and what does not follow yet is not all there.

use std::fmt;

use ringfence::{BoundaryId, FedEvent, LogError, Position, Sequence};
use ringfence_aggregate_log::{AggregateKey, Table};
use ringfence_dcb_log::DcbLog;
use ringfence_document_log::{DocumentLog, DynamoStore, StreamName};
use ringfence_dynamo::{Clock, Item, Retry};
use serde::{Deserialize, Serialize};

use crate::entry::Fresh;
use crate::error::{IndexError, StreamError};
use crate::item::Progress;
use crate::{aggregates, documents};

/// How often a stream is read until nothing is missing in it: some seconds, where items become
/// visible within milliseconds.
pub(crate) const LOOKS_MAX: u32 = 8;
/// What one read of a stream brings, in bytes, and at most one item more: a page of a query.
pub(crate) const NEWS_BYTES_MAX: usize = 1_024 * 1_024;

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
    /// Where it is.
    pub log: Log,
    /// Its name among the partitions of all logs.
    pub id: BoundaryId,
}

impl Partition {
    /// The aggregate whose events have this partition key.
    #[must_use]
    pub fn of_aggregate(key: &str) -> Self {
        Self { log: Log::Aggregates, id: BoundaryId::stored(key) }
    }

    /// The stream of a document.
    #[must_use]
    pub fn of_document(stream: &StreamName) -> Self {
        Self { log: Log::Documents, id: stream.partition() }
    }

    /// The one of this name: those of the DCB log alone have a `:` and no `#`, or are `dcb`.
    #[must_use]
    pub fn named(id: BoundaryId) -> Self {
        let log = match id.as_str() {
            name if name.contains('#') => Log::Aggregates,
            name if name.contains(':') || id == BoundaryId::tagless() => Log::Dcb,
            _ => Log::Documents,
        };
        Self { log, id }
    }

    /// Whether a system keeps its own state there: not for the index.
    pub(crate) fn is_internal(&self) -> bool {
        self.log == Log::Documents && self.id.as_str().starts_with('$')
    }

    /// That of an event: of the names of streams, only an aggregate's has the `#`.
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
    /// An event of the DCB log that is known to be in it, as a record of the stream shows it. The
    /// partition is not done before its fence counts this event: a fence that is read in the middle of
    /// an append can be older than the event. The other logs have no fence that could be late.
    pub event: Option<Position>,
}

impl<P: Into<Partition>> From<P> for Doorbell {
    fn from(partition: P) -> Self {
        Self { partition: partition.into(), event: None }
    }
}

/// The logs that one index is of.
pub struct Logs {
    /// The DCB log.
    pub dcb: DcbLog,
    /// The aggregate log, if the stack has one.
    pub aggregates: Option<Table>,
    /// The document log, if the stack has one.
    pub documents: Option<DocumentLog<DynamoStore>>,
}

impl From<DcbLog> for Logs {
    fn from(dcb: DcbLog) -> Self {
        Self { dcb, aggregates: None, documents: None }
    }
}

/// Up to where a partition is read.
#[derive(Clone, Debug)]
pub(crate) enum Mark {
    /// What a fence says.
    Fence(ringfence_dcb_log::Mark),
    /// To the end of a stream.
    End,
}

/// The next events of a partition, in order.
#[derive(Debug, Default)]
pub(crate) struct News {
    pub(crate) fresh: Vec<Fresh>,
    /// Why the next one can't be indexed; those behind it wait for it.
    pub(crate) failed: Option<IndexError>,
    /// What to go on with, where more follow.
    pub(crate) more: Option<Mark>,
}

impl News {
    /// Takes what can be indexed of the items, up to the first that can't.
    pub(crate) fn of(partition: &Partition, items: Vec<Item>, more: Option<Mark>) -> Self {
        let mut news = Self { more, ..Self::default() };
        for item in items {
            match Fresh::of(partition, item) {
                Ok(fresh) => news.fresh.push(fresh),
                Err(error) => return Self { failed: Some(error), more: None, ..news },
            }
        }
        news
    }
}

impl Logs {
    pub(crate) fn clock(&self) -> &Clock {
        self.dcb.clock()
    }

    pub(crate) fn has(&self, log: Log) -> bool {
        match log {
            Log::Dcb => true,
            Log::Aggregates => self.aggregates.is_some(),
            Log::Documents => self.documents.is_some(),
        }
    }

    pub(crate) fn aggregates(&self) -> Result<&Table, StreamError> {
        self.aggregates.as_ref().ok_or(StreamError::NoLog { log: "aggregate" })
    }

    pub(crate) fn documents(&self) -> Result<&DocumentLog<DynamoStore>, StreamError> {
        self.documents.as_ref().ok_or(StreamError::NoLog { log: "document" })
    }

    /// Up to where each of the partitions is to be read now.
    pub(crate) async fn marks(
        &self,
        doorbells: &[Doorbell],
        retry: Retry,
    ) -> Result<Vec<(Partition, Result<Mark, IndexError>)>, LogError> {
        let (fenced, streams): (Vec<_>, Vec<_>) =
            doorbells.iter().partition(|doorbell| doorbell.partition.log == Log::Dcb);
        let fences: Vec<_> =
            fenced.iter().map(|bell| (bell.partition.id.clone(), bell.event.clone())).collect();
        let fences = self.dcb.marks(&fences, retry).await?;
        let fences = fences.into_iter().map(|mark| Ok(Mark::Fence(mark?)));
        let ends = streams.iter().map(|_| Ok(Mark::End));
        let partitions = fenced.iter().chain(&streams).map(|bell| bell.partition.clone());
        Ok(partitions.zip(fences.chain(ends)).collect())
    }

    /// What follows on `after`, up to the mark: all of it, or some and the mark to go on with.
    pub(crate) async fn news(
        &self,
        partition: &Partition,
        after: &Progress,
        mark: &Mark,
        retry: Retry,
    ) -> Result<News, IndexError> {
        match (partition.log, mark) {
            (Log::Dcb, Mark::Fence(mark)) => {
                let after = after.in_dcb_log();
                let news = self.dcb.news(&partition.id, &after, mark, retry).await?;
                Ok(News::of(partition, news.events, news.more.map(Mark::Fence)))
            }
            (Log::Aggregates, _) => {
                let key = AggregateKey::of_partition(partition.id.as_str());
                let key = key.map_err(StreamError::Aggregate)?;
                let log = self.aggregates()?.clone().retrying(retry);
                aggregates::news(&log, partition, &key, after.version(), retry).await
            }
            (Log::Documents, _) => {
                let stream = StreamName::of_partition(&partition.id);
                let stream = stream.map_err(StreamError::Stream)?;
                documents::news(self, partition, &stream, after.version(), retry).await
            }
            (Log::Dcb, Mark::End) => unreachable!("only a stream is read to its end"),
        }
    }
}

/// The version behind the last one that is indexed; `first` where none is.
pub(crate) fn next(after: Option<u64>, first: u64) -> u64 {
    after.map_or(first, |after| after.saturating_add(1))
}
