//! The logs whose events go into one index, and their new events.
//!
//! A partition of the DCB log is compared with its fence. A stream of the other two logs needs no fence:
//! its events are numbered without gaps. So the number after the last indexed one is the next event, and a
//! higher number shows that events are not visible yet.

use ringfence::LogError;
use ringfence_aggregate_log::{AggregateKey, Table};
use ringfence_dcb_log::DcbLog;
use ringfence_document_log::{DocumentLog, DynamoStore, StreamName};
use ringfence_dynamo::{Clock, Retry};

use crate::error::{IndexError, StreamError};
use crate::item::Progress;
use crate::news::{Mark, News};
use crate::partition::{Doorbell, Log, Partition};
use crate::{aggregates, documents};

/// The logs of one index.
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

    fn aggregates(&self) -> Result<&Table, StreamError> {
        self.aggregates.as_ref().ok_or(StreamError::NoLog { log: "aggregate" })
    }

    fn documents(&self) -> Result<&DocumentLog<DynamoStore>, StreamError> {
        self.documents.as_ref().ok_or(StreamError::NoLog { log: "document" })
    }

    /// The mark up to which each of the partitions is to be read now.
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

    /// The events after `after`, up to the mark: all of them, or some and the mark to go on with.
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
                let (log, clock) = (self.documents()?, self.clock());
                documents::news(log, clock, partition, &stream, after.version(), retry).await
            }
            (Log::Dcb, Mark::End) => unreachable!("only a stream is read to its end"),
        }
    }
}
