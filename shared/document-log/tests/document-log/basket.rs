//! The domain of the tests: a basket of numbered things.

use std::collections::BTreeMap;

use ringfence::{Context, Envelope, StreamContext};
use ringfence_document_log::{
    Access, Cache, Category, DocumentContext, DocumentLog, Documents, Load, Outcome, Store,
    Transacted,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Event {
    Added { sku: u32, quantity: u32 },
    Removed { sku: u32 },
    Closed,
    Snapshot(State),
    Snapshot2 { state: State },
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
    type Log = Documents;
    type Event = Event;
}

impl DocumentContext for Basket {}

impl StreamContext for Basket {
    type State = State;

    fn evolve(mut state: State, event: Event) -> State {
        match event {
            Event::Added { sku, quantity } => *state.items.entry(sku).or_default() += quantity,
            Event::Removed { sku } => {
                state.items.remove(&sku);
            }
            Event::Closed => state.closed = true,
            Event::Snapshot(state) | Event::Snapshot2 { state } => return state,
        }
        state
    }
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

pub(crate) fn snapshot() -> Access<Basket> {
    Access::Snapshot {
        is_origin: |event| matches!(event, Event::Snapshot(_)),
        to_snapshot: |state| Event::Snapshot(state.clone()),
    }
}

pub(crate) fn snapshots() -> Access<Basket> {
    Access::Snapshots {
        is_origin: |event| matches!(event, Event::Snapshot2 { .. }),
        to_snapshots: |state| {
            vec![Event::Snapshot2 { state: state.clone() }, Event::Snapshot(state.clone())]
        },
    }
}

pub(crate) fn rolling() -> Access<Basket> {
    Access::RollingState { to_snapshot: |state| Event::Snapshot(state.clone()) }
}

/// Every access by which a basket's state is what its events say.
pub(crate) fn accesses() -> [fn() -> Access<Basket>; 4] {
    [|| Access::Unoptimized, snapshot, snapshots, rolling]
}

pub(crate) fn baskets<S: Store>(
    log: DocumentLog<S>,
    access: Access<Basket>,
    cache: Cache<State>,
) -> Category<Basket, S> {
    Category::new(log, access, cache).expect("the events are an enum")
}

pub(crate) fn some_cache() -> Cache<State> {
    Cache::of(std::num::NonZeroUsize::new(10).expect("ten"))
}

/// Decides without metadata; panics on an error.
pub(crate) async fn transact<S: Store>(
    category: &Category<Basket, S>,
    id: &str,
    load: Load,
    decide: impl Fn(&State) -> Result<Vec<Event>, Closed>,
) -> Transacted<Event, Closed> {
    let transacted = category.transact(id, load, &Envelope::default(), decide).await;
    transacted.expect("it is settled")
}

pub(crate) async fn add<S: Store>(category: &Category<Basket, S>, id: &str, sku: u32) -> u64 {
    let transacted = transact(category, id, Load::Eventual, |state| state.add(sku, 1)).await;
    assert_eq!(transacted.outcome, Outcome::Accepted(vec![added(sku)]));
    transacted.version
}

pub(crate) async fn state<S: Store>(category: &Category<Basket, S>, id: &str) -> State {
    let read = category.query(id, Load::Strong, &Envelope::default(), State::clone).await;
    read.expect("it can be read").0
}
