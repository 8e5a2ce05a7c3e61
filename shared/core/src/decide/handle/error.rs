//! Why a command is not settled.

use crate::{
    BoundaryId, EventError, LogError, Name, PlanError, SliceError, StoreError, SubjectError,
};

/// Why a command is not settled.
#[derive(Debug, thiserror::Error)]
pub enum HandleError {
    /// The command can't be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The slice does not fit its log, as [`check`](crate::check) found; nothing is written.
    #[error(transparent)]
    Slice(#[from] SliceError),
    /// The slice decided on an event that can't be read back; nothing is written.
    #[error(transparent)]
    Event(#[from] EventError),
    /// With an idempotency key, the slice decided on an event that a repeat would not find; nothing is written.
    #[error(
        "{slice} writes {event_type} to {partition}, which it does not read, so a repeat under an idempotency \
         key would not find it: give the command a tag that names the partition, or read it in `query`"
    )]
    Unread {
        /// The slice.
        slice: &'static str,
        /// The event type.
        event_type: Name,
        /// The partition.
        partition: BoundaryId,
    },
    /// With an idempotency key, a rejection leaves events, but the record of the key is an item, which does not say
    /// that the command was rejected; nothing is written.
    #[error(
        "{slice} leaves events when it rejects a command, so a repeat under an idempotency key has to find them: give \
         the command the tags of every partition that it writes, and read there what it writes"
    )]
    Leaves {
        /// The slice.
        slice: &'static str,
    },
    /// A personal value of the command has no subject; nothing is written.
    #[error(transparent)]
    Subject(#[from] SubjectError),
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl From<StoreError> for HandleError {
    fn from(error: StoreError) -> Self {
        Self::Log(error.into())
    }
}
