//! Given/when/then for slices: `given(events![…]).when(command).then([…])`.
//!
//! A case is data, so the same case runs in memory in the slice's own tests and on DynamoDB in the
//! tests of `ringfence-dcb-log`.

use std::{fmt::Display, panic::Location, str::FromStr, sync::Mutex};

use futures::{FutureExt, executor::block_on, future::BoxFuture, stream::BoxStream};
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

/// The id that `text` names; panics when it names none.
#[track_caller]
pub fn id<T: FromStr<Err: Display>>(text: &str) -> T {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// Facts before a command.
pub struct Given(Vec<NewEvent>);

/// Facts and a command.
pub struct When<S> {
    given: Vec<NewEvent>,
    command: S,
    context: Context,
}

/// Facts, a command, and what follows.
pub struct Case<S: Slice> {
    given: Vec<NewEvent>,
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
    Given(events.into_iter().collect())
}

impl Given {
    /// The command under test.
    pub fn when<S: Slice>(self, command: S) -> When<S> {
        When { given: self.0, command, context: Context::default() }
    }
}

impl<S: Slice> When<S> {
    /// What the decision knows besides the events.
    pub fn with(self, context: Context) -> Self {
        Self { context, ..self }
    }

    /// The command is accepted and writes exactly these events.
    #[track_caller]
    pub fn then(self, events: impl IntoIterator<Item = S::Writes>) -> Case<S> {
        let events: Vec<NewEvent> = events.into_iter().map(Writes::into_event).collect();
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
        let rejection = serde_json::to_value(&rejection).expect("a rejection is a map");
        self.case(Then::Rejected(rejection))
    }

    #[track_caller]
    fn case(self, then: Then) -> Case<S> {
        let Self { given, command, context } = self;
        Case { given, command, context, then, at: Location::caller() }
    }
}

impl<S: Slice> Case<S> {
    /// Runs the case on an empty log. Panics with the place of the case if something else follows.
    pub async fn check(&self, log: &impl EventLog) {
        let catalog = S::catalog().expect("the catalog is free of contradictions");
        let envelope = Envelope { context: self.context.clone(), ..Envelope::default() };
        for event in &self.given {
            let append = Append {
                events: vec![event.clone()],
                seen: None,
                record: None,
                envelope: &envelope,
            };
            log.append(append).await.expect("given events can be appended");
        }
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
        block_on(case.check(&MemoryLog::new(catalog.clone())));
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
