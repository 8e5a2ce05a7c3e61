//! Given/when/then for deciders: `given::<Cart>([…]).when(|cart| …).then([…])`.
//!
//! A case is data, so the same case runs in memory and on DynamoDB, with whatever access.

use std::fmt::Debug;
use std::panic::Location;

use futures::executor::block_on;
use ringfence::Envelope;
use ringfence_dynamo::Clock;

use crate::{
    Access, Cache, Category, Decider, DocumentLog, Load, MemoryStore, Outcome, Store, TipLimits,
};

type Decide<D, R> =
    Box<dyn Fn(&<D as Decider>::State) -> Result<Vec<<D as Decider>::Event>, R> + Send + Sync>;

/// Facts before a decision.
pub struct Given<D: Decider>(Vec<D::Event>);

/// Facts and a decision.
pub struct When<D: Decider, R> {
    given: Vec<D::Event>,
    decide: Decide<D, R>,
}

/// Facts, a decision, and what follows.
pub struct Case<D: Decider, R> {
    given: Vec<D::Event>,
    decide: Decide<D, R>,
    then: Outcome<D::Event, R>,
    at: &'static Location<'static>,
}

/// Starts a case with the events that are in the stream; none: `given::<Cart>([])`.
pub fn given<D: Decider>(events: impl IntoIterator<Item = D::Event>) -> Given<D> {
    Given(events.into_iter().collect())
}

impl<D: Decider> Given<D> {
    /// The decision under test.
    pub fn when<R>(
        self,
        decide: impl Fn(&D::State) -> Result<Vec<D::Event>, R> + Send + Sync + 'static,
    ) -> When<D, R> {
        When { given: self.0, decide: Box::new(decide) }
    }
}

impl<D: Decider, R> When<D, R> {
    /// It is accepted and writes exactly these events.
    #[track_caller]
    pub fn then(self, events: impl IntoIterator<Item = D::Event>) -> Case<D, R> {
        let events: Vec<_> = events.into_iter().collect();
        assert!(!events.is_empty(), "no events: say then_nothing()");
        self.case(Outcome::Accepted(events))
    }

    /// It is accepted, and what it asks for is already so.
    #[track_caller]
    pub fn then_nothing(self) -> Case<D, R> {
        self.case(Outcome::Accepted(Vec::new()))
    }

    /// It is refused for exactly this reason.
    #[track_caller]
    pub fn then_rejected(self, rejection: R) -> Case<D, R> {
        self.case(Outcome::Rejected(rejection))
    }

    #[track_caller]
    fn case(self, then: Outcome<D::Event, R>) -> Case<D, R> {
        Case { given: self.given, decide: self.decide, then, at: Location::caller() }
    }
}

impl<D, R> Case<D, R>
where
    D: Decider<Event: Debug + PartialEq>,
    R: Debug + PartialEq,
{
    /// Runs the case on stream `id`, which is empty. Panics with the place of the case if something
    /// else follows.
    pub async fn check<S: Store>(&self, category: &Category<D, S>, id: &str) {
        let (at, envelope) = (self.at, Envelope::default());
        for event in &self.given {
            let given = category
                .transact(id, Load::Eventual, &envelope, |_| Ok::<_, R>(vec![event.clone()]))
                .await;
            given.unwrap_or_else(|error| panic!("{at}: given events can be appended: {error:?}"));
        }
        let decided = category.transact(id, Load::Eventual, &envelope, &self.decide).await;
        let decided = decided.unwrap_or_else(|error| panic!("{at}: {error:?}"));
        assert_eq!(decided.outcome, self.then, "case at {at}");
    }
}

/// Runs every case in memory.
pub fn check_in_memory<D, R>(access: impl Fn() -> Access<D>, cases: &[Case<D, R>])
where
    D: Decider<Event: Debug + PartialEq>,
    R: Debug + PartialEq,
{
    assert!(!cases.is_empty(), "{} has no cases", D::CATEGORY);
    for case in cases {
        // A Tip of one event, so that every case reads calves too.
        let limits = TipLimits { events_max: Some(1), ..TipLimits::default() };
        let log = DocumentLog::new(MemoryStore::default(), Clock::fixed(0)).with_limits(limits);
        let category = Category::new(log, access(), Cache::none());
        let category = category.unwrap_or_else(|error| panic!("{}: {error}", D::CATEGORY));
        block_on(case.check(&category, "case"));
    }
}
