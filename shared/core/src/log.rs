//! What a log promises to the decide loop.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use futures::{TryStreamExt, future::BoxFuture, stream::BoxStream};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    BoundaryId, CommandRecord, Envelope, EventRef, FilingError, KeyReused, Name, NewEvent, Plan,
    Position, PositionError, Seen, SequencedEvent,
};

/// How fresh a read of the base table is. Either is safe: the append's condition decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consistency {
    /// May lag; half the price.
    Eventual,
    /// Everything committed before the read began.
    Strong,
}

/// Events to append, and under which condition.
pub struct Append<'a> {
    /// The events, at least one, in order.
    pub events: Vec<NewEvent>,
    /// What the decision has read; `None` appends unconditionally (import, seeding).
    pub seen: Option<&'a Seen>,
    /// With a record the append takes effect once.
    pub record: Option<&'a CommandRecord>,
    /// Metadata, cause and deadline.
    pub envelope: &'a Envelope,
}

/// What became of an append.
#[derive(Clone, Debug, PartialEq)]
pub enum Appended {
    /// The events as they are in the log now.
    Committed(Vec<SequencedEvent>),
    /// The command was settled before; this is its recorded outcome.
    Repeated(Outcome),
}

/// What became of the record of a refusal.
#[derive(Clone, Debug, PartialEq)]
pub enum Settled {
    /// The outcome is recorded.
    Now,
    /// The command was settled before; this is its recorded outcome.
    Repeated(Outcome),
}

/// The outcome of a command, as it is recorded and answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome<P = Position> {
    /// Accepted; these are its events, none when what was asked for was already so.
    Accepted(Vec<EventRef<P>>),
    /// Refused by the domain.
    Rejected {
        /// For a person.
        message: String,
        /// For a program: an object with `code`.
        rejection: Value,
    },
}

/// An event log with counted fences.
pub trait EventLog: Send + Sync {
    /// Every event of the plan's boundaries, merged by position, each once. All reads run in
    /// parallel; a read that fails, or can't be repeated before the deadline, fails the stream.
    fn read<'a>(
        &'a self,
        plan: &'a Plan,
        consistency: Consistency,
        envelope: &'a Envelope,
    ) -> BoxStream<'a, Result<SequencedEvent, LogError>>;

    /// The events that the plan asks for, and what an append under the condition of this read needs. Boundaries
    /// hold events besides those; they are counted and left out.
    ///
    /// # Errors
    /// As [`EventLog::read`].
    fn read_with_seen<'a>(
        &'a self,
        plan: &'a Plan,
        consistency: Consistency,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<(Vec<SequencedEvent>, Seen), LogError>> {
        Box::pin(async move {
            let mut seen = Seen::nothing(plan);
            let read = self.read(plan, consistency, envelope);
            let asked = read.try_filter(|event| {
                seen.observe(plan, event);
                std::future::ready(plan.matches(event))
            });
            let events = asked.try_collect().await?;
            Ok((events, seen))
        })
    }

    /// Appends all of the events or none, only if the counts are still those of `seen`.
    fn append<'a>(&'a self, append: Append<'a>) -> BoxFuture<'a, Result<Appended, LogError>>;

    /// Compares the counts with the fences, in one snapshot taken now; `Some` names a difference.
    fn verify<'a>(
        &'a self,
        seen: &'a Seen,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Conflict>, LogError>>;

    /// Records the outcome of a command that appends nothing, unless it was settled before.
    fn settle<'a>(
        &'a self,
        record: &'a CommandRecord,
        outcome: &'a Outcome,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Settled, LogError>>;

    /// Waits before attempt `attempt` + 1; false when the deadline leaves no time for it.
    fn pause<'a>(&'a self, attempt: u32, envelope: &'a Envelope) -> BoxFuture<'a, bool>;
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<L: EventLog + ?Sized> EventLog for $pointer {
            fn read<'a>(
                &'a self,
                plan: &'a Plan,
                consistency: Consistency,
                envelope: &'a Envelope,
            ) -> BoxStream<'a, Result<SequencedEvent, LogError>> {
                (**self).read(plan, consistency, envelope)
            }

            fn append<'a>(
                &'a self,
                append: Append<'a>,
            ) -> BoxFuture<'a, Result<Appended, LogError>> {
                (**self).append(append)
            }

            fn verify<'a>(
                &'a self,
                seen: &'a Seen,
                envelope: &'a Envelope,
            ) -> BoxFuture<'a, Result<Option<Conflict>, LogError>> {
                (**self).verify(seen, envelope)
            }

            fn settle<'a>(
                &'a self,
                record: &'a CommandRecord,
                outcome: &'a Outcome,
                envelope: &'a Envelope,
            ) -> BoxFuture<'a, Result<Settled, LogError>> {
                (**self).settle(record, outcome, envelope)
            }

            fn pause<'a>(&'a self, attempt: u32, envelope: &'a Envelope) -> BoxFuture<'a, bool> {
                (**self).pause(attempt, envelope)
            }
        }
    )*};
}

forward!(&L, Box<L>, Arc<L>);

/// Something that the decision read has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{boundary} holds {found} {event_type}, seen {seen}")]
pub struct Conflict {
    /// The boundary.
    pub boundary: BoundaryId,
    /// The event type.
    pub event_type: Name,
    /// How many the decision has seen.
    pub seen: u64,
    /// How many the fence counts.
    pub found: u64,
}

/// Which limit is exceeded, for a program that handles one differently from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitKind {
    /// The boundaries of one decision.
    Boundaries,
    /// A partition key, made of tags.
    Key,
    /// One event.
    Event,
    /// What one append writes: its events and what goes with them.
    Append,
    /// The condition on one boundary.
    Condition,
    /// The record of a command's outcome.
    Record,
    /// The versions of one stream.
    Version,
    /// The item that holds a stream's latest events and unfolds.
    Tip,
    /// A view's row.
    Row,
    /// The id of a view's row.
    RowId,
}

/// Input that is larger than a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{subject}: {found} {unit}, limit {limit}; {advice}")]
pub struct LimitExceeded {
    /// Which limit.
    pub kind: LimitKind,
    /// What is too large, by its name: a field, a tag, an event type.
    pub subject: String,
    /// How large it is.
    pub found: u64,
    /// How large it may be.
    pub limit: u64,
    /// In what.
    pub unit: &'static str,
    /// The way out.
    pub advice: &'static str,
}

impl LimitExceeded {
    /// Checks `found`, in `unit`, against `limit`; at the limit is allowed.
    ///
    /// # Errors
    /// `found` is larger than `limit`.
    pub fn check(
        kind: LimitKind,
        subject: impl fmt::Display,
        unit: &'static str,
        found: usize,
        limit: usize,
        advice: &'static str,
    ) -> Result<(), Self> {
        if found <= limit {
            return Ok(());
        }
        let (subject, found, limit) = (subject.to_string(), found as u64, limit as u64);
        Err(Self { kind, subject, found, limit, unit, advice })
    }
}

/// Why a log failed. Only [`StoreError::OutcomeUnknown`] leaves open whether events were written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The condition does not hold.
    #[error("conflict: {0}")]
    Conflict(Conflict),
    /// Another command was settled under the idempotency key.
    #[error(transparent)]
    KeyReused(#[from] KeyReused),
    /// Too large; nothing is written.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// A value that the store has no form for; nothing is written.
    #[error("{field}: {reason}")]
    Unstorable {
        /// The path of the field, as `data.items[2].price`.
        field: String,
        /// What is wrong with its value, and the way out.
        reason: String,
    },
    /// An event can't be filed; nothing is written.
    #[error(transparent)]
    Filing(#[from] FilingError),
    /// No position can be minted; nothing is written.
    #[error(transparent)]
    Position(#[from] PositionError),
    /// A fence counts fewer events than were read.
    #[error("corrupt fence: {0}; run `ringfence verify`")]
    Corrupt(Conflict),
    /// An item can't be understood.
    #[error("item {partition} {position} can't be decoded")]
    Undecodable {
        /// Its partition.
        partition: String,
        /// Its position.
        position: Position,
        /// Why.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A request failed for good or too often.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why the store of a log did not do what it was asked to. Only [`StoreError::OutcomeUnknown`]
/// leaves open whether anything was written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Others kept writing; nothing is written.
    #[error("contention: gave up after {attempts} attempts")]
    Contention {
        /// How often it was tried.
        attempts: u32,
        /// What had changed at the last attempt: the log's conflict. `None` where others held the items in
        /// transactions of theirs.
        #[source]
        over: Option<Box<dyn Error + Send + Sync>>,
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
    /// The answer to a write was lost, and nothing later says what became of it. Repeat the command
    /// with the same idempotency key.
    #[error("outcome unknown after {attempts} attempts")]
    OutcomeUnknown {
        /// How often it was tried.
        attempts: u32,
        /// The failure that left it open.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The store refused for good, or an item is not as the log writes it.
    #[error("{operation} failed")]
    Failed {
        /// What was tried.
        operation: &'static str,
        /// Why it failed.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl StoreError {
    /// How often it was tried; what is refused for good counts as tried once.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_says_what_changed() {
        let boundary = BoundaryId::tag("orderId", "o");
        let conflict = Conflict { boundary, event_type: "Placed".into(), seen: 2, found: 3 };
        let error = LogError::Conflict(conflict.clone());
        assert_eq!(error.to_string(), "conflict: orderId:o holds 3 Placed, seen 2");
        let error = LogError::Corrupt(Conflict { found: 1, ..conflict });
        let text = "corrupt fence: orderId:o holds 1 Placed, seen 2; run `ringfence verify`";
        assert_eq!(error.to_string(), text);
    }
}
