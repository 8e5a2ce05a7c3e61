//! Random queries and conditions on both logs, against the DCB specification narrowed by scope,
//! stated here once more without catalog, plan or boundary.

use std::collections::BTreeSet;

use futures::TryStreamExt;
use ringfence::{
    Append, Catalog, CatalogError, Consistency, Envelope, EventLog, EventSchema, LogError,
    MemoryLog, NewEvent, Page, Plan, PlanError, Position, Query, QueryItem, Reading, Seen,
    SequencedEvent, Tag, TagSchema,
};
use ringfence_dcb_log::DcbLog;
use serde_json::json;

use crate::stack::{Stack, committed, envelope};

/// How many queries a run compares, and from which seed; both can be set.
const QUERIES: u64 = 1_000;
const SEED: u64 = 1;
/// Queries in one world, which grows with each.
const WORLD_QUERIES: u64 = 50;

const fn tag(key: &'static str) -> TagSchema {
    let partition = false;
    TagSchema { key, partition, cross_partition: false, strong: false, many: false, required: true }
}

const fn partition(tag: TagSchema) -> TagSchema {
    TagSchema { partition: true, ..tag }
}

const fn across(tag: TagSchema) -> TagSchema {
    TagSchema { cross_partition: true, ..tag }
}

const fn strong(tag: TagSchema) -> TagSchema {
    TagSchema { strong: true, ..across(tag) }
}

const fn optional(tag: TagSchema) -> TagSchema {
    TagSchema { required: false, ..tag }
}

const fn many(tag: TagSchema) -> TagSchema {
    TagSchema { many: true, ..optional(tag) }
}

const fn schema(name: &'static str, tags: &'static [TagSchema]) -> EventSchema {
    EventSchema { name, tags, separator: '|', read_as_composite: false, read_by_type: false }
}

/// Every scope: `b` is cross-partition by an index, `e` by index items, the others are not.
const NARROW: [EventSchema; 7] = [
    schema("A", &[partition(tag("a")), optional(across(tag("b"))), optional(tag("c"))]),
    schema("B", &[partition(across(tag("b"))), many(tag("c"))]),
    schema("C", &[partition(tag("a")), partition(tag("d")), many(strong(tag("e")))]),
    EventSchema { read_as_composite: true, ..schema("D", &[partition(tag("a")), tag("f")]) },
    EventSchema { read_by_type: true, ..schema("E", &[]) },
    EventSchema {
        read_by_type: true,
        ..schema("F", &[partition(strong(tag("e"))), many(tag("c")), optional(tag("f"))])
    },
    schema("G", &[]),
];

/// Every key is cross-partition, so this is the specification as it stands.
const PLAIN: [EventSchema; 4] = [
    schema("A", &[partition(across(tag("a"))), many(strong(tag("b"))), optional(across(tag("c")))]),
    EventSchema {
        read_by_type: true,
        ..schema("B", &[partition(strong(tag("b"))), optional(across(tag("c")))])
    },
    schema("C", &[partition(across(tag("c"))), many(strong(tag("b"))), optional(across(tag("a")))]),
    schema("D", &[]),
];

/// What the model knows of a world.
struct World {
    schemas: &'static [EventSchema],
    /// Keys by which every carrier is found.
    across: &'static [&'static str],
}

const WORLDS: [World; 2] = [
    World { schemas: &NARROW, across: &["b", "e"] },
    World { schemas: &PLAIN, across: &["a", "b", "c"] },
];

impl World {
    fn schema(&self, name: &str) -> &'static EventSchema {
        self.schemas.iter().find(|schema| schema.name == name).expect("a type of this world")
    }

    /// Whether the specification, narrowed by scope, says that the query asks for the event.
    fn asks(&self, query: &Query, event: &NewEvent) -> bool {
        query.items.is_empty() || query.items.iter().any(|item| self.clause_asks(item, event))
    }

    fn clause_asks(&self, item: &QueryItem, event: &NewEvent) -> bool {
        let of_type = item.types.is_empty() || item.types.contains(&event.event_type);
        let tagged = item.tags.iter().all(|tag| event.tags.contains(tag));
        of_type && tagged && self.reaches(item, event)
    }

    /// Whether the event's scopes let it be found by the clause's tags, all of which it has.
    fn reaches(&self, item: &QueryItem, event: &NewEvent) -> bool {
        let schema = self.schema(event.event_type);
        let mut parts = schema.tags.iter().filter(|tag| tag.partition).map(|tag| tag.key);
        let asked = |key: &str| item.tags.iter().any(|tag| tag.key == key);
        item.tags.is_empty()
            || item.tags.iter().any(|tag| self.across.contains(&&*tag.key))
            || parts.all(asked)
            || schema.read_as_composite && item.tags.len() == event.tags.len()
    }
}

/// SplitMix64: a run is its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % n as u64).expect("below a usize")
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    fn value(&mut self) -> String {
        self.of(&["1", "2", "#:%/|"]).to_owned()
    }

    fn event(&mut self, world: &World, n: usize) -> NewEvent {
        let schema = self.of(world.schemas);
        let mut tags: Vec<Tag> = Vec::new();
        for tag in schema.tags {
            let values = if tag.required { 1 } else { self.below(if tag.many { 4 } else { 2 }) };
            for _ in 0..values {
                let empty = !tag.required && self.below(8) == 0;
                let value = if empty { String::new() } else { self.value() };
                tags.push(Tag::new(tag.key, value));
            }
        }
        let mut once = BTreeSet::new();
        tags.retain(|tag| once.insert(tag.clone()));
        NewEvent { event_type: schema.name, tags, data: json!({ "n": n }) }
    }

    /// A clause that some event may match: mostly a part of its tags, perhaps with a stranger.
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
        for schema in world.schemas {
            if self.below(3) == 0 && !types.contains(&schema.name) {
                types.push(schema.name);
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

/// Both logs and the model, which is a list of events: `data.n` is the place in it.
struct Logs<'w> {
    world: &'w World,
    stack: Stack,
    dcb: DcbLog,
    memory: MemoryLog,
    model: Vec<NewEvent>,
    /// The positions of the model's events in each log.
    positions: Vec<[Position; 2]>,
}

fn numbers(events: &[SequencedEvent]) -> Vec<u64> {
    events.iter().map(|event| event.data["n"].as_u64().expect("a number")).collect()
}

impl<'w> Logs<'w> {
    async fn start(world: &'w World) -> Self {
        let catalog = || -> Result<Catalog, CatalogError> {
            let one = world.schemas.iter().map(|schema| Catalog::new("world", [*schema]));
            Catalog::compose(one.collect::<Result<Vec<_>, _>>()?)
        };
        let stack = Stack::start(catalog()).await;
        let memory = MemoryLog::new(catalog().expect("it was composed before"));
        let dcb = stack.log();
        Self { world, stack, dcb, memory, model: Vec::new(), positions: Vec::new() }
    }

    async fn append(&mut self, events: Vec<NewEvent>) {
        let envelope = &Envelope::default();
        let append = |events| Append { events, seen: None, record: None, envelope };
        let dcb = committed(self.dcb.append(append(events.clone())).await);
        let memory = committed(self.memory.append(append(events.clone())).await);
        self.model.extend(events);
        let pairs = dcb.into_iter().zip(memory);
        self.positions.extend(pairs.map(|(dcb, memory)| [dcb.position, memory.position]));
    }

    /// Compares one page of a query; false if the query can't be read.
    async fn compare(&self, random: &mut Random, query: &Query) -> bool {
        let after = (random.below(2) == 0).then(|| random.below(self.model.len()));
        let limit = (random.below(2) == 0).then(|| random.below(6));
        let backwards = random.below(2) == 0;
        let reading = match Reading::new(query, &self.stack.catalog) {
            Ok(reading) => reading,
            Err(PlanError::NoRoute { .. }) => {
                let found = |item| self.model.iter().any(|e| self.world.clause_asks(item, e));
                assert!(!query.items.iter().all(found), "a clause with events was refused");
                return false;
            }
            Err(error) => panic!("{error}"),
        };
        let beyond = |n: &usize| match (after, backwards) {
            (None, _) => true,
            (Some(after), false) => *n > after,
            (Some(after), true) => *n < after,
        };
        let asked = (0..self.model.len()).filter(|n| self.world.asks(query, &self.model[*n]));
        let mut expected: Vec<u64> = asked.filter(beyond).map(|n| n as u64).collect();
        if backwards {
            expected.reverse();
        }
        expected.truncate(limit.unwrap_or(usize::MAX));
        let page = |log: usize| Page {
            after: after.map(|after| self.positions[after][log].clone()),
            limit,
            backwards,
        };
        let found = self.memory.query(&reading, &page(1));
        assert_eq!(numbers(&found), expected, "in memory: {query:?} after {after:?}");
        let page = page(0);
        let found: Vec<_> = self.dcb.query(&reading, &page).try_collect().await.expect("a read");
        assert_eq!(numbers(&found), expected, "on DynamoDB: {query:?} after {after:?}");
        true
    }

    /// Reads, lets events come, and appends under the condition; false if it can't be planned.
    async fn condition(&mut self, random: &mut Random, query: &Query) -> bool {
        // A decision without clauses depends on nothing; a reader asks so for everything.
        let plan = Plan::new(query, &self.stack.catalog).ok();
        let Some(plan) = plan.filter(|plan| !plan.reads.is_empty()) else { return false };
        let dcb: Vec<_> = self
            .dcb
            .read(&plan, Consistency::Eventual, &envelope())
            .try_collect()
            .await
            .expect("a read");
        let memory: Vec<_> = self
            .memory
            .read(&plan, Consistency::Strong, &envelope())
            .try_collect()
            .await
            .expect("a read");
        assert_eq!(numbers(&dcb), numbers(&memory), "both logs read the same");
        let matching =
            numbers(&dcb.iter().filter(|e| plan.matches(e)).cloned().collect::<Vec<_>>());
        let asked = (0..self.model.len()).filter(|n| self.world.asks(query, &self.model[*n]));
        assert_eq!(matching, asked.map(|n| n as u64).collect::<Vec<_>>(), "the fold: {query:?}");

        let seen = |events: &[SequencedEvent]| {
            let mut seen = Seen::nothing(&plan);
            events.iter().for_each(|event| seen.observe(&plan, event));
            seen
        };
        let (dcb_seen, memory_seen) = (seen(&dcb), seen(&memory));
        let first = self.model.len();
        let came: Vec<_> =
            (0..random.below(3)).map(|n| random.event(self.world, first + n)).collect();
        if !came.is_empty() {
            self.append(came.clone()).await;
        }
        let events = vec![random.event(self.world, self.model.len())];
        let envelope = &Envelope::default();
        let append = |seen| Append { events: events.clone(), seen, record: None, envelope };
        let dcb = self.dcb.append(append(Some(&dcb_seen))).await;
        let memory = self.memory.append(append(Some(&memory_seen))).await;
        let conflicts = match (dcb, memory) {
            (Ok(dcb), Ok(memory)) => {
                let positions = [Ok(dcb), Ok(memory)].map(|ok| committed(ok)[0].position.clone());
                self.positions.push(positions);
                self.model.extend(events);
                false
            }
            (Err(LogError::Conflict(dcb)), Err(LogError::Conflict(memory))) => {
                assert_eq!(dcb, memory);
                true
            }
            (dcb, memory) => panic!("{dcb:?}, in memory {memory:?}"),
        };
        let lost = came.iter().any(|event| self.world.asks(query, event));
        assert!(conflicts || !lost, "a fact that the query asks for was overlooked");
        // A condition is as narrow as its boundaries: exact for a clause of one tag or none.
        let touches = |event: &NewEvent, item: &QueryItem| {
            item.types.contains(&event.event_type)
                && (item.tags.is_empty() || item.tags.iter().any(|tag| event.tags.contains(tag)))
        };
        let near = came.iter().any(|event| query.items.iter().any(|item| touches(event, item)));
        assert!(!conflicts || near, "a conflict with nothing that was read");
        let exact = query.items.iter().all(|item| item.tags.len() < 2);
        assert!(!exact || conflicts == lost, "a conflict with an event that was not asked for");
        true
    }
}

#[expect(clippy::disallowed_methods, reason = "a longer run is asked for from outside")]
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[tokio::test]
async fn reads_and_conditions_are_those_of_the_specification() {
    let (queries, first) = (setting("RINGFENCE_QUERIES", QUERIES), setting("RINGFENCE_SEED", SEED));
    let (mut pages, mut conditions, mut seed) = (0, 0, first);
    while pages < queries || conditions < queries {
        // A failure prints the last of these.
        eprintln!("RINGFENCE_SEED={seed} after {pages} pages, {conditions} conditions");
        let mut random = Random(seed.wrapping_mul(0x2545_F491_4F6C_DD1D));
        for world in &WORLDS {
            let mut logs = Logs::start(world).await;
            let events = (0..12).map(|n| random.event(world, n)).collect();
            logs.append(events).await;
            for _ in 0..WORLD_QUERIES {
                let query = random.query(world, &logs.model);
                pages += u64::from(logs.compare(&mut random, &query).await);
                // Many queries that can be read are refused to a decision.
                for _ in 0..4 {
                    let query = random.query(world, &logs.model);
                    if logs.condition(&mut random, &query).await {
                        conditions += 1;
                        break;
                    }
                }
            }
            logs.stack.check_fences().await;
        }
        seed += 1;
    }
}
