//! Slices and their reactions on a log of streams, whose payloads lack the id of their stream.

use ringfence_core::{CatalogError, Cause, TopicEvent, Upcasts, prelude::*};
use ringfence_schemas::{Comparison, LockedVersion, Member, Readers, Shape, check, present};
use ringfence_stack::{MemberList, Members, Stack, Visitor, catalog};
use serde_json::json;

#[derive(Clone, Debug, PartialEq, Event)]
#[event(version = 3)]
#[upcast(1 = guest_is_name, 2 = name_is_of_guest)]
struct RoomBooked {
    #[tag(partition)]
    room_id: String,
    of_guest: String,
}

fn guest_is_name(mut data: Fields) -> Result<Fields, FieldError> {
    data.rename("guest", "name")?;
    Ok(data)
}

fn name_is_of_guest(mut data: Fields) -> Result<Fields, FieldError> {
    data.rename("name", "ofGuest")?;
    Ok(data)
}

#[derive(Reads)]
#[expect(dead_code, reason = "only decoded")]
enum Read {
    RoomBooked { room_id: String, of_guest: String },
}

#[derive(Default)]
struct Room;

impl State for Room {
    type Reads = Read;

    fn evolve(self, _: Read) -> Self {
        self
    }
}

struct Rooms;

impl Context for Rooms {
    const NAME: &'static str = "rooms";
    type Log = ringfence_aggregate_log::Aggregates;

    fn catalog() -> Result<Catalog, CatalogError> {
        catalog::<Self>()
    }
}

/// A slice that books a room, and reacts to bookings by a cause with these upcasts.
macro_rules! slice {
    ($(#[$about:meta])* $slice:ident, $name:literal, $upcasts:expr) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Command)]
        struct $slice {
            #[tag(partition)]
            room_id: String,
            of_guest: String,
        }

        impl Slice for $slice {
            const NAME: &'static str = $name;
            const REACTS_TO: &'static [Cause] =
                &[Cause { upcasts: $upcasts, ..Cause::named("rooms", "RoomBooked") }];
            type Context = Rooms;
            type State = Room;
            type Writes = RoomBooked;
            type Rejection = Never;

            fn decide(&self, _: &Room, _: &CommandContext) -> Result<Vec<RoomBooked>, Never> {
                let Self { room_id, of_guest } = self.clone();
                Ok(vec![RoomBooked { room_id, of_guest }])
            }

            fn react(event: &Current<'_, TopicEvent>) -> Result<Vec<Self>, serde_json::Error> {
                let of_guest = serde::Deserialize::deserialize(&event.data["ofGuest"])?;
                // Its rooms have numbers.
                let room: u32 = event.stream_id()?;
                Ok(vec![Self { room_id: room.to_string(), of_guest }])
            }

            fn cases() -> Vec<Case<Self>> {
                let (room_id, of_guest) = ("7".to_owned(), "Ada".to_owned());
                let booked = RoomBooked { room_id: room_id.clone(), of_guest: of_guest.clone() };
                vec![given(events![]).when(Self { room_id, of_guest }).then([booked])]
            }
        }
    };
}

slice!(Book, "book", RoomBooked::UPCASTS);
slice!(
    /// Its cause lacks an upcast.
    Greet,
    "greet",
    Upcasts(&[Ok, name_is_of_guest])
);

impl Members for Rooms {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.slice::<Book>().slice::<Greet>();
    }
}

struct Hotel;

impl Members for Hotel {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.context::<Rooms>();
    }
}

#[test]
fn a_cause_that_skips_an_upcast_is_named_and_nothing_else() {
    let stack = Stack::of::<Hotel>().expect("it does not contradict itself");
    let now = present::<Hotel>().remove("rooms").expect("it has rooms");
    let mut released = now.clone();
    let versions = &mut released.events.get_mut("RoomBooked").expect("it is written").versions;
    assert_eq!(versions[&3].samples, [json!({ "ofGuest": "Ada" })]);
    // As it was released: the field with the stream's id is optional.
    let text = Shape::STRING;
    for (number, field) in [(1, "guest"), (2, "name")] {
        let member = |is_optional| Member { is_optional, shape: text.clone() };
        let members = [(field.to_owned(), member(false)), ("roomId".to_owned(), member(true))];
        let (shape, samples) = (Shape::Object(members.into()), vec![json!({ field: "Ada" })]);
        versions.insert(number, LockedVersion { shape, samples, ..LockedVersion::default() });
    }
    let Comparison { findings, .. } =
        check(&stack, &Readers::of::<Hotel>(), "rooms", &released, &now);
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    let said = finding.to_string();
    assert!(said.contains("RoomBooked version 1: the reactor greet can't read sample 1"), "{said}");
    assert!(said.contains("breaks the bus") && said.contains("`Cause::of`"), "{said}");
}
