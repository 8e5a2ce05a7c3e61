//! A rehearsal: the decide loop on the log as it is, up to the append, which is not sent.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use aws_sdk_dynamodb::types::TransactWriteItem;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use ringfence::{
    Append, Appended, CommandRecord, Conflict, Consistency, Counts, Envelope, EventLog, EventRef,
    LogError, NewEvent, Place, Plan, Seen, SequencedEvent,
};
use ringfence_dynamo::{Intent, Meter, Usage};

use crate::append::rehearse;
use crate::item::{key_of, read_type};
use crate::layout::table_layout;
use crate::log::DcbLog;
use crate::transaction::{Action, Transaction};

/// A log whose appends can be thought through without a write.
pub trait Rehearse: EventLog {
    /// What its requests cost so far.
    fn meter(&self) -> &Meter;

    /// The request that an append would be sent as, and its events in their slots. Nothing is written.
    fn rehearse<'a>(
        &'a self,
        append: Append<'a>,
    ) -> BoxFuture<'a, Result<(Intent, Vec<SequencedEvent>), LogError>>;
}

impl Rehearse for DcbLog {
    fn meter(&self) -> &Meter {
        DcbLog::meter(self)
    }

    fn rehearse<'a>(
        &'a self,
        append: Append<'a>,
    ) -> BoxFuture<'a, Result<(Intent, Vec<SequencedEvent>), LogError>> {
        async move {
            let (transaction, events) = rehearse(self, append).await?;
            Ok((intent(self, &transaction), events))
        }
        .boxed()
    }
}

/// A log that reads and does not write. An append is compared with the log as it is at that moment: it conflicts as
/// it would, and otherwise counts as committed. It holds what one command is about to do.
pub struct Rehearsal<'a, L> {
    log: &'a L,
    notes: Mutex<Rehearsed>,
}

/// What a command did on a [`Rehearsal`].
#[derive(Debug, Default)]
pub struct Rehearsed {
    /// What it reads.
    pub plan: Option<Plan>,
    /// The consistency of its first read.
    pub strong: bool,
    /// The places and types of the events that were read, in fold order, each once.
    pub events: BTreeMap<Place, String>,
    /// What its last decision has seen.
    pub seen: Option<Seen>,
    /// What it would append, with the payloads.
    pub appends: Vec<NewEvent>,
    /// The request that would write it; `None` if it appends nothing.
    pub intent: Option<Intent>,
    /// What was added while it was decided, once for each attempt that would have failed.
    pub conflicts: Vec<Conflict>,
    /// What the looks of all attempts cost that only the rehearsal needs.
    pub looks: Usage,
}

impl<'a, L: Rehearse> Rehearsal<'a, L> {
    /// A rehearsal on `log`.
    #[must_use]
    pub fn of(log: &'a L) -> Self {
        Self { log, notes: Mutex::default() }
    }

    /// What the command did.
    #[must_use]
    pub fn end(self) -> Rehearsed {
        self.notes.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn notes(&self) -> MutexGuard<'_, Rehearsed> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the append would come to at this moment.
    async fn judge(&self, append: Append<'_>) -> Result<Appended, LogError> {
        let Append { seen, record, envelope, .. } = append;
        let appends = append.events.clone();
        let (intent, events) = self.log.rehearse(append).await?;
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
        notes.appends = appends;
        Ok(Appended::Committed(events))
    }
}

impl<L: Rehearse> EventLog for Rehearsal<'_, L> {
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
                notes.events.insert(event.place(), event.event_type.clone());
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

/// What a transaction would do.
fn intent(log: &DcbLog, transaction: &Transaction) -> Intent {
    let layout = table_layout(&log.catalog);
    let mut intent = Intent::default();
    for (action, request) in transaction.actions.iter().zip(&transaction.items) {
        let said = said(action, request);
        match &request.put {
            Some(put) => intent.put(&layout, &put.item, said),
            None => intent.actions.push(said),
        }
    }
    intent
}

/// An action in words.
fn said(action: &Action, request: &TransactWriteItem) -> ringfence_dynamo::Action {
    let free = |slot: u64| Some(format!("slot {slot} is free"));
    let put = request.put.as_ref().map(|put| &put.item);
    let named = || put.map(key_of).map(|(id, position)| format!("{id} {position}"));
    let puts = || put.and_then(read_type).map(|name| format!("puts {name}"));
    let (item, does, requires) = match action {
        Action::Event { slot, is_read, .. } => {
            // If the partition was not read, an event there is not a conflict.
            let or_next = if *is_read { "" } else { ", or else the next one" };
            (named(), puts(), free(*slot).map(|free| free + or_next))
        }
        Action::Copy => (named(), puts(), None),
        Action::Command => {
            let requires = "no command took effect under the key".to_owned();
            (named(), Some("records the command".to_owned()), Some(requires))
        }
        Action::Import => (named(), Some("marks the import".to_owned()), None),
        Action::Check { partition, slot } => {
            (Some(format!("{partition} {slot}")), None, free(*slot))
        }
        Action::Fence(boundary, requires) => {
            let does = request.update.is_some().then(|| "counts the events".to_owned());
            (Some(format!("the fence of {boundary}")), does, counts(requires))
        }
    };
    ringfence_dynamo::Action { item: item.unwrap_or_default(), does, requires, bytes: 0 }
}

fn counts(counts: &Counts) -> Option<String> {
    let all: Vec<_> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    (!all.is_empty()).then(|| format!("it counts {}", all.join(", ")))
}
