//! Why the log failed.

use std::error::Error;

use ringfence::{KeyReused, LimitExceeded};
use ringfence_dynamo::{Failure, GaveUp};

use crate::{BodyError, StreamName, StreamNameError};

/// Why the log failed. Only [`DocumentError::OutcomeUnknown`] leaves open whether anything was
/// written.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// Others kept writing; nothing is written.
    #[error("contention: gave up after {attempts} attempts")]
    Contention {
        /// How often it was tried.
        attempts: u32,
    },
    /// The store kept refusing for its load; nothing is written.
    #[error("throttled: gave up after {attempts} attempts")]
    Throttled {
        /// How often it was tried.
        attempts: u32,
    },
    /// The store gave no answer to a read; nothing is written.
    #[error("{operation}: no answer after {attempts} attempts")]
    Unavailable {
        /// What was tried.
        operation: &'static str,
        /// How often it was tried.
        attempts: u32,
        /// The last failure.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// An answer was lost, and what the stream shows now does not say whether the write is in it.
    #[error("outcome unknown after {attempts} attempts")]
    OutcomeUnknown {
        /// How often it was tried.
        attempts: u32,
        /// The failure that left it open.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// Too large; nothing is written.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// The id names no stream.
    #[error(transparent)]
    Name(#[from] StreamNameError),
    /// Another command of the stream was carried out under the idempotency key.
    #[error(transparent)]
    KeyReused(#[from] KeyReused),
    /// Where only the state is kept, nothing tells a command from its repeat.
    #[error("{category} keeps no events, so nothing is done once; send it without idempotency key")]
    KeyWithoutEvents {
        /// The category.
        category: &'static str,
    },
    /// There is neither an event nor an unfold to write.
    #[error("nothing to write to {stream}: give events or unfolds")]
    Nothing {
        /// The stream.
        stream: StreamName,
    },
    /// An event has no JSON form, or is no variant of an enum.
    #[error("an event of {stream} can't be encoded")]
    Unencodable {
        /// The stream.
        stream: StreamName,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The body of an event or unfold can't be read.
    #[error("event {index} of {stream} ({event_type}) can't be read")]
    Body {
        /// The stream.
        stream: StreamName,
        /// Its index.
        index: u64,
        /// Its type.
        event_type: String,
        /// Why.
        #[source]
        source: BodyError,
    },
    /// An event or unfold of a known type has another shape.
    #[error("event {index} of {stream} ({event_type}) can't be decoded")]
    Undecodable {
        /// The stream.
        stream: StreamName,
        /// Its index.
        index: u64,
        /// Its type.
        event_type: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// Events that the read needs were pruned, and no unfold stands for them.
    #[error("{stream} begins at event {first}, event {wanted} was pruned")]
    Pruned {
        /// The stream.
        stream: StreamName,
        /// The first event that was asked for.
        wanted: u64,
        /// The first one there is.
        first: u64,
    },
    /// Events in the middle of the stream are not there.
    #[error("{stream} lacks events {from} to {to}; `verify` says more", to = to - 1)]
    Hole {
        /// The stream.
        stream: StreamName,
        /// The first one that is missing.
        from: u64,
        /// The first one after them.
        to: u64,
    },
    /// The stream has calves and no Tip.
    #[error("{stream} has no Tip; `verify` says more")]
    NoTip {
        /// The stream.
        stream: StreamName,
    },
    /// The store refused for good, or an item can't be understood.
    #[error("{operation} failed")]
    Failed {
        /// What was tried.
        operation: &'static str,
        /// Why it failed.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl DocumentError {
    /// The error of a request that failed for good or too often and left nothing behind.
    pub(crate) fn of(operation: &'static str, gave_up: GaveUp) -> Self {
        let GaveUp { failure, attempts } = gave_up;
        match failure {
            Failure::Throttled { .. } => Self::Throttled { attempts },
            Failure::Contended { .. } => Self::Contention { attempts },
            Failure::Cancelled(_) if failure.is_transient() => Self::Contention { attempts },
            source @ Failure::Unknown { .. } => {
                Self::Unavailable { operation, attempts, source: source.into() }
            }
            failure => Self::Failed { operation, source: failure.into() },
        }
    }
}
