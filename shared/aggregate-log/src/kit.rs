//! Given/when/then for commands: `given(facts).when(command).then(facts)`.
//!
//! A case is data, so the same case runs in memory and on DynamoDB.

use std::panic::Location;
use std::sync::Mutex;

use futures::executor::block_on;
use futures::stream::BoxStream;
use ringfence::Context;
use ringfence::kit::BEGIN_MS;
use ringfence_dynamo::{Clock, Retry};

use crate::{
    AggregateError, AggregateKey, AggregateLog, Command, CommandError, Draft, EventStore,
    GetEvents, List, ListAggregateIds, Listed, Memory, NewEvent, Place, Push, PushEvent,
    PushEventGroup, Range, StoredEvent, execute,
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
        for Fact { key, event } in &self.given {
            let pushed = log.push_event(key, Place::End, event.clone()).await;
            pushed.expect("given events can be pushed");
        }
        let spy = Spy { log, pushed: Mutex::default() };
        let executed = execute(&spy, &self.command, &self.context, Retry::default()).await;
        let pushed = spy.pushed.into_inner().expect("no code panics while it holds the lock");
        let found = match executed {
            Ok(_) => Ok(pushed),
            Err(CommandError::Rejected(rejection)) => {
                assert!(pushed.is_empty(), "refused, but pushed {pushed:?}; case at {}", self.at);
                Err(rejection)
            }
            Err(CommandError::Log(error)) => panic!("{error:?}; case at {}", self.at),
        };
        assert_eq!(found, self.then, "case at {}", self.at);
    }

    /// Runs the case in memory.
    pub fn check_in_memory(&self) {
        block_on(self.check(&Memory::new(Clock::fixed(self.context.now_ms))));
    }
}

/// A log that notes what is pushed through it.
struct Spy<'l, L> {
    log: &'l L,
    pushed: Mutex<Vec<Fact>>,
}

impl<L> Spy<'_, L> {
    fn note(&self, facts: impl IntoIterator<Item = Fact>) {
        self.pushed.lock().expect("no code panics while it holds the lock").extend(facts);
    }
}

impl<L: AggregateLog> GetEvents for Spy<'_, L> {
    fn get_events<'a>(
        &'a self,
        key: &'a AggregateKey,
        range: Range,
    ) -> BoxStream<'a, Result<StoredEvent, AggregateError>> {
        self.log.get_events(key, range)
    }
}

impl<L: AggregateLog> PushEvent for Spy<'_, L> {
    async fn push_event(
        &self,
        key: &AggregateKey,
        place: Place,
        event: NewEvent,
    ) -> Result<StoredEvent, AggregateError> {
        let pushed = self.log.push_event(key, place, event.clone()).await?;
        self.note([Fact { key: key.clone(), event }]);
        Ok(pushed)
    }
}

impl<L: AggregateLog> PushEventGroup for Spy<'_, L> {
    async fn push_event_group(&self, group: Vec<Push>) -> Result<Vec<StoredEvent>, AggregateError> {
        let pushed = self.log.push_event_group(group.clone()).await?;
        let fact = |key: &AggregateKey, event| Fact { key: key.clone(), event };
        self.note(group.into_iter().flat_map(|Push { key, events, .. }| {
            events.into_iter().map(move |event| fact(&key, event))
        }));
        Ok(pushed)
    }
}

impl<L: AggregateLog> ListAggregateIds for Spy<'_, L> {
    async fn list_aggregate_ids(&self, store: &str, list: &List) -> Result<Listed, AggregateError> {
        self.log.list_aggregate_ids(store, list).await
    }
}
