//! Given/when/then for slices: `given(events![…]).when(command).then([…])`.
//!
//! A case is data, so the same case runs in memory in the slice's own tests and on DynamoDB in the
//! tests of `ringfence-dcb-log`.

use std::{fmt::Display, panic::Location, str::FromStr, sync::Mutex};

use futures::{FutureExt, executor::block_on, future::BoxFuture, stream::BoxStream};
use serde::Serialize;
use serde_json::Value;

use crate::{
    Append, Appended, CommandRecord, Conflict, Consistency, Context, Decisions, Envelope, EventLog,
    LogError, MemoryLog, NewEvent, Outcome, Plan, Seen, SequencedEvent, Settled, Slice, Writes,
    handle,
};

/// Events of several types as one list: `events![ProductAdded { … }, OrderPlaced { … }]`.
#[macro_export]
macro_rules! events {
    ($($event:expr),* $(,)?) => { ::std::vec![$($crate::NewEvent::from($event)),*] };
}

/// The id, or another value, that `text` stands for; panics if it does not stand for one.
#[track_caller]
pub fn id<T: FromStr<Err: Display>>(text: &str) -> T {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// When a case begins, in milliseconds since 1970: 2024-06-23T00:00:00Z.
pub const BEGIN_MS: u64 = 1_719_100_800_000;

/// Facts before a command, and when each became one.
pub struct Given {
    events: Vec<(u64, NewEvent)>,
    now_ms: u64,
}

/// Facts and a command.
pub struct When<S> {
    given: Vec<(u64, NewEvent)>,
    command: S,
    context: Context,
}

/// Facts, a command, and what follows.
pub struct Case<S: Slice> {
    given: Vec<(u64, NewEvent)>,
    command: S,
    context: Context,
    then: Then,
    at: &'static Location<'static>,
}

#[derive(Debug, PartialEq)]
enum Then {
    Events(Vec<NewEvent>),
    Nothing,
    Rejected(Value),
}

/// Starts a case with the events that are in the log; none: `given([])`.
pub fn given(events: impl IntoIterator<Item = NewEvent>) -> Given {
    Given { events: Vec::new(), now_ms: BEGIN_MS }.and(events)
}

impl Given {
    /// Further events, now.
    pub fn and(mut self, events: impl IntoIterator<Item = NewEvent>) -> Self {
        self.events.extend(events.into_iter().map(|event| (self.now_ms, event)));
        self
    }

    /// Lets time pass before what follows, in milliseconds.
    pub fn wait(self, ms: u64) -> Self {
        Self { now_ms: self.now_ms + ms, ..self }
    }

    /// The command under test.
    pub fn when<S: Slice>(self, command: S) -> When<S> {
        let context = Context { now_ms: self.now_ms, ..Context::default() };
        When { given: self.events, command, context }
    }
}

/// Members of the problem document that answers a rejection.
const PROBLEM_MEMBERS: [&str; 6] = ["type", "title", "status", "detail", "instance", "repeated"];

/// The rejection as it is answered: its fields beside a problem document's own members. Panics when it
/// has no `code`, or when a field meets such a member.
#[track_caller]
pub fn check_rejection(rejection: &impl Serialize) -> Value {
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
    /// What the decision knows besides the events.
    pub fn with(self, context: Context) -> Self {
        Self { context, ..self }
    }

    /// The command is accepted and writes exactly these events.
    #[track_caller]
    pub fn then(self, events: impl IntoIterator<Item = S::Writes>) -> Case<S> {
        let events: Result<Vec<NewEvent>, _> = events.into_iter().map(Writes::into_event).collect();
        let events = events.unwrap_or_else(|error| panic!("{error}: {}", error.source));
        assert!(!events.is_empty(), "no events: say then_nothing()");
        self.case(Then::Events(events))
    }

    /// The command is accepted, and what it asks for is already so.
    #[track_caller]
    pub fn then_nothing(self) -> Case<S> {
        self.case(Then::Nothing)
    }

    /// The command is refused for exactly this reason.
    #[track_caller]
    pub fn then_rejected(self, rejection: S::Rejection) -> Case<S> {
        self.case(Then::Rejected(check_rejection(&rejection)))
    }

    #[track_caller]
    fn case(self, then: Then) -> Case<S> {
        let Self { given, command, context } = self;
        Case { given, command, context, then, at: Location::caller() }
    }
}

impl<S: Slice> Case<S> {
    /// Runs the case on an empty log, whose clock `set_clock` sets to milliseconds since 1970.
    /// Panics with the place of the case if something else follows.
    pub async fn check(&self, log: &impl EventLog, set_clock: impl Fn(u64)) {
        let catalog = S::catalog().expect("the catalog is free of contradictions");
        for (now_ms, event) in &self.given {
            set_clock(*now_ms);
            let context = Context { now_ms: *now_ms, ..Context::default() };
            let append = Append {
                events: vec![event.clone()],
                seen: None,
                record: None,
                envelope: &Envelope { context, ..Envelope::default() },
            };
            log.append(append).await.expect("given events can be appended");
        }
        set_clock(self.context.now_ms);
        let envelope = Envelope { context: self.context.clone(), ..Envelope::default() };
        let spy = Spy { log, written: Mutex::default() };
        let handled = handle(&spy, &catalog, &Decisions::new(0), &self.command, &envelope).await;
        let written = spy.written.into_inner().expect("no code panics while it holds the lock");
        let then = match handled.unwrap_or_else(|e| panic!("{}: {e}", self.at)).outcome {
            Outcome::Rejected { rejection, .. } => Then::Rejected(rejection),
            Outcome::Accepted(_) if written.is_empty() => Then::Nothing,
            Outcome::Accepted(_) => Then::Events(written),
        };
        assert_eq!(then, self.then, "case at {}", self.at);
    }
}

/// Checks the slice against its catalog and runs every case in memory.
pub fn check_in_memory<S: Slice>(cases: Vec<Case<S>>) {
    let catalog = S::catalog().expect("the catalog is free of contradictions");
    S::check(&catalog).unwrap_or_else(|error| panic!("{error}"));
    assert!(!cases.is_empty(), "{} has no cases", S::NAME);
    for case in cases {
        // The log in memory takes the time from the envelope.
        block_on(case.check(&MemoryLog::new(catalog.clone()), |_| {}));
    }
}

/// A log that notes what is committed through it.
struct Spy<'l, L> {
    log: &'l L,
    written: Mutex<Vec<NewEvent>>,
}

impl<L: EventLog> EventLog for Spy<'_, L> {
    fn read<'a>(
        &'a self,
        plan: &'a Plan,
        consistency: Consistency,
        envelope: &'a Envelope,
    ) -> BoxStream<'a, Result<SequencedEvent, LogError>> {
        self.log.read(plan, consistency, envelope)
    }

    fn append<'a>(&'a self, append: Append<'a>) -> BoxFuture<'a, Result<Appended, LogError>> {
        async move {
            let events = append.events.clone();
            let appended = self.log.append(append).await?;
            if let Appended::Committed(_) = appended {
                self.written.lock().expect("no code panics while it holds the lock").extend(events);
            }
            Ok(appended)
        }
        .boxed()
    }

    fn verify<'a>(
        &'a self,
        seen: &'a Seen,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Option<Conflict>, LogError>> {
        self.log.verify(seen, envelope)
    }

    fn settle<'a>(
        &'a self,
        record: &'a CommandRecord,
        outcome: &'a Outcome,
        envelope: &'a Envelope,
    ) -> BoxFuture<'a, Result<Settled, LogError>> {
        self.log.settle(record, outcome, envelope)
    }

    fn pause<'a>(&'a self, attempt: u32, envelope: &'a Envelope) -> BoxFuture<'a, bool> {
        self.log.pause(attempt, envelope)
    }
}
