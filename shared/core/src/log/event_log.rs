//! The promises of a log to the decide loop.

use std::sync::Arc;

use futures::{
    TryStreamExt,
    future::{BoxFuture, ready},
    stream::BoxStream,
};

use crate::{
    CommandRecord, Conflict, Envelope, EventRef, LogError, NewEvent, Plan, Rejected, Seen,
    SequencedEvent, Tag, VaultError,
};

/// The consistency of a read of the base table. Either is safe, because the append has a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consistency {
    /// May lag; half the price.
    Eventual,
    /// Everything committed before the read began.
    Strong,
}

/// Events to append, with the condition.
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

/// The result of an append.
#[derive(Clone, Debug, PartialEq)]
pub enum Appended {
    /// The events as they are in the log now.
    Committed(Vec<SequencedEvent>),
    /// The command took effect before; these are its events.
    Repeated(Vec<EventRef>),
}

/// The outcome of a command, for its answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Accepted with these events, or without any if there was nothing to change.
    Accepted(Vec<EventRef>),
    /// The slice rejects the command.
    Rejected {
        /// The reason.
        rejected: Rejected,
        /// The events that the rejection left.
        events: Vec<EventRef>,
    },
}

impl Outcome {
    /// Rejected with these events if there is a reason, otherwise accepted.
    #[must_use]
    pub fn of(rejected: Option<Rejected>, events: Vec<EventRef>) -> Self {
        match rejected {
            None => Self::Accepted(events),
            Some(rejected) => Self::Rejected { rejected, events },
        }
    }
}

/// A log with dynamic consistency boundaries.
pub trait EventLog: Send + Sync {
    /// The events of the plan's boundaries, merged in fold order ([`Place`](crate::Place)), each once. If the plan
    /// reads a partition, the partition's events come only from that read, up to its first gap. An event of a type that
    /// the plan does not read is [without its content](SequencedEvent::place_only), except for the tag by which it was
    /// read; an index that returns one leaves it out ([`Read::shows_unread`](crate::Read::shows_unread)). An event that
    /// only an index returns is [in the index's form](SequencedEvent::of_index). All reads run in parallel. If a read
    /// fails, or can't be repeated before the deadline, the stream fails.
    fn read<'a>(
        &'a self,
        plan: &'a Plan,
        consistency: Consistency,
        envelope: &'a Envelope,
    ) -> BoxStream<'a, Result<SequencedEvent, LogError>>;

    /// The events that the plan asks for, and the condition of an append after this read. Other events of the
    /// boundaries are counted and left out.
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

    /// Whether each read of a partition is strongly consistent, also if the caller asks for less.
    fn reads_strongly(&self) -> bool {
        false
    }

    /// Appends all of the events or none, only if nothing has been added to what was seen.
    fn append<'a>(&'a self, append: Append<'a>) -> BoxFuture<'a, Result<Appended, LogError>>;

    /// Checks that nothing was added to what was seen, as of one moment, now; `Some` has the changes.
    fn verify<'a>(
        &'a self,
        seen: &'a Seen,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Conflict>, LogError>>;

    /// The events in the item of a command, if it took effect before the call.
    ///
    /// # Errors
    /// The key belongs to another command, or the item can't be read.
    fn recorded<'a>(
        &'a self,
        record: &'a CommandRecord,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Vec<EventRef>>, LogError>>;

    /// The last snapshot under `id`. A log may have none, or an older one.
    fn snapshot<'a>(
        &'a self,
        _id: &'a str,
        _envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<String>, LogError>> {
        Box::pin(ready(Ok(None)))
    }

    /// Stores a snapshot in place of the previous one. The caller does not wait for it, and does not see a failure,
    /// such as for a text above [`SNAPSHOT_BYTES_MAX`](crate::SNAPSHOT_BYTES_MAX).
    fn keep_snapshot(&self, _id: String, _snapshot: String) {}

    /// The hash of a command that has personal data of this subject ([`Vault::fingerprint`](crate::Vault)).
    ///
    /// # Errors
    /// The subject is forgotten, or the log has no vault.
    fn fingerprint<'a>(
        &'a self,
        subject: &'a str,
        _text: &'a str,
    ) -> BoxFuture<'a, Result<String, LogError>> {
        Box::pin(ready(Err(VaultError::Missing(format!("a command about {subject}")).into())))
    }

    /// The values of blind tags ([`Vault::blind`](crate::Vault)).
    ///
    /// # Errors
    /// The log has no vault.
    fn blind<'a>(&'a self, tags: &'a [Tag]) -> BoxFuture<'a, Result<Vec<Vec<String>>, LogError>> {
        let missing = |tag: &Tag| VaultError::Missing(format!("the tag {}", tag.key)).into();
        Box::pin(ready(tags.first().map_or_else(|| Ok(Vec::new()), |tag| Err(missing(tag)))))
    }

    /// Waits before attempt `attempt` + 1. Returns false if the deadline leaves no time for it.
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

            fn reads_strongly(&self) -> bool {
                (**self).reads_strongly()
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

            fn fingerprint<'a>(
                &'a self,
                subject: &'a str,
                text: &'a str,
            ) -> BoxFuture<'a, Result<String, LogError>> {
                (**self).fingerprint(subject, text)
            }

            fn blind<'a>(
                &'a self,
                tags: &'a [Tag],
            ) -> BoxFuture<'a, Result<Vec<Vec<String>>, LogError>> {
                (**self).blind(tags)
            }

            fn pause<'a>(&'a self, attempt: u32, envelope: &'a Envelope) -> BoxFuture<'a, bool> {
                (**self).pause(attempt, envelope)
            }
        }
    )*};
}

forward!(&L, Box<L>, Arc<L>);
