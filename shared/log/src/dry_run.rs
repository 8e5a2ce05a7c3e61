//! A dry run: a command on the log as it is, up to the append, which is not sent.

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

/// What a command would do now.
#[derive(Debug)]
pub struct DryRun {
    /// The outcome.
    pub handled: Result<Handled, HandleError>,
    /// The boundaries on which the decision rests.
    pub reads: Vec<ReadBoundary>,
    /// The events that were read, in fold order. The events of a document are not named.
    pub events: Vec<ReadEvent>,
    /// The request that would write; `None` if nothing would be written.
    pub intent: Option<Intent>,
    /// What was added while it was decided, once for each attempt that would have failed.
    pub conflicts: Vec<String>,
    /// What it cost.
    pub usage: Usage,
    /// The part of the cost that only the dry run has: its looks in place of appends.
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
    /// Who gave its command, and what wrote it, in words; absent if the read shows no metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// A boundary that is read, in words.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadBoundary {
    /// The boundary: of the DCB log a tag, a set of tags or a type, of the other logs a stream.
    pub boundary: String,
    /// How it is read.
    pub by: String,
    /// The types on which the decision depends; of a document all, and none is named.
    pub types: Vec<String>,
    /// What was seen of it.
    pub seen: String,
}

/// A log of events that says what an append would be.
pub trait DryRunOn: EventLog {
    /// What its requests cost so far.
    fn meter(&self) -> &Meter;

    /// The request that an append would be sent as, and its events in their slots. Nothing is written.
    ///
    /// # Errors
    /// The append could not be sent.
    fn dry_run<'a>(
        &'a self,
        append: Append<'a>,
    ) -> impl Future<Output = Result<(Intent, Vec<SequencedEvent>), LogError>> + Send;
}

/// A log that reads and does not write. An append is compared with the log as it is at that moment: it conflicts as
/// it would, and otherwise counts as committed. It holds what one command is about to do.
pub(crate) struct DryRunLog<'a, L> {
    log: &'a L,
    notes: Mutex<Notes>,
}

/// What a command did on a [`DryRunLog`].
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// What it reads.
    pub(crate) plan: Option<Plan>,
    /// The consistency of its first read.
    pub(crate) strong: bool,
    /// The events that were read, in fold order, each once.
    pub(crate) events: BTreeMap<Place, ReadEvent>,
    /// What its last decision has seen.
    pub(crate) seen: Option<Seen>,
    /// The request that would write it; `None` if it appends nothing.
    pub(crate) intent: Option<Intent>,
    /// What was added while it was decided, once for each attempt that would have failed.
    pub(crate) conflicts: Vec<Conflict>,
    /// What the looks of all attempts cost that only the dry run needs.
    pub(crate) looks: Usage,
}

impl<'a, L: DryRunOn> DryRunLog<'a, L> {
    /// A dry run on `log`.
    pub(crate) fn of(log: &'a L) -> Self {
        Self { log, notes: Mutex::default() }
    }

    /// What the command did.
    pub(crate) fn end(self) -> Notes {
        self.notes.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the append would come to at this moment.
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
            // An answer that needs no look rests on what the read shows.
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
            // A gap that another writer left is no event.
            if !event.event_type.is_empty() {
                // An index shows no metadata. Of a type that is not asked for, only the marks of the command are read.
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
