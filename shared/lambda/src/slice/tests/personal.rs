//! Personal data on their way into a function: from callers, from the bus, and through a queue.

use std::sync::Arc;

use futures::executor::block_on;
use lambda_runtime::Context as Lambda;
use ringfence_aws::{Clock, Meter};
use ringfence_core::kit::MemoryVault;
use ringfence_core::{MemoryLog, OnEvents, Personal, Vault, Vaulted, id_type, prelude::*};
use ringfence_dcb_log::Dcb;
use serde_json::{Value, json};

use super::{NOW_MS, http, invoke, request, topic_event};
use crate::Issuers;
use crate::slice::function::Function;
use crate::slice::hosted::{AnyHosted, QueuedCommand};

id_type!(GuestId, "names a guest");

#[derive(Clone, Debug, PartialEq, Event)]
struct GuestGreeted {
    #[tag(partition)]
    #[subject]
    guest_id: GuestId,
    name: Personal<String>,
}

/// Greets a guest who has placed an order.
#[derive(Clone, Debug, PartialEq, Command)]
struct GreetGuest {
    #[tag(partition)]
    #[subject]
    guest_id: GuestId,
    name: Personal<String>,
}

struct Guests;

impl Context for Guests {
    const NAME: &'static str = "guests";
    type Log = Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(Self::NAME, [GuestGreeted::SCHEMA])
    }
}

#[derive(Reads)]
enum Consumed {
    GuestGreeted,
}

#[derive(Default)]
struct Greeted;

impl State for Greeted {
    type Reads = Consumed;

    fn evolve(self, Consumed::GuestGreeted: Consumed) -> Self {
        self
    }
}

impl Slice for GreetGuest {
    const NAME: &'static str = "greet-guest";
    const CALLERS: Callers = Callers::Anybody;
    const REACTS_TO: &'static [Cause] = &[Cause::named("ordering", "OrderPlaced")];
    type Context = Guests;
    type State = Greeted;
    type Writes = GuestGreeted;
    type Rejection = Never;

    fn decide(&self, _: &Greeted, _: &CommandContext) -> Result<Vec<GuestGreeted>, Never> {
        let Self { guest_id, name } = self.clone();
        Ok(vec![GuestGreeted { guest_id, name }])
    }

    fn react(event: &Current<'_, TopicEvent>) -> Result<Vec<Self>, serde_json::Error> {
        let name = serde_json::from_value(event.data["name"].clone())?;
        Ok(vec![Self { guest_id: ringfence_core::kit::id("g1"), name }])
    }
}

type Greet = Function<GreetGuest, OnEvents<GreetGuest, Vaulted<MemoryLog>>>;

fn greet(vault: &Arc<MemoryVault>) -> Greet {
    let catalog = Guests::catalog().unwrap();
    let log = Vaulted::new::<Consumed>(MemoryLog::new(catalog.clone()), vault.clone());
    let function =
        Function::new(OnEvents::new(log, catalog, 0), Clock::fixed(NOW_MS), Meter::default());
    function.with_vault(Some(vault.clone()))
}

/// The names in the log, as it stores them.
fn stored(greet: &Greet) -> Vec<Value> {
    greet.on().log().log().events().into_iter().map(|event| event.data["name"].clone()).collect()
}

#[test]
fn an_event_with_personal_data_is_opened_for_its_reaction() {
    let vault = Arc::<MemoryVault>::default();
    let greet = greet(&vault);
    let mut name = json!({ "$personal": "Ada", "of": "c1" });
    block_on(vault.seal(vec![&mut name])).unwrap();
    let mut event = topic_event("OrderPlaced", &[]);
    event["detail"]["data"]["name"] = name.clone();
    let answer = invoke(&greet, event.clone()).answer.unwrap();
    assert_eq!(answer["answers"][0]["accepted"], true, "{answer}");
    assert_eq!(stored(&greet), [name.clone()], "the value keeps its subject");
    // What no log stores is refused, and what is not for the slice is not even opened.
    let mut wrong = event.clone();
    wrong["detail"]["data"]["name"] = json!({ "$personal": "Ada", "of": "c1" });
    let refused = invoke(&greet, wrong.clone()).answer.unwrap_err();
    assert!(refused.error_message.contains("no log has an open"), "{refused:?}");
    wrong["detail"]["data"]["name"] = json!({ "$sealed": "no hexadecimal", "of": "c1" });
    assert_eq!(invoke(&greet, wrong.clone()).answer.unwrap_err().error_type, "internal");
    wrong["detail"]["replay"] = "r".into();
    assert_eq!(invoke(&greet, wrong).answer.unwrap(), json!({ "answers": [] }));
    // Another event of the person who is forgotten by then is answered for good.
    vault.forget_all();
    event["detail"]["id"] = "orderId:order-1/2".into();
    let answer = invoke(&greet, event).answer.unwrap();
    assert_eq!(answer["answers"][0]["accepted"], true, "{answer}");
    assert_eq!(stored(&greet)[1], json!({ "$forgotten": true, "of": "c1" }));
}

#[test]
fn a_caller_sends_plain_values_and_learns_that_a_person_is_forgotten() {
    let vault = Arc::<MemoryVault>::default();
    let greet = greet(&vault);
    let send = |name: Value| {
        let body = json!({ "guestId": "g1", "name": name }).to_string();
        let (status, _, answer) = http(&greet, request(&body, json!({ "Idempotency-Key": "k" })));
        (status, answer)
    };
    for key in ["$personal", "$sealed", "$forgotten"] {
        let (status, answer) = send(json!({ key: "Ada", "of": "g2", "k": 1 }));
        assert_eq!((status, &answer["errors"][0]["field"]), (400, &json!(key)), "{answer}");
    }
    assert_eq!(stored(&greet), [] as [Value; 0]);
    assert_eq!(send(json!("Ada")).0, 200);
    let (status, answer) = send(json!(7));
    assert_eq!((status, &answer["errors"][0]["field"]), (400, &json!("name")), "{answer}");
    vault.forget_all();
    let (status, answer) = send(json!("Ada"));
    assert_eq!((status, &answer["code"]), (422, &json!("SubjectForgotten")), "{answer}");
    assert!(!answer.to_string().contains("g1"), "{answer}");
}

#[test]
fn a_command_waits_in_a_queue_with_sealed_values_and_the_same_hash() {
    let vault = Arc::<MemoryVault>::default();
    let greet = greet(&vault);
    let take = |name: &str| {
        let body = json!({ "guestId": "g1", "name": name }).to_string();
        let sent = request(&body, json!({ "Idempotency-Key": "k" }));
        let sent = serde_json::from_value(sent).unwrap();
        block_on(greet.take(sent, &Issuers::default(), "r")).unwrap()
    };
    let [first, again, other] = ["Ada", "Ada", "Bob"].map(take);
    assert!(!json!(first).to_string().contains("Ada"), "{first:?}");
    assert!(first.sha256.is_some() && first.sha256 == again.sha256);
    assert_ne!(first.sha256, other.sha256);
    let run = |queued: &QueuedCommand| block_on(greet.run(queued, &Lambda::default())).0;
    assert_eq!(run(&first).unwrap()["accepted"], true);
    assert_eq!(run(&again).unwrap()["accepted"], true);
    assert_eq!(stored(&greet).len(), 1, "it takes effect once");
    assert_eq!(run(&other).unwrap_err().kind, "key-reused");
    vault.forget_all();
    assert_eq!(run(&other).unwrap_err().kind, "subject-forgotten");
    assert_eq!(stored(&greet).len(), 1, "nothing is decided without the value");
}
