//! Refusals and lost answers: which requests follow, and which answer.

use std::time::Duration;

use ringfence::{
    Append, Appended, Command, Consistency, EventLog, Plan, Reads, SequencedEvent, Slice,
    StoreError,
};
use ringfence_aggregate_log::{
    AggregateError, AggregateEvent, AggregateTable, Push, PushPlace, Range, Version, event_of_image,
};
use ringfence_dynamo::Retry;
use ringfence_dynamo::wire::{Edit, Fault};
use serde_json::json;

use crate::customers::{
    Customer, CustomerEvent, Transfer, added, catalog, customer, envelope, points, register,
    transfer,
};
use crate::stack::{Stack, TABLE, conflict, events, run, versions};

const NEW: PushPlace = PushPlace::After(Version::NONE);

async fn push(log: &AggregateTable, place: PushPlace) -> Result<AggregateEvent, AggregateError> {
    log.push_event(&customer("1"), place, added(1)).await
}

fn group(place: PushPlace) -> Vec<Push> {
    ["1", "2"].map(|id| Push { key: customer(id), place, events: vec![added(1)] }).to_vec()
}

#[tokio::test]
async fn a_push_whose_answer_is_lost_is_sent_again_and_recognised() {
    let stack = Stack::start().await;
    stack.wire.inject("PutItem", 0, Fault::LostAfter);
    let pushed = push(&stack.table(), NEW).await.expect("it is there");
    assert_eq!(stack.operations(), ["PutItem", "PutItem"]);
    assert_eq!(events(&stack.table(), &customer("1"), Range::default()).await, [pushed]);
}

#[tokio::test]
async fn the_same_event_of_another_writer_is_not_taken_for_ones_own() {
    let stack = Stack::start().await;
    // Same aggregate, version, type, payload and millisecond.
    push(&stack.table(), NEW).await.expect("pushed");
    stack.wire.inject("PutItem", 0, Fault::LostBefore);
    assert_eq!(conflict(push(&stack.table(), NEW).await), ("CUSTOMERS#1".to_owned(), 1));
}

#[tokio::test]
async fn a_group_whose_answer_is_lost_is_sent_again_and_recognised() {
    for forgotten in [false, true] {
        let stack = Stack::start().await;
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

/// Bob's next version is taken, and another transaction holds the place of Ada's event. That does not say whether an
/// earlier send has put the event there.
#[tokio::test]
async fn a_check_that_fails_beside_an_own_put_that_is_held_does_not_judge_a_lost_send() {
    let stack = Stack::start().await;
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
async fn what_is_refused_for_its_rate_is_sent_again_without_reading() {
    let stack = Stack::start().await;
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
    let stack = Stack::start().await;
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
    let stack = Stack::start().await;
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
    let stack = Stack::start().await;
    let log = stack.table().retrying(Retry::default().within(Duration::from_millis(50)));
    stack.wire.inject("PutItem", 0, Fault::Late(Duration::from_secs(60)));
    let unknown = push(&log, NEW).await;
    assert!(matches!(
        unknown,
        Err(AggregateError::Store(StoreError::OutcomeUnknown { attempts: 1, .. }))
    ));
}

#[tokio::test]
async fn an_event_for_the_end_goes_on_when_the_end_has_moved() {
    let stack = Stack::start().await;
    let log = stack.table();
    for place in [NEW, PushPlace::At(2)] {
        push(&log, place).await.expect("pushed");
    }
    // The read does not show the newest event, as if it came in between.
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
async fn pages_are_joined_and_a_limit_asks_for_no_more_than_is_missing() {
    let stack = Stack::start().await;
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
    let stack = Stack::start().await;
    let mut stream = stack.stream();
    run(&stack.log(), &register("a#1"), None).await;
    let record = stream.read().expect("records").remove(0);
    let image = crate::interchange::item(&record["dynamodb"]["NewImage"]);
    let stored = event_of_image(image.clone()).expect("an event");
    assert_eq!(stored.key, customer("a#1"));
    let typed = CustomerEvent::decode(&SequencedEvent::from(stored)).expect("a customer's");
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

#[tokio::test]
async fn no_decision_is_made_on_an_event_whose_predecessor_is_not_visible() {
    for (versions, fault) in [(3, without(&["2"])), (2, without(&["1"]))] {
        let stack = Stack::start().await;
        let log = stack.table();
        let events = vec![added(1); versions];
        let push = Push { key: customer("1"), place: NEW, events };
        log.push_event_group(vec![push]).await.expect("pushed");
        stack.operations();
        stack.wire.inject("Query", 0, fault);
        let customer = log.get_aggregate::<Customer>(&catalog(), &customer("1"), None).await;
        let points = i64::try_from(versions).expect("a small number");
        assert_eq!(customer.expect("the customer").state.points, points);
        assert_eq!(stack.operations(), ["Query", "Query"]);
    }
}

#[tokio::test]
async fn a_gap_that_another_writer_left_is_read_over() {
    let stack = Stack::start().await;
    let log = stack.table();
    for version in [1, 2, 5, 6] {
        push(&log, PushPlace::Forced(version)).await.expect("pushed");
    }
    stack.operations();
    let all = versions(&log, &customer("1"), Range::default()).await;
    assert_eq!(all, [1, 2, 5, 6]);
    assert_eq!(stack.operations().len(), 4, "it looks again three times");
    // Whether the gap is known, or is looked at again in the middle of the read.
    for log in [log.clone(), stack.table()] {
        let range = Range { limit: Some(3), ..Range::default() };
        assert_eq!(versions(&log, &customer("1"), range).await, [1, 2, 5]);
    }
    let range = Range { reverse: true, ..Range::default() };
    assert_eq!(versions(&log, &customer("1"), range).await, [6, 5, 2, 1]);
}

#[tokio::test]
async fn a_gap_that_stays_is_looked_for_once() {
    let stack = Stack::start().await;
    let log = stack.table();
    for version in [1, 3, 4, 7] {
        push(&log, PushPlace::Forced(version)).await.expect("pushed");
    }
    stack.operations();
    // Each of the two gaps is looked for three times, and not again, not even by a clone.
    assert_eq!(versions(&log, &customer("1"), Range::default()).await, [1, 3, 4, 7]);
    assert_eq!(stack.operations(), ["Query"; 7]);
    let clone = log.clone().retrying(Retry::default());
    assert_eq!(versions(&clone, &customer("1"), Range::default()).await, [1, 3, 4, 7]);
    assert_eq!(stack.operations(), ["Query"]);
    // Another missing version is looked for.
    stack.wire.inject("Query", 0, without(&["4"]));
    assert_eq!(versions(&log, &customer("1"), Range::default()).await, [1, 3, 4, 7]);
    assert_eq!(stack.operations(), ["Query"; 2]);
    // Another writer fills the gap, so it is gone.
    push(&log, PushPlace::Forced(2)).await.expect("pushed");
    stack.operations();
    assert_eq!(versions(&log, &customer("1"), Range::default()).await, [1, 2, 3, 4, 7]);
    assert_eq!(stack.operations(), ["Query"]);
}

#[tokio::test]
async fn an_event_that_is_missing_after_a_gap_is_looked_for_as_well() {
    let stack = Stack::start().await;
    let log = stack.table();
    for version in [1, 3, 4, 5] {
        push(&log, PushPlace::Forced(version)).await.expect("pushed");
    }
    // The last look for version 2 does not show version 4 yet.
    stack.wire.inject("Query", 3, without(&["4"]));
    stack.operations();
    assert_eq!(versions(&log, &customer("1"), Range::default()).await, [1, 3, 4, 5]);
    assert_eq!(stack.operations(), ["Query"; 5]);
}

#[tokio::test]
async fn each_gap_of_a_group_that_shows_item_by_item_is_looked_at_by_itself() {
    // Four answers use up the looks at the first gap. The fifth shows everything.
    let closed: [&[&str]; 4] = [&["5", "7"], &["5", "7"], &["5", "7"], &["7"]];
    let narrowed: [&[&str]; 4] = [&["6", "7"], &["6", "7"], &["6", "7"], &["6"]];
    for hidden in [closed, narrowed] {
        let stack = Stack::start().await;
        let log = stack.table();
        for _ in 0..4 {
            push(&log, PushPlace::End).await.expect("pushed");
        }
        let events = vec![added(1); 4];
        let group = vec![Push { key: customer("1"), place: PushPlace::At(5), events }];
        log.push_event_group(group).await.expect("pushed");
        stack.operations();
        for (pass, versions) in hidden.into_iter().enumerate() {
            stack.wire.inject("Query", pass, without(versions));
        }
        let all = versions(&log, &customer("1"), Range::default()).await;
        assert_eq!(all, [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(stack.operations(), ["Query"; 5]);
    }
}

#[tokio::test(start_paused = true)]
async fn without_time_to_look_again_a_gap_is_not_believed() {
    let (log, _) = crate::stack::in_process();
    for version in [1, 3] {
        push(&log, PushPlace::Forced(version)).await.expect("pushed");
    }
    // No pause between two looks is as short as that.
    let hasty = log.clone().retrying(Retry::default().within(Duration::from_nanos(1)));
    let read = hasty
        .get_aggregate::<Customer>(&catalog(), &customer("1"), None)
        .await
        .expect_err("it is not known");
    let AggregateError::Store(StoreError::Unavailable { source, .. }) = read else {
        panic!("{read:?}");
    };
    assert_eq!(source.to_string(), "no time was left to look for version 2");
    assert_eq!(versions(&log, &customer("1"), Range::default()).await, [1, 3]);
}

#[tokio::test]
async fn every_send_of_a_group_has_the_token_of_its_push() {
    let stack = Stack::start().await;
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
