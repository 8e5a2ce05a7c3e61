//! A dry run: runs a command on the current log up to the append, which is not sent.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use ringfence_aws::{Intent, Meter, Usage};
use ringfence_core::{
    Append, Appended, CommandRecord, Conflict, Consistency, Envelope, EventLog, EventRef,
    HandleError, Handled, LogError, Place, Plan, Seen, SequencedEvent,
};
use serde::Serialize;

/// The effects that a command would have now.
#[derive(Debug)]
pub struct DryRun {
    /// The outcome.
    pub handled: Result<Handled, HandleError>,
    /// The boundaries on which the decision rests.
    pub reads: Vec<ReadBoundary>,
    /// The events that were read, in fold order. Events of a document are not listed.
    pub events: Vec<ReadEvent>,
    /// The request that would be sent; `None` if nothing would be written.
    pub intent: Option<Intent>,
    /// The changes since the reads, one entry for each attempt that would have failed.
    pub conflicts: Vec<String>,
    /// The cost.
    pub usage: Usage,
    /// The part of the cost that only the dry run has: its checks in place of appends.
    pub looks: Usage,
}

/// An event that was read.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadEvent {
    /// Its id, `<partition>/<slot>`.
    pub id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub event_type: String,
    /// Who gave its command and what wrote the event, in words. Missing if the read shows no metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// A boundary that is read, in words.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadBoundary {
    /// The boundary: a tag, a set of tags or a type in the DCB log; a stream in the other logs.
    pub boundary: String,
    /// How it is read.
    pub by: String,
    /// The types on which the decision depends. Empty for a document, where it depends on all types.
    pub types: Vec<String>,
    /// The part of the boundary that was seen.
    pub seen: String,
}

/// A log of events that can show the request of an append.
pub trait DryRunOn: EventLog {
    /// The cost of its requests so far.
    fn meter(&self) -> &Meter;

    /// The request that an append would send, and its events in their slots. Nothing is written.
    ///
    /// # Errors
    /// The append could not be sent.
    fn dry_run<'a>(
        &'a self,
        append: Append<'a>,
    ) -> impl Future<Output = Result<(Intent, Vec<SequencedEvent>), LogError>> + Send;
}

/// A log that reads and never writes. It compares an append with the current log: the append conflicts if it would,
/// and otherwise counts as committed. It notes the effects of one command.
pub(crate) struct DryRunLog<'a, L> {
    log: &'a L,
    notes: Mutex<Notes>,
}

/// The effects of a command on a [`DryRunLog`].
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// The plan of its reads.
    pub(crate) plan: Option<Plan>,
    /// The consistency of its first read.
    pub(crate) strong: bool,
    /// The events that were read, in fold order, each once.
    pub(crate) events: BTreeMap<Place, ReadEvent>,
    /// The events and boundaries that its last decision has seen.
    pub(crate) seen: Option<Seen>,
    /// The request that would be sent; `None` if the command appends nothing.
    pub(crate) intent: Option<Intent>,
    /// The changes since the reads, one entry for each attempt that would have failed.
    pub(crate) conflicts: Vec<Conflict>,
    /// The cost of the checks that only the dry run needs, over all attempts.
    pub(crate) looks: Usage,
}

impl<'a, L: DryRunOn> DryRunLog<'a, L> {
    /// A dry run on `log`.
    pub(crate) fn of(log: &'a L) -> Self {
        Self { log, notes: Mutex::default() }
    }

    /// The effects of the command.
    pub(crate) fn end(self) -> Notes {
        self.notes.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The outcome that the append would have at this moment.
    async fn judge(&self, append: Append<'_>) -> Result<Appended, LogError> {
        let Append { seen, record, envelope, .. } = append;
        let (intent, events) = self.log.dry_run(append).await?;
        let before = self.log.meter().snapshot();
        let found = match record {
            Some(record) => self.log.recorded(record, envelope).await?,
            None => None,
        };
        let conflict = match seen {
            Some(seen) if found.is_none() => self.log.verify(seen, envelope).await?,
            _ => None,
        };
        let looks = self.log.meter().snapshot().since(&before);
        let mut notes = self.notes();
        notes.looks = std::mem::take(&mut notes.looks).and(&looks);
        notes.seen = seen.cloned();
        if let Some(events) = found {
            return Ok(Appended::Repeated(events));
        }
        if let Some(conflict) = conflict {
            notes.conflicts.push(conflict.clone());
            return Err(LogError::Conflict(conflict));
        }
        notes.intent = Some(intent);
        Ok(Appended::Committed(events))
    }
}

impl<L: DryRunOn> EventLog for DryRunLog<'_, L> {
    fn read<'a>(
        &'a self,
        plan: &'a Plan,
        consistency: Consistency,
        envelope: &'a Envelope,
    ) -> BoxStream<'a, Result<SequencedEvent, LogError>> {
        {
            let mut notes = self.notes();
            if notes.plan.is_none() {
                notes.strong = consistency == Consistency::Strong;
            }
            notes.plan.get_or_insert_with(|| plan.clone());
            // An answer that needs no check rests on the events of the read.
            if plan.reads.iter().all(|read| read.after == 0) {
                notes.seen = Some(Seen::nothing(plan));
            }
        }
        let note = move |event: &Result<SequencedEvent, LogError>| {
            let Ok(event) = event else { return };
            let mut notes = self.notes();
            if let Some(seen) = &mut notes.seen {
                seen.observe(plan, event);
            }
            // A gap that another writer left is not an event.
            if !event.event_type.is_empty() {
                // An index shows no metadata. Of a type outside the plan, only the marks of the command are read.
                let is_whole =
                    plan.reads_type(&event.event_type) && event.metadata.iter().next().is_some();
                let origin = is_whole.then(|| event.metadata.origin().to_string());
                let (id, event_type) = (event.id(), event.event_type.clone());
                notes.events.insert(event.place(), ReadEvent { id, event_type, origin });
            }
        };
        self.log.read(plan, consistency, envelope).inspect(note).boxed()
    }

    fn reads_strongly(&self) -> bool {
        self.log.reads_strongly()
    }

    fn append<'a>(&'a self, append: Append<'a>) -> BoxFuture<'a, Result<Appended, LogError>> {
        self.judge(append).boxed()
    }

    fn verify<'a>(
        &'a self,
        seen: &'a Seen,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Conflict>, LogError>> {
        let verified = async move {
            let conflict = self.log.verify(seen, envelope).await?;
            let mut notes = self.notes();
            notes.seen = Some(seen.clone());
            notes.conflicts.extend(conflict.clone());
            Ok(conflict)
        };
        verified.boxed()
    }

    fn recorded<'a>(
        &'a self,
        record: &'a CommandRecord,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Vec<EventRef>>, LogError>> {
        self.log.recorded(record, envelope)
    }

    fn snapshot<'a>(
        &'a self,
        id: &'a str,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<String>, LogError>> {
        self.log.snapshot(id, envelope)
    }

    fn pause<'a>(&'a self, attempt: u32, envelope: &'a Envelope) -> BoxFuture<'a, bool> {
        self.log.pause(attempt, envelope)
    }
}
