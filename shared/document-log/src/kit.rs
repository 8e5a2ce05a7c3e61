//! Given/when/then for commands: `given([…]).when(AddToCart { … }).then([…])`.
//!
//! A case is data, so the same case runs in memory in the command's own tests and on DynamoDB, with
//! whatever access, in the tests of `ringfence-document-log`.

use std::fmt::Debug;
use std::panic::Location;

use futures::executor::block_on;
use ringfence::kit::{BEGIN_MS, check_rejection};
use ringfence::{Context, Envelope};
use ringfence_dynamo::Clock;

use crate::{
    Cache, Category, Command, Decider, DocumentLog, Load, MemoryStore, Outcome, Store, TipLimits,
};

type Event<C> = <<C as Command>::Decider as Decider>::Event;

/// Facts before a command.
pub struct Given<E>(Vec<E>);

/// Facts and a command.
pub struct When<C: Command> {
    given: Vec<Event<C>>,
    command: C,
    context: Context,
}

/// Facts, a command, and what follows.
pub struct Case<C: Command> {
    given: Vec<Event<C>>,
    command: C,
    context: Context,
    then: Outcome<Event<C>, C::Rejection>,
    at: &'static Location<'static>,
}

/// Starts a case with the events that are in the stream; none: `given([])`.
pub fn given<E>(events: impl IntoIterator<Item = E>) -> Given<E> {
    Given(events.into_iter().collect())
}

impl<E> Given<E> {
    /// The command under test.
    pub fn when<C>(self, command: C) -> When<C>
    where
        C: Command<Decider: Decider<Event = E>>,
    {
        let context = Context { now_ms: BEGIN_MS, ..Context::default() };
        When { given: self.0, command, context }
    }
}

impl<C: Command> When<C> {
    /// What the decision knows besides the state.
    #[must_use]
    pub fn with(self, context: Context) -> Self {
        Self { context, ..self }
    }

    /// The command is accepted and writes exactly these events.
    #[track_caller]
    pub fn then(self, events: impl IntoIterator<Item = Event<C>>) -> Case<C> {
        let events: Vec<_> = events.into_iter().collect();
        assert!(!events.is_empty(), "no events: say then_nothing()");
        self.case(Outcome::Accepted(events))
    }

    /// The command is accepted, and what it asks for is already so.
    #[track_caller]
    pub fn then_nothing(self) -> Case<C> {
        self.case(Outcome::Accepted(Vec::new()))
    }

    /// The command is refused for exactly this reason.
    #[track_caller]
    pub fn then_rejected(self, rejection: C::Rejection) -> Case<C> {
        check_rejection(&rejection);
        self.case(Outcome::Rejected(rejection))
    }

    #[track_caller]
    fn case(self, then: Outcome<Event<C>, C::Rejection>) -> Case<C> {
        let Self { given, command, context } = self;
        Case { given, command, context, then, at: Location::caller() }
    }
}

impl<C> Case<C>
where
    C: Command<Decider: Decider<Event: Debug + PartialEq>, Rejection: PartialEq>,
{
    /// Runs the case on stream `id`, which is empty. Panics with the place of the case if something
    /// else follows.
    pub async fn check<S: Store>(&self, category: &Category<C::Decider, S>, id: &str) {
        let at = self.at;
        let envelope = Envelope { context: self.context.clone(), ..Envelope::default() };
        for event in &self.given {
            let decide = |_: &_| Ok::<_, C::Rejection>(vec![event.clone()]);
            let given = category.transact(id, Load::Eventual, &envelope, decide).await;
            given.unwrap_or_else(|error| panic!("{at}: given events can be appended: {error:?}"));
        }
        let decide = |state: &_| self.command.decide(state, &self.context);
        let decided = category.transact(id, Load::Eventual, &envelope, decide).await;
        let decided = decided.unwrap_or_else(|error| panic!("{at}: {error:?}"));
        assert_eq!(decided.outcome, self.then, "case at {at}");
    }
}

/// Runs every case in memory.
pub fn check_in_memory<C>(cases: &[Case<C>])
where
    C: Command<Decider: Decider<Event: Debug + PartialEq>, Rejection: PartialEq>,
{
    assert!(!cases.is_empty(), "{} has no cases", C::NAME);
    for case in cases {
        // A Tip of one event, so that every case reads calves too.
        let limits = TipLimits { events_max: Some(1), ..TipLimits::default() };
        let clock = Clock::fixed(case.context.now_ms);
        let log = DocumentLog::new(MemoryStore::default(), clock).with_limits(limits);
        let category = Category::new(log, C::Decider::access(), Cache::none());
        let category = category.unwrap_or_else(|error| panic!("{}: {error}", C::NAME));
        block_on(case.check(&category, "case"));
    }
}
