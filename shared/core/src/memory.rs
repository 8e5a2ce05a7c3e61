//! The log in memory, with the semantics of the DynamoDB log: the same filing, counted fences,
//! order and records. For tests, and for trying a slice without any table.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
    time::{Duration, UNIX_EPOCH},
};

use futures::{
    FutureExt, StreamExt,
    future::{BoxFuture, ready},
    stream::{self, BoxStream},
};
use uuid::Uuid;

use crate::{
    Append, Appended, BoundaryId, Catalog, CommandRecord, Conflict, Consistency, Envelope,
    EventLog, EventRef, Filing, KeyReused, LogError, Name, NewEvent, Outcome, Page, Plan, Position,
    Reading, Seen, SequencedEvent, Settled,
};

/// An event log in memory.
pub struct MemoryLog {
    catalog: Catalog,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    events: Vec<SequencedEvent>,
    counts: BTreeMap<BoundaryId, BTreeMap<Name, u64>>,
    records: BTreeMap<(Name, String), (String, Outcome)>,
    last_ms: u64,
    appends: u128,
}

impl MemoryLog {
    /// An empty log for the events of `catalog`.
    pub fn new(catalog: Catalog) -> Self {
        Self { catalog, state: Mutex::default() }
    }

    /// All events, in the order of their positions.
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

    fn append_now(&self, append: Append<'_>) -> Result<Appended, LogError> {
        let filings: Vec<Filing> = append
            .events
            .iter()
            .map(|event| self.catalog.filing_of_new(event))
            .collect::<Result<_, _>>()?;
        let mut state = self.state();
        if let Some(record) = append.record
            && let Some(outcome) = state.recorded(record)?
        {
            return Ok(Appended::Repeated(outcome));
        }
        if let Some(conflict) = append.seen.and_then(|seen| state.differs(seen)) {
            return Err(LogError::Conflict(conflict));
        }
        let positions = state.mint(append.events.len(), append.envelope)?;
        let events: Vec<SequencedEvent> = append
            .events
            .into_iter()
            .zip(positions)
            .zip(filings)
            .map(|((event, position), filing)| {
                state.count(&event, &filing);
                self.sequence(event, position, filing, append.envelope)
            })
            .collect();
        state.events.extend_from_slice(&events);
        if let Some(record) = append.record {
            let outcome = Outcome::Accepted(events.iter().map(EventRef::from).collect());
            state.records.insert(record_key(record), (record.command.clone(), outcome));
        }
        Ok(Appended::Committed(events))
    }

    fn sequence(
        &self,
        event: NewEvent,
        position: Position,
        filing: Filing,
        envelope: &Envelope,
    ) -> SequencedEvent {
        let recorded = UNIX_EPOCH + Duration::from_millis(envelope.context.now_ms);
        SequencedEvent {
            position,
            partition: filing.partition,
            context: self.catalog.context(&event.event_type).unwrap_or_default().to_owned(),
            event_type: event.event_type.into_owned(),
            tags: event.tags,
            data: event.data,
            metadata: envelope.metadata.clone(),
            recorded_at: humantime::format_rfc3339_millis(recorded).to_string(),
        }
    }
}

fn record_key(record: &CommandRecord) -> (Name, String) {
    (record.slice.clone(), record.key.clone())
}

impl State {
    fn recorded(&self, record: &CommandRecord) -> Result<Option<Outcome>, LogError> {
        match self.records.get(&record_key(record)) {
            None => Ok(None),
            Some((command, outcome)) if *command == record.command => Ok(Some(outcome.clone())),
            Some(_) => Err(KeyReused { key: record.key.clone() }.into()),
        }
    }

    fn differs(&self, seen: &Seen) -> Option<Conflict> {
        seen.iter().find_map(|(boundary, types)| {
            types.iter().find_map(|(event_type, &seen)| {
                let found = self.counts.get(boundary).and_then(|counts| counts.get(event_type));
                let found = found.copied().unwrap_or(0);
                let (boundary, event_type) = (boundary.clone(), event_type.clone());
                (found != seen).then_some(Conflict { boundary, event_type, seen, found })
            })
        })
    }

    fn mint(&mut self, events: usize, envelope: &Envelope) -> Result<Vec<Position>, LogError> {
        let cause = envelope.cause.as_ref().map_or(0, |cause| cause.ms() + 1);
        self.last_ms = (self.last_ms + 1).max(envelope.context.now_ms).max(cause);
        self.appends += 1;
        let uuid = Uuid::from_u128(self.appends);
        let mint = |index| Position::mint(self.last_ms, &uuid, index);
        Ok((0..events).map(mint).collect::<Result<_, _>>()?)
    }

    fn count(&mut self, event: &NewEvent, filing: &Filing) {
        for boundary in &filing.boundaries {
            let counts = self.counts.entry(boundary.clone()).or_default();
            *counts.entry(event.event_type.clone()).or_default() += 1;
        }
    }
}

impl EventLog for MemoryLog {
    fn read<'a>(
        &'a self,
        plan: &'a Plan,
        _consistency: Consistency,
        _envelope: &'a Envelope,
    ) -> BoxStream<'a, Result<SequencedEvent, LogError>> {
        let held = |event: &&SequencedEvent| plan.reads.iter().any(|read| read.holds(event));
        let events: Vec<_> = self.state().events.iter().filter(held).cloned().map(Ok).collect();
        stream::iter(events).boxed()
    }

    fn append<'a>(&'a self, append: Append<'a>) -> BoxFuture<'a, Result<Appended, LogError>> {
        ready(self.append_now(append)).boxed()
    }

    fn verify<'a>(
        &'a self,
        seen: &'a Seen,
        _envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Conflict>, LogError>> {
        ready(Ok(self.state().differs(seen))).boxed()
    }

    fn settle<'a>(
        &'a self,
        record: &'a CommandRecord,
        outcome: &'a Outcome,
        _envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Settled, LogError>> {
        let mut state = self.state();
        let settled = state.recorded(record).map(|recorded| match recorded {
            Some(outcome) => Settled::Repeated(outcome),
            None => {
                let entry = (record.command.clone(), outcome.clone());
                state.records.insert(record_key(record), entry);
                Settled::Now
            }
        });
        ready(settled).boxed()
    }

    fn pause<'a>(&'a self, _attempt: u32, _envelope: &'a Envelope) -> BoxFuture<'a, bool> {
        ready(true).boxed()
    }
}
