//! Errors of a log.

use std::error::Error;

use crate::{
    BoundaryId, CurrentError, DowncastError, FilingError, KeyReused, LimitExceeded, Name,
    NewerVersion,
};

/// An error with its causes, as one text.
#[must_use]
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// The changes to boundaries that a decision read, at least one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct Conflict(pub Vec<Change>);

impl Conflict {
    /// The boundaries that changed.
    pub fn boundaries(&self) -> impl Iterator<Item = &BoundaryId> {
        self.0.iter().map(|change| match change {
            Change::Slot { partition, .. } => partition,
            Change::Count { boundary, .. } => boundary,
        })
    }
}

/// A change of one boundary since the decision read it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Change {
    /// A partition has an event in the slot after the last one seen.
    #[error("{partition} has {event_type} in slot {slot}, which was free")]
    Slot {
        /// The partition.
        partition: BoundaryId,
        /// The slot.
        slot: u64,
        /// The type of the event that is there.
        event_type: Name,
    },
    /// A fence counts another number than was seen.
    #[error("{boundary} holds {found} {event_type}, seen {seen}")]
    Count {
        /// The boundary.
        boundary: BoundaryId,
        /// The event type.
        event_type: Name,
        /// How many the decision has seen.
        seen: u64,
        /// The count of the fence.
        found: u64,
    },
}

/// Why a log failed. Only [`StoreError::OutcomeUnknown`] leaves open whether events were written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The condition does not hold.
    #[error("conflict: {0}")]
    Conflict(Conflict),
    /// Another command took effect under the idempotency key.
    #[error(transparent)]
    KeyReused(#[from] KeyReused),
    /// Too large; nothing is written.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// A value that the store can't hold; nothing is written.
    #[error("{field}: {reason}")]
    Unstorable {
        /// The path of the field, as `data.items[2].price`.
        field: String,
        /// The fault of its value, and the way out.
        reason: String,
    },
    /// An event can't be filed; nothing is written.
    #[error(transparent)]
    Filing(#[from] FilingError),
    /// The older version that a type writes can't hold an event; nothing is written.
    #[error(transparent)]
    Downcast(#[from] DowncastError),
    /// A fence counts fewer events than were read.
    #[error("corrupt fence: {0}; run `ringfence verify`")]
    Corrupt(Change),
    /// An event can't be understood.
    #[error("event {event} can't be decoded")]
    Undecodable {
        /// Its id: partition and slot.
        event: String,
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A partition that the decision reads has an event of the decision's context whose type the catalog lacks: a newer
    /// function wrote it, or the type was renamed. Nobody can say what the event means for the decision, so nothing is
    /// decided and nothing is written.
    #[error(
        "event {event} is of the type {event_type}, which the catalog of {context} does not have"
    )]
    UnknownType {
        /// Its id: partition and slot.
        event: String,
        /// The type.
        event_type: String,
        /// The context, which declares the type in another version of the program.
        context: String,
    },
    /// An event that the decision reads has a version that this program does not know; nothing is written.
    #[error(transparent)]
    NewerVersion(#[from] NewerVersion),
    /// An append without events; nothing is written.
    #[error(
        "an append has at least one event; whether what was seen is still everything, `verify` says"
    )]
    Nothing,
    /// Personal values can't be sealed or opened; nothing is written.
    #[error(transparent)]
    Vault(VaultError),
    /// A request failed for good or too often.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<VaultError> for LogError {
    fn from(error: VaultError) -> Self {
        match error {
            VaultError::Store(error) => error.into(),
            VaultError::Unstorable { field, reason } => Self::Unstorable { field, reason },
            error => Self::Vault(error),
        }
    }
}

impl From<CurrentError> for LogError {
    fn from(error: CurrentError) -> Self {
        match error {
            CurrentError::Newer(newer) => newer.into(),
            CurrentError::Upcast { event, source } => {
                Self::Undecodable { event, source: source.into() }
            }
        }
    }
}

/// Why the store of a log failed. Only [`StoreError::OutcomeUnknown`] leaves open whether anything was written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Others kept writing; nothing is written.
    #[error("contention: gave up after {attempts} attempts")]
    Contention {
        /// How often it was tried.
        attempts: u32,
        /// The change that the last attempt met: the log's conflict. `None` if other transactions held the items.
        #[source]
        over: Option<Box<dyn Error + Send + Sync>>,
    },
    /// The store kept refusing because of its load; nothing is written.
    #[error("throttled: gave up after {attempts} attempts")]
    Throttled {
        /// How often it was tried.
        attempts: u32,
    },
    /// The store gave no answer to a read; nothing is written.
    #[error("{operation}: no answer after {attempts} attempts")]
    Unavailable {
        /// The operation.
        operation: &'static str,
        /// How often it was tried.
        attempts: u32,
        /// The last failure.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The answer to a write was lost, and nothing later shows its outcome. Repeat the command with the same
    /// idempotency key.
    #[error("outcome unknown after {attempts} attempts")]
    OutcomeUnknown {
        /// How often it was tried.
        attempts: u32,
        /// The failure that left it open.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store refused for good, or an item does not have the log's form.
    #[error("{operation} failed")]
    Failed {
        /// The operation.
        operation: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl StoreError {
    /// How often it was tried. A refusal for good counts as one attempt.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        match self {
            Self::Contention { attempts, .. }
            | Self::Throttled { attempts }
            | Self::Unavailable { attempts, .. }
            | Self::OutcomeUnknown { attempts, .. } => *attempts,
            Self::Failed { .. } => 1,
        }
    }
}

/// Why a vault failed. Nothing is written to a log.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The subject's key is destroyed for good.
    #[error("the subject {0} is forgotten")]
    Forgotten(String),
    /// A value is not as it was sealed: it was changed, or moved to another subject or stack.
    #[error("a sealed value of {subject} can't be opened: {why}")]
    Damaged {
        /// The subject that it names.
        subject: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A value can't be stored, even sealed.
    #[error("{field}: {reason}")]
    Unstorable {
        /// Its path in the personal value.
        field: String,
        /// Why.
        reason: String,
    },
    /// The program has no vault.
    #[error("{0} has personal data, and this program has no vault to seal them")]
    Missing(String),
    /// The keys can't be had.
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_names_every_change() {
        let partition = BoundaryId::tag("orderId", "o");
        let count = |found| Change::Count {
            boundary: partition.clone(),
            event_type: "Placed".into(),
            seen: 2,
            found,
        };
        let slot =
            Change::Slot { partition: partition.clone(), slot: 3, event_type: "Paid".into() };
        let error = LogError::Conflict(Conflict(vec![slot, count(3)]));
        let text = "conflict: orderId:o has Paid in slot 3, which was free; orderId:o holds 3 Placed, seen 2";
        assert_eq!(error.to_string(), text);
        let text = "corrupt fence: orderId:o holds 1 Placed, seen 2; run `ringfence verify`";
        assert_eq!(LogError::Corrupt(count(1)).to_string(), text);
    }
}
