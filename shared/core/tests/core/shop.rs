//! A small domain with every kind of tag.

use std::marker::PhantomData;

use ringfence_core::{LogKind, LogName, id_type, prelude::*};
use serde::Serialize;

id_type!(RoomId, "names a room");
id_type!(GuestId, "names a guest");

/// A partition tag that is also a cross-partition tag.
#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct Booked {
    #[tag(partition)]
    pub(crate) room_id: RoomId,
    #[tag(cross_partition)]
    pub(crate) guest_id: GuestId,
}

/// A secondary list, and an optional tag.
#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct Cleaned {
    #[tag(partition)]
    pub(crate) room_id: RoomId,
    pub(crate) helper_ids: Vec<String>,
    pub(crate) shift_id: Option<u32>,
}

/// Read by its whole set of tags.
#[derive(Clone, Debug, PartialEq, Event)]
#[event(read_as_composite)]
pub(crate) struct Rated {
    #[tag(partition)]
    pub(crate) room_id: RoomId,
    pub(crate) review_id: String,
}

/// A composite partition.
#[derive(Clone, Debug, PartialEq, Event)]
#[event(separator = '|')]
pub(crate) struct Priced {
    #[tag(partition)]
    pub(crate) room_id: RoomId,
    #[tag(partition, key = "night")]
    pub(crate) night: String,
}

/// A fence of its room counts it.
#[derive(Clone, Debug, PartialEq, Event)]
#[event(fenced)]
pub(crate) struct Closed {
    #[tag(partition)]
    pub(crate) room_id: RoomId,
}

/// No tags at all.
#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct Opened {
    pub(crate) name: String,
}

pub(crate) fn catalog() -> Result<Catalog, CatalogError> {
    let schemas = [Booked::SCHEMA, Cleaned::SCHEMA, Rated::SCHEMA, Priced::SCHEMA];
    Catalog::new("rooms", schemas.into_iter().chain([Closed::SCHEMA, Opened::SCHEMA]))
}

/// A room is booked once, by a guest with at most two rooms.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct Book {
    #[tag(partition)]
    pub(crate) room_id: RoomId,
    #[tag(cross_partition)]
    pub(crate) guest_id: GuestId,
}

#[derive(Reads)]
pub(crate) enum Consumed {
    Booked { room_id: RoomId, guest_id: GuestId },
}

#[derive(Default)]
pub(crate) struct Room(Vec<(RoomId, GuestId)>);

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code")]
pub(crate) enum Rejection {
    #[error("taken")]
    Taken,
    #[error("two rooms are enough")]
    TwoRooms,
}

pub(crate) struct Rooms;

/// A log by its name.
pub(crate) struct Dcb;

impl LogName for Dcb {
    const KIND: LogKind = LogKind::Dcb;
}

impl Context for Rooms {
    const NAME: &'static str = "rooms";
    type Log = Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        catalog()
    }
}

impl State for Room {
    type Reads = Consumed;

    fn evolve(mut self, event: Consumed) -> Self {
        let Consumed::Booked { room_id, guest_id } = event;
        self.0.push((room_id, guest_id));
        self
    }
}

impl Slice for Book {
    const NAME: &'static str = "book";
    type Context = Rooms;
    type State = Room;
    type Writes = Booked;
    type Rejection = Rejection;

    fn decide(&self, state: &Room, _: &CommandContext) -> Result<Vec<Booked>, Rejection> {
        let Self { room_id, guest_id } = self.clone();
        if state.0.contains(&(room_id.clone(), guest_id.clone())) {
            return Ok(vec![]);
        }
        if state.0.iter().any(|(room, _)| *room == room_id) {
            return Err(Rejection::Taken);
        }
        if state.0.iter().filter(|(_, guest)| *guest == guest_id).count() >= 2 {
            return Err(Rejection::TwoRooms);
        }
        Ok(vec![Booked { room_id, guest_id }])
    }

    fn cases() -> Vec<Case<Self>> {
        vec![
            given([]).when(book("r1", "g1")).then([booked("r1", "g1")]),
            given(events![booked("r1", "g1")]).when(book("r1", "g1")).then_nothing(),
            given(events![booked("r1", "g2")])
                .when(book("r1", "g1"))
                .then_rejected(Rejection::Taken),
            given(events![booked("r2", "g1"), booked("r3", "g1")])
                .when(book("r1", "g1"))
                .then_rejected(Rejection::TwoRooms),
        ]
    }
}

pub(crate) fn book(room: &str, guest: &str) -> Book {
    Book { room_id: id(room), guest_id: id(guest) }
}

pub(crate) fn booked(room: &str, guest: &str) -> Booked {
    Booked { room_id: id(room), guest_id: id(guest) }
}

pub(crate) fn cleaned(room: &str, shift: u32) -> Cleaned {
    Cleaned { room_id: id(room), helper_ids: vec![], shift_id: Some(shift) }
}

pub(crate) fn closed(room: &str) -> Closed {
    Closed { room_id: id(room) }
}

#[test]
fn the_rules_of_the_shop_hold() {
    ringfence_core::kit::check_in_memory::<Book>();
}

/// The number of events that the decision reads.
pub(crate) struct Count<R>(pub(crate) u32, PhantomData<fn(R)>);

impl<R> Default for Count<R> {
    fn default() -> Self {
        Self(0, PhantomData)
    }
}

impl<R: Reads> State for Count<R> {
    type Reads = R;

    fn evolve(self, _: R) -> Self {
        Self(self.0 + 1, PhantomData)
    }
}
