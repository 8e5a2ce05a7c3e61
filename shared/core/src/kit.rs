//! Given/when/then for the slices of every log: `given(events![…]).when(command).then([…])`.
//!
//! A case is data, so the same case runs in memory in the slice's own tests and on DynamoDB in the
//! checks of a stack.
//!
//! In memory, a case on the DCB log or the aggregate log also has to be decided alike in other orders of its facts:
//! those that keep the order within every boundary, up to 100 of them. No log promises the order of events of
//! different boundaries ([`State::evolve`](crate::State::evolve) says what a fold can rest on). A
//! case that waits between two facts keeps their order. And its command is run twice under an idempotency
//! key: what it appends the first time is the answer to the second.

mod dcb;
mod same;

use std::{error::Error, fmt::Display, panic::Location, str::FromStr};

use futures::executor::block_on;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{CommandContext, Context, LogOf, NewEvent, Refusal, Rejection, Slice, Writes};

pub use dcb::{OnEvents, catalog};
pub use same::{assert_same, fail};

/// Events of several types as one list: `events![ProductAdded { … }, OrderPlaced { … }]`.
#[macro_export]
macro_rules! events {
    ($($event:expr),* $(,)?) => { ::std::vec![$($crate::NewEvent::from($event)),*] };
}

/// The id, or another value, that `text` stands for; panics if it does not stand for one.
#[track_caller]
pub fn id<T: FromStr<Err: Display>>(text: &str) -> T {
    text.parse().unwrap_or_else(|why| panic!("{text:?}: {why}"))
}

/// When a case begins, in milliseconds since 1970: 2024-06-23T00:00:00Z.
pub const BEGIN_MS: u64 = 1_719_100_800_000;

/// An event that is in the log before a command.
#[derive(Clone, Debug)]
pub struct Fact {
    /// When it became one, in milliseconds since 1970.
    pub at_ms: u64,
    /// The event. Its tags say where it is.
    pub event: NewEvent,
}

/// Facts before a command.
pub struct Given {
    facts: Vec<Fact>,
    now_ms: u64,
}

/// Facts and a command.
pub struct When<S: Slice> {
    given: Vec<Fact>,
    command: S,
    context: CommandContext,
}

/// Facts, a command, and what follows.
pub struct Case<S: Slice> {
    given: Vec<Fact>,
    command: S,
    context: CommandContext,
    then: Then<S>,
    at: &'static Location<'static>,
}

enum Then<S: Slice> {
    /// These events; if there are none, what the command asks for is already so.
    Events(Vec<S::Writes>),
    /// This rejection, as it is answered, and the events that it leaves.
    Rejected(Value, Vec<S::Writes>),
}

/// What came of a command, as JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Came {
    /// Why it was rejected, if it was.
    pub rejection: Option<Value>,
    /// The events that are now in the log.
    pub events: Vec<Value>,
}

impl Came {
    /// Events, and no rejection.
    #[must_use]
    pub fn accepted(events: Vec<Value>) -> Self {
        Self { rejection: None, events }
    }

    /// A rejection and the events that it left.
    #[must_use]
    pub fn refused(rejection: &impl Rejection, events: Vec<Value>) -> Self {
        Self { rejection: Some(Refusal::of(rejection).rejection), events }
    }
}

/// Starts a case with the events that are in the log; without any: `given([])`.
pub fn given(events: impl IntoIterator<Item = NewEvent>) -> Given {
    Given { facts: Vec::new(), now_ms: BEGIN_MS }.and(events)
}

impl Given {
    /// Further events, now.
    #[must_use]
    pub fn and(mut self, events: impl IntoIterator<Item = NewEvent>) -> Self {
        let at_ms = self.now_ms;
        self.facts.extend(events.into_iter().map(|event| Fact { at_ms, event }));
        self
    }

    /// Lets time pass before what follows, in milliseconds.
    #[must_use]
    pub fn wait(self, ms: u64) -> Self {
        Self { now_ms: self.now_ms + ms, ..self }
    }

    /// The command under test.
    pub fn when<S: Slice>(self, command: S) -> When<S> {
        let context = CommandContext { now_ms: self.now_ms, ..CommandContext::default() };
        When { given: self.facts, command, context }
    }
}

/// Members of the problem document that answers a rejection.
const PROBLEM_MEMBERS: [&str; 7] =
    ["type", "title", "status", "detail", "instance", "events", "repeated"];

/// The rejection as it is answered: its fields beside a problem document's own members. Panics when it
/// has no `code`, or when a field meets such a member.
#[track_caller]
fn check_rejection(rejection: &impl Serialize) -> Value {
    let rejection = serde_json::to_value(rejection).expect("a rejection is a map");
    assert!(
        rejection["code"].is_string(),
        "a rejection is an object with a `code`: derive Serialize for an enum of struct variants and \
         mark it #[serde(tag = \"code\")]; this one is {rejection}"
    );
    for member in PROBLEM_MEMBERS {
        assert!(
            rejection.get(member).is_none(),
            "field `{member}` of the rejection {rejection} is a member of the problem document that \
             answers it: give the field another name"
        );
    }
    rejection
}

impl<S: Slice> When<S> {
    /// Says who gives the command.
    #[must_use]
    pub fn by(mut self, principal: &str) -> Self {
        self.context.principal = Some(principal.to_owned());
        self
    }

    /// The writer's clock shows this time, in milliseconds since 1970, and not that of the last fact.
    #[must_use]
    pub fn at(mut self, now_ms: u64) -> Self {
        self.context.now_ms = now_ms;
        self
    }

    /// The command is accepted and writes exactly these events.
    #[track_caller]
    pub fn then(self, events: impl IntoIterator<Item = S::Writes>) -> Case<S> {
        let events: Vec<_> = events.into_iter().collect();
        assert!(!events.is_empty(), "no events: say then_nothing()");
        self.case(Then::Events(events))
    }

    /// The command is accepted, and what it asks for is already so.
    #[track_caller]
    pub fn then_nothing(self) -> Case<S> {
        self.case(Then::Events(Vec::new()))
    }

    /// The command is rejected for exactly this reason, and leaves nothing.
    #[track_caller]
    pub fn then_rejected(self, rejection: S::Rejection) -> Case<S> {
        self.then_rejected_leaving(rejection, [])
    }

    /// The command is rejected for exactly this reason, and leaves exactly these events.
    #[track_caller]
    pub fn then_rejected_leaving(
        self,
        rejection: S::Rejection,
        events: impl IntoIterator<Item = S::Writes>,
    ) -> Case<S> {
        self.case(Then::Rejected(check_rejection(&rejection), events.into_iter().collect()))
    }

    #[track_caller]
    fn case(self, then: Then<S>) -> Case<S> {
        let Self { given, command, context } = self;
        Case { given, command, context, then, at: Location::caller() }
    }
}

/// Events as JSON, as [`Came`] has them.
pub fn event_json(event: &NewEvent) -> Value {
    let NewEvent { event_type, tags, data } = event;
    json!({ "type": event_type, "tags": tags, "data": data })
}

fn written(events: &[impl Writes]) -> CaseResult<Vec<Value>> {
    events.iter().map(|event| Ok(event_json(&event.to_event()?))).collect()
}

/// What goes wrong with a case.
pub type CaseResult<T> = Result<T, Box<dyn Error>>;

/// A log as cases use it.
pub trait CaseLog<S: Slice> {
    /// Sets the log's clock, in milliseconds since 1970.
    fn set_clock(&self, now_ms: u64);

    /// Adds a fact.
    fn add(&self, fact: &Fact) -> impl Future<Output = CaseResult<()>>;

    /// Carries out the command.
    fn run(&self, command: &S, context: &CommandContext) -> impl Future<Output = CaseResult<Came>>;
}

impl<S: Slice> Case<S> {
    /// The command under test.
    pub fn command(&self) -> &S {
        &self.command
    }

    /// What the command may know besides the facts.
    pub fn context(&self) -> &CommandContext {
        &self.context
    }

    /// Runs the case on an empty log. Panics with the place of the case if something else follows: with both as
    /// JSON and what differs, or with an error and its causes.
    pub async fn check(&self, log: &impl CaseLog<S>) {
        self.prepare(log).await;
        self.check_prepared(log).await;
    }

    /// Adds the facts to an empty log.
    pub async fn prepare(&self, log: &impl CaseLog<S>) {
        for fact in &self.given {
            log.set_clock(fact.at_ms);
            let added = log.add(fact).await;
            added.unwrap_or_else(|error| self.fail("a given event can't be added", error));
        }
        log.set_clock(self.context.now_ms);
    }

    /// Runs the command on the log with the facts. Panics as [`Case::check`] does.
    pub async fn check_prepared(&self, log: &impl CaseLog<S>) {
        let (rejection, events) = match &self.then {
            Then::Events(events) => (None, events),
            Then::Rejected(rejection, events) => (Some(rejection.clone()), events),
        };
        let events = written(events);
        let events = events.unwrap_or_else(|error| self.fail("an expected event", error));
        let came = log.run(&self.command, &self.context).await;
        let came = came.unwrap_or_else(|error| self.fail("the command fails", error));
        assert_same(format!("case at {}", self.at), &Came { rejection, events }, &came);
    }

    fn fail(&self, what: &str, error: impl Into<Box<dyn Error>>) -> ! {
        fail(format!("case at {}: {what}", self.at), error)
    }
}

/// A log, by its name, whose cases run in memory.
pub trait InMemory<S: Slice> {
    /// Runs the case on an empty log.
    fn check(case: &Case<S>) -> impl Future<Output = ()>;

    /// Checks what a function checks when it starts.
    fn check_slice() {}
}

/// Checks the slice as a function does when it starts, and runs each of its cases in memory.
pub fn check_in_memory<S: Slice<Context: Context<Log: InMemory<S>>>>() {
    LogOf::<S>::check_slice();
    let cases = S::cases();
    assert!(!cases.is_empty(), "{} has no cases: write `fn cases()` in `impl Slice`", S::NAME);
    cases.iter().for_each(|case| block_on(LogOf::<S>::check(case)));
}
