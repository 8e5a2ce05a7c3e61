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

impl Context for Stays {
    const NAME: &'static str = "stays";
    type Log = Aggregates;

    fn catalog() -> Result<Catalog, CatalogError> {
        catalog::<Self>()
    }
}

impl Members for Stays {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.event::<GuestMoved>();
    }
}

impl Context for Rooms {
    const NAME: &'static str = "rooms";
    type Log = Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        catalog::<Self>()
    }
}

impl Members for Rooms {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.reads::<Guests>();
    }
}

impl Context for Guests {
    const NAME: &'static str = "guests";
    type Log = Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        catalog::<Self>()
    }
}

impl Members for Guests {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.reads::<Rooms>();
    }
}

impl Context for Bills {
    const NAME: &'static str = "bills";
    type Log = Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        catalog::<Self>()
    }
}

impl Members for Bills {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.reads::<Rooms>();
    }
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
