//! Errors of the log's operations.

use std::error::Error;

use ringfence_aws::CodecError;
use ringfence_core::{
    BoundaryId, Change, CurrentError, LimitExceeded, LogError, NewerVersion, StoreError,
};

use crate::{AggregateKey, KeyError, Version};

/// The place of a new event is taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} has an event of version {version} already, seen {}", version - 1)]
pub struct VersionConflict {
    /// The aggregate. In a group, the first aggregate with a conflict.
    pub key: AggregateKey,
    /// The version that the push tried to write.
    pub version: u64,
    /// The type of the event that has this version.
    pub event_type: String,
}

/// The error of an operation. Only [`StoreError::OutcomeUnknown`] leaves open whether events were written.
#[derive(Debug, thiserror::Error)]
pub enum AggregateError {
    /// Read again, and decide again.
    #[error("conflict: {0}")]
    Conflict(VersionConflict),
    /// The push would leave versions without an event.
    #[error("version {version} of {key} would leave a gap: its newest is {}", newest.number())]
    Gap {
        /// The aggregate.
        key: AggregateKey,
        /// The version that was to be written.
        version: u64,
        /// The aggregate's newest version.
        newest: Version,
    },
    /// The request makes no sense, whatever the log holds.
    #[error("refused: {0}")]
    Invalid(String),
    /// The name of a store or an aggregate is not valid.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Too large; nothing is written.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// DynamoDB can't hold a value of an event; nothing is written.
    #[error("DynamoDB can't hold an event of {key}")]
    Unstorable {
        /// The aggregate.
        key: AggregateKey,
        /// The field and its problem.
        #[source]
        source: CodecError,
    },
    /// An item, a page token or an event of some type can't be understood.
    #[error("{what} can't be decoded")]
    Undecodable {
        /// The item, the token or the event.
        what: String,
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// An event has a version that this program does not know.
    #[error(transparent)]
    NewerVersion(#[from] NewerVersion),
    /// A request failed for good or too often.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AggregateError {
    pub(crate) fn undecodable(
        what: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::Undecodable { what: what.into(), source: source.into() }
    }
}

impl From<CurrentError> for AggregateError {
    fn from(error: CurrentError) -> Self {
        match error {
            CurrentError::Newer(newer) => newer.into(),
            CurrentError::Upcast { event, source } => Self::undecodable(event, source),
        }
    }
}

impl From<VersionConflict> for Change {
    fn from(VersionConflict { key, version, event_type }: VersionConflict) -> Self {
        Self::Slot {
            partition: BoundaryId::stored(key.to_string()),
            slot: version,
            event_type: event_type.into(),
        }
    }
}

impl From<AggregateError> for LogError {
    fn from(error: AggregateError) -> Self {
        match error {
            AggregateError::Conflict(conflict) => {
                Self::Conflict(ringfence_core::Conflict(vec![Change::from(conflict)]))
            }
            AggregateError::Limit(limit) => Self::Limit(limit),
            AggregateError::Store(error) => Self::Store(error),
            AggregateError::NewerVersion(newer) => Self::NewerVersion(newer),
            AggregateError::Unstorable { source, .. } => {
                Self::Unstorable { field: source.path, reason: source.problem.to_string() }
            }
            AggregateError::Undecodable { what, source } => {
                Self::Undecodable { event: what, source }
            }
            AggregateError::Key(_) | AggregateError::Invalid(_) | AggregateError::Gap { .. } => {
                Self::Undecodable { event: "the aggregate".to_owned(), source: error.into() }
            }
        }
    }
}
