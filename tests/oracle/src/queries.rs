//! Random queries and conditions on both logs, against the specification.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use futures::TryStreamExt;
use ringfence_aws::wire::Wire;
use ringfence_aws::{Clock, Random, seed_thread};
use ringfence_core::{
    Append, Appended, Catalog, Consistency, Envelope, EventLog, LogError, MemoryLog, Name,
    NewEvent, Page, Place, Plan, PlanError, Query, QueryItem, Reading, Seen, SequencedEvent, Tag,
};
use ringfence_dcb_log::DcbLog;
use ringfence_local::engine::Engine;
use serde_json::json;

use crate::recount;
use crate::specification::{WORLDS, World};
use crate::table::{NOW_MS, TABLE, table};

/// One seed reads this many pages, and checks as many conditions, half of them in each world.
pub const SEED_QUERIES: u64 = 100;
/// A world begins with this many events.
const EVENTS: u64 = 12;

/// Compares the pages and the conditions of `seed`, on both logs, with the specification.
///
/// # Errors
/// The first difference.
pub fn check(seed: u64) -> Result<(), String> {
    seed_thread(seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without input and output");
    runtime.block_on(async {
        for (n, world) in (0..).zip(&*WORLDS) {
            let mut random = Draw(Random::new(&[seed, n]));
            let mut logs = Logs::start(world);
            let events = (0..EVENTS).map(|n| random.event(world, n)).collect();
            logs.append(events).await?;
            let half = SEED_QUERIES / 2;
            let (mut pages, mut conditions) = (0, 0);
            // Not every query has a route, and decisions refuse many queries that can be read.
            while pages < half || conditions < half {
                let query = random.query(world, &logs.model);
                if pages < half {
                    pages += u64::from(logs.compare(&mut random, &query).await?);
                }
                let query = random.query(world, &logs.model);
                if conditions < half {
                    conditions += u64::from(logs.condition(&mut random, &query).await?);
                }
            }
            logs.check_fences().await?;
        }
        Ok(())
    })
}

/// Draws the trials.
struct Draw(Random);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.0.below(n as u64)).expect("below a usize")
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    fn value(&mut self) -> String {
        self.of(&["1", "2", "#:%/|"]).to_owned()
    }

    fn event(&mut self, world: &World, n: u64) -> NewEvent {
        let schema = self.of(&world.schemas);
        let mut tags: Vec<Tag> = Vec::new();
        for tag in &*schema.tags {
            let values = if tag.required { 1 } else { self.below(if tag.many { 4 } else { 2 }) };
            for _ in 0..values {
                let empty = !tag.required && self.below(8) == 0;
                let value = if empty { String::new() } else { self.value() };
                tags.push(Tag::new(tag.key.clone(), value));
            }
        }
        let mut once = BTreeSet::new();
        tags.retain(|tag| once.insert(tag.clone()));
        NewEvent { event_type: schema.name, tags, data: json!({ "n": n }) }
    }

    /// A clause that some event may match: mostly a part of its tags, perhaps with a foreign one.
    fn clause(&mut self, world: &World, events: &[NewEvent]) -> QueryItem {
        let like = self.of(events);
        let mut tags: Vec<Tag> = like.tags.into_iter().filter(|_| self.below(3) > 0).collect();
        if self.below(5) == 0 {
            let key = self.of(&["a", "b", "c", "e"]);
            tags.push(Tag::new(key, self.value()));
        }
        tags.retain(|tag| !tag.value.is_empty());
        tags.sort();
        tags.dedup();
        let mut types = vec![like.event_type];
        for schema in &world.schemas {
            if self.below(3) == 0 && !types.contains(&schema.name) {
                types.push(schema.name.clone());
            }
        }
        if self.below(4) == 0 {
            types.clear();
        }
        QueryItem { tags, types }
    }

    fn query(&mut self, world: &World, events: &[NewEvent]) -> Query {
        // One in twelve asks for everything.
        let clauses = if self.below(12) == 0 { 0 } else { 1 + self.below(3) };
        Query { items: (0..clauses).map(|_| self.clause(world, events)).collect() }
    }
}

/// Both logs and the model, which is a list of events: `data.n` is the index in it.
struct Logs<'w> {
    world: &'w World,
    engine: Engine,
    catalog: Catalog,
    dcb: DcbLog,
    memory: MemoryLog,
    model: Vec<NewEvent>,
    /// The places of the model's events in each log.
    places: Vec<[Place; 2]>,
}

fn numbers(events: &[SequencedEvent]) -> Vec<u64> {
    events.iter().map(|event| event.data["n"].as_u64().expect("a number")).collect()
}

impl<'w> Logs<'w> {
    fn start(world: &'w World) -> Self {
        let catalog = world.catalog();
        let engine = Engine::memory().expect("a database in memory");
        engine.create_table(&table(&catalog, false), TABLE).expect("a table");
        let store = engine.clone();
        let client = Wire::default()
            .client_of(Arc::new(move |operation: &str, body: &[u8]| store.call(operation, body)));
        let dcb = DcbLog::new(client, TABLE, catalog.clone(), Clock::fixed(NOW_MS));
        let memory = MemoryLog::new(catalog.clone());
        Self { world, engine, catalog, dcb, memory, model: Vec::new(), places: Vec::new() }
    }

    async fn append(&mut self, events: Vec<NewEvent>) -> Result<(), String> {
        let envelope = &Envelope::default();
        let append = |events| Append { events, seen: None, record: None, envelope };
        let dcb = self.dcb.append(append(events.clone())).await;
        let memory = self.memory.append(append(events.clone())).await;
        let (Ok(Appended::Committed(dcb)), Ok(Appended::Committed(memory))) = (&dcb, &memory)
        else {
            return Err(format!("appended {events:?}: {dcb:?}, in memory {memory:?}"));
        };
        self.committed(events, dcb, memory);
        Ok(())
    }

    fn committed(
        &mut self,
        events: Vec<NewEvent>,
        dcb: &[SequencedEvent],
        memory: &[SequencedEvent],
    ) {
        self.model.extend(events);
        let pairs = dcb.iter().zip(memory);
        self.places.extend(pairs.map(|(dcb, memory)| [dcb.place(), memory.place()]));
    }

    async fn check_fences(&self) -> Result<(), String> {
        let events: Vec<_> = self.dcb.scan().try_collect().await.map_err(|e| format!("{e:?}"))?;
        let events: BTreeMap<_, _> = events.into_iter().map(|event| (event.id(), event)).collect();
        recount::check(&self.engine, &self.catalog, &events)
    }

    /// The events that the query asks for, by number.
    fn asked(&self, query: &Query) -> Vec<u64> {
        let asked = (0..).zip(&self.model).filter(|(_, event)| self.world.asks(query, event));
        asked.map(|(n, _)| n).collect()
    }

    /// Compares one page of a query. Returns false if the query can't be read.
    async fn compare(&self, random: &mut Draw, query: &Query) -> Result<bool, String> {
        let after = (random.below(2) == 0).then(|| random.below(self.model.len()));
        let limit = (random.below(2) == 0).then(|| random.below(6));
        let backwards = random.below(2) == 0;
        let reading = match Reading::new(query, &self.catalog) {
            Ok(reading) => reading,
            Err(PlanError::NoRoute { .. }) => {
                let found = |item| self.model.iter().any(|e| self.world.clause_asks(item, e));
                let refused = query.items.iter().all(found);
                ensure(!refused, || format!("{query:?}: a clause with events was refused"))?;
                return Ok(false);
            }
            Err(error) => return Err(format!("{query:?}: {error}")),
        };
        let beyond = |n: &u64| match (after, backwards) {
            (None, _) => true,
            (Some(after), false) => *n > after as u64,
            (Some(after), true) => *n < after as u64,
        };
        let mut expected = self.asked(query);
        expected.retain(beyond);
        if backwards {
            expected.reverse();
        }
        expected.truncate(limit.unwrap_or(usize::MAX));
        let page = |log: usize| Page {
            after: after.map(|after| self.places[after][log].clone()),
            limit,
            backwards,
        };
        let found = self.memory.query(&reading, &page(1));
        let at = |log| format!("{query:?} after {after:?}, {log}");
        same(|| at("in memory"), &numbers(&found), &expected)?;
        let page = page(0);
        let found = self.dcb.query(&reading, &page).try_collect::<Vec<_>>().await;
        let found = found.map_err(|error| format!("{query:?}: {error:?}"))?;
        same(|| at("on DynamoDB"), &numbers(&found), &expected)?;
        Ok(true)
    }

    /// Reads, lets events come, and appends under the condition. Returns false if the query has no plan.
    async fn condition(&mut self, random: &mut Draw, query: &Query) -> Result<bool, String> {
        // A decision without clauses depends on nothing, but a reader asks for everything in this way.
        let plan = Plan::new(query, &self.catalog).ok();
        let Some(plan) = plan.filter(|plan| !plan.reads.is_empty()) else { return Ok(false) };
        let envelope = &Envelope::default();
        let dcb = self.dcb.read(&plan, Consistency::Eventual, envelope).try_collect();
        let dcb: Vec<_> = dcb.await.map_err(|error| format!("{query:?}: {error:?}"))?;
        let memory = self.memory.read(&plan, Consistency::Strong, envelope).try_collect();
        let memory: Vec<_> = memory.await.map_err(|error| format!("{query:?}: {error:?}"))?;
        // A read of an index also returns other types, if the index has them.
        let asked = |event: &SequencedEvent| {
            let of_type = |types: &BTreeSet<Name>| types.contains(&event.event_type[..]);
            plan.reads.iter().any(|read| of_type(&read.types) && read.holds(event))
        };
        let reads = [&dcb, &memory]
            .map(|read| numbers(&read.iter().filter(|e| asked(e)).cloned().collect::<Vec<_>>()));
        same(|| format!("{query:?}, both logs"), &reads[0], &reads[1])?;
        let matching: Vec<_> = dcb.iter().filter(|e| plan.matches(e)).cloned().collect();
        same(|| format!("{query:?}, the fold"), &numbers(&matching), &self.asked(query))?;

        let seen = |events: &[SequencedEvent]| {
            let mut seen = Seen::nothing(&plan);
            for event in events {
                seen.observe(&plan, event);
            }
            seen
        };
        let (dcb_seen, memory_seen) = (seen(&dcb), seen(&memory));
        let first = self.model.len() as u64;
        let came = 0..random.below(3) as u64;
        let came: Vec<_> = came.map(|n| random.event(self.world, first + n)).collect();
        if !came.is_empty() {
            self.append(came.clone()).await?;
        }
        let events = vec![random.event(self.world, self.model.len() as u64)];
        let append = |seen| Append { events: events.clone(), seen, record: None, envelope };
        let dcb = self.dcb.append(append(Some(&dcb_seen))).await;
        let memory = self.memory.append(append(Some(&memory_seen))).await;
        let conflicts = match (&dcb, &memory) {
            (Ok(Appended::Committed(dcb)), Ok(Appended::Committed(memory))) => {
                self.committed(events, dcb, memory);
                false
            }
            (Err(LogError::Conflict(dcb)), Err(LogError::Conflict(memory))) if dcb == memory => {
                true
            }
            _ => return Err(format!("{query:?}: {dcb:?}, in memory {memory:?}")),
        };
        let lost = came.iter().any(|event| self.world.asks(query, event));
        let at = |what: &str| format!("{query:?}, {came:?}: {what}");
        ensure(conflicts || !lost, || at("a fact that the query asks for was overlooked"))?;
        // A condition is as narrow as its boundaries, and a partition is guarded as a whole. It is exact for a clause
        // of one tag by which every carrier is found, or without tags.
        let touches = |event: &NewEvent, item: &QueryItem| {
            item.tags.is_empty() || item.tags.iter().any(|tag| event.tags.contains(tag))
        };
        let near = came.iter().any(|event| query.items.iter().any(|item| touches(event, item)));
        ensure(!conflicts || near, || at("a conflict with nothing that was read"))?;
        let is_exact = |item: &QueryItem| match &item.tags[..] {
            [] => true,
            [tag] => self.world.across.contains(&&*tag.key),
            _ => false,
        };
        let right = !query.items.iter().all(is_exact) || conflicts == lost;
        ensure(right, || at("a conflict with an event that was not asked for"))?;
        Ok(true)
    }
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

fn same<T: PartialEq + Debug>(
    what: impl FnOnce() -> String,
    found: &T,
    expected: &T,
) -> Result<(), String> {
    ensure(found == expected, || format!("{}: found {found:?}, expected {expected:?}", what()))
}
