//! Commands on aggregates: what a decision reads, where its events go, and how the table stores them.

use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use futures::TryStreamExt;
use futures::future::{join, join_all};
use ringfence_aggregate_log::{AggregateLog, NewAggregateEvent, PushPlace, Range};
use ringfence_aws::wire::{Edit, Fault};
use ringfence_core::kit::id;
use ringfence_core::{
    Append, Appended, Consistency, Decisions, EventLog, HandleError, LogError, Metadata, Plan,
    SequencedEvent, Slice, StoreError, Tag, handle,
};
use serde_json::json;
use tokio::sync::Barrier;

use crate::customers::{
    AddPoints, Customer, Points, Spend, Transfer, add, added, catalog, customer, envelope, points,
    register, transfer,
};
use crate::stack::{
    NOW_MS, Stack, TABLE, accepted, code, event, events, in_process, run, run_with, versions,
};

/// Ada and Bob are registered, and Ada has this many points.
async fn filled(points: i64) -> (Stack, AggregateLog) {
    let stack = Stack::start();
    let log = stack.log();
    for customer in ["ada", "bob"] {
        run(&log, &register(customer), None).await;
    }
    run(&log, &add("ada", &[points]), None).await;
    stack.operations();
    (stack, log)
}

/// The events of a customer, as the log has them.
async fn read(log: &AggregateLog, id: &str) -> Vec<SequencedEvent> {
    let envelope = envelope(None);
    let plan = plan::<AddPoints>(&add(id, &[]));
    log.read(&plan, Consistency::Eventual, &envelope).try_collect().await.expect("events")
}

fn plan<S: Slice>(command: &S) -> Plan {
    let catalog = catalog();
    let query = S::query(command.shape(), command.tags(), &catalog);
    Plan::new(&query, &catalog).expect("a plan")
}

async fn points_of(log: &AggregateLog, id: &str) -> i64 {
    let customer = log.table().get_aggregate::<Customer>(&catalog(), &customer(id), None).await;
    customer.expect("the customer").state.points
}

#[tokio::test]
async fn an_aggregate_is_folded_up_to_a_version() {
    let (table, _) = in_process();
    let ada = customer("ada");
    let fold = async |max_version| {
        let ada =
            table.get_aggregate::<Customer>(&catalog(), &ada, max_version).await.expect("Ada");
        (ada.version, ada.state)
    };
    let (version, state) = fold(None).await;
    assert_eq!((version.number(), state), (0, Customer::default()));
    // Events that the state does not read are skipped.
    let bare = NewAggregateEvent { payload: None, ..event("CustomerDeactivated", json!(null)) };
    let registered = event("CustomerRegistered", json!({ "name": "Ada" }));
    for event in [registered, added(5), bare, event("Gift", json!({}))] {
        table.push_event(&ada, PushPlace::End, event).await.expect("pushed");
    }
    let expected = |points, active| {
        let name = Some("Ada".to_owned());
        Customer { name, points, active, ..Customer::default() }
    };
    let (version, state) = fold(None).await;
    assert_eq!((version.number(), state), (4, expected(5, false)));
    // A push after a version that was read needs no further read.
    let pushed = table.push_event(&ada, PushPlace::After(version), added(1)).await.expect("pushed");
    assert_eq!(pushed.version.number(), 5);
    let (version, state) = fold(Some(2)).await;
    assert_eq!((version.number(), state), (2, expected(5, true)));
    // A state that reads the aggregate's id gets it, as in a slice.
    table.get_aggregate::<Points>(&catalog(), &ada, None).await.expect("each event has its id");
}

#[tokio::test]
async fn a_decision_goes_after_the_events_that_it_read() {
    let (stack, log) = filled(5).await;
    let answer = run(&log, &add("ada", &[2, 3]), None).await;
    assert_eq!(accepted(&answer), ["CUSTOMERS#ada 3", "CUSTOMERS#ada 4"]);
    assert_eq!(accepted(&run(&log, &add("ada", &[]), None).await), [""; 0]);
    assert_eq!(code(&run(&log, &add("eve", &[1]), None).await), "Unknown");
    let answer = run(&log, &transfer("bob", 10), None).await;
    assert_eq!(accepted(&answer), ["CUSTOMERS#ada 5", "CUSTOMERS#bob 2"]);
    assert_eq!((points_of(&log, "ada").await, points_of(&log, "bob").await), (0, 10));
    assert_eq!(stack.items(TABLE).await.len(), 7);
}

#[tokio::test]
async fn an_event_that_a_decision_can_not_read_is_an_error_that_names_it() {
    let (table, clock) = in_process();
    let log = AggregateLog::new(table, catalog(), clock);
    let failure = async |id: &str, event| {
        log.table().push_event(&customer(id), PushPlace::End, event).await.expect("pushed");
        match run_with(&log, &add(id, &[1]), &envelope(None)).await {
            Err(HandleError::Log(error)) => error,
            other => panic!("{other:?}"),
        }
    };
    let LogError::UnknownType { event: named, event_type, context } =
        failure("ada", event("Gift", json!({}))).await
    else {
        panic!("the type is known")
    };
    assert_eq!([&*named, &*event_type, &*context], ["CUSTOMERS#ada/1", "Gift", "CUSTOMERS"]);
    // A payload of another shape is an error.
    let error = failure("bob", event("PointsAdded", json!({ "no": 1 }))).await;
    assert!(matches!(&error, LogError::Undecodable { event, .. } if event == "CUSTOMERS#bob/1"));
    let error = log.table().get_aggregate::<Customer>(&catalog(), &customer("bob"), None).await;
    let error = error.expect_err("it can't be decoded").to_string();
    assert_eq!(error, "CUSTOMERS#bob/1 can't be decoded");
}

#[tokio::test]
async fn a_read_has_the_events_of_the_answer_and_the_table_does_not_repeat_the_id() {
    let (stack, log) = filled(5).await;
    let mut metadata = Metadata::default();
    metadata.insert("correlationId", "walk-1").expect("no key of the log");
    let envelope = ringfence_core::Envelope { metadata, ..envelope(None) };
    let new = vec![points("ada", 1).into(), points("bob", 2).into(), points("ada", 3).into()];
    let append = Append { events: new, seen: None, record: None, envelope: &envelope };
    let Ok(Appended::Committed(answered)) = log.append(append).await else { panic!("committed") };
    let [one, bob, other] = &answered[..] else { panic!("{answered:?}") };
    assert_eq!(read(&log, "ada").await[2..], [one.clone(), other.clone()]);
    assert_eq!(read(&log, "bob").await[1..], *std::slice::from_ref(bob));
    assert_eq!(one.tags, [Tag::new("customerId", "ada")]);
    assert_eq!(one.data, json!({ "customerId": "ada", "points": 1 }));
    assert_eq!((one.slot, one.rest, other.slot, other.rest, bob.rest), (3, 1, 4, 0, 0));
    // Each event is later than the one before.
    let before = read(&log, "ada").await[1].at;
    assert!(before < one.at, "{before} {}", one.at);
    assert_eq!((bob.at, other.at), (one.at + 1, one.at + 2));

    let stored = events(log.table(), &customer("ada"), Range::default()).await;
    assert_eq!(stored[2].payload, Some(json!({ "points": 1 })));
    assert_eq!(stored[2].metadata, Some(json!({ "correlationId": "walk-1" })));
    let text = |value: &str| AttributeValue::S(value.to_owned());
    let mut rests: Vec<_> = stack.items(TABLE).await;
    rests.retain(|item| item["aggregateId"] == text("CUSTOMERS#ada") && item.contains_key("rest"));
    assert_eq!(rests.len(), 1, "the event that another one follows: {rests:?}");
    assert_eq!(rests[0]["version"], AttributeValue::N("3".to_owned()));
}

#[tokio::test]
async fn an_event_gets_a_later_time_than_an_event_of_a_clock_that_is_ahead() {
    let (_stack, log) = filled(5).await;
    let ahead = NewAggregateEvent { timestamp_ms: Some(NOW_MS + 3_600_000), ..added(1) };
    log.table().push_event(&customer("ada"), PushPlace::End, ahead).await.expect("pushed");
    run(&log, &add("ada", &[1]), None).await;
    run(&log, &transfer("bob", 1), None).await;
    let unread = vec![points("ada", 1).into(), points("bob", 1).into()];
    let envelope = envelope(None);
    let append = Append { events: unread, seen: None, record: None, envelope: &envelope };
    log.append(append).await.expect("committed");
    assert!(log.table().verify(&|_| {}).await.expect("a report").wrong.is_empty());
}

#[tokio::test]
async fn an_append_without_a_read_tries_again_when_the_end_has_moved() {
    let (stack, log) = filled(5).await;
    let behind = Fault::Reply(Edit::new(|answer| *answer = json!({ "Items": [] })));
    stack.wire.inject("Query", 0, behind);
    let (envelope, events) = (envelope(None), vec![points("ada", 1).into()]);
    let append = Append { events, seen: None, record: None, envelope: &envelope };
    let Ok(Appended::Committed(events)) = log.append(append).await else { panic!("committed") };
    assert_eq!(events[0].slot, 3);
    assert_eq!(stack.operations(), ["Query", "PutItem", "Query", "PutItem"]);
}

#[tokio::test]
async fn each_event_of_many_writers_is_stored_once() {
    let stack = Stack::serve().await;
    let log = stack.log();
    run(&log, &register("ada"), None).await;
    // Some answers are lost after the effect, some requests before it.
    for pass in [3, 7, 11, 19] {
        stack.wire.inject("PutItem", pass, Fault::LostAfter);
        stack.wire.inject("PutItem", pass + 1, Fault::LostBefore);
        stack.wire.inject("PutItem", pass + 2, Fault::error("TransactionConflictException"));
    }
    let (command, envelope, catalog) = (add("ada", &[1]), envelope(None), catalog());
    let writers = (0..8).map(|_| async {
        let decisions = Decisions::new(1);
        for _ in 0..5 {
            // A command that lost every attempt has written nothing.
            while let Err(error) = handle(&log, &catalog, &decisions, &command, &envelope).await {
                let HandleError::Log(LogError::Store(StoreError::Contention { .. })) = error else {
                    panic!("{error:?}")
                };
            }
        }
    });
    join_all(writers).await;
    assert!(stack.wire.is_spent());
    let ada =
        log.table().get_aggregate::<Customer>(&catalog, &customer("ada"), None).await.expect("Ada");
    assert_eq!((ada.version.number(), ada.state.points), (41, 40));
    assert!(log.table().verify(&|_| {}).await.expect("a report").wrong.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_command_that_always_loses_ends_with_the_conflict() {
    let (stack, log) = filled(5).await;
    for _ in 0..ringfence_core::ATTEMPTS_MAX {
        stack.wire.inject("PutItem", 0, Fault::error("ConditionalCheckFailedException"));
    }
    let error = run_with(&log, &add("ada", &[1]), &envelope(None)).await.expect_err("it loses");
    let HandleError::Log(LogError::Store(StoreError::Contention { attempts, over })) = error else {
        panic!("{error:?}")
    };
    assert_eq!(attempts, ringfence_core::ATTEMPTS_MAX);
    let over = over.expect("what it lost to").to_string();
    assert_eq!(over, "CUSTOMERS#ada has something else in slot 3, which was free");
    assert_eq!(versions(log.table(), &customer("ada"), Range::default()).await, [1, 2]);
}

#[tokio::test]
async fn the_second_of_two_racing_transfers_decides_on_the_points_that_are_left() {
    let (stack, log) = filled(10).await;
    let barrier = Arc::new(Barrier::new(2));
    for pass in 0..2 {
        stack.wire.inject("TransactWriteItems", pass, Fault::Meet(barrier.clone()));
    }
    let back = Transfer { from: id("bob"), to: id("ada"), points: 6 };
    let forth = transfer("bob", 6);
    let (one, other) = join(run(&log, &forth, None), run(&log, &forth, None)).await;
    let (won, lost) = if one.attempts == 1 { (one, other) } else { (other, one) };
    assert_eq!(accepted(&won), ["CUSTOMERS#ada 3", "CUSTOMERS#bob 2"]);
    assert_eq!((lost.attempts, code(&lost)), (2, "TooFew"));
    let over: Vec<String> = lost.conflicts.iter().map(ToString::to_string).collect();
    assert_eq!(over, ["CUSTOMERS#ada", "CUSTOMERS#bob"]);
    run(&log, &back, None).await;
    assert_eq!((points_of(&log, "ada").await, points_of(&log, "bob").await), (10, 0));
}

#[tokio::test]
async fn a_lost_answer_is_recognised_with_and_without_a_key() {
    for key in [None, Some("k")] {
        let (stack, log) = filled(5).await;
        stack.wire.inject("PutItem", 0, Fault::LostAfter);
        let answer = run(&log, &add("ada", &[1]), key).await;
        assert_eq!(accepted(&answer), ["CUSTOMERS#ada 3"]);
        assert_eq!((answer.attempts, answer.repeated), (1, false));
        // Without a token, the second send of a transaction meets the events of the first.
        stack.wire.inject("TransactWriteItems", 0, Fault::LostAfter);
        (0..2).for_each(|send| {
            stack.wire.inject("TransactWriteItems", send, Fault::without_token());
        });
        stack.operations();
        let answer = run(&log, &transfer("bob", 5), key).await;
        assert_eq!(accepted(&answer), ["CUSTOMERS#ada 4", "CUSTOMERS#bob 2"]);
        assert_eq!((answer.attempts, answer.repeated), (1, false));
        assert_eq!(stack.operations()[2..], ["TransactWriteItems"; 2]);
        assert_eq!((points_of(&log, "ada").await, points_of(&log, "bob").await), (1, 5));
    }
}

#[tokio::test]
async fn a_read_in_the_middle_of_an_append_gives_no_answer() {
    let (stack, log) = filled(0).await;
    let missed = event("PointsMissed", json!({ "points": 5 }));
    log.table().push_event(&customer("ada"), PushPlace::End, missed).await.expect("pushed");
    run(&log, &add("ada", &[3, 4]), None).await;
    // The query shows only the first of the two events. With 3 points, the command would be rejected.
    let torn = Fault::Reply(Edit::new(|answer| {
        let items = answer["Items"].as_array_mut().expect("items");
        items.retain(|item| item["version"]["N"] != "5");
    }));
    stack.operations();
    stack.wire.inject("Query", 0, torn);
    let spend = Spend { customer_id: id("ada"), points: 5 };
    let answer = run(&log, &spend, None).await;
    assert_eq!(accepted(&answer), ["CUSTOMERS#ada 6"]);
    assert_eq!(stack.operations(), ["Query", "TransactGetItems", "Query", "PutItem"]);
    assert_eq!(answer.attempts, 2);
    assert_eq!(points_of(&log, "ada").await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_gap_that_castore_left_is_skipped_and_never_filled() {
    let (table, clock) = in_process();
    let log = AggregateLog::new(table, catalog(), clock);
    let push = async |id: &str, version, event| {
        let place = PushPlace::Forced(version);
        log.table().push_event(&customer(id), place, event).await.expect("pushed");
    };
    let registered = || event("CustomerRegistered", json!({ "name": "Ada" }));
    push("ada", 1, registered()).await;
    push("ada", 2, added(1)).await;
    push("ada", 5, added(2)).await;
    push("bob", 3, registered()).await;

    let slots = async |id| {
        let events = read(&log, id).await;
        let types = events.iter().map(|event| (event.slot, event.event_type.clone()));
        let gaps = types.clone().filter(|(_, event_type)| event_type.is_empty());
        (types.map(|(slot, _)| slot).collect::<Vec<_>>(), gaps.map(|(slot, _)| slot).collect())
    };
    assert_eq!(slots("ada").await, (vec![1, 2, 3, 4, 5], vec![3, 4]));
    assert_eq!(slots("bob").await, (vec![1, 2, 3], vec![1, 2]));

    // First a cold decision, then a warm one, then one after Castore's event behind another gap, which is read alone.
    let (decisions, envelope) = (Decisions::new(1), envelope(None));
    let adding = async || {
        let (catalog, command) = (catalog(), add("ada", &[10]));
        let handled = handle(&log, &catalog, &decisions, &command, &envelope).await;
        accepted(&handled.expect("accepted"))
    };
    assert_eq!(adding().await, ["CUSTOMERS#ada 6"]);
    assert_eq!(adding().await, ["CUSTOMERS#ada 7"]);
    push("ada", 8, added(3)).await;
    push("ada", 10, added(4)).await;
    assert_eq!(adding().await, ["CUSTOMERS#ada 11"]);
    let sent = run(&log, &transfer("bob", 40), None).await;
    assert_eq!(accepted(&sent), ["CUSTOMERS#ada 12", "CUSTOMERS#bob 4"]);
    assert_eq!(code(&run(&log, &transfer("bob", 1), None).await), "TooFew");
    let all = versions(log.table(), &customer("ada"), Range::default()).await;
    assert_eq!(all, [1, 2, 5, 6, 7, 8, 10, 11, 12]);
    assert_eq!((points_of(&log, "ada").await, points_of(&log, "bob").await), (0, 40));
}

#[tokio::test(start_paused = true)]
async fn a_gap_of_more_than_100_000_versions_is_an_error_that_names_the_event() {
    let (table, clock) = in_process();
    let log = AggregateLog::new(table, catalog(), clock);
    for (id, version) in [("ada", 100_002), ("bob", 100_003)] {
        for (version, event) in [(1, event("CustomerRegistered", json!({ "name": "" })))]
            .into_iter()
            .chain([(version, added(1))])
        {
            let place = PushPlace::Forced(version);
            log.table().push_event(&customer(id), place, event).await.expect("pushed");
        }
    }
    let answer = run(&log, &add("ada", &[1]), None).await;
    assert_eq!(accepted(&answer), ["CUSTOMERS#ada 100003"]);
    let error = run_with(&log, &add("bob", &[1]), &envelope(None)).await.expect_err("too wide");
    let HandleError::Log(LogError::Undecodable { event, source }) = error else {
        panic!("{error:?}")
    };
    assert_eq!(event, "CUSTOMERS#bob/100003");
    assert_eq!(source.to_string(), "versions 2 and more are missing before it");
}
