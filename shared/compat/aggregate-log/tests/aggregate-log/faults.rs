//! The requests and the answer that follow refusals and lost answers.

use std::collections::BTreeSet;
use std::time::Duration;

use ringfence_aggregate_log::{
    AggregateError, AggregateEvent, AggregateTable, Push, PushPlace, Range, VERSION_MAX, Version,
    event_of_image,
};
use ringfence_aws::Retry;
use ringfence_aws::wire::{Edit, Fault};
use ringfence_core::{
    Append, Appended, Command, Consistency, EventLog, Plan, Reads, SequencedEvent, Slice,
    StoreError,
};
use serde_json::{Value, json};

use crate::customers::{
    Customer, CustomerEvent, Spend, Transfer, add, added, catalog, customer, envelope, points,
    register, transfer,
};
use crate::stack::{Stack, TABLE, code, conflict, events, run, versions};

const NEW: PushPlace = PushPlace::After(Version::NONE);

async fn push(log: &AggregateTable, place: PushPlace) -> Result<AggregateEvent, AggregateError> {
    log.push_event(&customer("1"), place, added(1)).await
}

fn group(place: PushPlace) -> Vec<Push> {
    ["1", "2"].map(|id| Push { key: customer(id), place, events: vec![added(1)] }).to_vec()
}

#[tokio::test]
async fn a_push_whose_answer_is_lost_is_sent_again_and_recognised() {
    let stack = Stack::start();
    stack.wire.inject("PutItem", 0, Fault::LostAfter);
    let pushed = push(&stack.table(), NEW).await.expect("it is there");
    assert_eq!(stack.operations(), ["PutItem", "PutItem"]);
    assert_eq!(events(&stack.table(), &customer("1"), Range::default()).await, [pushed]);
}

#[tokio::test]
async fn an_equal_event_of_another_writer_is_a_conflict() {
    let stack = Stack::start();
    // Same aggregate, version, type, payload and millisecond.
    push(&stack.table(), NEW).await.expect("pushed");
    stack.wire.inject("PutItem", 0, Fault::LostBefore);
    assert_eq!(conflict(push(&stack.table(), NEW).await), ("CUSTOMERS#1".to_owned(), 1));
}

#[tokio::test]
async fn a_group_whose_answer_is_lost_is_sent_again_and_recognised() {
    for forgotten in [false, true] {
        let stack = Stack::start();
        stack.wire.inject("TransactWriteItems", 0, Fault::LostAfter);
        if forgotten {
            for send in 0..2 {
                stack.wire.inject("TransactWriteItems", send, Fault::without_token());
            }
        }
        let log = stack.table();
        let pushed = log.push_event_group(group(NEW)).await;
        // Without a token the second send meets the events of the first.
        assert_eq!(pushed.expect("it is there").len(), 2);
        assert_eq!(stack.items(TABLE).await.len(), 2);
    }
}

/// Bob's next version is taken, and another transaction holds the place of Ada's event. An earlier send may still have
/// put the event there.
#[tokio::test]
async fn a_failed_check_beside_a_held_put_does_not_judge_a_lost_send() {
    let stack = Stack::start();
    let (log, command, envelope) = (stack.log(), transfer("bob", 1), envelope(None));
    let query = Transfer::query(command.shape(), command.tags(), &catalog());
    let plan = Plan::new(&query, &catalog()).expect("a plan");
    let (_, seen) = log.read_with_seen(&plan, Consistency::Strong, &envelope).await.expect("seen");
    stack.wire.inject("TransactWriteItems", 0, Fault::LostAfter);
    let held = Fault::cancelled(&["TransactionConflict", "ConditionalCheckFailed"]);
    stack.wire.inject("TransactWriteItems", 1, held);
    stack.wire.inject("TransactWriteItems", 2, Fault::without_token());
    let events = vec![points("ada", 1).into()];
    let append = Append { events, seen: Some(&seen), record: None, envelope: &envelope };
    let appended = log.append(append).await;
    assert!(matches!(appended, Ok(Appended::Committed(_))), "{appended:?}");
    assert_eq!(versions(&stack.table(), &customer("ada"), Range::default()).await, [1]);
}

#[tokio::test]
async fn a_throttled_push_is_sent_again_without_a_read() {
    let stack = Stack::start();
    for (send, code) in ["ThrottlingException", "TransactionConflictException"].iter().enumerate() {
        stack.wire.inject("PutItem", send, Fault::error(code));
    }
    push(&stack.table(), NEW).await.expect("pushed at last");
    assert_eq!(stack.operations(), ["PutItem"; 3]);

    let reasons = ["None", "TransactionConflict"];
    stack.wire.inject("TransactWriteItems", 0, Fault::cancelled(&reasons));
    let group = ["3", "4"].map(|id| Push { key: customer(id), place: NEW, events: vec![added(1)] });
    stack.table().push_event_group(group.to_vec()).await.expect("pushed at last");
    assert_eq!(stack.operations(), ["TransactWriteItems"; 2]);
}

#[tokio::test]
async fn an_outcome_that_stays_unknown_is_reported_as_unknown() {
    let stack = Stack::start();
    let log = stack.table().retrying(Retry::default().attempts_max(2));
    for send in 0..2 {
        stack.wire.inject("PutItem", send, Fault::LostBefore);
    }
    let unknown = push(&log, NEW).await;
    assert!(matches!(
        unknown,
        Err(AggregateError::Store(StoreError::OutcomeUnknown { attempts: 2, .. }))
    ));
    // A refusal after a lost answer says nothing about the first send.
    stack.wire.inject("PutItem", 0, Fault::LostAfter);
    stack.wire.inject("PutItem", 1, Fault::error("ThrottlingException"));
    let unknown = push(&log, NEW).await;
    assert!(matches!(
        unknown,
        Err(AggregateError::Store(StoreError::OutcomeUnknown { attempts: 2, .. }))
    ));
    for send in 0..2 {
        stack.wire.inject("PutItem", send, Fault::error("ThrottlingException"));
    }
    let throttled = push(&log, NEW).await;
    assert!(
        matches!(throttled, Err(AggregateError::Store(StoreError::Throttled { attempts: 2 }))),
        "{throttled:?}"
    );
    stack.wire.inject("PutItem", 0, Fault::error("AccessDeniedException"));
    let failed = push(&log, NEW).await;
    assert!(matches!(failed, Err(AggregateError::Store(StoreError::Failed { .. }))), "{failed:?}");
}

#[tokio::test]
async fn reads_are_tried_again_and_say_when_they_give_up() {
    let stack = Stack::start();
    push(&stack.table(), NEW).await.expect("pushed");
    stack.wire.inject("Query", 0, Fault::error("InternalServerError"));
    assert_eq!(versions(&stack.table(), &customer("1"), Range::default()).await, [1]);
    let log = stack.table().retrying(Retry::default().attempts_max(1));
    stack.wire.inject("Query", 0, Fault::LostBefore);
    let error = log
        .get_aggregate::<Customer>(&catalog(), &customer("1"), None)
        .await
        .expect_err("no answer");
    assert_eq!(error.to_string(), "reading events: no answer after 1 attempts");
}

#[tokio::test]
async fn a_deadline_bounds_a_push() {
    let stack = Stack::start();
    let log = stack.table().retrying(Retry::default().within(Duration::from_millis(50)));
    stack.wire.inject("PutItem", 0, Fault::Late(Duration::from_secs(60)));
    let unknown = push(&log, NEW).await;
    assert!(matches!(
        unknown,
        Err(AggregateError::Store(StoreError::OutcomeUnknown { attempts: 1, .. }))
    ));
}

#[tokio::test]
async fn an_event_at_the_end_is_tried_again_when_the_end_has_moved() {
    let stack = Stack::start();
    let log = stack.table();
    for place in [NEW, PushPlace::At(2)] {
        push(&log, place).await.expect("pushed");
    }
    // The read does not show the newest event, as if another writer put it after the read.
    let behind = || Fault::Reply(Edit::new(|answer| *answer = json!({ "Items": [] })));
    stack.wire.inject("Query", 0, behind());
    let _ = stack.operations();
    assert_eq!(push(&log, PushPlace::End).await.expect("pushed").version.number(), 3);
    assert_eq!(stack.operations(), ["Query", "PutItem", "Query", "PutItem"]);
    stack.wire.inject("Query", 0, behind());
    let pushed = log.push_event_group(group(PushPlace::End)).await.expect("pushed");
    assert_eq!(pushed.iter().map(|e| e.version.number()).collect::<Vec<_>>(), [4, 1]);
}

#[tokio::test]
async fn pages_are_joined_and_a_limit_requests_only_the_events_still_missing() {
    let stack = Stack::start();
    let log = stack.table();
    for _ in 0..9 {
        push(&log, PushPlace::End).await.expect("pushed");
    }
    let _ = stack.operations();
    for page in 0..3 {
        stack.wire.inject("Query", page, Fault::page(2));
    }
    assert_eq!(versions(&log, &customer("1"), Range::default()).await, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(stack.operations(), ["Query"; 4]);
    stack.wire.inject("Query", 0, Fault::page(2));
    let range = Range { limit: Some(5), ..Range::default() };
    assert_eq!(versions(&log, &customer("1"), range).await, [1, 2, 3, 4, 5]);
    let asked = stack.wire.take().into_iter().map(|exchange| exchange.request["Limit"].clone());
    assert_eq!(asked.collect::<Vec<_>>(), [json!(5), json!(3)]);
}

#[tokio::test]
async fn a_stream_image_is_the_event_that_was_pushed() {
    let stack = Stack::serve().await;
    let mut stream = stack.stream();
    run(&stack.log(), &register("a#1"), None).await;
    let record = stream.read().expect("records").remove(0);
    let image = crate::interchange::item(&record["dynamodb"]["NewImage"]);
    let stored = event_of_image(image.clone()).expect("an event");
    assert_eq!(stored.key, customer("a#1"));
    let current = catalog().current(SequencedEvent::from(stored)).expect("version 1");
    let typed = CustomerEvent::decode(&current).expect("a customer's");
    assert_eq!(typed, CustomerEvent::CustomerRegistered { name: "a#1".to_owned() });
    for missing in ["aggregateId", "version", "type", "timestamp"] {
        let mut image = image.clone();
        image.remove(missing);
        let error = event_of_image(image).expect_err("not whole");
        assert!(error.to_string().contains(missing), "{error}");
    }
}

/// An answer to a query without the events of these versions.
fn without(versions: &'static [&'static str]) -> Fault {
    Fault::Reply(Edit::new(move |answer| {
        let items = answer["Items"].as_array_mut().expect("items");
        items.retain(|item| !versions.iter().any(|version| item["version"]["N"] == *version));
    }))
}

/// One append withdraws points and has another event. No query shows the withdrawal, however often it runs.
#[tokio::test]
async fn no_decision_misses_an_event_that_queries_do_not_show() {
    for command in [add("1", &[-5, 0]), add("1", &[0, -5, 0])] {
        let stack = Stack::start();
        let log = stack.log();
        run(&log, &register("1"), None).await;
        run(&log, &add("1", &[5]), None).await;
        run(&log, &command, None).await;
        stack.operations();
        for query in 0..8 {
            stack.wire.inject("Query", query, without(&["3", "4"][..command.points.len() - 1]));
        }
        let spend = Spend { customer_id: "1".to_owned(), points: 5 };
        assert_eq!(code(&run(&log, &spend, None).await), "TooFew");
        assert_eq!(stack.operations(), ["Query", "TransactGetItems", "PutItem"]);
    }
}

#[tokio::test]
async fn a_read_has_the_events_that_a_look_finds_in_their_places() {
    // Versions 1 to 9 are there except 6. The query does not show all of them.
    let (all, hidden) = ([1, 2, 3, 4, 5, 7, 8, 9], without(&["2", "4", "5", "8"]));
    let limited = Range { limit: Some(4), ..Range::default() };
    let tail = Range { min_version: Some(4), max_version: Some(8), ..Range::default() };
    let cases = [
        (Range::default(), &all[..], 5),
        (limited, &all[..4], 4),
        (tail, &all[3..6], 3),
        (Range { reverse: true, ..Range::default() }, &[9, 7, 3, 1], 1),
    ];
    let stack = Stack::start();
    for version in all {
        push(&stack.table(), PushPlace::Forced(version)).await.expect("pushed");
    }
    for (range, expected, requests) in cases {
        stack.operations();
        stack.wire.inject("Query", 0, hidden.clone());
        assert_eq!(versions(&stack.table(), &customer("1"), range).await, expected, "{range:?}");
        let sent = stack.operations();
        assert_eq!(sent.len(), requests, "{range:?}: {sent:?}");
    }
}

#[tokio::test]
async fn a_gap_that_another_writer_left_is_looked_at_once() {
    let stack = Stack::start();
    let log = stack.table();
    for version in [1, 3, 4, 7] {
        push(&log, PushPlace::Forced(version)).await.expect("pushed");
    }
    stack.operations();
    // The log looks at each of the two gaps once. Not even a clone looks again.
    let before = log.meter().snapshot();
    assert_eq!(versions(&log, &customer("1"), Range::default()).await, [1, 3, 4, 7]);
    assert_eq!(stack.operations(), ["Query", "TransactGetItems", "TransactGetItems"]);
    // Two units for each version of a gap and for the event after it.
    assert_eq!(log.meter().snapshot().since(&before).total().read, 1.0 + 4.0 + 6.0);
    let clone = log.clone().retrying(Retry::default());
    assert_eq!(versions(&clone, &customer("1"), Range::default()).await, [1, 3, 4, 7]);
    assert_eq!(stack.operations(), ["Query"]);
    // Another writer fills the gap, so it is gone.
    push(&log, PushPlace::Forced(2)).await.expect("pushed");
    stack.operations();
    assert_eq!(versions(&log, &customer("1"), Range::default()).await, [1, 2, 3, 4, 7]);
    assert_eq!(stack.operations(), ["Query"]);
}

#[tokio::test]
async fn a_look_reads_at_most_100_versions_however_wide_the_gap_is() {
    let stack = Stack::start();
    let log = stack.table();
    let newest = VERSION_MAX;
    for (after, looked_at) in [(101, 2..=101), (102, 4..=102), (newest, newest - 98..=newest)] {
        let key = customer(&after.to_string());
        for version in [1, after] {
            log.push_event(&key, PushPlace::Forced(version), added(1)).await.expect("pushed");
        }
        stack.operations();
        assert_eq!(versions(&log, &key, Range::default()).await, [1, after]);
        let sent = stack.wire.take();
        let [_, look] = &sent[..] else { panic!("{} requests", sent.len()) };
        let keys = look.request["TransactItems"].as_array().expect("keys").iter();
        let keys = keys.map(|key| key["Get"]["Key"]["version"]["N"].as_str().expect("a version"));
        let keys: BTreeSet<u64> = keys.map(|key| key.parse().expect("a number")).collect();
        // The first missing version is always one of them.
        assert_eq!(keys, looked_at.chain([2]).collect());
        assert_eq!(keys.len(), 100);
    }
    // An append puts 100 events behind a gap of 99 versions. No query shows them, except the last one.
    let key = customer("2");
    log.push_event(&key, PushPlace::Forced(1), added(1)).await.expect("pushed");
    let events = vec![added(1); 100];
    let push = Push { key: key.clone(), place: PushPlace::Forced(101), events };
    log.push_event_group(vec![push]).await.expect("pushed");
    let last = || {
        Edit::new(|answer| {
            let items = answer["Items"].as_array_mut().expect("items");
            items
                .retain(|item| ["1", "200"].iter().any(|version| item["version"]["N"] == *version));
        })
    };
    stack.wire.inject("Query", 0, Fault::Reply(last()));
    stack.operations();
    let found = versions(&log, &key, Range::default()).await;
    assert_eq!(found, [1].into_iter().chain(101..=200).collect::<Vec<_>>());
    assert_eq!(stack.operations().len(), 4);
}

/// The look fails while another transaction writes the event, and for a role without `dynamodb:GetItem`.
#[tokio::test]
async fn a_read_fails_if_it_can_not_look_at_a_gap() {
    let stack = Stack::start();
    let log = stack.table();
    for version in [1, 3] {
        push(&log, PushPlace::Forced(version)).await.expect("pushed");
    }
    let once = log.clone().retrying(Retry::default().attempts_max(1));
    let gone = || Fault::Reply(Edit::new(|answer| answer["Responses"] = json!([{}, {}])));
    let short = || {
        let answers =
            |answer: &mut Value| answer["Responses"].as_array_mut().map(|all| all.remove(0));
        Fault::Reply(Edit::new(move |answer| drop(answers(answer))))
    };
    let conflict = || Fault::cancelled(&["TransactionConflict", "None"]);
    for (fault, error) in [
        (conflict(), "contention: gave up after 1 attempts"),
        (Fault::error("AccessDeniedException"), "reading items failed"),
        (gone(), "reading items failed"),
        (short(), "reading items failed"),
    ] {
        stack.wire.inject("TransactGetItems", 0, fault);
        let read = once.get_aggregate::<Customer>(&catalog(), &customer("1"), None).await;
        assert_eq!(read.expect_err("it is not known").to_string(), error);
    }
    stack.wire.inject("TransactGetItems", 0, conflict());
    assert_eq!(versions(&log, &customer("1"), Range::default()).await, [1, 3]);
}

#[tokio::test]
async fn every_send_of_a_group_has_the_token_of_its_push() {
    let stack = Stack::start();
    for _ in 0..2 {
        stack.wire.inject("TransactWriteItems", 0, Fault::LostBefore);
    }
    let log = stack.table();
    log.push_event_group(group(NEW)).await.expect("pushed at last");
    log.push_event_group(group(PushPlace::At(2))).await.expect("pushed");
    let sent = stack.wire.take().into_iter().filter(|sent| sent.operation == "TransactWriteItems");
    let tokens: Vec<_> = sent
        .map(|sent| {
            let token = sent.request["ClientRequestToken"].as_str().expect("a token").to_owned();
            let items = sent.request["TransactItems"].as_array().expect("actions").clone();
            assert!(items.iter().all(|item| item["Put"]["Item"]["pushId"]["S"] == token.as_str()));
            token
        })
        .collect();
    let [first, second, third, other] = tokens.try_into().expect("four sends");
    assert_eq!((&first, &first), (&second, &third));
    assert_ne!(first, other);
}
