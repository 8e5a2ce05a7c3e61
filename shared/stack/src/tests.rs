//! What is wrong with a list is an error at the start.

use ringfence::prelude::*;

use crate::{MemberList, Members, Stack, Visitor, catalog};

/// It has two tags, so it is in no single stream.
#[derive(Event)]
struct GuestMoved {
    #[tag(partition)]
    room_id: String,
    guest_id: String,
}

/// On the aggregate log.
struct Stays;
/// It reads events of the guests.
struct Rooms;
/// It reads events of the rooms.
struct Guests;
/// It reads events of the rooms, and nothing reads its own.
struct Bills;
/// It has events that no slice writes.
struct Moves;
/// It reads events of the moves.
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

impl<C: Context + Members> Members for Only<C> {
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
    assert_eq!(of_desk.catalog.context("GuestMoved"), Some("moves"));
    assert!(of_desk.event_types().is_empty());
    let of_moves = Stack::of::<Only<Moves>>().unwrap();
    assert!(of_moves.event_types().into_iter().eq(["GuestMoved"]));
}
