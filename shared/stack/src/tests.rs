//! A wrong list is an error at the start.

use ringfence_aggregate_log::Aggregates;
use ringfence_core::prelude::*;
use ringfence_dcb_log::Dcb;
use serde_json::{Value, json};

use crate::{Images, MemberList, Members, Stack, Visitor, catalog};

/// It has two tags, so it belongs to no single stream.
#[derive(Event)]
struct GuestMoved {
    #[tag(partition)]
    room_id: String,
    guest_id: String,
}

/// On the aggregate log.
struct Stays;
/// Reads events of the guests.
struct Rooms;
/// Reads events of the rooms.
struct Guests;
/// Reads events of the rooms. No context reads its events.
struct Bills;
/// Has events that no slice writes.
struct Moves;
/// Reads events of the moves.
struct Desk;

macro_rules! contexts {
    ($($context:ident $name:literal $log:ident, $list:ident => $members:expr;)*) => {$(
        impl Context for $context {
            const NAME: &'static str = $name;
            type Log = $log;

            fn catalog() -> Result<Catalog, CatalogError> {
                catalog::<Self>()
            }
        }

        impl Members for $context {
            fn list($list: &mut MemberList<impl Visitor>) {
                $members;
            }
        }
    )*};
}

contexts! {
    Stays "stays" Aggregates, list => list.event::<GuestMoved>();
    Rooms "rooms" Dcb, list => list.reads::<Guests>();
    Guests "guests" Dcb, list => list.reads::<Rooms>();
    Bills "bills" Dcb, list => list.reads::<Rooms>();
    Moves "moves" Dcb, list => list.event::<GuestMoved>();
    Desk "desk" Dcb, list => list.reads::<Moves>();
}

/// A stack of one context.
struct Only<C>(C);

impl<C: Context<Log: ringfence_log::Sourced> + Members> Members for Only<C> {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.context::<C>();
    }
}

#[test]
fn a_stack_has_no_context_whose_catalog_contradicts_itself() {
    let event_type = "GuestMoved".into();
    assert_eq!(Stack::of::<Only<Stays>>().err(), Some(CatalogError::NotOfOneStream { event_type }));
}

#[test]
fn contexts_that_read_each_other_are_named() {
    for (found, contexts) in [
        (Rooms::catalog(), ["rooms", "guests", "rooms"]),
        (Guests::catalog(), ["guests", "rooms", "guests"]),
        (Bills::catalog(), ["rooms", "guests", "rooms"]),
        (Stack::of::<Only<Rooms>>().map(|stack| stack.catalog), ["rooms", "guests", "rooms"]),
    ] {
        assert_eq!(found.err(), Some(CatalogError::Circle { contexts: contexts.to_vec() }));
    }
}

#[test]
fn a_context_has_its_own_types_and_knows_those_that_it_reads() {
    let of_desk = Stack::of::<Only<Desk>>().unwrap();
    let tables = of_desk.sources.iter().map(|log| log.facts().variable);
    assert_eq!(tables.collect::<Vec<_>>(), ["EVENT_TABLE"]);
    assert_eq!(of_desk.catalog.context("GuestMoved"), Some("moves"));
    assert!(of_desk.event_types().is_empty());
    let of_moves = Stack::of::<Only<Moves>>().unwrap();
    assert!(of_moves.event_types().into_iter().eq(["GuestMoved"]));
}

/// A guest pays for a stay, in a stream of the aggregate log.
#[derive(Event)]
struct StayPaid {
    #[tag(partition)]
    stay_id: String,
    cents: u64,
}

/// On the aggregate log.
struct Payments;

contexts! {
    Payments "payments" Aggregates, list => list.event::<StayPaid>();
}

/// A stack with a context on two logs.
struct Hotel;

impl Members for Hotel {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.context::<Moves>().context::<Payments>();
    }
}

#[derive(Reads)]
enum OfMoves {
    GuestMoved { guest_id: String },
}

#[derive(Reads)]
enum OfPayments {
    StayPaid {
        #[stream]
        stay_id: String,
        cents: u64,
    },
}

/// A team's function handles a record, as a Lambda on the streams of both tables gets it.
#[test]
fn records_of_the_tables_streams_are_read_context_by_context() {
    let stack = || Stack::of::<Hotel>().unwrap();
    let images = stack()
        .images::<String>()
        .of::<Moves, _>(|OfMoves::GuestMoved { guest_id }| format!("{guest_id} has moved"))
        .of::<Payments, _>(|OfPayments::StayPaid { stay_id, cents }| {
            format!("{cents} cents for {stay_id}")
        });
    let of_change = |change: Value| json!({ "eventID": "1", "eventName": "INSERT", "awsRegion": "eu-central-1", "dynamodb": change });
    let record = |image: Value| of_change(json!({ "NewImage": image, "SizeBytes": 1 }));
    let moved = |context: &str| {
        record(json!({
            "id": { "S": "roomId:1" }, "position": { "N": "1" }, "event": { "S": "GuestMoved" },
            "context": { "S": context }, "at": { "N": "1719100800000" }, "tags": { "L": [] },
            "data": { "M": { "roomId": { "S": "1" }, "guestId": { "S": "ada" } } },
            "appendId": { "S": "a" },
        }))
    };
    let paid = |store: &str, cents: Value| {
        record(json!({
            "aggregateId": { "S": format!("{store}#7") }, "version": { "N": "1" },
            "type": { "S": "StayPaid" }, "timestamp": { "S": "2024-06-23T00:00:00.000Z" },
            "payload": { "M": { "cents": cents } },
        }))
    };
    let made = |images: &Images<String>, record: Value| {
        let read = images.read(&record).into_iter();
        let said = read.map(|read| match read {
            Ok((event, made)) => format!("{}: {made}", event.id()),
            Err(error) => ringfence_core::chain(&error).to_string(),
        });
        said.collect::<Vec<_>>()
    };
    let nine = || json!({ "N": "9" });
    assert_eq!(made(&images, moved("moves")), ["roomId:1/1: ada has moved"]);
    // Its writer did not name the context.
    assert_eq!(made(&images, moved("")), ["roomId:1/1: ada has moved"]);
    assert_eq!(made(&images, paid("payments", nine())), ["payments#7/1: 9 cents for 7"]);
    let other = made(&images, paid("cards", nine()));
    let said = "event cards#7/1 is of the context \"cards\", which this stack does not list";
    assert_eq!(other, [said]);
    let wrong = made(&images, paid("payments", json!({ "S": "nine" })));
    assert!(wrong[0].starts_with("event payments#7/1 (StayPaid) can't be decoded: "), "{wrong:?}");
    // Other contexts and records without events give nothing.
    let of_moves = stack().images::<String>().of::<Moves, _>(|_: OfMoves| String::new());
    assert!(made(&of_moves, paid("payments", nine())).is_empty());
    assert!(made(&images, of_change(json!({ "Keys": {}, "SizeBytes": 1 }))).is_empty());
    let broken = made(&images, record(json!({ "aggregateId": 7 })));
    assert!(broken[0].starts_with("not a stream record: "), "{broken:?}");
}
