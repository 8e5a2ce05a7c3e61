//! The logs whose events go into one index, and their new events.
//!
//! The events of a partition are numbered without gaps. So the number after the last indexed one is the
//! next event, and a higher number shows that events are not visible yet.

use std::collections::BTreeMap;

use ringfence_aggregate_log::{AggregateKey, AggregateTable, Range};
use ringfence_aws::{Clock, Item, Retry};
use ringfence_core::LogKind;
use ringfence_dcb_log::DcbLog;
use ringfence_document_log::{DocumentLog, DynamoStore, StreamName};

use crate::documents;
use crate::error::{IndexError, StreamError};
use crate::news::{Found, News, bounded, dense};
use crate::partition::Partition;

/// How often a partition with missing events is read. That takes some seconds; items become visible within
/// milliseconds.
const LOOKS_MAX: u32 = 8;

/// The logs of one index.
pub struct Logs {
    /// The DCB log.
    pub dcb: DcbLog,
    /// The aggregate log, if the stack has one.
    pub aggregates: Option<AggregateTable>,
    /// The document log, if the stack has one.
    pub documents: Option<DocumentLog<DynamoStore>>,
}

impl From<DcbLog> for Logs {
    fn from(dcb: DcbLog) -> Self {
        Self { dcb, aggregates: None, documents: None }
    }
}

/// A log whose events are items of their own.
enum Source<'a> {
    Dcb(&'a DcbLog),
    Aggregates(AggregateTable, AggregateKey),
}

impl Logs {
    pub(crate) fn clock(&self) -> &Clock {
        self.dcb.clock()
    }

    pub(crate) fn has(&self, log: LogKind) -> bool {
        match log {
            LogKind::Dcb => true,
            LogKind::Aggregates => self.aggregates.is_some(),
            LogKind::Documents => self.documents.is_some(),
        }
    }

    fn aggregates(&self) -> Result<&AggregateTable, StreamError> {
        self.aggregates.as_ref().ok_or(StreamError::NoLog { log: "aggregate" })
    }

    fn documents(&self) -> Result<&DocumentLog<DynamoStore>, StreamError> {
        self.documents.as_ref().ok_or(StreamError::NoLog { log: "document" })
    }

    /// The events after slot `after`: all of them, or some and that there may be more. `known` are events
    /// that the partition has, whether or not a read shows them already.
    pub(crate) async fn news(
        &self,
        partition: &Partition,
        after: Option<u64>,
        known: &BTreeMap<u64, Item>,
        retry: Retry,
    ) -> Result<News, IndexError> {
        let source = match partition.log {
            LogKind::Dcb => Source::Dcb(&self.dcb),
            LogKind::Aggregates => {
                let key = AggregateKey::of_partition(partition.id.as_str());
                let log = self.aggregates()?.clone().retrying(retry);
                Source::Aggregates(log, key.map_err(StreamError::Aggregate)?)
            }
            LogKind::Documents => {
                let stream = StreamName::of_partition(&partition.id);
                let stream = stream.map_err(StreamError::Stream)?;
                let log = (self.documents()?, self.clock());
                let found = documents::news(log, &stream, after, known, retry).await?;
                return Ok(News::of(partition, found));
            }
        };
        let found = whole(&source, partition, next(partition, after), known, retry).await?;
        Ok(News::of(partition, found))
    }
}

/// The slot after the last one that is indexed.
pub(crate) fn next(partition: &Partition, after: Option<u64>) -> u64 {
    after.map_or(partition.log.first_slot(), |after| after.saturating_add(1))
}

/// The events from slot `wanted` on, without gaps. A read is strong, yet the events of one transaction
/// may become visible one by one: where one is missing, it looks again, and what stays missing is an
/// error.
async fn whole(
    source: &Source<'_>,
    partition: &Partition,
    wanted: u64,
    known: &BTreeMap<u64, Item>,
    retry: Retry,
) -> Result<Found, StreamError> {
    let mut attempts = retry.attempts_max(LOOKS_MAX).start();
    loop {
        let (mut items, more) = source.look(partition, wanted, retry).await?;
        if !more {
            let known = known.range(wanted..).map(|(slot, item)| (*slot, item.clone()));
            items.extend(known);
        }
        let dense = dense(&mut items, wanted);
        let Some(&found) = items.keys().next() else { return Ok((dense, more)) };
        if !dense.is_empty() {
            // The next call looks for what is missing.
            return Ok((dense, true));
        }
        if !attempts.again().await {
            let partition = partition.id.clone();
            return Err(match attempts.made() < LOOKS_MAX {
                true => StreamError::OutOfTime { partition },
                false => StreamError::Gap { partition, wanted, found },
            });
        }
    }
}

impl Source<'_> {
    /// Some items from a slot on, and whether there may be more.
    async fn look(
        &self,
        partition: &Partition,
        from: u64,
        retry: Retry,
    ) -> Result<Found, StreamError> {
        match self {
            Self::Dcb(log) => {
                bounded(log.items_after(&partition.id, from.saturating_sub(1), retry)).await
            }
            Self::Aggregates(log, key) => {
                let range = Range { min_version: Some(from), ..Range::default() };
                bounded(log.items(key, range)).await
            }
        }
    }
}
