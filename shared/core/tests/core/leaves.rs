//! A rejection can leave events: in a partition of the caller, under the condition that the rejection still follows.

use std::collections::BTreeSet;

use futures::executor::block_on;
use ringfence_core::kit::check_in_memory;
use ringfence_core::{
    Decisions, Envelope, EventRef, HandleError, Handled, LogError, MemoryLog, Outcome, Query,
    QueryItem, SequencedEvent, Slice, Tag, TagSchema, handle, prelude::*,
};
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Event)]
struct Lent {
    #[tag(key = "tool", partition)]
    tool: String,
    to: String,
}

#[derive(Clone, Debug, PartialEq, Event)]
struct Returned {
    #[tag(key = "tool", partition)]
    tool: String,
}

/// It is in the asking person's partition, so it makes no conflict for the holder of the tool.
#[derive(Clone, Debug, PartialEq, Event)]
#[tag(key = "wish", partition, value = format!("{tool}/{by}"))]
struct Missed {
    tool: String,
    by: String,
    has: String,
}

struct Tools;

impl Context for Tools {
    const NAME: &'static str = "tools";
    type Log = crate::shop::Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(Self::NAME, [Lent::SCHEMA, Returned::SCHEMA, Missed::SCHEMA])
    }
}

/// Borrows a tool. A rejection says once whom to ask.
#[derive(Clone, Debug, PartialEq, Command)]
#[tag(key = "wish", value = format!("{tool}/{by}"))]
struct Borrow {
    #[tag(key = "tool")]
    tool: String,
    by: String,
}

#[derive(Reads)]
enum Read {
    Lent { to: String },
    Returned,
    Missed { has: String },
}

#[derive(Default)]
struct Tool {
    lent_to: Option<String>,
    missed: BTreeSet<String>,
}

#[derive(Writes)]
enum Written {
    Lent(Lent),
    Missed(Missed),
}

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code")]
enum Rejection {
    #[error("{has} has it")]
    IsLent { has: String },
}

fn is_lent(has: &str) -> Rejection {
    Rejection::IsLent { has: has.to_owned() }
}

impl State for Tool {
    type Reads = Read;

    fn evolve(mut self, event: Read) -> Self {
        match event {
            Read::Lent { to } => self.lent_to = Some(to),
            Read::Returned => self.lent_to = None,
            Read::Missed { has } => {
                self.missed.insert(has);
            }
        }
        self
    }
}

impl Slice for Borrow {
    const NAME: &'static str = "borrow";
    type Context = Tools;
    type State = Tool;
    type Writes = Written;
    type Rejection = Rejection;

    fn decide(&self, state: &Tool, _: &CommandContext) -> Result<Vec<Written>, Rejection> {
        match &state.lent_to {
            Some(has) => Err(is_lent(has)),
            None => Ok(vec![Written::Lent(lent(&self.tool, &self.by))]),
        }
    }

    /// The tool's events and the wish's events, because no event has both tags.
    fn query(_: &[TagSchema], tags: Vec<Tag>, _: &Catalog) -> Query {
        let of = |key, types: &[&'static str]| {
            let tags = tags.iter().filter(|tag| tag.key == key).cloned().collect();
            QueryItem { tags, types: types.iter().map(|name| (*name).into()).collect() }
        };
        Query { items: vec![of("tool", &["Lent", "Returned"]), of("wish", &["Missed"])] }
    }

    fn leaves(&self, rejection: &Rejection, state: &Tool, _: &CommandContext) -> Vec<Written> {
        let Rejection::IsLent { has } = rejection;
        let missed = (!state.missed.contains(has)).then(|| {
            let Self { tool, by } = self.clone();
            Written::Missed(Missed { tool, by, has: has.clone() })
        });
        missed.into_iter().collect()
    }

    fn cases() -> Vec<Case<Self>> {
        vec![
            given([]).when(borrow("ada")).then([Written::Lent(lent("saw", "ada"))]),
            given(events![lent("saw", "ada")])
                .when(borrow("bob"))
                .then_rejected_leaving(is_lent("ada"), [Written::Missed(missed("bob", "ada"))]),
            given(events![lent("saw", "ada"), missed("bob", "ada")])
                .when(borrow("bob"))
                .then_rejected(is_lent("ada")),
            given(events![lent("saw", "ada"), returned("saw")])
                .when(borrow("bob"))
                .then([Written::Lent(lent("saw", "bob"))]),
        ]
    }
}

/// Like [`Borrow`], but its command lacks the tag of the events that its rejections leave.
#[derive(Clone, Debug, PartialEq, Command)]
struct Grab {
    #[tag(key = "tool")]
    tool: String,
    by: String,
}

#[derive(Reads)]
enum Lending {
    Lent { to: String },
    Returned,
}

/// The holder of the tool.
#[derive(Default)]
struct Holder(Option<String>);

impl State for Holder {
    type Reads = Lending;

    fn evolve(self, event: Lending) -> Self {
        match event {
            Lending::Lent { to } => Self(Some(to)),
            Lending::Returned => Self(None),
        }
    }
}

impl Slice for Grab {
    const NAME: &'static str = "grab";
    type Context = Tools;
    type State = Holder;
    type Writes = Written;
    type Rejection = Rejection;

    fn decide(&self, Holder(has): &Holder, _: &CommandContext) -> Result<Vec<Written>, Rejection> {
        has.as_deref().map_or(Ok(vec![]), |has| Err(is_lent(has)))
    }

    fn leaves(&self, _: &Rejection, _: &Holder, _: &CommandContext) -> Vec<Written> {
        vec![Written::Missed(missed("bob", "ada"))]
    }
}

fn lent(tool: &str, to: &str) -> Lent {
    Lent { tool: tool.to_owned(), to: to.to_owned() }
}

fn returned(tool: &str) -> Returned {
    Returned { tool: tool.to_owned() }
}

fn missed(by: &str, has: &str) -> Missed {
    Missed { tool: "saw".to_owned(), by: by.to_owned(), has: has.to_owned() }
}

fn borrow(by: &str) -> Borrow {
    Borrow { tool: "saw".to_owned(), by: by.to_owned() }
}

fn log(events: Vec<NewEvent>) -> MemoryLog {
    let log = MemoryLog::new(Tools::catalog().unwrap());
    events.into_iter().for_each(|event| append(&log, event));
    log
}

fn append(log: &MemoryLog, event: NewEvent) {
    use ringfence_core::{Append, EventLog};
    let envelope = Envelope::default();
    let append = Append { events: vec![event], seen: None, record: None, envelope: &envelope };
    block_on(log.append(append)).unwrap();
}

fn run<S: Slice>(
    log: &MemoryLog,
    command: &S,
    key: Option<&str>,
    decisions: &Decisions<S>,
) -> Result<Handled, HandleError> {
    let envelope = Envelope { idempotency_key: key.map(str::to_owned), ..Envelope::default() };
    block_on(handle(log, &Tools::catalog().unwrap(), decisions, command, &envelope))
}

/// The code of the rejection, the ids of the events that it left, and whether it is a repeat.
fn left(handled: Result<Handled, HandleError>) -> (String, Vec<String>, bool) {
    let Handled { outcome, repeated, .. } = handled.unwrap();
    let Outcome::Rejected { rejected, events } = outcome else { panic!("{outcome:?}") };
    let id = |event: &EventRef| format!("{} {}/{}", event.event_type, event.partition, event.slot);
    (rejected.message, events.iter().map(id).collect(), repeated)
}

fn held_by(has: &str, slots: &[u64], repeated: bool) -> (String, Vec<String>, bool) {
    let id = |slot: &u64| format!("Missed wish:saw%2Fbob/{slot}");
    (format!("{has} has it"), slots.iter().map(id).collect(), repeated)
}

fn types(log: &MemoryLog) -> Vec<String> {
    log.events().into_iter().map(|SequencedEvent { event_type, .. }| event_type).collect()
}

#[test]
fn its_cases_hold() {
    check_in_memory::<Borrow>();
}

#[test]
fn a_repeat_is_rejected_like_the_first_run_despite_later_events() {
    for warm in [0, 10] {
        let (log, decisions) = (log(events![lent("saw", "ada")]), Decisions::new(warm));
        assert_eq!(
            left(run(&log, &borrow("bob"), Some("k"), &decisions)),
            held_by("ada", &[1], false)
        );
        append(&log, returned("saw").into());
        assert_eq!(
            left(run(&log, &borrow("bob"), Some("k"), &decisions)),
            held_by("ada", &[1], true)
        );
        // A new key is a new command.
        let borrowed = run(&log, &borrow("bob"), Some("k2"), &decisions).unwrap();
        assert!(matches!(borrowed.outcome, Outcome::Accepted(events) if events.len() == 1));
        let reused =
            run(&log, &Borrow { tool: "axe".to_owned(), ..borrow("bob") }, Some("k"), &decisions);
        assert!(reused.is_ok(), "it is about other partitions");
        assert_eq!(types(&log), ["Lent", "Missed", "Returned", "Lent", "Lent"]);
    }
}

#[test]
fn a_rejection_that_the_caller_knows_is_not_written_again() {
    let (log, decisions) = (log(events![lent("saw", "ada")]), Decisions::new(10));
    assert_eq!(left(run(&log, &borrow("bob"), None, &decisions)), held_by("ada", &[1], false));
    assert_eq!(left(run(&log, &borrow("bob"), None, &decisions)), held_by("ada", &[], false));
    append(&log, returned("saw").into());
    append(&log, lent("saw", "carl").into());
    assert_eq!(left(run(&log, &borrow("bob"), None, &decisions)), held_by("carl", &[2], false));
}

#[test]
fn an_outdated_rejection_leaves_nothing() {
    let (log, decisions) = (log(events![lent("saw", "ada")]), Decisions::new(10));
    assert_eq!(left(run(&log, &borrow("bob"), None, &decisions)), held_by("ada", &[1], false));
    append(&log, returned("saw").into());
    append(&log, lent("saw", "carl").into());
    append(&log, returned("saw").into());
    // The warm handler still believes that ada has it.
    let handled = run(&log, &borrow("bob"), None, &decisions).unwrap();
    assert_eq!(handled.attempts, 2);
    assert!(matches!(handled.outcome, Outcome::Accepted(_)));
    assert_eq!(types(&log), ["Lent", "Missed", "Returned", "Lent", "Returned", "Lent"]);
}

#[test]
fn with_a_key_a_slice_must_read_the_events_that_its_rejections_leave() {
    let log = log(events![lent("saw", "ada")]);
    let grab = Grab { tool: "saw".to_owned(), by: "bob".to_owned() };
    let error = run(&log, &grab, Some("k"), &Decisions::new(0)).unwrap_err();
    let message = "grab leaves events when it rejects a command, so a repeat under an idempotency key has to find them: \
                   give the command the tags of every partition that it writes, and read there what it writes";
    assert_eq!(error.to_string(), message);
    assert_eq!(types(&log), ["Lent"], "nothing is written");
    assert_eq!(left(run(&log, &grab, None, &Decisions::new(0))), held_by("ada", &[1], false));
}

#[test]
fn a_rejection_that_cannot_be_read_back_is_an_error() {
    let (log, decisions) = (log(events![lent("saw", "ada")]), Decisions::new(0));
    run(&log, &borrow("bob"), Some("k"), &decisions).unwrap();
    let broken = log.events().into_iter().map(|mut event| {
        let marks = event.metadata.text("refusal").map(|_| "no JSON");
        if let Some(text) = marks {
            event.metadata.insert("refusal", text).unwrap();
        }
        event
    });
    let broken = MemoryLog::of(Tools::catalog().unwrap(), broken).unwrap();
    let error = run(&broken, &borrow("bob"), Some("k"), &decisions).unwrap_err();
    assert!(matches!(error, HandleError::Log(LogError::Undecodable { .. })), "{error:?}");
}
