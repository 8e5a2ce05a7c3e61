//! Why a reactor stops.

use ringfence_aws::{Failure, GaveUp};
use ringfence_feed::FeedError;

/// Why the events of a reactor's lanes can't be handled. A failed effect is not such an error: its lane waits.
#[derive(Debug, thiserror::Error)]
pub enum ReactorError {
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
    /// The index can't be read.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// Another run has taken over, because this one was silent beyond its lease; or an operator has moved the reactor.
    #[error("another run of {reactor} has taken over; this one has stopped")]
    Overtaken {
        /// The reactor.
        reactor: String,
    },
    /// An item does not have the layout of this crate: another program has written it.
    #[error("item {item} can't be read: {problem}")]
    Malformed {
        /// Its key.
        item: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The lane does not wait for this event, or no more.
    #[error(
        "{reactor}: lane {lane} has moved on and does not wait for event {event}; \
         `ringfence parked lanes` shows the waiting lanes"
    )]
    NotParked {
        /// The reactor.
        reactor: String,
        /// The lane.
        lane: String,
        /// The event that a person means.
        event: String,
    },
    /// The answer to a person's request was lost, and the lane has changed since.
    #[error(
        "{reactor}: the answer was lost, and lane {lane} has changed since, so the request for event {event} may not \
         count; `ringfence parked lanes` shows the waiting lanes"
    )]
    AskedSince {
        /// The reactor.
        reactor: String,
        /// The lane.
        lane: String,
        /// The event that a person means.
        event: String,
    },
    /// It can't be sent back while lanes are parked: their events would be skipped.
    #[error("{reactor} has parked lanes; retry or skip them first")]
    HasParked {
        /// The reactor.
        reactor: String,
    },
}

pub(crate) fn failed(operation: &'static str) -> impl FnOnce(GaveUp) -> ReactorError {
    move |GaveUp { failure, attempts, .. }| ReactorError::Failed {
        operation,
        attempts,
        source: failure,
    }
}
