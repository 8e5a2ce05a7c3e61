//! Errors of projectors and readers of views.

use ringfence_aws::GaveUp;
use ringfence_core::{NewerVersion, StoreError, VaultError};
use ringfence_feed::FeedError;

use crate::generation::Generation;

/// Why a view does not go on. No part of the event or batch is written.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// Too many events are parked, so the view itself must be wrong.
    #[error(
        "view {view}: {limit} events are parked, the limit, and event {event} can't be read either; mend the view and \
         deploy it, then `ringfence parked retry {view}`, or `ringfence parked skip-event`: {cause}"
    )]
    Parked {
        /// The view.
        view: &'static str,
        /// How many may be parked.
        limit: u64,
        /// The id of the next one.
        event: String,
        /// Why it can't be read.
        cause: String,
    },
    /// An event of a type that the view reads does not have the shape of the type.
    #[error("view {view}: event {event} can't be decoded; deploy a view that reads it")]
    Event {
        /// The view.
        view: &'static str,
        /// The event's id.
        event: String,
        /// What is wrong with it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An event has a version that this program does not know. The view goes on with a program that knows it.
    #[error("view {view}: {newer}")]
    NewerVersion {
        /// The view.
        view: &'static str,
        /// Which event.
        newer: NewerVersion,
    },
    /// An item of the view table does not have the layout of this crate.
    #[error("item {id:?} of {view} was written by another program")]
    Item {
        /// The item's partition key.
        view: String,
        /// The item's sort key.
        id: String,
    },
    /// Another operator has given up the generation that was being built, and begun the next.
    #[error(
        "another operator has given up generation {generation} of view {view} and builds \
         generation {next}; to build that one too, rebuild the view again"
    )]
    GivenUp {
        /// The view.
        view: &'static str,
        /// The generation that was being built.
        generation: Generation,
        /// The generation that is being built now.
        next: Generation,
    },
    /// Rows keep changing although the checkpoint does not move: another program writes them.
    #[error("view {view}: gave up after {attempts} attempts; another program changes its rows")]
    Contention {
        /// The view.
        view: &'static str,
        /// How often it was tried.
        attempts: u32,
    },
    /// A request to the view table failed.
    #[error("{operation} failed")]
    Store {
        /// What was tried.
        operation: &'static str,
        /// Why it failed.
        #[source]
        source: GaveUp,
    },
    /// The personal data of a row can't be opened.
    #[error("personal data can't be opened")]
    Vault(#[from] VaultError),
    /// The index or a checkpoint can't be read or written.
    #[error("the feed failed")]
    Feed(#[source] FeedError),
}

impl From<FeedError> for ViewError {
    fn from(error: FeedError) -> Self {
        Self::Feed(error)
    }
}

impl ViewError {
    /// Whether the same request may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Store { source, .. } => source.failure.is_transient(),
            Self::Feed(error) => error.is_transient(),
            Self::Contention { .. } => true,
            Self::Vault(error) => !matches!(
                error,
                VaultError::Damaged { .. } | VaultError::Store(StoreError::Failed { .. })
            ),
            Self::Event { .. }
            | Self::Parked { .. }
            | Self::NewerVersion { .. }
            | Self::Item { .. }
            | Self::GivenUp { .. } => false,
        }
    }
}
