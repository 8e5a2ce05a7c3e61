//! The log in memory, with the semantics of the DynamoDB log: the same filing, slots, fences, order, command items and
//! limits. For tests, and for trying a slice without a table.

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
    Counts, Effect, Envelope, EventLog, EventRef, Filing, FilingError, LogError, NewEvent, OwnTime,
    Page, Plan, Read, Reading, Seen, SequencedEvent, limits, log::storable,
};

/// An event log in memory.
pub struct MemoryLog {
    catalog: Catalog,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    events: Vec<SequencedEvent>,
    /// By partition, the indexes of its events in `events`, in the order of slots.
    partitions: BTreeMap<BoundaryId, Vec<usize>>,
    fences: BTreeMap<BoundaryId, Fence>,
    /// By the id of its item, the hash of a command and its events.
    records: BTreeMap<String, (String, Vec<EventRef>)>,
    snapshots: BTreeMap<String, String>,
    own: OwnTime,
}

/// The counts of a fence, and the time of the newest event that it counts.
#[derive(Default)]
struct Fence {
    counts: Counts,
    head: u64,
}

impl MemoryLog {
    /// An empty log for the events of `catalog`.
    pub fn new(catalog: Catalog) -> Self {
        Self { catalog, state: Mutex::default() }
    }

    /// A copy of another log: its events in any order, at their places and times, and the items of its commands.
    ///
    /// # Errors
    /// The catalog does not declare a type or files an event elsewhere, or an earlier event of a partition is missing.
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
            state.copy_record(&event);
            state.put(event, &filing);
        }
        Ok(Self { catalog, state: Mutex::new(state) })
    }

    /// All events, in fold order.
    pub fn events(&self) -> Vec<SequencedEvent> {
        in_fold_order(self.state().events.iter().cloned())
    }

    /// The time of its newest event, in milliseconds since 1970; 0 if it has none.
    pub fn newest_ms(&self) -> u64 {
        self.state().events.iter().map(|event| event.at).max().unwrap_or(0)
    }

    /// The page of a query's events.
    pub fn query(&self, reading: &Reading, page: &Page) -> Vec<SequencedEvent> {
        let read = |event: SequencedEvent| {
            let held = reading.plan.reads.iter().filter(|read| read.holds(&event));
            let held: Vec<_> = held.map(|read| read.access.is_of_table()).collect();
            let of_table = reading.scan || held.contains(&true);
            match held.is_empty() && !reading.scan {
                true => None,
                false => Some(if of_table { event } else { event.of_index() }),
            }
        };
        let asked = self.events().into_iter().filter(|event| reading.plan.matches(event));
        page.of(asked.filter_map(read))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds the lock")
    }

    fn append_now(&self, append: Append<'_>) -> Result<Appended, LogError> {
        let Append { events, seen, record, envelope } = append;
        let (metadata, marks) = (&envelope.metadata, usize::from(record.is_some()));
        let mut effect = Effect::new(&self.catalog, events, metadata, seen, marks)?;
        let mut state = self.state();
        let first_ms = state.next_ms(&effect, seen, envelope);
        effect.mint(first_ms, |partition| state.end(partition));
        check(&effect)?;
        let record = record.map(|record| Ok::<_, LogError>((record.id()?, record))).transpose()?;
        if let Some((id, record)) = &record
            && let Some(events) = state.recorded(id, record)?
        {
            return Ok(Appended::Repeated(events));
        }
        if let Some(conflict) = state.added(&effect) {
            return Err(LogError::Conflict(conflict));
        }
        for (event, filing) in &effect.events {
            state.put(event.clone(), filing);
        }
        let events: Vec<_> = effect.events.into_iter().map(|(event, _)| event).collect();
        if let Some(last) = events.last() {
            state.own.note(last.at, envelope.context.now_ms);
        }
        if let Some((id, record)) = record {
            let events = events.iter().map(EventRef::from).collect();
            state.records.insert(id, (record.sha256.clone(), events));
        }
        Ok(Appended::Committed(events))
    }
}

/// The event in the form in which the plan's reads show it, if they do.
fn shown(plan: &Plan, event: &SequencedEvent) -> Option<SequencedEvent> {
    let is_partition = plan.reads_partition(&event.partition);
    let is_asked_for = plan.reads_type(&event.event_type);
    let shows = |read: &&Read| {
        let at = if is_partition { event.slot } else { event.at };
        let is_its_own = !is_partition || read.access == Access::Partition;
        let is_shown = is_asked_for || read.shows_unread(event.partition.as_str());
        is_its_own && is_shown && at > read.after && read.holds(event)
    };
    // The table has all attributes of an event.
    let by = plan.reads.iter().filter(shows).min_by_key(|read| !read.access.is_of_table())?;
    let event = match &by.access {
        _ if is_asked_for => event.clone(),
        Access::TagIndex(tag) | Access::TagItems(tag) => {
            SequencedEvent { tags: vec![tag.clone()], ..event.clone().place_only() }
        }
        _ => event.clone().place_only(),
    };
    Some(if by.access.is_of_table() { event } else { event.of_index() })
}

fn in_fold_order(events: impl Iterator<Item = SequencedEvent>) -> Vec<SequencedEvent> {
    let mut events: Vec<_> = events.collect();
    events.sort_by_cached_key(SequencedEvent::place);
    events
}

/// Refuses what the log on DynamoDB would refuse, except for the bytes of fences and of a command's record.
fn check(effect: &Effect) -> Result<(), LogError> {
    let mut all = 0;
    for (event, filing) in &effect.events {
        for (name, value) in event.metadata.iter().chain([("data", &event.data)]) {
            storable::check(name, value)?;
        }
        let bytes = storable::event_bytes(event, filing);
        limits::event(&event.event_type, bytes)?;
        let copies = filing.items.iter().map(|id| storable::index_item_bytes(event, id));
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
            Some((sha256, events)) => {
                record.check(sha256, || events.first().map(EventRef::id))?;
                Ok(Some(events.clone()))
            }
        }
    }

    /// Adds an event of another log to the item of its command.
    fn copy_record(&mut self, event: &SequencedEvent) {
        let record = CommandRecord::of_item(&event.metadata);
        if let Some((id, record)) = record.and_then(|record| Some((record.id().ok()?, record))) {
            let (sha256, events) = self.records.entry(id).or_default();
            if *sha256 != record.sha256 {
                // The key had expired before it was used again.
                (*sha256, *events) = (record.sha256, Vec::new());
            }
            events.push(event.into());
        }
    }

    /// The changes to what the effect depends on.
    fn added(&self, effect: &Effect) -> Option<Conflict> {
        let own = effect.targets.iter().filter_map(|(id, target)| Some((id, target.seen?)));
        let slots = own.chain(effect.checks.iter().map(|(id, slot)| (id, *slot)));
        let slots = slots.filter_map(|(partition, seen)| self.taken(partition, seen));
        let counts = effect.fences.iter().flat_map(|(boundary, fence)| {
            fence.requires.iter().filter_map(|(event_type, seen)| {
                let fence = self.fences.get(boundary);
                let found = fence.and_then(|fence| fence.counts.get(event_type));
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

    /// The time of the first event of the effect (rule 4).
    fn next_ms(&self, effect: &Effect, seen: Option<&Seen>, envelope: &Envelope) -> u64 {
        let (now_ms, cause_ms) = (envelope.context.now_ms, envelope.cause_ms);
        let last = |partition| {
            let place = self.partitions.get(partition)?.last()?;
            Some(self.events[*place].at)
        };
        let advanced = effect.fences.iter().filter(|(_, fence)| !fence.adds.is_empty());
        let heads = advanced.filter_map(|(boundary, _)| Some(self.fences.get(boundary)?.head));
        let lasts = effect.targets.keys().filter_map(last).chain(heads);
        let after = lasts.max().map_or(0, |last| last.saturating_add(1));
        effect.earliest_ms(now_ms, &self.own, cause_ms, seen).max(after)
    }

    /// The last slot of a partition; 0 if it has no event.
    fn end(&self, partition: &BoundaryId) -> u64 {
        self.partitions.get(partition).map_or(0, Vec::len) as u64
    }

    /// Puts the event into its partition and counts it in its fences.
    fn put(&mut self, event: SequencedEvent, filing: &Filing) {
        for boundary in &filing.fences {
            let fence = self.fences.entry(boundary.clone()).or_default();
            *fence.counts.entry(event.event_type.clone().into()).or_default() += 1;
            fence.head = event.at;
        }
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
        let state = self.state();
        let events = in_fold_order(state.events.iter().filter_map(|event| shown(plan, event)));
        stream::iter(events.into_iter().map(Ok)).boxed()
    }

    fn append<'a>(&'a self, append: Append<'a>) -> BoxFuture<'a, Result<Appended, LogError>> {
        ready(self.append_now(append)).boxed()
    }

    fn verify<'a>(
        &'a self,
        seen: &'a Seen,
        _envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Conflict>, LogError>> {
        let effect = Effect::look(&self.catalog, seen);
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
