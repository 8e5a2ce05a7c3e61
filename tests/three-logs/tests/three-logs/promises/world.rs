//! A small domain, and an empty log for it.

use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::Clock;
use ringfence_aws::wire::Wire;
use ringfence_core::prelude::*;
use ringfence_core::{Envelope, Handled, LogKind, LogName, OnLog, Outcome};
use ringfence_document_log::Document;
use ringfence_local::engine::Engine;
use ringfence_log::{InTable, Log, Sourced};
use serde::Serialize;

use super::Tested;

/// The first time of the writers' clocks, in milliseconds since 1970.
pub(super) const NOW_MS: u64 = ringfence_core::kit::BEGIN_MS;

pub(super) struct Shelves;

impl Context for Shelves {
    const NAME: &'static str = "shelves";
    type Log = Tested;

    fn catalog() -> Result<Catalog, CatalogError> {
        Tested::KIND.catalog(Self::NAME, [Put::SCHEMA, TurnedAway::SCHEMA])
    }
}

/// A thing was put on a shelf.
#[derive(Clone, Debug, PartialEq, Event)]
pub(super) struct Put {
    #[tag(partition)]
    shelf_id: String,
    thing: String,
    /// The time of its decision, in milliseconds since 1970.
    decided_ms: u64,
}

/// There was no room.
#[derive(Clone, Debug, PartialEq, Event)]
pub(super) struct TurnedAway {
    #[tag(partition)]
    shelf_id: String,
}

#[derive(Clone, Debug, PartialEq, Writes)]
pub(super) enum Written {
    Put(Put),
    TurnedAway(TurnedAway),
}

#[derive(Reads)]
pub(super) enum Consumed {
    Put {
        thing: String,
        decided_ms: u64,
        #[time]
        at_ms: u64,
    },
    TurnedAway {},
}

/// The things on a shelf.
#[ringfence::value]
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shelf {
    pub(super) things: Vec<String>,
    /// The times of each decision and of each event, in milliseconds since 1970.
    pub(super) times: Vec<(u64, u64)>,
    pub(super) turned_away: u32,
}

impl State for Shelf {
    type Reads = Consumed;

    fn evolve(mut self, event: Consumed) -> Self {
        match event {
            Consumed::Put { thing, decided_ms, at_ms } => {
                self.things.push(thing);
                self.times.push((decided_ms, at_ms));
            }
            Consumed::TurnedAway {} => self.turned_away += 1,
        }
        self
    }
}

impl Document for Shelf {}

/// Puts things on a shelf, all of them or none. Things that are there stay.
#[derive(Clone, Debug, PartialEq, Command)]
pub(super) struct Fill {
    #[tag(partition)]
    pub(super) shelf_id: String,
    pub(super) things: Vec<String>,
    /// The shelf may hold this many things afterwards.
    pub(super) most: usize,
    /// Whether it leaves an event if there is no room.
    pub(super) tells: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code")]
pub(super) enum Rejection {
    #[error("the shelf has no room")]
    Full { shelf: Shelf },
}

impl Slice for Fill {
    const NAME: &'static str = "fill";
    type Context = Shelves;
    type State = Shelf;
    type Writes = Written;
    type Rejection = Rejection;

    fn decide(&self, shelf: &Shelf, at: &CommandContext) -> Result<Vec<Written>, Rejection> {
        let new = self.things.iter().filter(|thing| !shelf.things.contains(thing));
        let put = |thing: &String| {
            let (shelf_id, thing) = (self.shelf_id.clone(), thing.clone());
            Written::Put(Put { shelf_id, thing, decided_ms: at.now_ms })
        };
        let new: Vec<Written> = new.map(put).collect();
        match new.is_empty() || shelf.things.len() + new.len() <= self.most {
            true => Ok(new),
            false => Err(Rejection::Full { shelf: shelf.clone() }),
        }
    }

    fn leaves(&self, _: &Rejection, _: &Shelf, _: &CommandContext) -> Vec<Written> {
        let turned_away = || TurnedAway { shelf_id: self.shelf_id.clone() };
        self.tells.then(|| Written::TurnedAway(turned_away())).into_iter().collect()
    }
}

/// Puts these things on the shelf `a`, which has room.
pub(super) fn fill(things: &[&str]) -> Fill {
    let things = things.iter().map(|thing| (*thing).to_owned()).collect();
    Fill { shelf_id: "a".to_owned(), things, most: 1_000, tells: false }
}

/// An empty log, with any number of handlers on it.
pub(super) trait World {
    /// A handler that keeps this many decisions or documents.
    fn handler(&self, clock: Clock, kept: usize) -> impl OnLog<Fill>;

    /// The content of the shelf `a`, for a new handler.
    async fn shelf(&self) -> Shelf {
        let clock = Clock::fixed(NOW_MS);
        let command = Fill { most: 0, ..fill(&["one more"]) };
        let handled =
            self.handler(clock.clone(), 0).handle(&command, &envelope(&clock, None)).await;
        match handled.expect("it is settled").outcome {
            Outcome::Rejected { rejected, .. } => {
                serde_json::from_value(rejected.rejection["shelf"].clone()).expect("a shelf")
            }
            accepted => panic!("there was room: {accepted:?}"),
        }
    }
}

/// The envelope of a command from a writer with this clock.
pub(super) fn envelope(clock: &Clock, key: Option<&str>) -> Envelope {
    let context = CommandContext { now_ms: clock.now_ms(), ..CommandContext::default() };
    Envelope { context, idempotency_key: key.map(str::to_owned), ..Envelope::default() }
}

/// Runs a command of a writer whose clock is right.
pub(super) async fn run(on: &impl OnLog<Fill>, command: &Fill, key: Option<&str>) -> Handled {
    let envelope = envelope(&Clock::fixed(NOW_MS), key);
    on.handle(command, &envelope).await.expect("it is settled")
}

pub(super) struct Memory(<Tested as Log<Fill>>::Memory);

impl Memory {
    pub(super) fn new() -> Self {
        Self(<Tested as Log<Fill>>::memory().expect("a log"))
    }
}

impl World for Memory {
    fn handler(&self, clock: Clock, kept: usize) -> impl OnLog<Fill> {
        Tested::in_memory(self.0.clone(), clock, kept).expect("a slice of the log")
    }
}

/// A table in a DynamoDB in this process.
pub(super) struct Tabled {
    pub(super) wire: Wire,
    pub(super) table: InTable,
}

impl Tabled {
    pub(super) fn new() -> Self {
        let layout = Tested::SOURCE.layout(&Shelves::catalog().expect("a catalog"));
        let engine = Engine::memory().expect("a DynamoDB");
        engine.create_table(&layout.properties(), "table").expect("a table");
        let wire = Wire::default();
        let call = move |operation: &str, body: &[u8]| engine.call(operation, body);
        let client = wire.client_of(Arc::new(call));
        Self { wire, table: InTable::new(client, "table", Clock::fixed(NOW_MS)) }
    }

    /// Breaks the table in a way that no writer of the log does: a fence counts events that do not exist, an item is
    /// not an event, or a Tip's last append is longer than its stream.
    pub(super) async fn spoil(&self) {
        let (keys, of, attribute) = match Tested::KIND {
            LogKind::Dcb => (["id", "position"], ("fence#shelfId:z", 0), "cnt#Put"),
            LogKind::Aggregates => (["aggregateId", "version"], ("shelves#a", 3), "payload"),
            LogKind::Documents => (["p", "i"], ("shelves-a", i64::from(i32::MAX)), "a"),
        };
        let spoil = self.table.client.update_item().table_name(&self.table.name);
        let spoil = spoil.key(keys[0], AttributeValue::S(of.0.to_owned()));
        let spoil = spoil.key(keys[1], AttributeValue::N(of.1.to_string()));
        let spoil =
            spoil.update_expression("SET #a = :a").expression_attribute_names("#a", attribute);
        let spoil = spoil.expression_attribute_values(":a", AttributeValue::N("9".to_owned()));
        spoil.send().await.expect("it is spoilt");
    }

    pub(super) async fn verify(&self) {
        let wrong = <Tested as Log<Fill>>::verify(&self.table).await.expect("a table of the log");
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}

impl World for Tabled {
    fn handler(&self, clock: Clock, kept: usize) -> impl OnLog<Fill> {
        let table = InTable { clock, ..self.table.clone() };
        <Tested as Log<Fill>>::open(table, kept).expect("a slice of the log").0
    }
}
