//! Personal data: sealed in the log, open for decisions, and gone when the subject is forgotten.

use std::sync::Arc;

use futures::{FutureExt, executor::block_on};
use ringfence_core::{
    Append, Consistency, Decisions, Envelope, EventError, EventLog, HandleError, Handled,
    KEPT_OPEN_MS, LogError, MemoryLog, NewEvent, Outcome, Personal, Plan, PlanError, ReadsOf,
    Sealed, SubjectError, VaultError, Vaulted, events, handle, id_type,
    kit::{MemoryVault, check_in_memory},
    personal::{Form, has},
    prelude::*,
    record_of,
};
use serde_json::{Value, json};

use crate::canary::GuestFound;
use crate::shop::Dcb;

id_type!(GuestId, "names a guest");

/// A guest, found by the address.
#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct GuestKnown {
    #[tag(partition)]
    #[subject]
    guest_id: GuestId,
    name: Personal<String>,
    #[tag(cross_partition, blind, key = "email")]
    email: Personal<String>,
    #[tag(skip)]
    host_id: GuestId,
    #[personal(of = "host_id")]
    notes: Vec<Personal<String>>,
}

#[derive(Clone, Debug, PartialEq, Event)]
struct GuestGreeted {
    #[tag(partition)]
    #[subject]
    guest_id: GuestId,
    greeting: Personal<String>,
}

#[derive(Clone, Debug, PartialEq, Command)]
struct Know {
    #[tag(partition)]
    #[subject]
    guest_id: GuestId,
    name: Personal<String>,
    #[tag(cross_partition, blind, key = "email")]
    email: Personal<String>,
}

#[derive(Reads)]
enum Others {
    GuestKnown { guest_id: GuestId },
}

#[derive(Default)]
struct Taken(Option<GuestId>);

impl State for Taken {
    type Reads = Others;

    fn evolve(self, Others::GuestKnown { guest_id }: Others) -> Self {
        Self(Some(guest_id))
    }
}

#[derive(Debug, PartialEq, serde::Serialize, thiserror::Error)]
#[serde(tag = "code")]
enum Refused {
    #[error("the address is taken")]
    Taken { of: Personal<String> },
}

impl Slice for Know {
    const NAME: &'static str = "know";
    type Context = Guests;
    type State = Taken;
    type Writes = GuestKnown;
    type Rejection = Refused;

    fn decide(&self, state: &Taken, _: &CommandContext) -> Result<Vec<GuestKnown>, Refused> {
        match state.0 {
            Some(_) => Err(Refused::Taken { of: self.name.clone() }),
            None => Ok(vec![known(self.guest_id.clone(), &self.name, &self.email)]),
        }
    }

    fn cases() -> Vec<Case<Self>> {
        vec![
            given([]).when(know("g1", "ada@x.org")).then([known_of("g1", "ada@x.org")]),
            given(events![known_of("g1", "ada@x.org")])
                .when(know("g2", "ada@x.org"))
                .then_rejected(Refused::Taken { of: "Ada".to_owned().into() }),
            given(events![known_of("g1", "ada@x.org")])
                .when(know("g2", "bob@x.org"))
                .then([known_of("g2", "bob@x.org")]),
            given(events![known_of("g1", "")])
                .when(know("g2", "bob@x.org"))
                .then([known_of("g2", "bob@x.org")]),
        ]
    }
}

/// Greets a guest by name.
#[derive(Clone, Debug, PartialEq, Command)]
struct Greet {
    #[tag(partition)]
    guest_id: GuestId,
}

#[derive(Reads)]
enum Name {
    GuestKnown { name: Personal<String> },
}

#[ringfence::value]
#[derive(Clone, Default, Debug)]
struct Named(Option<Personal<String>>);

impl State for Named {
    const SNAPSHOTS: Option<Snapshots<Self>> = Some(Snapshots::every(0));
    type Reads = Name;

    fn evolve(self, Name::GuestKnown { name }: Name) -> Self {
        Self(Some(name))
    }
}

impl Slice for Greet {
    const NAME: &'static str = "greet";
    type Context = Guests;
    type State = Named;
    type Writes = GuestGreeted;
    type Rejection = Never;

    fn decide(&self, Named(name): &Named, _: &CommandContext) -> Result<Vec<GuestGreeted>, Never> {
        let Some(name) = name.clone() else { return Ok(Vec::new()) };
        let guest_id = self.guest_id.clone();
        Ok(vec![GuestGreeted { guest_id, greeting: name.map(|name| format!("Hello {name}")) }])
    }

    fn cases() -> Vec<Case<Self>> {
        let greeting = "Hello Ada".to_owned().into();
        vec![
            given(events![known_of("g1", "a")])
                .when(Self { guest_id: id("g1") })
                .then([GuestGreeted { guest_id: id("g1"), greeting }]),
        ]
    }
}

pub(crate) struct Guests;

impl Context for Guests {
    const NAME: &'static str = "guests";
    type Log = Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(Self::NAME, [GuestKnown::SCHEMA, GuestGreeted::SCHEMA, GuestFound::SCHEMA])
    }
}

fn know(guest: &str, email: &str) -> Know {
    let (name, email) = ("Ada".to_owned().into(), email.to_owned().into());
    Know { guest_id: id(guest), name, email }
}

fn known(guest_id: GuestId, name: &Personal<String>, email: &Personal<String>) -> GuestKnown {
    let notes = vec!["shy".to_owned().into()];
    let (name, email) = (name.clone(), email.clone());
    GuestKnown { guest_id, name, email, host_id: id("h1"), notes }
}

pub(crate) fn known_of(guest: &str, email: &str) -> GuestKnown {
    let Know { guest_id, name, email } = know(guest, email);
    known(guest_id, &name, &email)
}

struct Log {
    log: MemoryLog,
    vault: Arc<MemoryVault>,
    catalog: Catalog,
}

impl Log {
    fn new() -> Self {
        let (vault, catalog) = (Arc::<MemoryVault>::default(), Guests::catalog().unwrap());
        let log = MemoryLog::new(catalog.clone());
        Self { log, vault, catalog }
    }

    fn run<S: Slice>(
        &self,
        decisions: &Decisions<S>,
        command: &S,
        key: Option<&str>,
        now_ms: u64,
    ) -> Result<Handled, HandleError> {
        let context = CommandContext { now_ms, ..CommandContext::default() };
        let idempotency_key = key.map(str::to_owned);
        let envelope = Envelope { context, idempotency_key, ..Envelope::default() };
        let log = Vaulted::new::<ReadsOf<S>>(&self.log, self.vault.clone());
        block_on(handle(&log, &self.catalog, decisions, command, &envelope))
    }

    /// All that the log stores, as text.
    fn stored(&self) -> String {
        format!("{:?}", self.log.events())
    }
}

fn forgotten<T>(result: Result<T, HandleError>) -> String {
    match result {
        Err(HandleError::Log(LogError::Vault(VaultError::Forgotten(subject)))) => subject,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the subject is forgotten"),
    }
}

#[test]
fn cases_with_personal_data_hold_sealed_and_forgotten() {
    check_in_memory::<Know>();
    check_in_memory::<Greet>();
}

#[test]
fn a_log_stores_no_personal_value_and_no_hash_of_one() {
    let log = Log::new();
    let (cold, ada) = (Decisions::new(0), know("g1", "ada@x.org"));
    let first = log.run(&cold, &ada, Some("k"), 1).unwrap();
    let again = log.run(&cold, &ada, Some("k"), 2).unwrap();
    assert_eq!((first.outcome, again.repeated), (again.outcome, true));
    let other = log.run(&cold, &know("g1", "bob@x.org"), Some("k"), 2);
    assert!(matches!(other, Err(HandleError::Log(LogError::KeyReused(_)))), "{other:?}");
    let stored = log.stored();
    let plain = ringfence_core::CommandRecord::new("know", "k", &ada).sha256;
    for text in ["Ada", "ada@x.org", "shy", &plain] {
        assert!(!stored.contains(text), "{text}: {stored}");
    }
    let data = &log.log.events()[0].data;
    let of = |value: &Value| value["of"].as_str().map(str::to_owned);
    assert_eq!(of(&data["name"]).as_deref(), Some("g1"));
    assert_eq!(of(&data["notes"][0]).as_deref(), Some("h1"), "of the host");
    // The address is unique by its blind tag.
    let taken = log.run(&cold, &know("g2", "ada@x.org"), None, 3).unwrap();
    let Outcome::Rejected { rejected, .. } = taken.outcome else { panic!("{taken:?}") };
    assert_eq!(rejected.rejection, json!({ "code": "Taken", "of": null }));
    // An empty address has no HMAC, so it is refused like an empty id.
    let empty = log.run(&cold, &know("g3", ""), None, 4);
    assert!(matches!(empty, Err(HandleError::Plan(PlanError::EmptyValue(_)))), "{empty:?}");
}

#[test]
fn only_values_that_a_decision_reads_are_opened() {
    assert_eq!((Others::PERSONAL, Name::PERSONAL), (&[][..], &["GuestKnown"][..]));
    assert_eq!(<(Option<Others>, Option<Name>)>::PERSONAL, ["GuestKnown"]);
    let log = Log::new();
    log.run(&Decisions::new(0), &know("g1", "a"), None, 1).unwrap();
    let opened = |opens: bool| {
        let log: Box<dyn EventLog> = match opens {
            true => Box::new(Vaulted::new::<Name>(&log.log, log.vault.clone())),
            false => Box::new(Vaulted::new::<Others>(&log.log, log.vault.clone())),
        };
        let query = Greet::query(
            Greet::SHAPES[0],
            Greet { guest_id: id("g1") }.tags(),
            &Guests::catalog().unwrap(),
        );
        let plan = Plan::new(&query, &Guests::catalog().unwrap()).unwrap();
        let envelope = Envelope::default();
        let read = log.read_with_seen(&plan, Consistency::Strong, &envelope);
        has(&block_on(read).unwrap().0[0].data, Form::Marked)
    };
    assert_eq!([true, false].map(opened), [true, false]);
}

#[test]
fn a_value_keeps_its_subject_and_is_forgotten_with_it() {
    let log = Log::new();
    log.run(&Decisions::new(0), &know("g1", "a"), None, 1).unwrap();
    let (greet, warm, back) = (Greet { guest_id: id("g1") }, Decisions::new(1), Decisions::new(1));
    log.run(&warm, &greet, None, 2).unwrap();
    log.run(&back, &greet, None, 2).unwrap();
    let events = log.log.events();
    assert_eq!(events[1].data["greeting"]["of"], "g1");
    assert!(has(&events[1].data, Form::Sealed));
    log.vault.forget_all();
    assert_eq!(forgotten(log.run(&Decisions::new(0), &know("g1", "a"), Some("k"), 3)), "g1");
    // A warm handler knows the name for a while, but can't seal it. A snapshot has it sealed. A clock that was set back
    // does not prolong that time.
    let cold = Decisions::new(1);
    for (on, now_ms) in [(&warm, 2 + KEPT_OPEN_MS), (&cold, 3 + KEPT_OPEN_MS), (&back, 1)] {
        let late = log.run(on, &greet, None, now_ms).unwrap();
        let [written] = &late.written[..] else { panic!("{late:?}") };
        assert_eq!(written.data["greeting"], json!({ "$forgotten": true, "of": "g1" }));
    }
    // A command of the stack loses its values, also in its record.
    let context = CommandContext { now_ms: 4, is_of_stack: true, ..CommandContext::default() };
    let idempotency_key = Some("k2".to_owned());
    let envelope = Envelope { context, idempotency_key, ..Envelope::default() };
    let vaulted = Vaulted::new::<ReadsOf<Know>>(&log.log, log.vault.clone());
    let (decisions, command) = (Decisions::new(0), know("g2", "b"));
    for repeated in [false, true] {
        let handled = handle(&vaulted, &log.catalog, &decisions, &command, &envelope);
        assert_eq!(block_on(handled).unwrap().repeated, repeated);
    }
    assert!(!log.stored().contains("Ada"));
    // So does one that was made of forgotten values. Its event has no blind tag.
    let gone = json!({ "$forgotten": true, "of": "g3" });
    let command = json!({ "guestId": "g3", "name": gone, "email": gone });
    let command: Know = serde_json::from_value(command).unwrap();
    let envelope = Envelope { idempotency_key: None, ..envelope };
    let handled = handle(&vaulted, &log.catalog, &decisions, &command, &envelope);
    assert!(matches!(block_on(handled).unwrap().outcome, Outcome::Accepted(_)));
    assert!(log.log.events().last().unwrap().tags.iter().all(|tag| tag.key != "email"));
}

#[test]
fn a_log_without_a_vault_refuses_personal_data() {
    let (log, catalog) = (MemoryLog::new(Guests::catalog().unwrap()), Guests::catalog().unwrap());
    let envelope = Envelope::default();
    let (command, cold) = (know("g1", "a"), Decisions::new(0));
    let handled = handle(&log, &catalog, &cold, &command, &envelope);
    let missing = "the tag email has personal data, and this program has no vault to seal them";
    assert_eq!(block_on(handled).unwrap_err().to_string(), missing);
    let events = events![known_of("g1", "a")];
    let append = Append { events, seen: None, record: None, envelope: &envelope };
    let missing = "GuestKnown has personal data, and this program has no vault to seal them";
    assert_eq!(block_on(log.append(append)).unwrap_err().to_string(), missing);
    assert!(log.events().is_empty());
}

/// Of two subjects.
#[derive(Clone, Debug, PartialEq, Command)]
struct Introduce {
    #[tag(partition)]
    #[subject]
    guest_id: GuestId,
    name: Personal<String>,
    #[tag(skip)]
    host_id: GuestId,
    #[personal(of = "host_id")]
    note: Personal<String>,
}

#[test]
fn the_hash_of_a_command_needs_the_keys_of_all_its_subjects() {
    let [name, note] = ["Ada", "shy"].map(|text| text.to_owned().into());
    let command = Introduce { guest_id: id("g1"), name, host_id: id("h1"), note };
    let mark = |subject: String, text: String| {
        async move { Ok::<_, SubjectError>(Some(format!("{subject} {text}"))) }.boxed()
    };
    let record = block_on(record_of("introduce", "k", &command, mark)).unwrap();
    assert!(record.sha256.starts_with("h1 g1 {"), "{record:?}");
}

/// Its payload is what a caller has sent.
#[derive(Clone, Debug, PartialEq, Event)]
struct Imported {
    #[tag(partition)]
    guest_id: GuestId,
    any: Value,
}

#[test]
fn nobody_gives_a_sealed_value_or_one_without_a_subject_to_a_log() {
    let error = |any: Value| {
        let event = Imported { guest_id: id("g1"), any };
        NewEvent::new(&event).map_err(|EventError { source, .. }| source.to_string())
    };
    let sealed = json!([{ "x": { "$sealed": "AAAA", "of": "g2", "k": 1 } }]);
    assert_eq!(error(sealed), Err(SubjectError::Sealed("any".to_owned()).to_string()));
    let marked = json!({ "$personal": "Ada" });
    assert_eq!(error(marked), Err(SubjectError::Missing("any".to_owned()).to_string()));
    assert!(error(json!({ "of": "g2" })).is_ok());
    let number = SubjectError::NotText("any".to_owned());
    let marked = json!({ "$personal": "Ada", "of": 7 });
    assert_eq!(error(marked), Err(number.to_string()));
    for (id, bytes) in [(String::new(), 0), ("g".repeat(1_025), 1_025)] {
        let marked = json!({ "$personal": "Ada", "of": id });
        let length = SubjectError::Length("any".to_owned(), bytes);
        assert_eq!(error(marked), Err(length.to_string()));
    }
    let mut numbered = json!({ "guestId": 7, "any": { "$personal": "Ada" } });
    assert_eq!(GuestKnown::SCHEMA.subjects.name(&mut numbered), Err(number));
}

#[test]
fn a_value_is_read_plain_marked_or_forgotten_and_shown_never() {
    let read = |json: Value| serde_json::from_value::<Personal<u8>>(json);
    let known = |json: Value| read(json).unwrap().into_known();
    assert_eq!(known(json!(7)), Some(7));
    assert_eq!(known(json!({ "$personal": 7, "of": "g1" })), Some(7));
    assert_eq!(known(json!({ "$forgotten": true, "of": "g1" })), None);
    let value = read(json!({ "$personal": 7, "of": "g1" })).unwrap();
    assert_eq!(format!("{value:?}"), "Personal(…)");
    assert_eq!(json!(value), json!({ "$personal": 7, "of": "g1" }), "it keeps its subject");
    // An error says why, and does not quote the value, not even with escapes.
    let hidden = "the personal value is not valid";
    for (wrong, why) in [
        (json!("a\nb"), hidden),
        (json!(70_000), hidden),
        (json!("Ada"), hidden),
        (json!({ "secret": 1 }), "invalid type: map, expected u8"),
    ] {
        assert_eq!(read(wrong).unwrap_err().to_string(), why);
    }
    let sealed = json!({ "$sealed": "AAAA", "of": "g1", "k": 1 });
    assert!(read(sealed.clone()).unwrap_err().to_string().starts_with("a sealed value"));
    // A row moves it.
    let moved: Sealed<u8> = serde_json::from_value(sealed.clone()).unwrap();
    assert_eq!((format!("{moved:?}"), json!(moved)), ("Sealed(…)".to_owned(), sealed));
}
