//! What a log promises to the decide loop.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use futures::{
    TryStreamExt,
    future::{BoxFuture, ready},
    stream::BoxStream,
};
use serde_json::Value;

use crate::{
    BoundaryId, CommandRecord, Envelope, EventRef, FilingError, KeyReused, Name, NewEvent, Plan,
    Seen, SequencedEvent,
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
    /// With a record, the append puts a command item, and takes effect once.
    pub record: Option<&'a CommandRecord>,
    /// Metadata, cause and deadline.
    pub envelope: &'a Envelope,
}

/// What became of an append.
#[derive(Clone, Debug, PartialEq)]
pub enum Appended {
    /// The events as they are in the log now.
    Committed(Vec<SequencedEvent>),
    /// The command took effect before; these are its events.
    Repeated(Vec<EventRef>),
}

/// The outcome of a command, as it is answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Accepted; these are its events, none when what was asked for was already so.
    Accepted(Vec<EventRef>),
    /// Refused by the domain.
    Rejected {
        /// For a person.
        message: String,
        /// For a program: an object with `code`.
        rejection: Value,
    },
}

/// A log with dynamic consistency boundaries.
pub trait EventLog: Send + Sync {
    /// Every event of the plan's boundaries, merged in fold order ([`Place`](crate::Place)), each once. Those
    /// of a partition that the plan reads come from that read alone, before its first gap. All reads run in parallel; a read that fails, or
    /// can't be repeated before the deadline, fails the stream.
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
                std::future::ready(seen.observe(plan, event) && plan.matches(event))
            });
            let events = asked.try_collect().await?;
            Ok((events, seen))
        })
    }

    /// Appends all of the events or none, only if nothing has been added to what was seen.
    fn append<'a>(&'a self, append: Append<'a>) -> BoxFuture<'a, Result<Appended, LogError>>;

    /// Whether what was seen is still everything, in one snapshot taken now; `Some` names what was added.
    fn verify<'a>(
        &'a self,
        seen: &'a Seen,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Conflict>, LogError>>;

    /// The events that the item of a command names, if it took effect before the call.
    ///
    /// # Errors
    /// The key is another command's, or the item can't be read.
    fn recorded<'a>(
        &'a self,
        record: &'a CommandRecord,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Vec<EventRef>>, LogError>>;

    /// The last snapshot that was kept under `id`. A log may have none, or an older one.
    fn snapshot<'a>(
        &'a self,
        _id: &'a str,
        _envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<String>, LogError>> {
        Box::pin(ready(Ok(None)))
    }

    /// Keeps a snapshot in place of the one before. The caller does not wait for it and does not hear if it
    /// fails.
    fn keep_snapshot(&self, _id: String, _snapshot: String) {}

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

            fn recorded<'a>(
                &'a self,
                record: &'a CommandRecord,
                envelope: &'a Envelope,
            ) -> BoxFuture<'a, Result<Option<Vec<EventRef>>, LogError>> {
                (**self).recorded(record, envelope)
            }

            fn snapshot<'a>(
                &'a self,
                id: &'a str,
                envelope: &'a Envelope,
            ) -> BoxFuture<'a, Result<Option<String>, LogError>> {
                (**self).snapshot(id, envelope)
            }

            fn keep_snapshot(&self, id: String, snapshot: String) {
                (**self).keep_snapshot(id, snapshot);
            }

            fn pause<'a>(&'a self, attempt: u32, envelope: &'a Envelope) -> BoxFuture<'a, bool> {
                (**self).pause(attempt, envelope)
            }
        }
    )*};
}

forward!(&L, Box<L>, Arc<L>);

/// What was added to the boundaries that a decision read: at least one change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct Conflict(pub Vec<Change>);

/// What was added to one boundary since the decision read it.
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
    /// A fence counts other than what was seen.
    #[error("{boundary} holds {found} {event_type}, seen {seen}")]
    Count {
        /// The boundary.
        boundary: BoundaryId,
        /// The event type.
        event_type: Name,
        /// How many the decision has seen.
        seen: u64,
        /// How many the fence counts.
        found: u64,
    },
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
    /// Another command took effect under the idempotency key.
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
    /// A fence counts fewer events than were read.
    #[error("corrupt fence: {0}; run `ringfence verify`")]
    Corrupt(Change),
    /// An event can't be understood.
    #[error("event {event} can't be decoded")]
    Undecodable {
        /// Its id: partition and slot.
        event: String,
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
