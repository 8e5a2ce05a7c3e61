//! The log in memory, with the semantics of the DynamoDB log: the same filing, slots, fences, order,
//! command items and limits. For tests, and for trying a slice without any table.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
};

use futures::{
    FutureExt, StreamExt,
    future::{BoxFuture, ready},
    stream::{self, BoxStream},
};

use crate::{
    Access, Append, Appended, BoundaryId, Catalog, Change, CommandRecord, Conflict, Consistency,
    Counts, Effect, Envelope, EventLog, EventRef, Filing, FilingError, KeyReused, LogError,
    NewEvent, Page, Plan, Read, Reading, Seen, SequencedEvent, limits, storable,
};

/// An event log in memory.
pub struct MemoryLog {
    catalog: Catalog,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    events: Vec<SequencedEvent>,
    /// By partition, the places of its events in `events`, in the order of slots.
    partitions: BTreeMap<BoundaryId, Vec<usize>>,
    fences: BTreeMap<BoundaryId, Counts>,
    /// By the id of its item, a command and its events.
    records: BTreeMap<String, (String, Vec<EventRef>)>,
    snapshots: BTreeMap<String, String>,
    last_ms: u64,
}

impl MemoryLog {
    /// An empty log for the events of `catalog`.
    pub fn new(catalog: Catalog) -> Self {
        Self { catalog, state: Mutex::default() }
    }

    /// A log that has these events of another one, in any order, at the places and times that they have there.
    ///
    /// # Errors
    /// The catalog does not declare a type or files an event elsewhere, or an earlier event of a partition is
    /// missing.
    pub fn of(
        catalog: Catalog,
        events: impl IntoIterator<Item = SequencedEvent>,
    ) -> Result<Self, FilingError> {
        let mut events: Vec<_> = events.into_iter().collect();
        events.sort_by_key(SequencedEvent::place);
        let mut state = State::default();
        for event in events {
            let (tags, data) = (event.tags.clone(), event.data.clone());
            let new = NewEvent { event_type: event.event_type.clone().into(), tags, data };
            let filing = catalog.filing(&new)?;
            let slot = state.end(&filing.partition) + 1;
            let (event_id, place) = (event.id(), format!("{}/{slot}", filing.partition));
            if event_id != place {
                return Err(FilingError::Misplaced { event: event_id, place });
            }
            state.put(event, &filing);
        }
        Ok(Self { catalog, state: Mutex::new(state) })
    }

    /// All events, in fold order.
    pub fn events(&self) -> Vec<SequencedEvent> {
        self.state().events.clone()
    }

    /// The page of a query's events.
    pub fn query(&self, reading: &Reading, page: &Page) -> Vec<SequencedEvent> {
        let read = |event: &SequencedEvent| {
            reading.scan || reading.plan.reads.iter().any(|read| read.holds(event))
        };
        let events = self.events().into_iter();
        page.of(events.filter(|event| read(event) && reading.plan.matches(event)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds the lock")
    }

    /// Appends as [`EventLog::append`] does, after `keep` has kept the events elsewhere, for instance in a file.
    ///
    /// # Errors
    /// Those of [`EventLog::append`], and that of `keep`. Nothing is appended then.
    pub fn append_kept(
        &self,
        append: Append<'_>,
        keep: impl FnOnce(&[SequencedEvent]) -> Result<(), LogError>,
    ) -> Result<Appended, LogError> {
        let Append { events, seen, record, envelope } = append;
        let effect = Effect::new(&self.catalog, events, seen, usize::from(record.is_some()))?;
        let mut state = self.state();
        let events = state.mint(&self.catalog, &effect, envelope);
        check(&events, &effect)?;
        let record = record.map(|record| Ok::<_, LogError>((record.id()?, record))).transpose()?;
        if let Some((id, record)) = &record
            && let Some(events) = state.recorded(id, record)?
        {
            return Ok(Appended::Repeated(events));
        }
        if let Some(conflict) = state.added(&effect) {
            return Err(LogError::Conflict(conflict));
        }
        keep(&events)?;
        for (event, (_, filing)) in events.iter().zip(&effect.events) {
            state.put(event.clone(), filing);
        }
        if let Some((id, record)) = record {
            let events = events.iter().map(EventRef::from).collect();
            state.records.insert(id, (record.command.clone(), events));
        }
        Ok(Appended::Committed(events))
    }
}

/// Refuses what the log on DynamoDB would, but for the bytes of fences and of a command's record.
fn check(events: &[SequencedEvent], effect: &Effect) -> Result<(), LogError> {
    let mut all = 0;
    for (event, (_, filing)) in events.iter().zip(&effect.events) {
        for (name, value) in event.metadata.iter().chain([("data", &event.data)]) {
            storable::check(name, value)?;
        }
        let bytes = limits::event_bytes(event, filing);
        limits::event(&event.event_type, bytes)?;
        let copies = filing.items.iter().map(|id| limits::index_item_bytes(event, id));
        all += bytes + copies.sum::<usize>();
    }
    Ok(limits::transaction(all)?)
}

impl State {
    fn recorded(
        &self,
        id: &str,
        record: &CommandRecord,
    ) -> Result<Option<Vec<EventRef>>, LogError> {
        match self.records.get(id) {
            None => Ok(None),
            Some((command, events)) if *command == record.command => Ok(Some(events.clone())),
            Some(_) => Err(KeyReused { key: record.key.clone() }.into()),
        }
    }

    /// What was added to what the effect depends on.
    fn added(&self, effect: &Effect) -> Option<Conflict> {
        let own = effect.targets.iter().filter_map(|(id, target)| Some((id, target.seen?)));
        let slots = own.chain(effect.checks.iter().map(|(id, slot)| (id, *slot)));
        let slots = slots.filter_map(|(partition, seen)| self.taken(partition, seen));
        let counts = effect.fences.iter().flat_map(|(boundary, fence)| {
            fence.requires.iter().filter_map(|(event_type, seen)| {
                let found = self.fences.get(boundary).and_then(|counts| counts.get(event_type));
                let (seen, found) = (*seen, found.copied().unwrap_or(0));
                let (boundary, event_type) = (boundary.clone(), event_type.clone());
                (found != seen).then_some(Change::Count { boundary, event_type, seen, found })
            })
        });
        let changes: Vec<_> = slots.chain(counts).collect();
        (!changes.is_empty()).then_some(Conflict(changes))
    }

    /// The event in the slot after the last one seen.
    fn taken(&self, partition: &BoundaryId, seen: u64) -> Option<Change> {
        let next = usize::try_from(seen).ok()?;
        let place = self.partitions.get(partition)?.get(next)?;
        let event_type = self.events[*place].event_type.clone().into();
        Some(Change::Slot { partition: partition.clone(), slot: seen + 1, event_type })
    }

    /// The events of the effect, as they are once they are put.
    fn mint(&self, catalog: &Catalog, effect: &Effect, envelope: &Envelope) -> Vec<SequencedEvent> {
        let mut targets = effect.targets.clone();
        let cause = envelope.cause_ms.map_or(0, |cause| cause + 1);
        let first = (self.last_ms + 1).max(envelope.context.now_ms).max(cause);
        let mint = |(at, (event, filing)): (u64, &(NewEvent, Filing))| {
            let partition = filing.partition.clone();
            let target = targets.get_mut(&partition).expect("each partition is a target");
            target.events -= 1;
            SequencedEvent {
                slot: self.end(&partition) + effect.targets[&partition].events - target.events,
                partition,
                at,
                rest: target.events,
                context: catalog.context(&event.event_type).unwrap_or_default().to_owned(),
                event_type: event.event_type.clone().into_owned(),
                tags: event.tags.clone(),
                data: event.data.clone(),
                metadata: envelope.metadata.clone(),
            }
        };
        (first..).zip(&effect.events).map(mint).collect()
    }

    /// The last slot of a partition; 0 if it has no event.
    fn end(&self, partition: &BoundaryId) -> u64 {
        self.partitions.get(partition).map_or(0, Vec::len) as u64
    }

    /// Puts the event into its partition and counts it in its fences.
    fn put(&mut self, event: SequencedEvent, filing: &Filing) {
        for boundary in &filing.fences {
            let counts = self.fences.entry(boundary.clone()).or_default();
            *counts.entry(event.event_type.clone().into()).or_default() += 1;
        }
        self.last_ms = event.at;
        self.partitions.entry(event.partition.clone()).or_default().push(self.events.len());
        self.events.push(event);
    }
}

impl EventLog for MemoryLog {
    fn read<'a>(
        &'a self,
        plan: &'a Plan,
        _consistency: Consistency,
        _envelope: &'a Envelope,
    ) -> BoxStream<'a, Result<SequencedEvent, LogError>> {
        let held = |event: &&SequencedEvent| {
            let holds = |read: &Read| {
                let is_after = match read.access {
                    Access::Partition => event.slot > read.after,
                    _ => event.at > read.after,
                };
                is_after && read.holds(event)
            };
            plan.reads.iter().any(holds)
        };
        let events: Vec<_> = self.state().events.iter().filter(held).cloned().map(Ok).collect();
        stream::iter(events).boxed()
    }

    fn append<'a>(&'a self, append: Append<'a>) -> BoxFuture<'a, Result<Appended, LogError>> {
        ready(self.append_kept(append, |_| Ok(()))).boxed()
    }

    fn verify<'a>(
        &'a self,
        seen: &'a Seen,
        _envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Conflict>, LogError>> {
        let effect = Effect::new(&self.catalog, Vec::new(), Some(seen), 0);
        ready(effect.map(|effect| self.state().added(&effect))).boxed()
    }

    fn recorded<'a>(
        &'a self,
        record: &'a CommandRecord,
        _envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Vec<EventRef>>, LogError>> {
        let id = record.id().map_err(LogError::from);
        ready(id.and_then(|id| self.state().recorded(&id, record))).boxed()
    }

    fn snapshot<'a>(
        &'a self,
        id: &'a str,
        _envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<String>, LogError>> {
        ready(Ok(self.state().snapshots.get(id).cloned())).boxed()
    }

    fn keep_snapshot(&self, id: String, snapshot: String) {
        if limits::snapshot(&snapshot).is_ok() {
            self.state().snapshots.insert(id, snapshot);
        }
    }

    fn pause<'a>(&'a self, _attempt: u32, _envelope: &'a Envelope) -> BoxFuture<'a, bool> {
        ready(true).boxed()
    }
}
