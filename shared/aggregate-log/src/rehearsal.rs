//! A rehearsal: a command on the aggregates as they are, up to the push, which is not sent.

use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use ringfence_dynamo::{Action, Clock, Intent, Usage, item_bytes};

use crate::push::{Entry, Prepared, check};
use crate::{
    AggregateError, AggregateKey, Conflict, GetEvents, Place, Push, PushEventGroup, Range,
    StoredEvent, Table, Version, table_layout,
};

/// A log that reads and does not write. A push is compared with the aggregates as they are at that moment: it
/// conflicts as it would, and otherwise counts as done. It holds what one command is about to do.
pub struct Rehearsal<'a> {
    table: &'a Table,
    clock: Clock,
    notes: Mutex<Rehearsed>,
}

/// What a command did on a [`Rehearsal`].
#[derive(Debug, Default)]
pub struct Rehearsed {
    /// The events that it has read, in the order of its reads. Those that it read again are there once.
    pub events: Vec<StoredEvent>,
    /// The aggregates that it reads.
    pub reads: Vec<AggregateKey>,
    /// The events that it would push.
    pub pushes: Vec<StoredEvent>,
    /// The request that would push them; `None` if there are none.
    pub intent: Option<Intent>,
    /// What was pushed while it was decided, once for each attempt that would have failed.
    pub conflicts: Vec<Conflict>,
    /// What the looks of all attempts cost that only the rehearsal needs.
    pub looks: Usage,
}

impl<'a> Rehearsal<'a> {
    /// A rehearsal on the aggregates in `table`.
    #[must_use]
    pub fn of(table: &'a Table, clock: Clock) -> Self {
        Self { table, clock, notes: Mutex::default() }
    }

    /// What the command did.
    #[must_use]
    pub fn end(self) -> Rehearsed {
        self.notes.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn notes(&self) -> MutexGuard<'_, Rehearsed> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first place of a group that is taken.
    async fn taken(&self, entries: &[Entry]) -> Result<Option<AggregateError>, AggregateError> {
        for entry in entries.iter().filter(|entry| !entry.forced) {
            let at = Range {
                min_version: Some(entry.version),
                max_version: Some(entry.version),
                ..Range::default()
            };
            if self.table.get_events(&entry.key, at).try_next().await?.is_some() {
                return Ok(Some(entry.conflict()));
            }
        }
        Ok(None)
    }
}

impl GetEvents for Rehearsal<'_> {
    fn get_events<'a>(
        &'a self,
        key: &'a AggregateKey,
        range: Range,
    ) -> BoxStream<'a, Result<StoredEvent, AggregateError>> {
        let reads = &mut self.notes().reads;
        if !reads.contains(key) {
            reads.push(key.clone());
        }
        let note = |event: &Result<StoredEvent, AggregateError>| {
            let Ok(event) = event else { return };
            let events = &mut self.notes().events;
            if !events.iter().any(|it| (&it.key, it.version) == (&event.key, event.version)) {
                events.push(event.clone());
            }
        };
        self.table.get_events(key, range).inspect(note).boxed()
    }
}

impl PushEventGroup for Rehearsal<'_> {
    async fn push_event_group(&self, group: Vec<Push>) -> Result<Vec<StoredEvent>, AggregateError> {
        check(&group)?;
        let first = |push: &Push| match push.place {
            // A command pushes after what it has read; `newest` is not asked for.
            Place::After(_) => push.place.first(&push.key, Version::NONE),
            _ => Err(AggregateError::Invalid("a command pushes after what it has read".to_owned())),
        };
        let firsts = group.iter().map(first).collect::<Result<Vec<_>, _>>()?;
        let (now_ms, push_id) = (self.clock.now_ms(), self.clock.uuid().simple().to_string());
        let prepared = Prepared::new(&group, &firsts, now_ms, push_id)?;
        let before = self.table.meter().snapshot();
        let taken = self.taken(&prepared.entries).await?;
        let mut notes = self.notes();
        let looks = self.table.meter().snapshot().since(&before);
        notes.looks = std::mem::take(&mut notes.looks).and(&looks);
        if let Some(conflict) = taken {
            if let AggregateError::Conflict(conflict) = &conflict {
                notes.conflicts.push(conflict.clone());
            }
            return Err(conflict);
        }
        let mut intent = Intent::default();
        for (Entry { key, version, item, .. }, event) in
            prepared.entries.iter().zip(&prepared.events)
        {
            let action = Action {
                item: format!("{key} {version}"),
                does: Some(format!("puts {}", event.event_type)),
                requires: Some(format!("version {version} is free")),
                bytes: item_bytes(item),
            };
            intent.put(&table_layout(), item, action);
        }
        notes.intent = Some(intent);
        notes.pushes = prepared.events.clone();
        Ok(prepared.events)
    }
}
