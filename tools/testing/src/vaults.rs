//! A stack with personal data: only functions that need a vault may read keys, and each check takes it.

use std::error::Error;

use ringfence_core::prelude::*;
use ringfence_core::{Lane, Personal, Sealed, Tag, events, id_type, kit::id};
use ringfence_lambda::Variables;
use ringfence_reactors::{Delivery, Failed, InDoubt, Reactor, Starts};
use ringfence_schemas::{
    Contract, Lock, PayloadTags, Readers, check, present, unlike_their_shapes,
};
use ringfence_services::personal_data::PersonalData;
use ringfence_stack::{MemberList, Members, Stack, Visitor};
use ringfence_template::map::Map;
use ringfence_views::View;
use serde_json::{Value, json};

use crate::cases::asked_of;
use crate::dynamo::tables;
use crate::functions::personal_data_can_be_forgotten;
use crate::lanes::asked_of_reactors;
use crate::readers::asked_of_query_views;
use crate::requests::{asked_by, grants, lines};
use crate::roles::troubles_of;
use crate::written::Current;

id_type!(GuestId, "names a guest");

#[derive(Clone, Debug, PartialEq, Event)]
struct GuestKnown {
    #[tag(partition)]
    #[subject]
    guest_id: GuestId,
    #[tag(cross_partition, blind, key = "email")]
    email: Personal<String>,
}

#[derive(Reads)]
enum Known {
    GuestKnown { guest_id: GuestId, email: Personal<String> },
}

#[derive(Reads)]
enum Listed {
    GuestKnown { guest_id: GuestId, email: Sealed<String> },
}

#[derive(Default)]
struct Taken(bool);

impl State for Taken {
    type Reads = Known;

    fn evolve(self, Known::GuestKnown { email, .. }: Known) -> Self {
        Self(!email.is_forgotten())
    }
}

/// Gets to know a guest.
#[derive(Clone, Debug, PartialEq, Command)]
struct KnowGuest {
    #[tag(partition)]
    #[subject]
    guest_id: GuestId,
    #[tag(cross_partition, blind, key = "email")]
    email: Personal<String>,
}

#[derive(Debug, PartialEq, serde::Serialize, thiserror::Error)]
#[serde(tag = "code")]
enum Refused {
    #[error("the address is taken")]
    Taken,
}

struct Guests;

impl Context for Guests {
    const NAME: &'static str = "guests";
    type Log = ringfence_dcb_log::Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(Self::NAME, [GuestKnown::SCHEMA])
    }
}

impl Members for Guests {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.slice::<KnowGuest>().view::<Addresses>().reactor::<WelcomeGuest>();
    }
}

/// A stack that can forget nobody.
struct Inn;

impl Members for Inn {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.context::<Guests>();
    }
}

struct Hotel;

impl Members for Hotel {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.context::<Guests>().context::<PersonalData>();
    }
}

impl Slice for KnowGuest {
    const NAME: &'static str = "know-guest";
    const CALLERS: Callers = Callers::Anybody;
    type Context = Guests;
    type State = Taken;
    type Writes = GuestKnown;
    type Rejection = Refused;

    fn decide(&self, state: &Taken, _: &CommandContext) -> Result<Vec<GuestKnown>, Refused> {
        let Self { guest_id, email } = self.clone();
        if state.0 { Err(Refused::Taken) } else { Ok(vec![GuestKnown { guest_id, email }]) }
    }

    fn cases() -> Vec<Case<Self>> {
        let known = |guest| GuestKnown { guest_id: id(guest), email: "a@b.org".to_owned().into() };
        let know = |guest| KnowGuest { guest_id: id(guest), email: "a@b.org".to_owned().into() };
        vec![
            given([]).when(know("g1")).then([known("g1")]),
            given(events![known("g1")]).when(know("g2")).then_rejected(Refused::Taken),
        ]
    }
}

struct Addresses;

#[ringfence::value]
struct Address {
    email: Sealed<String>,
}

impl View for Addresses {
    const NAME: &'static str = "addresses";
    type Reads = Listed;
    type Row = Address;

    fn rows(Listed::GuestKnown { guest_id, .. }: &Listed) -> Vec<String> {
        vec![guest_id.to_string()]
    }

    fn evolve(_: Option<Address>, _id: &str, event: &Listed) -> Option<Address> {
        let Listed::GuestKnown { email, .. } = event;
        Some(Address { email: email.clone() })
    }
}

struct WelcomeGuest;

impl Reactor for WelcomeGuest {
    const NAME: &'static str = "welcome-guest";
    const LANE: Lane = Lane::Partition;
    const STARTS: Starts = Starts::Now;
    const IN_DOUBT: InDoubt = InDoubt::Repeat;
    type Context = Guests;
    type Reads = Known;
    type Effect = GuestId;
    type Config = ();

    fn config(_: &mut Variables) {}

    async fn open((): ()) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Ok(Self)
    }

    fn plan(Known::GuestKnown { guest_id, .. }: &Known) -> Vec<GuestId> {
        vec![guest_id.clone()]
    }

    async fn run(&self, _: &GuestId, _: &Delivery<'_>) -> Result<(), Failed> {
        Ok(())
    }
}

#[tokio::test]
async fn roles_allow_the_keys_of_personal_data_to_functions_that_need_them_alone() {
    let current = Current::new::<Hotel>(None);
    let template = current.template().whole();
    let tables = tables(&template);
    let mut asked = asked_of::<Hotel>(&current).await;
    asked.extend(asked_of_reactors(&current).await);
    asked.push(asked_by("query-views", asked_of_query_views(&current).await));
    let grants = grants(&template, &tables, &asked).unwrap();
    let current = Current::new::<Hotel>(Some(&grants));
    let template = current.template().whole();
    assert_eq!(lines(&template, &tables, &asked).unwrap(), [""; 0]);
    assert_eq!(troubles_of::<Hotel>(&current), [""; 0]);
    let resources = &current.json()["Resources"];
    let role = |id: &str| {
        assert!(resources[id].is_object(), "{id}");
        let text = resources[id].to_string();
        ["KeyTable", "\"branch\"", "\"kms:Encrypt\"", "blind"].map(|word| text.contains(word))
    };
    for id in ["ProjectViewsRole", "PublishEventsRole", "IndexEventsRole", "ForwardSpansRole"] {
        assert_eq!(role(id), [false; 4], "{id}");
    }
    for (id, seals) in [
        ("DcbLogRole", true),
        ("RunCommandsRole", true),
        ("QueryViewsRole", false),
        ("WelcomeGuestRole", false),
    ] {
        assert_eq!(role(id), [true, true, seals, seals], "{id}");
    }
    // It puts fences over keys, and can unwrap none.
    assert_eq!(role("DestroyKeysRole"), [true, false, false, false]);
    let refused = personal_data_can_be_forgotten(&Stack::of::<Inn>().unwrap()).concat();
    assert!(refused.contains("`context ringfence_services::personal_data::PersonalData;`"));
    assert_eq!(personal_data_can_be_forgotten(&current.stack), [""; 0]);
}

#[test]
fn the_lock_the_map_and_the_documents_of_the_api_say_what_is_personal() {
    let (stack, readers) = (Stack::of::<Hotel>().unwrap(), Readers::of::<Hotel>());
    let present = present::<Hotel>();
    assert_eq!(unlike_their_shapes::<Hotel>(&present), [""; 0]);
    let check = |released: &Lock| check(&stack, &readers, "guests", released, &present["guests"]);
    let new = check(&Lock::default());
    assert!(new.findings.iter().all(|finding| finding.is_written), "{:?}", new.findings);
    let again = check(&new.grown.to_string().parse().unwrap());
    assert_eq!((&again.findings[..], &again.grown), (&[][..], &new.grown));
    let lock: Value = serde_json::from_str(&new.grown.to_string()).unwrap();
    let known = &lock["events"]["GuestKnown"];
    let email = json!({ "type": "string", "x-personal": true });
    assert_eq!(known["tags"][1]["blind"], true);
    assert_eq!(known["versions"]["1"]["shape"]["properties"]["email"], email);
    let sample = json!({ "guestId": "g1", "email": "a@b.org" });
    assert_eq!(known["versions"]["1"]["samples"], json!([sample]));
    assert_eq!(lock["histories"]["events"][0]["data"], sample);
    // Without the keys, a stored event can be read and has all tags but the blind one.
    let mut stored = KnowGuest::cases()[1].history().remove(0);
    stored.data["email"] = json!({ "$sealed": "AQ", "of": "g1", "k": 1 });
    assert_eq!(readers.unreadable(&stack.catalogs, &stored).len(), 0);
    let tags = PayloadTags::of::<Hotel>().of_event(&stack.catalogs.current(&stored).unwrap());
    assert_eq!(tags.unwrap().unwrap(), [Tag::new("guestId", "g1")]);
    let map = Map::of(&stack);
    let personal = map.nodes.iter().filter(|node| node.personal).map(|node| &*node.name);
    assert!(personal.eq(["know-guest", "GuestKnown", "addresses", "welcome-guest"]), "{map:?}");
    let contract = Contract::of::<Hotel>().unwrap();
    let (http, bus) = (contract.openapi(), contract.asyncapi());
    let schemas = &http["components"]["schemas"];
    assert_eq!(schemas["KnowGuestCommand"]["properties"]["email"], email);
    let codes = &schemas["KnowGuestRejection"]["properties"]["code"]["enum"];
    assert_eq!(*codes, json!(["Taken", "IdempotencyKeyReused", "SubjectForgotten"]));
    let shown = json!({ "anyOf": [{ "type": "string" }, { "type": "null" }], "x-personal": true });
    assert_eq!(schemas["AddressesRow"]["properties"]["email"], shown);
    let known = &bus["components"]["messages"]["guests.GuestKnown"]["payload"]["allOf"][1];
    let value = json!({ "$ref": "#/components/schemas/PersonalValue" });
    let data = &known["properties"]["data"];
    assert_eq!(data["properties"]["email"], value);
    assert_eq!(data["examples"][0]["email"]["of"], "sample");
    let value = &bus["components"]["schemas"]["PersonalValue"]["anyOf"];
    assert_eq!(value[0]["required"], json!(["$sealed", "k", "of"]));
}
