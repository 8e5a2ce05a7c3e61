//! The log as decisions use it: a context's aggregates are partitions, and versions are slots.

use std::collections::BTreeMap;

use futures::future::{BoxFuture, ready};
use futures::stream::{BoxStream, StreamExt, TryStreamExt, iter};
use ringfence_aws::{Action, Clock, Intent, Item, Meter, Retry};
use ringfence_core::{
    Append, Appended, BoundaryId, Catalog, Change, CommandRecord, Conflict, Consistency, Effect,
    Envelope, EventLog, EventRef, EventSchema, LogError, Metadata, OwnTime, Plan, Read, Seen,
    SequencedEvent, Target,
};
use ringfence_log::DryRunOn;
use serde_json::Value;

use crate::event::whole;
use crate::item;
use crate::merge::merged;
use crate::push::{Entry, Prepared, Verdict};
use crate::table::READING_ITEMS;
use crate::{AggregateError, AggregateKey, AggregateTable, Range, read, table_layout};

/// An append gets new versions and times at most this often. If many writers append to an aggregate without reading it,
/// one of them commits at a time, and the others try the next version.
const MINTS_MAX: u32 = 16;
/// The widest gap of versions that a read accepts. Each missing version takes its slot.
const GAP_MAX: u64 = 100_000;

/// The aggregates of a context, as the partitions of an event log.
///
/// Reads are strongly consistent. Other writers of this layout leave gaps: a version without an event takes its slot
/// and is never filled. Commands have no items, so an idempotency key is known by the events that carry it.
pub struct AggregateLog {
    table: AggregateTable,
    catalog: Catalog,
    clock: Clock,
    own: OwnTime,
}

impl AggregateLog {
    /// The log of one context's aggregates in `table`. `catalog` declares the context's events
    /// ([`Catalog::of_streams`]).
    #[must_use]
    pub fn new(table: AggregateTable, catalog: Catalog, clock: Clock) -> Self {
        Self { table, catalog, clock, own: OwnTime::default() }
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &AggregateTable {
        &self.table
    }

    fn retry(&self, envelope: &Envelope) -> Retry {
        Retry::of(envelope, &self.clock)
    }

    fn retrying(&self, envelope: &Envelope) -> AggregateTable {
        self.table.clone().retrying(self.retry(envelope))
    }

    /// The events of one aggregate, each in its slot.
    fn source<'a>(
        &'a self,
        plan: &'a Plan,
        read: &'a Read,
        envelope: &Envelope,
    ) -> Result<BoxStream<'a, Result<SequencedEvent, LogError>>, LogError> {
        let key = key(&read.boundary)?;
        let range = Range { min_version: Some(read.after + 1), ..Range::default() };
        let (mut slot, mut at) = (read.after, 0);
        let events = read::events(self.retrying(envelope), key, range).map_err(LogError::from);
        let in_slots = events.map(move |stored| {
            let event = self.sequenced(plan, stored?);
            if event.slot - slot - 1 > GAP_MAX {
                let source = format!("versions {} and more are missing before it", slot + 1).into();
                return Err(LogError::Undecodable { event: event.id(), source });
            }
            let gap = |slot| Ok(SequencedEvent::gap(event.partition.clone(), slot, at));
            let mut found: Vec<_> = (slot + 1..event.slot).map(gap).collect();
            (slot, at) = (event.slot, event.at);
            found.push(Ok(event));
            Ok(iter(found))
        });
        Ok(in_slots.try_flatten().boxed())
    }

    /// The event as the decision reads it. An event of a type that the decision does not read has only its place.
    fn sequenced(&self, plan: &Plan, stored: crate::AggregateEvent) -> SequencedEvent {
        let event = SequencedEvent::from(stored);
        match plan.reads_type(&event.event_type) {
            true => whole(event, &self.catalog),
            false => event.place_only(),
        }
    }

    /// The newest versions and times of the targets that the decision did not read.
    async fn ends(
        &self,
        targets: &BTreeMap<BoundaryId, Target>,
        envelope: &Envelope,
    ) -> Result<Ends, LogError> {
        let mut ends = Ends::default();
        for (partition, _) in targets.iter().filter(|(_, target)| target.seen.is_none()) {
            let table = self.retrying(envelope);
            let newest = table.get_events(&key(partition)?, Range::NEWEST).next().await;
            let newest = newest.transpose()?.map(SequencedEvent::from);
            let (slot, at) = newest.map_or((0, 0), |event| (event.slot, event.at + 1));
            ends.slots.insert(partition.clone(), slot);
            ends.raise = ends.raise.max(at);
        }
        Ok(ends)
    }

    /// Prepares the request of an append, and gives its events their times and slots.
    fn prepare(
        &self,
        Draft { effect, envelope, seen }: &mut Draft<'_>,
        ends: &Ends,
    ) -> Result<Prepared<'_>, LogError> {
        let (now_ms, cause_ms) = (self.clock.now_ms(), self.clock.follow(envelope.cause_ms));
        let ms = effect.earliest_ms(now_ms, &self.own, cause_ms, *seen);
        effect.mint(ms.max(ends.raise), |it| ends.slots.get(it).copied().unwrap_or(0));
        let mut prepared = Prepared::begin(self.clock.uuid().simple().to_string());
        for (event, _) in &effect.events {
            let stored = stored(event, self.catalog.schema(&event.event_type));
            let home = (&self.table, key(&event.partition)?);
            prepared.add(home, event.slot, false, event.rest, &stored, event.at)?;
        }
        for (partition, slot) in &effect.checks {
            prepared.check((&self.table, key(partition)?), slot + 1);
        }
        prepared.limited()?;
        Ok(prepared)
    }

    async fn commit(&self, append: Append<'_>) -> Result<Appended, LogError> {
        let envelope = append.envelope;
        let mut draft = self.draft(append)?;
        let mut mints = self.retry(envelope).attempts_max(MINTS_MAX).start();
        loop {
            let ends = self.ends(&draft.effect.targets, envelope).await?;
            let prepared = self.prepare(&mut draft, &ends)?;
            let conflicts = match self.retrying(envelope).judged(&prepared).await? {
                Verdict::Committed => break,
                Verdict::Conflicts(conflicts) => conflicts,
            };
            let of_seen = conflicts.into_iter().filter(|conflict| {
                let target = draft.effect.targets.get(&partition(&conflict.key));
                target.is_none_or(|target| target.seen.is_some())
            });
            let changes: Vec<Change> = of_seen.map(Change::from).collect();
            if !changes.is_empty() {
                return Err(LogError::Conflict(Conflict(changes)));
            }
            // Only aggregates that the decision did not read have changed, so the decision still holds.
            mints.contend(None).await?;
        }
        let events: Vec<_> = draft.into_events().collect();
        if let Some(last) = events.last() {
            self.own.note(last.at, self.clock.now_ms());
        }
        Ok(Appended::Committed(events))
    }

    fn draft<'a>(&self, append: Append<'a>) -> Result<Draft<'a>, LogError> {
        let Append { events, seen, record, envelope } = append;
        assert!(
            record.is_none(),
            "`handle` refuses a slice whose events are no record on a log of streams"
        );
        let effect = Effect::new(&self.catalog, events, &envelope.metadata, seen, 0)?;
        Ok(Draft { effect, seen, envelope })
    }

    async fn look(&self, seen: &Seen, envelope: &Envelope) -> Result<Option<Conflict>, LogError> {
        let Effect { checks, .. } = Effect::look(&self.catalog, seen)?;
        let next = checks.iter().map(|(partition, slot)| Ok((key(partition)?, slot + 1)));
        let next: Vec<(AggregateKey, u64)> = next.collect::<Result<_, LogError>>()?;
        let keys = next.iter().map(|(key, version)| self.table.stores.key_of(key, *version));
        let keys: Vec<Item> = keys.collect();
        let is_whole = seen.iter().all(|(id, _)| seen.prefix(id).is_some_and(|it| it.rest == 0));
        let found = match &keys[..] {
            [key] if is_whole => {
                let get = || self.table.dynamo.get(key.clone(), true);
                let found = self.retry(envelope).run(get).await;
                vec![found.map_err(|gave_up| gave_up.during(READING_ITEMS))?]
            }
            _ => self.retrying(envelope).get_together(&keys).await?,
        };
        let taken = next.into_iter().zip(found).filter_map(|((key, version), item)| {
            Some(Change::from(item::conflict(key, version, Some(&item?))))
        });
        let changes: Vec<Change> = taken.collect();
        Ok((!changes.is_empty()).then_some(Conflict(changes)))
    }
}

/// An append. Its events have the versions of the last request.
struct Draft<'a> {
    effect: Effect,
    seen: Option<&'a Seen>,
    envelope: &'a Envelope,
}

impl Draft<'_> {
    fn into_events(self) -> impl Iterator<Item = SequencedEvent> {
        self.effect.events.into_iter().map(|(event, _)| event)
    }
}

/// The ends of the aggregates that the decision did not read.
#[derive(Default)]
struct Ends {
    slots: BTreeMap<BoundaryId, u64>,
    /// The lowest time of the new events, in milliseconds since 1970.
    raise: u64,
}

/// The event as the table stores it. The key has the aggregate's id, so the payload leaves out the field with the id.
fn stored(event: &SequencedEvent, schema: Option<&EventSchema>) -> crate::NewAggregateEvent {
    let mut payload = event.data.clone();
    if let (Some(schema), [tag]) = (schema, &event.tags[..]) {
        schema.leave_out_id(&tag.value, &mut payload);
    }
    let is_empty = |json: &Value| json.as_object().is_some_and(serde_json::Map::is_empty);
    let metadata = event.metadata.iter().map(|(key, value)| (key.to_owned(), value.clone()));
    let schema = Metadata::schema(&event.event_type, event.version);
    let schema = schema.map(|schema| (Metadata::SCHEMA.to_owned(), schema));
    let metadata = Value::Object(metadata.chain(schema).collect());
    crate::NewAggregateEvent {
        event_type: event.event_type.clone(),
        payload: Some(payload).filter(|payload| !is_empty(payload)),
        metadata: Some(metadata).filter(|metadata| !is_empty(metadata)),
        timestamp_ms: Some(event.at),
    }
}

/// The aggregate of a partition.
fn key(partition: &BoundaryId) -> Result<AggregateKey, LogError> {
    Ok(AggregateKey::of_partition(partition.as_str()).map_err(AggregateError::Key)?)
}

fn partition(key: &AggregateKey) -> BoundaryId {
    BoundaryId::stored(key.to_string())
}

impl EventLog for AggregateLog {
    fn read<'a>(
        &'a self,
        plan: &'a Plan,
        _: Consistency,
        envelope: &'a Envelope,
    ) -> BoxStream<'a, Result<SequencedEvent, LogError>> {
        let sources = plan.reads.iter().map(|read| self.source(plan, read, envelope));
        match sources.collect::<Result<Vec<_>, _>>() {
            Ok(mut sources) if sources.len() == 1 => sources.swap_remove(0),
            Ok(sources) => merged(sources).boxed(),
            Err(error) => iter([Err(error)]).boxed(),
        }
    }

    fn reads_strongly(&self) -> bool {
        true
    }

    fn append<'a>(&'a self, append: Append<'a>) -> BoxFuture<'a, Result<Appended, LogError>> {
        Box::pin(self.commit(append))
    }

    fn verify<'a>(
        &'a self,
        seen: &'a Seen,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Conflict>, LogError>> {
        Box::pin(self.look(seen, envelope))
    }

    /// Commands have no items on this log.
    fn recorded<'a>(
        &'a self,
        _: &'a CommandRecord,
        _: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Vec<EventRef>>, LogError>> {
        Box::pin(ready(Ok(None)))
    }

    fn pause<'a>(&'a self, attempt: u32, envelope: &'a Envelope) -> BoxFuture<'a, bool> {
        Box::pin(self.retry(envelope).pause(attempt))
    }
}

impl DryRunOn for AggregateLog {
    fn meter(&self) -> &Meter {
        self.table.meter()
    }

    async fn dry_run<'a>(
        &'a self,
        append: Append<'a>,
    ) -> Result<(Intent, Vec<SequencedEvent>), LogError> {
        let envelope = append.envelope;
        let mut draft = self.draft(append)?;
        let ends = self.ends(&draft.effect.targets, envelope).await?;
        let prepared = self.prepare(&mut draft, &ends)?;
        let mut intent = Intent::default();
        for Entry { key, version, item, .. } in &prepared.entries {
            let does = item.as_ref().and_then(item::event_type);
            let action = Action {
                item: format!("{key} {version}"),
                does: does.map(|event_type| format!("puts {event_type}")),
                requires: Some(format!("version {version} is free")),
                bytes: 0,
            };
            match item {
                Some(item) => intent.put(&table_layout(), item, action),
                None => intent.actions.push(action),
            }
        }
        Ok((intent, draft.into_events().collect()))
    }
}
