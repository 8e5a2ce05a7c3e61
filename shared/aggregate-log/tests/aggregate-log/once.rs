//! Commands under an idempotency key, and what their events carry.

use std::sync::Arc;

use futures::future::join;
use ringfence::{Context, Envelope, Metadata, Never};
use ringfence_aggregate_log::{
    Aggregate, AggregateError, AggregateLog, Command, CommandError, Draft, EventStore, Executed,
    Place, Push, Range, StoredEvent, Table, execute,
};
use ringfence_dynamo::Retry;
use ringfence_dynamo::wire::Fault;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::stack::{CustomerEvent, Customers, Stack, added, customer, events, key};

/// How a command pushes what it was told to.
#[derive(Clone, Copy, Debug, Serialize)]
enum Way {
    /// To a new aggregate, without a read.
    Blind,
    /// Behind the newest event, which is all that it reads.
    Newest,
    /// At a place that no read has found.
    At(u64),
    End,
    Forced,
    /// Behind the whole aggregate, two times.
    Twice,
    /// Behind the whole aggregate, which it then reads again.
    ReadAgain,
    /// To two aggregates at once, of two stores, after it has read both.
    Group,
}

#[derive(Debug, Serialize)]
struct Add {
    way: Way,
    points: i64,
    #[serde(skip)]
    metadata: Option<Value>,
}

impl Add {
    fn new(way: Way, points: i64) -> Self {
        Self { way, points, metadata: None }
    }

    async fn push<L: AggregateLog>(&self, log: &L) -> Result<(), AggregateError> {
        let draft = || Draft {
            metadata: self.metadata.clone(),
            ..CustomerEvent::PointsAdded { points: self.points }.into()
        };
        let ada = customer("ada");
        let place = match self.way {
            Way::Blind => {
                Customers::push_event(log, Aggregate::new(ada), draft()).await?;
                return Ok(());
            }
            Way::Newest => {
                let newest = crate::once::newest(log).await?;
                newest.map_or(Place::End, |event| Place::After(event.version))
            }
            Way::Twice => {
                let read = Customers::get_aggregate(log, "ada", None).await?;
                let read = Customers::push_event(log, read, draft()).await?;
                Customers::push_event(log, read, draft()).await?;
                return Ok(());
            }
            Way::ReadAgain => {
                let read = Customers::get_aggregate(log, "ada", None).await?;
                Customers::push_event(log, read, draft()).await?;
                Customers::get_aggregate(log, "ada", None).await?;
                return Ok(());
            }
            Way::Group => {
                let read = Customers::get_aggregate(log, "ada", None).await?;
                let card = Customers::get_aggregate(log, "bob", None).await?;
                log.push_event_group(vec![read.push([draft()])?, card.push([draft()])?]).await?;
                return Ok(());
            }
            Way::At(version) => Place::At(version),
            Way::End => Place::End,
            Way::Forced => Place::Forced(1),
        };
        let events = vec![draft().encode()?];
        log.push_event_group(vec![Push { key: ada, place, events }]).await?;
        Ok(())
    }
}

async fn newest<L: AggregateLog>(log: &L) -> Result<Option<StoredEvent>, AggregateError> {
    use futures::TryStreamExt;
    log.get_events(&customer("ada"), Range::NEWEST).try_next().await
}

impl Command for Add {
    const NAME: &'static str = "add";
    type Rejection = Never;

    async fn handle<L: AggregateLog>(
        &self,
        log: &L,
        _: &Context,
    ) -> Result<(), CommandError<Never>> {
        Ok(self.push(log).await?)
    }
}

fn keyed(idempotency_key: &str) -> Envelope {
    Envelope { idempotency_key: Some(idempotency_key.to_owned()), ..Envelope::default() }
}

async fn run(log: &Table, command: &Add, envelope: &Envelope) -> Executed<Never> {
    execute(log, command, envelope, Retry::default()).await
}

/// The versions of the events of an accepted command, and whether they were there before.
#[track_caller]
fn accepted(executed: Executed<Never>) -> (Vec<u64>, bool) {
    let events = executed.outcome.unwrap_or_else(|error| panic!("{error:?}"));
    (events.iter().map(|event| event.version.number()).collect(), executed.repeated)
}

/// A table with an aggregate of so many events.
async fn filled(events: u64) -> (Stack, Table) {
    use ringfence_aggregate_log::PushEvent;
    let stack = Stack::start().await;
    let log = stack.table();
    for _ in 0..events {
        log.push_event(&customer("ada"), Place::End, added(1)).await.expect("pushed");
    }
    stack.operations();
    (stack, log)
}

#[tokio::test]
async fn a_push_without_a_read_is_found_by_its_conflict() {
    let (stack, log) = filled(0).await;
    let add = Add::new(Way::Blind, 1);
    assert_eq!(accepted(run(&log, &add, &keyed("k")).await), (vec![1], false));
    assert_eq!(stack.operations(), ["PutItem"]);
    assert_eq!(accepted(run(&log, &add, &keyed("k")).await), (vec![1], true));
    assert_eq!(stack.operations(), ["PutItem", "Query"]);
    // Of another command the conflict stays one.
    let retry = Retry::default().attempts_max(2);
    let other = execute(&log, &add, &keyed("l"), retry).await;
    let conflict = matches!(
        other.outcome,
        Err(CommandError::Log(AggregateError::Conflict(ref conflict))) if conflict.version == 1
    );
    assert!(conflict && other.attempts == 2, "{other:?}");
}

#[tokio::test]
async fn what_the_command_has_not_read_is_searched_before_the_push() {
    let (stack, log) = filled(3).await;
    let add = Add::new(Way::Newest, 1);
    assert_eq!(accepted(run(&log, &add, &keyed("k")).await), (vec![4], false));
    assert_eq!(stack.operations(), ["Query", "Query", "PutItem"]);
    accepted(run(&log, &Add::new(Way::Newest, 2), &keyed("l")).await);
    stack.operations();
    assert_eq!(accepted(run(&log, &add, &keyed("k")).await), (vec![4], true));
    assert_eq!(stack.operations(), ["Query", "Query"]);
    // Without a key it costs nothing.
    assert_eq!(accepted(run(&log, &add, &Envelope::default()).await), (vec![6], false));
    assert_eq!(stack.operations(), ["Query", "PutItem"]);
}

#[tokio::test]
async fn a_push_that_could_not_be_found_again_is_refused() {
    for way in [Way::At(4), Way::End, Way::Forced] {
        let (_stack, log) = filled(3).await;
        let refused = run(&log, &Add::new(way, 1), &keyed("k")).await;
        let invalid = matches!(refused.outcome, Err(CommandError::Log(AggregateError::Invalid(_))));
        assert!(invalid, "{way:?}: {refused:?}");
        accepted(run(&log, &Add::new(way, 1), &Envelope::default()).await);
    }
}

#[tokio::test]
async fn a_second_push_is_refused() {
    for envelope in [keyed("k"), Envelope::default()] {
        let (stack, log) = filled(3).await;
        let refused = run(&log, &Add::new(Way::Twice, 1), &envelope).await;
        let invalid = matches!(refused.outcome, Err(CommandError::Log(AggregateError::Invalid(_))));
        assert!(invalid, "{refused:?}");
        assert_eq!(stack.operations(), ["Query", "PutItem"]);
    }
}

#[tokio::test]
async fn what_is_pushed_has_happened_whatever_comes_behind() {
    let add = Add::new(Way::ReadAgain, 1);
    for envelope in [keyed("k"), Envelope::default()] {
        let (stack, log) = filled(3).await;
        assert_eq!(accepted(run(&log, &add, &envelope).await), (vec![4], false), "its own event");
        stack.wire.inject("Query", 1, Fault::error("AccessDeniedException"));
        let again = Envelope { idempotency_key: None, ..Envelope::default() };
        assert_eq!(accepted(run(&log, &add, &again).await), (vec![5], false));
        assert!(stack.wire.is_spent(), "the read behind the push did not fail");
    }
}

#[tokio::test]
async fn a_group_is_found_in_each_of_its_aggregates() {
    let (stack, log) = filled(2).await;
    let add = Add::new(Way::Group, 1);
    assert_eq!(accepted(run(&log, &add, &keyed("k")).await), (vec![3, 1], false));
    assert_eq!(stack.operations(), ["Query", "Query", "TransactWriteItems"]);
    assert_eq!(accepted(run(&log, &add, &keyed("k")).await), (vec![3, 1], true));
    assert_eq!(stack.operations(), ["Query", "Query"]);
}

#[tokio::test]
async fn of_two_groups_under_one_key_the_second_finds_the_first() {
    let (stack, log) = filled(1).await;
    let barrier = Arc::new(Barrier::new(2));
    for pass in 0..2 {
        stack.wire.inject("TransactWriteItems", pass, Fault::Meet(barrier.clone()));
    }
    let add = Add::new(Way::Group, 1);
    let envelope = keyed("k");
    let (first, second) = join(run(&log, &add, &envelope), run(&log, &add, &envelope)).await;
    let (first, second) = (accepted(first), accepted(second));
    assert_eq!((&first.0, &second.0), (&vec![2, 1], &vec![2, 1]));
    assert_ne!(first.1, second.1, "one of them repeats the other");
    let card = key("CUSTOMERS", "bob");
    assert_eq!(events(&log, &card, Range::default()).await.len(), 1);
}

#[tokio::test]
async fn another_command_under_the_key_is_refused() {
    let (_stack, log) = filled(0).await;
    accepted(run(&log, &Add::new(Way::Group, 1), &keyed("k")).await);
    let other = run(&log, &Add::new(Way::Group, 2), &keyed("k")).await;
    let reused = matches!(
        &other.outcome,
        Err(CommandError::Log(AggregateError::KeyReused(reused))) if reused.key == "k"
    );
    assert!(reused, "{other:?}");
    assert_eq!(events(&log, &customer("ada"), Range::default()).await.len(), 1);
}

#[tokio::test]
async fn events_carry_the_envelopes_metadata_beside_their_own() {
    let (_stack, log) = filled(0).await;
    let mut metadata = Metadata::default();
    metadata.insert("correlationId", "walk-1").expect("no key of the log");
    metadata.insert("principal", "ada").expect("no key of the log");
    let envelope = Envelope { metadata, ..Envelope::default() };
    let carried = async |own: Option<Value>, envelope: &Envelope| {
        let add = Add { metadata: own, ..Add::new(Way::End, 1) };
        let executed = run(&log, &add, envelope).await;
        executed.outcome.map(|events| events[0].metadata.clone())
    };
    let added = carried(None, &envelope).await.expect("pushed");
    assert_eq!(added, Some(json!({ "correlationId": "walk-1", "principal": "ada" })));
    let own = json!({ "correlationId": "mine", "weight": 3 });
    let added = carried(Some(own), &envelope).await.expect("pushed");
    let expected = json!({ "correlationId": "mine", "weight": 3, "principal": "ada" });
    assert_eq!(added, Some(expected));
    let text = Some(json!("text"));
    let refused = carried(text.clone(), &envelope).await;
    assert!(matches!(refused, Err(CommandError::Log(AggregateError::Invalid(_)))), "{refused:?}");
    assert_eq!(carried(text.clone(), &Envelope::default()).await.expect("pushed"), text);
    assert_eq!(carried(None, &Envelope::default()).await.expect("pushed"), None);
}
