//! The log as a command has it: what is pushed gets the envelope's metadata, and what is read is
//! searched for the events of an earlier run.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use ringfence::{CommandRecord, Envelope, KeyReused, Metadata};
use serde_json::{Map, Value};

use crate::error::Conflict;
use crate::{
    AggregateError, AggregateKey, AggregateLog, Command, GetEvents, List, ListAggregateIds, Listed,
    NewEvent, Place, Push, PushEvent, PushEventGroup, Range, StoredEvent, Version,
};

/// A log under one command.
pub(crate) struct Recorder<'a, L> {
    log: &'a L,
    metadata: &'a Metadata,
    /// Of a command with an idempotency key.
    record: Option<CommandRecord>,
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    /// Of each aggregate, up to which version all of its events were searched.
    searched: BTreeMap<AggregateKey, u64>,
    /// Events of an earlier run.
    found: Vec<StoredEvent>,
    reused: Option<KeyReused>,
    pushed: Vec<StoredEvent>,
}

impl<'a, L: AggregateLog> Recorder<'a, L> {
    pub(crate) fn new<C: Command>(log: &'a L, command: &C, envelope: &'a Envelope) -> Self {
        let key = envelope.idempotency_key.as_deref();
        let record = key.map(|key| CommandRecord::new(C::NAME, key, command));
        Self { log, metadata: &envelope.metadata, record, notes: Mutex::default() }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().expect("no code panics while it holds the lock")
    }

    /// The events of an earlier run of the command, if there was one.
    pub(crate) fn found(&self) -> Result<Option<Vec<StoredEvent>>, KeyReused> {
        let notes = self.notes();
        match &notes.reused {
            Some(reused) => Err(reused.clone()),
            None => Ok((!notes.found.is_empty()).then(|| notes.found.clone())),
        }
    }

    /// The events of this run.
    pub(crate) fn pushed(&self) -> Vec<StoredEvent> {
        self.notes().pushed.clone()
    }

    fn note(&self, event: &StoredEvent) {
        let (Some(record), mut notes) = (&self.record, self.notes()) else { return };
        let version = event.version.number();
        let searched = notes.searched.entry(event.key.clone()).or_default();
        if version == *searched + 1 {
            *searched = version;
        }
        match event.metadata.as_ref().map_or(Ok(false), |metadata| record.wrote(metadata)) {
            // A command may read what it has just pushed, and one event twice.
            Ok(true) => {
                let is = |other: &StoredEvent| {
                    (&other.key, other.version) == (&event.key, event.version)
                };
                if !notes.pushed.iter().any(is) && !notes.found.iter().any(is) {
                    notes.found.push(event.clone());
                }
            }
            Ok(false) => {}
            Err(reused) => notes.reused = Some(reused),
        }
    }

    /// Reads what of the aggregate is not searched yet, up to `max_version`.
    async fn search(
        &self,
        key: &AggregateKey,
        max_version: Option<u64>,
    ) -> Result<(), AggregateError> {
        let searched = self.notes().searched.get(key).copied().unwrap_or(0);
        if max_version.is_some_and(|max| max <= searched) {
            return Ok(());
        }
        let range = Range { min_version: Some(searched + 1), max_version, ..Range::default() };
        self.get_events(key, range).try_for_each(async |_| Ok(())).await
    }

    /// Refuses a push that could not be found again, or that an earlier run has made.
    async fn search_before(&self, group: &[Push]) -> Result<(), AggregateError> {
        for push in group {
            let Place::After(Version(read)) = push.place else {
                let why = "with an idempotency key a push goes behind the version that was read";
                return Err(AggregateError::Invalid(format!("{}: {why}", push.key)));
            };
            self.search(&push.key, Some(read)).await?;
        }
        match self.found()?.as_deref() {
            Some([event, ..]) => {
                let (key, version) = (event.key.clone(), event.version.number());
                Err(AggregateError::Conflict(Conflict { key, version }))
            }
            _ => Ok(()),
        }
    }

    async fn push(&self, mut group: Vec<Push>) -> Result<Vec<StoredEvent>, AggregateError> {
        // After a conflict a second push would be decided anew, and the first made again.
        if !self.notes().pushed.is_empty() {
            let why = "a command pushes once: make the pushes a group";
            return Err(AggregateError::Invalid(why.to_owned()));
        }
        for event in group.iter_mut().flat_map(|push| &mut push.events) {
            self.mark(event)?;
        }
        if self.record.is_none() {
            let pushed = Box::pin(self.log.push_event_group(group)).await?;
            self.notes().pushed.extend(pushed.clone());
            return Ok(pushed);
        }
        self.search_before(&group).await?;
        let keys: Vec<_> = group.iter().map(|push| push.key.clone()).collect();
        let pushed = Box::pin(self.log.push_event_group(group)).await;
        match &pushed {
            Ok(pushed) => self.notes().pushed.extend(pushed.clone()),
            // The next attempt need not read what it pushes to.
            Err(AggregateError::Conflict(_)) => {
                for key in &keys {
                    self.search(key, None).await?;
                }
            }
            Err(_) => {}
        }
        pushed
    }

    /// Adds what the envelope says to the event's own metadata.
    fn mark(&self, event: &mut NewEvent) -> Result<(), AggregateError> {
        let marks = self.record.as_ref().map(CommandRecord::marks);
        if marks.is_none() && self.metadata.iter().next().is_none() {
            return Ok(());
        }
        let own = event.metadata.take().unwrap_or_else(|| Map::new().into());
        let Value::Object(mut metadata) = own else {
            let why = format!("the metadata of {} is no object", event.event_type);
            return Err(AggregateError::Invalid(why));
        };
        for (key, value) in self.metadata.iter() {
            metadata.entry(key).or_insert_with(|| value.clone());
        }
        for (mark, value) in marks.into_iter().flatten() {
            metadata.insert(mark.to_owned(), value.into());
        }
        event.metadata = Some(metadata.into());
        Ok(())
    }
}

impl<L: AggregateLog> GetEvents for Recorder<'_, L> {
    fn get_events<'a>(
        &'a self,
        key: &'a AggregateKey,
        range: Range,
    ) -> BoxStream<'a, Result<StoredEvent, AggregateError>> {
        self.log.get_events(key, range).inspect_ok(|event| self.note(event)).boxed()
    }
}

impl<L: AggregateLog> PushEvent for Recorder<'_, L> {
    async fn push_event(
        &self,
        key: &AggregateKey,
        place: Place,
        event: NewEvent,
    ) -> Result<StoredEvent, AggregateError> {
        let pushed = self.push(vec![Push { key: key.clone(), place, events: vec![event] }]).await?;
        Ok(pushed.into_iter().next().expect("one event was pushed"))
    }
}

impl<L: AggregateLog> PushEventGroup for Recorder<'_, L> {
    async fn push_event_group(&self, group: Vec<Push>) -> Result<Vec<StoredEvent>, AggregateError> {
        self.push(group).await
    }
}

impl<L: AggregateLog> ListAggregateIds for Recorder<'_, L> {
    async fn list_aggregate_ids(&self, store: &str, list: &List) -> Result<Listed, AggregateError> {
        self.log.list_aggregate_ids(store, list).await
    }
}
