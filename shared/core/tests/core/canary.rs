//! Slices that the kit or a check refuses, because they show a personal value or file it in two ways.

use std::panic::{AssertUnwindSafe, catch_unwind};

use futures::executor::block_on;
use ringfence_core::{
    EventSchema, Personal, SliceError, TagSchema, check, events, is_personal, kit::check_in_memory,
    prelude::*,
};

use crate::personal::{GuestId, GuestKnown, Guests, known_of};

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct GuestFound {
    #[tag(partition)]
    guest_id: GuestId,
}

/// Only the command has personal data.
#[derive(Clone, Debug, PartialEq, Command)]
struct Find {
    #[subject]
    #[tag(skip)]
    finder_id: GuestId,
    #[tag(cross_partition, blind, key = "email")]
    email: Personal<String>,
}

#[derive(Reads)]
enum Found {
    GuestKnown { guest_id: GuestId },
}

#[derive(Default)]
struct Guest(Option<GuestId>);

impl State for Guest {
    type Reads = Found;

    fn evolve(self, Found::GuestKnown { guest_id }: Found) -> Self {
        Self(Some(guest_id))
    }
}

impl Slice for Find {
    const NAME: &'static str = "find";
    type Context = Guests;
    type State = Guest;
    type Writes = GuestFound;
    type Rejection = Never;

    fn decide(&self, Guest(found): &Guest, _: &CommandContext) -> Result<Vec<GuestFound>, Never> {
        Ok(found.iter().map(|guest_id| GuestFound { guest_id: guest_id.clone() }).collect())
    }

    fn cases() -> Vec<Case<Self>> {
        let email = "ada@x.org".to_owned().into();
        vec![
            given(events![known_of("g1", "ada@x.org")])
                .when(Self { finder_id: id("g2"), email })
                .then([GuestFound { guest_id: id("g1") }]),
        ]
    }
}

#[test]
fn a_slice_is_personal_if_its_command_alone_has_personal_data() {
    assert!(is_personal::<Find>());
    check_in_memory::<Find>();
}

#[test]
fn a_key_is_blind_everywhere_or_nowhere_and_never_of_a_partition() {
    let known = |change: fn(&mut TagSchema)| {
        let mut tags = GuestKnown::SCHEMA.tags.into_owned();
        tags.iter_mut().for_each(change);
        EventSchema { tags: tags.into(), ..GuestKnown::SCHEMA }
    };
    let catalog = |schemas: [EventSchema; 2]| Catalog::new("guests", schemas);
    let plain = known(|tag| tag.blind = false);
    let other = EventSchema { name: "Other".into(), ..plain.clone() };
    let differs = catalog([GuestKnown::SCHEMA, other]).unwrap_err();
    assert!(matches!(differs, CatalogError::BlindDiffers { key, .. } if key == "email"));
    let of_partition = catalog([known(|tag| tag.blind = true), GuestFound::SCHEMA]).unwrap_err();
    assert!(matches!(of_partition, CatalogError::PartitionBlind { .. }), "{of_partition}");
    let refused = check::<Find>(&catalog([plain, GuestFound::SCHEMA]).unwrap());
    assert!(matches!(refused, Err(SliceError::Scope { catalog: "not blind", .. })), "{refused:?}");
}

/// Shows the name.
#[derive(Clone, Debug, PartialEq, Command)]
struct Peek {
    #[tag(partition)]
    guest_id: GuestId,
    says: bool,
}

#[derive(Reads)]
enum Seen {
    GuestKnown { name: Personal<String> },
}

#[ringfence::value]
#[derive(Default)]
struct Name(Option<String>);

impl State for Name {
    const SNAPSHOTS: Option<Snapshots<Self>> = Some(Snapshots::every(100));
    type Reads = Seen;

    fn evolve(self, Seen::GuestKnown { name }: Seen) -> Self {
        Self(name.into_known())
    }
}

#[derive(Debug, serde::Serialize, thiserror::Error)]
#[serde(tag = "code")]
enum Refused {
    #[error("{name} is known")]
    Known {
        #[serde(skip)]
        name: String,
    },
}

impl Slice for Peek {
    const NAME: &'static str = "peek";
    type Context = Guests;
    type State = Name;
    type Writes = GuestFound;
    type Rejection = Refused;

    fn decide(&self, Name(name): &Name, _: &CommandContext) -> Result<Vec<GuestFound>, Refused> {
        let name = name.clone().filter(|_| self.says);
        name.map_or(Ok(Vec::new()), |name| Err(Refused::Known { name }))
    }
}

#[test]
fn the_canary_finds_values_in_answers_and_snapshots() {
    for (says, place) in [(true, "the answer shows"), (false, "the snapshot shows")] {
        let when = given(events![known_of("g1", "a")]).when(Peek { guest_id: id("g1"), says });
        let case = match says {
            true => when.then_rejected(Refused::Known { name: String::new() }),
            false => when.then_nothing(),
        };
        let ran = catch_unwind(AssertUnwindSafe(|| block_on(case.check_in_memory())));
        let panic = ran.expect_err("it shows the name");
        let said = panic.downcast_ref::<String>().expect("a text");
        assert!(said.contains(place) && said.contains("canary"), "{said}");
    }
}
