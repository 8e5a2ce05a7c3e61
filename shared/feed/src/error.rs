//! What can go wrong with the feed.

use std::error::Error;
use std::sync::Arc;

use ringfence::{BOUNDARY_BYTES_MAX, BoundaryId, Sequence};
use ringfence_aggregate_log::{AggregateError, KeyError};
use ringfence_dcb_log::NewsError;
use ringfence_document_log::{DocumentError, ItemError, StreamNameError};
use ringfence_dynamo::{Failure, GaveUp};

use crate::checkpoint::Checkpoint;
use crate::entry::EntryError;
use crate::partition::Partition;

type Source = Box<dyn Error + Send + Sync>;

/// Why the index or a reader's checkpoint can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// A request failed for good or too often; it may have taken effect.
    #[error("{operation} failed after {attempts} attempts")]
    Failed {
        /// What was tried.
        operation: &'static str,
        /// How often.
        attempts: u32,
        /// The last failure.
        #[source]
        source: Failure,
    },
    /// Others kept moving the index.
    #[error("other indexers kept moving the index: gave up after {attempts} attempts")]
    Contention {
        /// How often it was tried.
        attempts: u32,
    },
    /// An item is not as the index has it: something else has written it.
    #[error("item {item} of the index can't be read: {problem}")]
    Malformed {
        /// Its key.
        item: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// An event of the index can't be decoded.
    #[error("the event behind checkpoint {before} can't be decoded")]
    Undecodable {
        /// The checkpoint before it.
        before: Checkpoint,
        /// Why.
        #[source]
        source: Source,
    },
    /// The reader is elsewhere: another instance of it, or an operator, has moved it.
    #[error("reader {reader} is at {found:?}, not at {expected:?}")]
    Moved {
        /// The reader.
        reader: String,
        /// Where it was thought to be; `None` before its first checkpoint.
        expected: Option<Checkpoint>,
        /// Where it is.
        found: Option<Checkpoint>,
    },
}

impl FeedError {
    /// Whether the same may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Failed { .. } | Self::Contention { .. } => true,
            Self::Malformed { .. } | Self::Undecodable { .. } | Self::Moved { .. } => false,
        }
    }
}

pub(crate) fn failed(operation: &'static str) -> impl FnOnce(GaveUp) -> FeedError {
    move |GaveUp { failure, attempts, .. }| FeedError::Failed {
        operation,
        attempts,
        source: failure,
    }
}

/// Why what is new in a stream can't be told.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The indexer was not told of the log.
    #[error("the indexer has no {log} log; name its table")]
    NoLog {
        /// Which log.
        log: &'static str,
    },
    /// Versions are missing, and time does not mend it.
    #[error("{partition} lacks version {wanted} before version {found}; push what is missing")]
    Gap {
        /// The stream.
        partition: BoundaryId,
        /// The next version.
        wanted: u64,
        /// The first that is there.
        found: u64,
    },
    /// A version is missing, and there was no time to wait for it.
    #[error("{partition} lacks a version, and no time was left to look again")]
    OutOfTime {
        /// The stream.
        partition: BoundaryId,
    },
    /// The partition key is of no aggregate.
    #[error(transparent)]
    Aggregate(KeyError),
    /// The partition key is of no stream.
    #[error(transparent)]
    Stream(StreamNameError),
    /// An aggregate can't be read.
    #[error("the aggregate can't be read")]
    Aggregates(#[from] AggregateError),
    /// A stream can't be read.
    #[error("the stream can't be read")]
    Documents(#[from] DocumentError),
}

impl StreamError {
    fn is_transient(&self) -> bool {
        match self {
            Self::OutOfTime { .. } => true,
            Self::Aggregates(error) => matches!(error, AggregateError::Store(_)),
            Self::Documents(error) => {
                matches!(error, DocumentError::Store(_)) && !is_of_item(error)
            }
            Self::NoLog { .. } | Self::Gap { .. } | Self::Aggregate(_) | Self::Stream(_) => false,
        }
    }
}

/// Whether an item that can't be understood is behind the error: time does not mend it.
fn is_of_item(error: &DocumentError) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<ItemError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Why a partition's new events, or the rest of them, are not in the index.
#[derive(Clone, Debug, thiserror::Error)]
pub enum IndexError {
    /// They can't be told from the table.
    #[error("what is new in a partition can't be told")]
    News(#[source] Arc<NewsError>),
    /// They can't be told from the stream.
    #[error("what is new in a stream can't be told")]
    Stream(#[source] Arc<StreamError>),
    /// The name is longer than a key of the index.
    #[error("the name of {partition} has {bytes} bytes, limit {BOUNDARY_BYTES_MAX}")]
    Name {
        /// The partition.
        partition: Partition,
        /// How long it is.
        bytes: usize,
    },
    /// An event can't be decoded; those behind it wait, for the order of their partition.
    #[error("event {position} of {partition} can't be decoded")]
    Undecodable {
        /// The partition.
        partition: Partition,
        /// The event's position, as its item has it.
        position: String,
        /// Why.
        #[source]
        source: Arc<EntryError>,
    },
    /// An event does not fit a page, even alone: of almost 400 KB, or nested as deep as an item may be.
    /// The logs do not write such events. The events after it wait, to keep the order of their partition.
    #[error("no page of the index can hold event {position} of {partition}")]
    Unwritable {
        /// The partition.
        partition: Partition,
        /// The event's position.
        position: Sequence,
        /// What DynamoDB says.
        #[source]
        source: Arc<FeedError>,
    },
    /// The index can't be written.
    #[error(transparent)]
    Feed(Arc<FeedError>),
}

impl IndexError {
    /// Whether the same may succeed later; everything else waits for a person.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::News(error) => matches!(**error, NewsError::Log(_)),
            Self::Feed(error) => error.is_transient(),
            Self::Stream(error) => error.is_transient(),
            Self::Name { .. } | Self::Undecodable { .. } | Self::Unwritable { .. } => false,
        }
    }
}

impl From<NewsError> for IndexError {
    fn from(error: NewsError) -> Self {
        Self::News(Arc::new(error))
    }
}

impl From<StreamError> for IndexError {
    fn from(error: StreamError) -> Self {
        Self::Stream(Arc::new(error))
    }
}
