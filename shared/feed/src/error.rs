//! The errors of the feed.

use std::error::Error;
use std::sync::Arc;

use ringfence_aws::{Failure, GaveUp};
use ringfence_core::BOUNDARY_BYTES_MAX;
use ringfence_log::EntryError;
use ringfence_log::news::StreamError;

use crate::checkpoint::Checkpoint;
use crate::entry::Entry;
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
    /// Other indexers kept moving the index.
    #[error("other indexers kept moving the index: gave up after {attempts} attempts")]
    Contention {
        /// How often it was tried.
        attempts: u32,
    },
    /// An item does not have the layout of the index: another program has written it.
    #[error("item {item} of the index can't be read: {problem}")]
    Malformed {
        /// Its key.
        item: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The index has the form of an older version, which kept the events themselves.
    #[error(
        "item {item} of the index has the form of an older version: name another table for the index, and run \
         `ringfence index repair`"
    )]
    Old {
        /// Its key.
        item: String,
    },
    /// The bodies of events can't be read from their log.
    #[error("the events of the index can't be read from their log")]
    Body(#[source] Arc<StreamError>),
    /// An event of the index can't be read. A stream of entries goes on after it.
    #[error("the event after checkpoint {before}, {}, can't be read", known.event.id())]
    Undecodable {
        /// The checkpoint before it.
        before: Checkpoint,
        /// The part of it that is known: its place and its type, and no payload.
        known: Box<Entry>,
        /// Why.
        #[source]
        source: Source,
    },
    /// Another instance of the reader, or an operator, has moved it.
    #[error("reader {reader} is at {found:?}, not at {expected:?}")]
    Moved {
        /// The reader.
        reader: String,
        /// Its expected checkpoint; `None` before its first.
        expected: Option<Checkpoint>,
        /// Its checkpoint.
        found: Option<Checkpoint>,
    },
}

impl FeedError {
    /// Whether the same request may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            // It waits for a person, and nothing may be given up until then.
            Self::Failed { .. } | Self::Contention { .. } | Self::Old { .. } => true,
            Self::Body(error) => error.is_transient(),
            Self::Malformed { .. } | Self::Undecodable { .. } | Self::Moved { .. } => false,
        }
    }

    /// Whether one event can't be read, and the others can be read.
    #[must_use]
    pub fn is_of_event(&self) -> bool {
        matches!(self, Self::Undecodable { .. })
    }
}

/// Why an event can't be read, though its log can.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the event is gone from its log; `ringfence index verify` lists such events")]
    Gone,
    #[error(
        "its log has another event in the place of the event; `ringfence index verify` lists such events"
    )]
    Another,
}

pub(crate) fn failed(operation: &'static str) -> impl FnOnce(GaveUp) -> FeedError {
    move |GaveUp { failure, attempts, .. }| FeedError::Failed {
        operation,
        attempts,
        source: failure,
    }
}

/// Why a partition's new events, or the rest of them, are not in the index.
#[derive(Clone, Debug, thiserror::Error)]
pub enum IndexError {
    /// They can't be read from the log's table.
    #[error("the new events of a partition can't be read")]
    Stream(#[source] Arc<StreamError>),
    /// The last indexed event is not the one that the table has in its place: the table was restored to
    /// an earlier time, or the event was deleted, and the slot was taken again.
    #[error(
        "event {slot} of {partition} is not the one that was indexed; run `ringfence index verify`"
    )]
    Replaced {
        /// The partition.
        partition: Partition,
        /// The slot.
        slot: u64,
    },
    /// The name is too long for a key of the index.
    #[error("the name of {partition} has {bytes} bytes, limit {BOUNDARY_BYTES_MAX}")]
    Name {
        /// The partition.
        partition: Partition,
        /// The length of its name.
        bytes: usize,
    },
    /// An event can't be decoded. The events after it wait, to keep the order of their partition.
    #[error("event {slot} of {partition} can't be decoded")]
    Undecodable {
        /// The partition.
        partition: Partition,
        /// Its number in the partition.
        slot: u64,
        /// Why.
        #[source]
        source: Arc<EntryError>,
    },
    /// An event does not fit a page, even alone: it has almost 400 KB, or is nested as deep as an item may be.
    /// The logs do not write such events. The events after it wait, to keep the order of their partition.
    #[error("no page of the index can hold event {slot} of {partition}")]
    Unwritable {
        /// The partition.
        partition: Partition,
        /// Its number in the partition.
        slot: u64,
        /// What DynamoDB says.
        #[source]
        source: Arc<FeedError>,
    },
    /// The index can't be written.
    #[error(transparent)]
    Feed(Arc<FeedError>),
}

impl IndexError {
    /// Whether it may succeed later; everything else waits for a person.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Feed(error) => error.is_transient(),
            Self::Stream(error) => error.is_transient(),
            Self::Replaced { .. }
            | Self::Name { .. }
            | Self::Undecodable { .. }
            | Self::Unwritable { .. } => false,
        }
    }
}

impl From<StreamError> for IndexError {
    fn from(error: StreamError) -> Self {
        Self::Stream(Arc::new(error))
    }
}
