//! Given/when/then for commands: `given(facts).when(command).then(facts)`.
//!
//! A case is data, so the same case runs in memory and on DynamoDB.

use std::iter::repeat;
use std::panic::Location;

use futures::executor::block_on;
use ringfence::kit::{BEGIN_MS, check_rejection};
use ringfence::{Context, Envelope};
use ringfence_dynamo::{Clock, Retry, rfc3339};

use crate::{
    AggregateKey, AggregateLog, Command, CommandError, Draft, EventStore, Memory, NewEvent, Place,
    StoredEvent, execute,
};

/// An event of an aggregate.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    key: AggregateKey,
    event: NewEvent,
}

/// The event of the aggregate `id` of the store `S`; panics when there can be none such.
#[track_caller]
pub fn fact<S: EventStore>(id: &str, event: impl Into<Draft<S::Event>>) -> Fact {
    let key = S::key(id).unwrap_or_else(|error| panic!("{error}"));
    let event = event.into().encode().unwrap_or_else(|error| panic!("{error}"));
    Fact { key, event }
}

/// Facts before a command.
pub struct Given(Vec<Fact>);

/// Facts and a command.
pub struct When<C> {
    given: Vec<Fact>,
    command: C,
    context: Context,
}

/// Facts, a command, and what follows.
pub struct Case<C: Command> {
    given: Vec<Fact>,
    command: C,
    context: Context,
    then: Result<Vec<Fact>, C::Rejection>,
    at: &'static Location<'static>,
}

/// Starts a case with the events that are in the log; none: `given([])`.
pub fn given(facts: impl IntoIterator<Item = Fact>) -> Given {
    Given(facts.into_iter().collect())
}

impl Given {
    /// The command under test.
    pub fn when<C: Command>(self, command: C) -> When<C> {
        let context = Context { now_ms: BEGIN_MS, ..Context::default() };
        When { given: self.0, command, context }
    }
}

impl<C: Command> When<C> {
    /// What the decision knows besides the events.
    #[must_use]
    pub fn with(self, context: Context) -> Self {
        Self { context, ..self }
    }

    /// The command pushes exactly these events, in this order.
    #[track_caller]
    pub fn then(self, facts: impl IntoIterator<Item = Fact>) -> Case<C> {
        let facts: Vec<_> = facts.into_iter().collect();
        assert!(!facts.is_empty(), "no events: say then_nothing()");
        self.case(Ok(facts))
    }

    /// The command is accepted, and what it asks for is already so.
    #[track_caller]
    pub fn then_nothing(self) -> Case<C> {
        self.case(Ok(Vec::new()))
    }

    /// The command is refused for exactly this reason.
    #[track_caller]
    pub fn then_rejected(self, rejection: C::Rejection) -> Case<C> {
        check_rejection(&rejection);
        self.case(Err(rejection))
    }

    #[track_caller]
    fn case(self, then: Result<Vec<Fact>, C::Rejection>) -> Case<C> {
        let Self { given, command, context } = self;
        Case { given, command, context, then, at: Location::caller() }
    }
}

impl<C: Command<Rejection: PartialEq>> Case<C> {
    /// Runs the case on an empty log. Panics with the place of the case if something else follows.
    pub async fn check(&self, log: &impl AggregateLog) {
        self.prepare(log).await;
        self.check_prepared(log).await;
    }

    /// Pushes the facts to an empty log.
    pub async fn prepare(&self, log: &impl AggregateLog) {
        for Fact { key, event } in &self.given {
            let pushed = log.push_event(key, Place::End, event.clone()).await;
            pushed.expect("given events can be pushed");
        }
    }

    /// Runs the command on the log with the facts. Panics as [`Case::check`] does.
    pub async fn check_prepared(&self, log: &impl AggregateLog) {
        let envelope = Envelope { context: self.context.clone(), ..Envelope::default() };
        let executed = execute(log, &self.command, &envelope, Retry::default()).await;
        let found = match executed.outcome {
            Ok(events) => Ok(self.facts(events)),
            Err(CommandError::Rejected(rejection)) => Err(rejection),
            Err(CommandError::Log(error)) => panic!("{error:?}; case at {}", self.at),
        };
        assert_eq!(found, self.then, "case at {}", self.at);
    }

    /// What was pushed, with the timestamps that the case names and no other.
    fn facts(&self, events: Vec<StoredEvent>) -> Vec<Fact> {
        let named = self.then.iter().flatten().map(|fact| fact.event.timestamp_ms);
        let named = named.chain(repeat(None));
        let fact = |(event, named): (StoredEvent, Option<u64>)| {
            let StoredEvent { key, event_type, timestamp, payload, metadata, .. } = event;
            let timestamp_ms = named.filter(|named| rfc3339(*named) == timestamp);
            Fact { key, event: NewEvent { event_type, payload, metadata, timestamp_ms } }
        };
        events.into_iter().zip(named).map(fact).collect()
    }

    /// Runs the case in memory.
    pub fn check_in_memory(&self) {
        block_on(self.check(&Memory::new(Clock::fixed(self.context.now_ms))));
    }
}
