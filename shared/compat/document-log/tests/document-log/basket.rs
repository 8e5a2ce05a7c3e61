//! The domain of the tests: a basket of numbered things.

use std::collections::BTreeMap;

use ringfence_core::{
    Catalog, CatalogError, Context, Envelope, Event as _, EventSchema, NewEvent, Reads, Tag,
};
use ringfence_document_log::{
    AccessStrategy, Cache, Category, Decided, Document, DocumentLog, Documents, Load, Snapshot,
    Store, Transacted,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A stored event, without its basket. A state is an event too, because the original writes it as an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Reads)]
pub(crate) enum Event {
    Added { sku: u32, quantity: u32 },
    Removed { sku: u32 },
    Closed,
    Snapshot { items: BTreeMap<u32, u32>, closed: bool },
}

/// One more of a thing was put into a basket.
#[derive(Clone, Debug, PartialEq, ringfence_core::Event)]
pub(crate) struct Added {
    #[tag(partition)]
    pub(crate) basket_id: String,
    pub(crate) sku: u32,
    pub(crate) quantity: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) items: BTreeMap<u32, u32>,
    pub(crate) closed: bool,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Closed;

pub(crate) struct Basket;

impl Context for Basket {
    const NAME: &'static str = "Basket";
    type Log = Documents<State>;

    fn catalog() -> Result<Catalog, CatalogError> {
        let schema = |name: &&'static str| EventSchema { name: (*name).into(), ..Added::SCHEMA };
        Catalog::new(Self::NAME, Event::TYPES.iter().map(schema))
    }
}

impl ringfence_core::State for State {
    type Reads = Event;

    fn evolve(mut self, event: Event) -> Self {
        match event {
            Event::Added { sku, quantity } => *self.items.entry(sku).or_default() += quantity,
            Event::Removed { sku } => {
                self.items.remove(&sku);
            }
            Event::Closed => self.closed = true,
            Event::Snapshot { items, closed } => return Self { items, closed },
        }
        self
    }
}

impl Document for State {}

impl Event {
    /// Type and payload.
    pub(crate) fn stored(&self) -> (String, Option<Value>) {
        match serde_json::to_value(self).expect("JSON") {
            Value::String(event_type) => (event_type, None),
            json => {
                let one = json.as_object().and_then(|map| map.iter().next()).expect("a payload");
                (one.0.clone(), Some(one.1.clone()))
            }
        }
    }

    /// The event of this basket.
    pub(crate) fn of(&self, basket: &str) -> NewEvent {
        let (event_type, data) = self.stored();
        let mut data = data.unwrap_or_else(|| json!({}));
        data["basketId"] = basket.into();
        let tags = vec![Tag::new("basketId", basket)];
        NewEvent { event_type: event_type.into(), tags, data }
    }
}

/// The events of this basket.
pub(crate) fn of(basket: &str, events: Vec<Event>) -> Vec<NewEvent> {
    events.iter().map(|event| event.of(basket)).collect()
}

impl State {
    pub(crate) fn total(&self) -> u32 {
        self.items.values().sum()
    }

    pub(crate) fn add(&self, sku: u32, quantity: u32) -> Result<Vec<Event>, Closed> {
        if self.closed { Err(Closed) } else { Ok(vec![Event::Added { sku, quantity }]) }
    }

    /// Puts a thing in unless it is there.
    pub(crate) fn ensure(&self, sku: u32) -> Result<Vec<Event>, Closed> {
        if self.items.contains_key(&sku) { Ok(vec![]) } else { self.add(sku, 1) }
    }
}

pub(crate) fn added(sku: u32) -> Event {
    Event::Added { sku, quantity: 1 }
}

const SNAPSHOT: Snapshot<State> = Snapshot::named("Snapshot");
const SNAPSHOTS: [Snapshot<State>; 2] = [
    Snapshot::of(
        "Snapshot2",
        |state| Ok(json!({ "state": state })),
        |mut json| serde_json::from_value(json["state"].take()),
    ),
    SNAPSHOT,
];

pub(crate) fn snapshot() -> AccessStrategy<State> {
    AccessStrategy::Snapshot(SNAPSHOT)
}

pub(crate) fn snapshots() -> AccessStrategy<State> {
    AccessStrategy::Snapshots(&SNAPSHOTS)
}

pub(crate) fn rolling() -> AccessStrategy<State> {
    AccessStrategy::RollingState(SNAPSHOT)
}

/// Every access with which a basket has the state of its events.
pub(crate) fn accesses() -> [fn() -> AccessStrategy<State>; 4] {
    [|| AccessStrategy::Unoptimized, snapshot, snapshots, rolling]
}

pub(crate) fn baskets<S: Store>(
    log: DocumentLog<S>,
    access: AccessStrategy<State>,
    cache: Cache<State>,
) -> Category<State, S> {
    Category::new::<Basket>(log, access, cache).expect("each event names a basket")
}

pub(crate) fn some_cache() -> Cache<State> {
    Cache::of(std::num::NonZeroUsize::new(10).expect("ten"))
}

/// Decides without metadata; panics on an error.
pub(crate) async fn transact<S: Store>(
    category: &Category<State, S>,
    id: &str,
    load: Load,
    decide: impl Fn(&State) -> Result<Vec<Event>, Closed>,
) -> Transacted<Closed> {
    let decide = |state: &State| decide(state).map(|events| of(id, events));
    let transacted = category.transact(id, load, &Envelope::default(), decide).await;
    transacted.expect("it is settled")
}

pub(crate) async fn add<S: Store>(category: &Category<State, S>, id: &str, sku: u32) -> u64 {
    let transacted = transact(category, id, Load::Eventual, |state| state.add(sku, 1)).await;
    assert_eq!(transacted.outcome, Decided::Accepted(vec![added(sku).of(id)]));
    transacted.version
}

pub(crate) async fn state<S: Store>(category: &Category<State, S>, id: &str) -> State {
    let read = category.query(id, Load::Strong, &Envelope::default(), State::clone).await;
    read.expect("it can be read").0
}
