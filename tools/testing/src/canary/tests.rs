//! The canary is found where a slice stores or logs a personal value in clear.

use ringfence_core::prelude::*;
use ringfence_core::{Personal, id_type, kit::id};
use ringfence_document_log::Encoding;
use ringfence_stack::{MemberList, Members, Visitor};

use super::*;
use crate::written::Current;

id_type!(GuestId, "names a guest");

#[derive(Clone, Debug, PartialEq, Event)]
struct GuestNoted {
    #[tag(partition)]
    guest_id: GuestId,
    note: String,
}

/// Copies the name into a note, or into a line of the log if the guest's id is `logged`.
#[derive(Clone, Debug, PartialEq, Command)]
struct NoteGuest {
    #[tag(partition)]
    #[subject]
    guest_id: GuestId,
    name: Personal<String>,
}

#[derive(Reads)]
enum Noted {
    GuestNoted,
}

#[derive(Default)]
struct Notes;

impl State for Notes {
    type Reads = Noted;

    fn evolve(self, Noted::GuestNoted: Noted) -> Self {
        self
    }
}

struct Guests;

impl Context for Guests {
    const NAME: &'static str = "guests";
    type Log = ringfence_dcb_log::Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(Self::NAME, [GuestNoted::SCHEMA])
    }
}

impl Members for Guests {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.slice::<NoteGuest>();
    }
}

struct Leaky;

impl Members for Leaky {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.context::<Guests>();
    }
}

impl Slice for NoteGuest {
    const NAME: &'static str = "note-guest";
    const CALLERS: Callers = Callers::Anybody;
    type Context = Guests;
    type State = Notes;
    type Writes = GuestNoted;
    type Rejection = Never;

    fn decide(&self, _: &Notes, _: &CommandContext) -> Result<Vec<GuestNoted>, Never> {
        let mut note = self.name.known().cloned().unwrap_or_default();
        if self.guest_id == id("logged") {
            tracing::debug!(note = std::mem::take(&mut note));
        }
        Ok(vec![GuestNoted { guest_id: self.guest_id.clone(), note }])
    }

    fn cases() -> Vec<Case<Self>> {
        let case = |guest: &str, note: &str| {
            let (guest_id, note): (GuestId, _) = (id(guest), note.to_owned());
            let command = Self { guest_id: guest_id.clone(), name: "Ada".to_owned().into() };
            given([]).when(command).then([GuestNoted { guest_id, note }])
        };
        vec![case("stored", "Ada"), case("logged", "")]
    }
}

async fn search_case(n: usize) {
    let template = Current::new::<Leaky>(None).template().whole();
    let case = NoteGuest::cases()[n].with_canary().expect("it has a name");
    search(&template, None, &case, &mut Places::new()).await;
}

#[tokio::test]
#[should_panic(expected = "requests with a personal value")]
async fn a_value_that_is_stored_in_clear_is_found() {
    search_case(0).await;
}

#[tokio::test]
#[should_panic(expected = "traced lines with a personal value")]
async fn a_value_that_is_logged_in_clear_is_found() {
    search_case(1).await;
}

#[test]
fn a_compressed_body_is_searched_too() {
    let json = json!({ "name": format!("{CANARY}{}", "a".repeat(100)) });
    for encoding in [Encoding::Raw, Encoding::Deflate, Encoding::Brotli] {
        let bytes = base64::encode(Body::of_json(&json, encoding).bytes);
        let item = json!({ "e": { "L": [{ "M": { "d": { "B": bytes } } }] } });
        assert!(!item.to_string().contains(CANARY) && readable(&item).contains(CANARY));
    }
}

#[test]
fn the_sample_of_a_command_has_plain_values() {
    let sample = &crate::samples::commands::<Leaky>()[NoteGuest::NAME];
    let command = sample.command("no folder".as_ref(), NoteGuest::NAME).expect("of the case");
    assert_eq!(command, json!({ "guestId": "stored", "name": "Ada" }));
    assert!((sample.refused)(&command.to_string()).is_none());
}
