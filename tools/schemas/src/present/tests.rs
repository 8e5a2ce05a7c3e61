//! The locks of a small stack.

use ringfence_aggregate_log::Aggregates;
use ringfence_core::{List, prelude::*};
use ringfence_dcb_log::Dcb;
use ringfence_stack::{MemberList, Members, Visitor};
use ringfence_views::View;
use serde::Serialize;
use serde_json::{Value, json};

use super::present;
use crate::{Contract, Lock};

#[derive(Clone, Debug, PartialEq, Event)]
#[event(version = 2)]
#[upcast(1 = Ok)]
struct RoomBooked {
    #[tag(partition)]
    room_id: String,
    note: Option<String>,
}

#[derive(Event)]
#[event(retired)]
struct RoomClosed {
    #[tag(partition)]
    room_id: String,
}

/// On the aggregate log.
#[derive(Clone, Debug, PartialEq, Event)]
struct BillSent {
    #[tag(partition)]
    bill_id: String,
    cents: u32,
}

struct Rooms;
struct Guests;
struct Bills;

macro_rules! contexts {
    ($($context:ident $name:literal $log:ident, $list:ident => $members:expr;)*) => {$(
        impl Context for $context {
            const NAME: &'static str = $name;
            type Log = $log;

            fn catalog() -> Result<Catalog, CatalogError> {
                ringfence_stack::catalog::<Self>()
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
    Rooms "rooms" Dcb, list => list.slice::<BookRoom>().event::<RoomClosed>();
    Guests "guests" Dcb, list => list.reads::<Rooms>().slice::<CheckIn>();
    Bills "bills" Aggregates, list => list.slice::<SendBill>();
}

struct All;

impl Members for All {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.context::<Rooms>().context::<Guests>().context::<Bills>();
    }
}

#[derive(Default)]
struct Booked(bool);

#[derive(Reads)]
enum OfRoom {
    RoomBooked,
}

impl State for Booked {
    type Reads = OfRoom;

    fn evolve(self, OfRoom::RoomBooked: OfRoom) -> Self {
        Self(true)
    }
}

#[derive(Debug, Serialize, thiserror::Error)]
#[serde(tag = "code")]
enum Rejection {
    #[error("the room is booked")]
    RoomTaken,
}

#[derive(Clone, Debug, PartialEq, Command)]
struct BookRoom {
    #[tag(partition)]
    room_id: String,
    doors: List<Door, 3>,
}

fn booked(note: Option<&str>) -> RoomBooked {
    RoomBooked { room_id: "r1".to_owned(), note: note.map(str::to_owned) }
}

impl Slice for BookRoom {
    const NAME: &'static str = "book-room";
    type Context = Rooms;
    type State = Booked;
    type Writes = RoomBooked;
    type Rejection = Rejection;

    fn decide(
        &self,
        Booked(is): &Booked,
        _: &CommandContext,
    ) -> Result<Vec<RoomBooked>, Rejection> {
        if *is { Err(Rejection::RoomTaken) } else { Ok(vec![booked(None)]) }
    }

    fn cases() -> Vec<Case<Self>> {
        let doors = || vec![Door("door-1".to_owned())].try_into().expect("one door");
        let book = || BookRoom { room_id: "r1".to_owned(), doors: doors() };
        vec![
            given([]).when(book()).then([booked(None)]),
            given(events![booked(None)]).when(book()).then_rejected(Rejection::RoomTaken),
        ]
    }
}

#[derive(Clone, Debug, PartialEq, Command)]
struct CheckIn {
    #[tag(partition)]
    room_id: String,
}

#[derive(Clone, Debug, PartialEq, Event)]
struct GuestArrived {
    #[tag(partition)]
    room_id: String,
}

impl Slice for CheckIn {
    const NAME: &'static str = "check-in";
    type Context = Guests;
    type State = Booked;
    type Writes = GuestArrived;
    type Rejection = Never;

    fn decide(&self, _: &Booked, _: &CommandContext) -> Result<Vec<GuestArrived>, Never> {
        Ok(vec![GuestArrived { room_id: self.room_id.clone() }])
    }

    fn cases() -> Vec<Case<Self>> {
        let check_in = CheckIn { room_id: "r1".to_owned() };
        let arrived = GuestArrived { room_id: "r1".to_owned() };
        vec![given(events![booked(Some("late"))]).when(check_in).then([arrived])]
    }
}

#[derive(Clone, Debug, PartialEq, Command)]
struct SendBill {
    #[tag(partition)]
    bill_id: String,
}

#[derive(Default)]
struct NoBill;

#[derive(Reads)]
enum OfBill {
    BillSent,
}

impl State for NoBill {
    type Reads = OfBill;

    fn evolve(self, OfBill::BillSent: OfBill) -> Self {
        self
    }
}

impl Slice for SendBill {
    const NAME: &'static str = "send-bill";
    const REACTS_TO: &'static [Cause] = &[Cause::of::<GuestArrived>("guests")];
    type Context = Bills;
    type State = NoBill;
    type Writes = BillSent;
    type Rejection = Never;

    fn decide(&self, _: &NoBill, _: &CommandContext) -> Result<Vec<BillSent>, Never> {
        Ok(vec![BillSent { bill_id: self.bill_id.clone(), cents: 100 }])
    }

    fn cases() -> Vec<Case<Self>> {
        let bill_id = "b1".to_owned();
        vec![
            given([])
                .when(SendBill { bill_id: bill_id.clone() })
                .then([BillSent { bill_id, cents: 100 }]),
        ]
    }
}

#[ringfence::value]
#[derive(Clone, Debug, PartialEq)]
#[serde(try_from = "String")]
#[schemars(extend("pattern" = "^door-"))]
struct Door(String);

impl TryFrom<String> for Door {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.starts_with("door-") { Ok(Self(text)) } else { Err("a door".to_owned()) }
    }
}

#[ringfence::value]
struct Entry {
    door: Door,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// Either the whole, or a room.
#[ringfence::value]
#[serde(untagged)]
enum Part {
    Whole { rooms: u32 },
    Room { booked: bool },
}

struct Entries;
struct Parts;

impl View for Entries {
    const NAME: &'static str = "entries";
    type Reads = OfRoom;
    type Row = Entry;

    fn rows(_: &OfRoom) -> Vec<String> {
        vec!["r1".to_owned()]
    }

    fn evolve(_: Option<Entry>, id: &str, _: &OfRoom) -> Option<Entry> {
        Some(Entry { door: Door(format!("door-{id}")), notes: Vec::new() })
    }
}

impl View for Parts {
    const NAME: &'static str = "parts";
    type Reads = OfRoom;
    type Row = Part;

    fn rows(_: &OfRoom) -> Vec<String> {
        vec!["all".to_owned(), "r1".to_owned()]
    }

    fn evolve(_: Option<Part>, id: &str, _: &OfRoom) -> Option<Part> {
        Some(if id == "all" { Part::Whole { rooms: 1 } } else { Part::Room { booked: true } })
    }
}

struct WithViews;

impl Members for WithViews {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.context::<Rooms>().view::<Entries>().view::<Parts>();
    }
}

#[test]
fn the_api_has_the_declared_shapes_of_rows_and_commands() {
    let contract = Contract::of::<WithViews>().expect("a stack");
    let document = contract.openapi();
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["EntriesRow"]["required"], json!(["door"]));
    let parts = ["PartsRowRooms", "PartsRowBooked"];
    let references = parts.map(|name| json!({ "$ref": format!("#/components/schemas/{name}") }));
    assert_eq!(schemas["PartsRow"], json!({ "anyOf": references }));
    assert_eq!(parts.map(|name| &schemas[name]["required"][0]), ["rooms", "booked"]);
    let doors = &schemas["BookRoomCommand"]["properties"]["doors"];
    assert_eq!((&doors["maxItems"], &doors["items"]["pattern"]), (&json!(3), &json!("^door-")));
}

fn json(lock: &Lock) -> Value {
    serde_json::to_value(lock).expect("a lock is JSON")
}

#[test]
fn a_lock_has_types_with_their_newest_version_commands_and_names() {
    let locks = present::<All>();
    let rooms = json(&locks["rooms"]);
    let booked = &rooms["events"]["RoomBooked"];
    assert_eq!(booked["tags"], json!([{ "key": "roomId", "partition": true }]));
    let versions = booked["versions"].as_object().expect("versions");
    assert!(versions.keys().eq(["2"]), "{versions:?}");
    // The second sample is from a case of another context, which reads the type.
    let samples = json!([{ "roomId": "r1", "note": null }, { "roomId": "r1", "note": "late" }]);
    assert_eq!(booked["versions"]["2"]["samples"], samples);
    let closed = &rooms["events"]["RoomClosed"];
    assert_eq!(
        (&closed["retired"], &closed["versions"]["1"]["samples"]),
        (&json!(true), &json!([]))
    );
    assert_eq!(rooms["commands"]["book-room"]["rejections"], json!(["RoomTaken"]));
    assert!(locks["guests"].events.keys().eq(["GuestArrived"]));
    assert!(locks["guests"].reactors.is_empty());
    assert_eq!(json(&locks["bills"])["reactors"], json!(["send-bill"]));
}

#[test]
fn a_payload_on_a_log_of_streams_may_lack_the_field_that_names_its_stream() {
    let bill = json(&present::<All>()["bills"])["events"]["BillSent"]["versions"]["1"].clone();
    assert_eq!(bill["shape"]["required"], json!(["cents"]));
    assert_eq!(bill["samples"], json!([{ "cents": 100 }]));
}
