//! Typed aggregates, and commands among other writers.

use futures::future::join_all;
use futures::stream::BoxStream;
use ringfence_aggregate_log::{
    AggregateContext, AggregateError, AggregateKey, CommandError, GetEvents, Memory, Place, Push,
    PushEvent, PushEventGroup, Range, Recorded, StoredEvent, handle,
};
use ringfence_dynamo::wire::Fault;
use ringfence_dynamo::{Clock, Retry};
use serde_json::json;

use crate::customers::{
    AddPoints, Customer, CustomerEvent, Customers, Refusal, added, customer, envelope, points,
    registered,
};
use crate::stack::{NOW_MS, Stack, event, events};

fn adding(points: i64) -> AddPoints {
    AddPoints { customer_id: "ada".to_owned(), points }
}

#[tokio::test]
async fn an_aggregate_is_folded_up_to_a_version_and_goes_on_without_a_read() {
    let log = Memory::new(Clock::fixed(NOW_MS));
    let ada = Customers::get_aggregate(&log, "ada", None).await.expect("nothing yet");
    assert!(ada.state.is_none());
    let ada = Customers::push_event(&log, ada, registered("Ada")).await.expect("pushed");
    let ada = Customers::push_event(&log, ada, points(5)).await.expect("pushed");
    let ada = Customers::push_event(&log, ada, CustomerEvent::Deactivated).await.expect("pushed");
    let expected = |points, active| Some(Customer { name: "Ada".into(), points, active });
    assert_eq!((ada.version.number(), ada.state), (3, expected(5, false)));
    let now = Customers::get_existing_aggregate(&log, "ada", None).await.expect("Ada");
    assert_eq!(now.state, expected(5, false));
    let before = Customers::get_aggregate(&log, "ada", Some(2)).await.expect("Ada");
    assert_eq!((before.version.number(), before.state), (2, expected(5, true)));
    let missing = Customers::get_existing_aggregate(&log, "bob", None).await.err();
    assert_eq!(missing.expect("no Bob").to_string(), "CUSTOMERS#bob has no events");
}

#[tokio::test]
async fn a_decision_is_pushed_after_the_events_that_it_read() {
    let stack = Stack::start().await;
    let log = stack.table();
    let decide = async |events: Result<Vec<CustomerEvent>, Refusal>| {
        let decided = Customers::decide(&log, "ada", |_| events).await;
        decided.map(|ada| (ada.version.number(), ada.state.map(|ada| ada.points)))
    };
    assert!(matches!(decide(Ok(vec![])).await, Ok((0, None))));
    assert_eq!(stack.operations(), ["Query"]);
    assert!(matches!(decide(Ok(vec![registered("Ada")])).await, Ok((1, Some(0)))));
    assert_eq!(stack.operations(), ["Query", "PutItem"]);
    assert!(matches!(decide(Ok(vec![points(2), points(3)])).await, Ok((3, Some(5)))));
    assert_eq!(stack.operations(), ["Query", "TransactWriteItems"]);
    let refused = decide(Err(Refusal::Unknown)).await;
    assert!(matches!(refused, Err(CommandError::Rejected(Refusal::Unknown))), "{refused:?}");
    assert_eq!(stack.operations(), ["Query"]);
}

#[tokio::test]
async fn an_event_that_the_store_does_not_know_is_an_error_that_names_it() {
    let log = Memory::new(Clock::fixed(NOW_MS));
    log.push_event(&customer("ada"), Place::End, event("GIFT", json!({}))).await.expect("pushed");
    let error = Customers::get_aggregate(&log, "ada", None).await.err().expect("unknown");
    assert_eq!(
        error.to_string(),
        "GIFT of CUSTOMERS#ada 1: the context CUSTOMERS does not have the type"
    );
    let stored = events(&log, &customer("ada"), Range::default()).await.remove(0);
    let mut other = stored.clone();
    other.key = crate::stack::key("CARDS", "ada");
    assert!(Recorded::of::<Customers>(other).is_err());
}

#[tokio::test]
async fn the_event_of_each_of_many_writers_is_stored_once() {
    let stack = Stack::start().await;
    let log = stack.table();
    let ada = Customers::get_aggregate(&log, "ada", None).await.expect("nothing yet");
    Customers::push_event(&log, ada, registered("Ada")).await.expect("pushed");
    // Some answers are lost after the effect, some requests before it.
    for pass in [3, 7, 11, 19] {
        stack.wire.inject("PutItem", pass, Fault::LostAfter);
        stack.wire.inject("PutItem", pass + 1, Fault::LostBefore);
        stack.wire.inject("PutItem", pass + 2, Fault::error("TransactionConflictException"));
    }
    let (command, envelope) = (adding(1), envelope(None));
    let retry = Retry::default().attempts_max(100);
    let writers = join_all((0..8).map(|_| async {
        for _ in 0..5 {
            let done = handle(&log, &command, &envelope, retry).await.outcome;
            done.unwrap_or_else(|error| panic!("{error:?}"));
        }
    }));
    writers.await;
    assert!(stack.wire.is_spent());
    let ada = Customers::get_existing_aggregate(&log, "ada", None).await.expect("Ada");
    assert_eq!(ada.state.map(|ada| ada.points), Some(40));
    assert_eq!(ada.version.number(), 41);
    assert!(log.verify(&|_| {}).await.expect("a report").wrong.is_empty());
}

#[tokio::test]
async fn an_unknown_type_is_named_and_another_shape_is_not_taken_for_it() {
    let log = Memory::new(Clock::fixed(NOW_MS));
    let read = async |event_type: &str| {
        let key = customer(event_type);
        let event = ringfence_aggregate_log::NewEvent {
            event_type: event_type.to_owned(),
            payload: Some(json!({ "no": 1 })),
            metadata: None,
            timestamp_ms: None,
        };
        log.push_event(&key, Place::End, event).await.expect("pushed");
        let read = Customers::get_aggregate(&log, event_type, None).await;
        read.map(drop).expect_err("it can't be read").to_string()
    };
    let unknown = "Renamed of CUSTOMERS#Renamed 1: the context CUSTOMERS does not have the type";
    assert_eq!(read("Renamed").await, unknown);
    assert_eq!(
        read("POINTS_ADDED").await,
        "POINTS_ADDED of CUSTOMERS#POINTS_ADDED 1 can't be decoded"
    );
}

/// A log on which another writer is faster whenever an event is pushed.
struct Rival<'l>(&'l Memory);

impl GetEvents for Rival<'_> {
    fn get_events<'a>(
        &'a self,
        key: &'a AggregateKey,
        range: Range,
    ) -> BoxStream<'a, Result<StoredEvent, AggregateError>> {
        self.0.get_events(key, range)
    }
}

impl PushEventGroup for Rival<'_> {
    async fn push_event_group(&self, group: Vec<Push>) -> Result<Vec<StoredEvent>, AggregateError> {
        self.0.push_event(&group[0].key, Place::End, added(100)).await?;
        self.0.push_event_group(group).await
    }
}

#[tokio::test]
async fn a_command_that_always_loses_ends_with_the_conflict() {
    let log = Memory::new(Clock::fixed(NOW_MS));
    let ada = Customers::get_aggregate(&log, "ada", None).await.expect("nothing yet");
    Customers::push_event(&log, ada, registered("Ada")).await.expect("pushed");
    let retry = Retry::default().attempts_max(3);
    let executed = handle(&Rival(&log), &adding(1), &envelope(None), retry).await;
    assert_eq!((executed.attempts, executed.repeated), (3, false));
    match executed.outcome {
        Err(CommandError::Log(AggregateError::Conflict(conflict))) => {
            assert_eq!(
                conflict.to_string(),
                "CUSTOMERS#ada has an event of version 4 already, seen 3"
            );
        }
        other => panic!("{other:?}"),
    }
    // Each rival's event is there, and none of the command's.
    assert_eq!(events(&log, &customer("ada"), Range::default()).await.len(), 4);
}
