//! Requests that fail, answers that are lost, and reads that show half of a write.

use std::sync::Arc;

use ringfence_aws::wire::{Edit, Fault};
use ringfence_core::{Consistency, Envelope, StoreError};
use ringfence_document_log::{
    AccessStrategy, Batch, Cache, Direction, DocumentError, DocumentLog, Load, Store, StreamAppend,
    StreamAppended,
};
use serde_json::Value;
use tokio::sync::Barrier;

use crate::basket::{State, add, baskets, of, rolling, state};
use crate::contract::{append, events, read, written};
use crate::stack::{Stack, command, events_max, log, name};

/// Creates, appends and calves, each hit by `fault`; then the stream has each event once.
async fn each_write_survives(fault: impl Fn(&str) -> Fault) {
    let stack = Stack::start().await;
    let log = log(stack.store()).with_limits(events_max(2));
    let mut tip = None;
    for (n, operation) in (0..).zip(["PutItem", "UpdateItem", "TransactWriteItems"]) {
        stack.wire.inject(operation, 0, fault(operation));
        tip = Some(written(append(&log, tip.as_ref(), n..n + 1).await));
        assert!(stack.wire.is_spent(), "{operation} was not sent");
    }
    assert_eq!(read(&log, 0..9, Direction::Forward).await.expect("whole"), [0, 1, 2]);
    let report = log.verify(&name("a"), &Envelope::default()).await.expect("an answer");
    assert_eq!(report.problems, []);
}

#[tokio::test]
async fn a_lost_answer_is_not_a_conflict() {
    each_write_survives(|_| Fault::LostAfter).await;
    each_write_survives(|_| Fault::AnswerAfter(500, Value::Null)).await;
}

#[tokio::test]
async fn a_lost_or_throttled_write_is_sent_again() {
    each_write_survives(|_| Fault::LostBefore).await;
    each_write_survives(|_| Fault::error("ThrottlingException")).await;
    each_write_survives(|_| Fault::error("InternalServerError")).await;
}

#[tokio::test]
async fn another_transaction_on_the_item_is_not_a_conflict() {
    each_write_survives(|operation| match operation {
        "TransactWriteItems" => Fault::cancelled(&["None", "TransactionConflict"]),
        _ => Fault::error("TransactionConflictException"),
    })
    .await;
}

#[tokio::test]
async fn an_existing_calf_is_no_conflict_while_another_transaction_holds_the_tip() {
    each_write_survives(|operation| match operation {
        "TransactWriteItems" => {
            Fault::cancelled(&["ConditionalCheckFailed", "TransactionConflict"])
        }
        _ => Fault::error("TransactionConflictException"),
    })
    .await;
}

#[tokio::test]
async fn an_existing_calf_under_the_expected_tip_is_an_error() {
    let stack = Stack::start().await;
    let log = log(stack.store()).with_limits(events_max(1));
    let tip = written(append(&log, None, 0..1).await);
    let reasons = Fault::cancelled(&["ConditionalCheckFailed", "None"]);
    stack.wire.inject("TransactWriteItems", 0, reasons);
    let (stream, envelope) = (name("a"), Envelope::default());
    let (known, events) = (Some(&tip), events(1..2));
    let append = StreamAppend {
        stream: &stream,
        known,
        by_etag: false,
        events,
        unfolds: vec![],
        envelope: &envelope,
    };
    let error = log.append(append).await.expect_err("no attempt can help");
    assert!(
        matches!(error, DocumentError::Store(StoreError::Failed { operation: "appending", .. })),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_calving_whose_token_has_expired_is_recognised_by_its_etag() {
    let stack = Stack::start().await;
    let log = log(stack.store()).with_limits(events_max(1));
    let tip = written(append(&log, None, 0..1).await);
    stack.wire.inject("TransactWriteItems", 0, Fault::LostAfter);
    stack.wire.inject("TransactWriteItems", 1, Fault::without_token());
    let tip = written(append(&log, Some(&tip), 1..2).await);
    assert_eq!((tip.version, stack.wire.is_spent()), (2, true));
}

#[tokio::test]
async fn when_a_store_keeps_refusing_the_error_has_its_reason() {
    let stack = Stack::start().await;
    let log = log(stack.store());
    let tip = written(append(&log, None, 0..1).await);
    let again = async || {
        let (stream, envelope) = (name("a"), Envelope::default());
        let (known, events) = (Some(&tip), events(1..2));
        let append = StreamAppend {
            stream: &stream,
            known,
            by_etag: false,
            events,
            unfolds: vec![],
            envelope: &envelope,
        };
        log.append(append).await.expect_err("it keeps failing")
    };
    let repeat = |fault: &dyn Fn() -> Fault| {
        (0..8).for_each(|_| stack.wire.inject("UpdateItem", 0, fault()));
    };
    repeat(&|| Fault::error("ThrottlingException"));
    assert!(matches!(again().await, DocumentError::Store(StoreError::Throttled { attempts: 8 })));
    repeat(&|| Fault::error("TransactionConflictException"));
    assert!(matches!(
        again().await,
        DocumentError::Store(StoreError::Contention { attempts: 8, .. })
    ));
    repeat(&|| Fault::LostBefore);
    assert!(matches!(
        again().await,
        DocumentError::Store(StoreError::OutcomeUnknown { attempts: 8, .. })
    ));
    stack.wire.inject("UpdateItem", 0, Fault::LostBefore);
    stack.wire.inject("UpdateItem", 0, Fault::error("ValidationException"));
    assert!(matches!(
        again().await,
        DocumentError::Store(StoreError::OutcomeUnknown { attempts: 2, .. })
    ));
    stack.wire.inject("UpdateItem", 0, Fault::error("ValidationException"));
    assert!(matches!(
        again().await,
        DocumentError::Store(StoreError::Failed { operation: "appending", .. })
    ));
}

/// The first writer's answer is lost. Before it can send again, the second writer has appended `between` to the stream.
async fn overtaken(
    envelope: &Envelope,
    fault: Fault,
    between: std::ops::Range<u64>,
) -> Result<StreamAppended, DocumentError> {
    overtaken_and(None, envelope, fault, between).await
}

/// The same, with this fault on the next read of the first writer.
async fn overtaken_and(
    unread: Option<Fault>,
    envelope: &Envelope,
    fault: Fault,
    between: std::ops::Range<u64>,
) -> Result<StreamAppended, DocumentError> {
    let stack = Stack::start().await;
    let first = log(stack.store());
    let tip = written(append(&first, None, 0..1).await);
    let second = log(stack.other_store()).with_limits(events_max(1));
    let barrier = Arc::new(Barrier::new(2));
    stack.wire.inject("UpdateItem", 0, fault);
    stack.wire.inject("UpdateItem", 0, Fault::Meet(barrier.clone()));
    let stream = name("a");
    let append_first = first.append(StreamAppend {
        stream: &stream,
        known: Some(&tip),
        by_etag: false,
        events: events(1..2),
        unfolds: vec![],
        envelope,
    });
    let overtake = async {
        // Waits for the first send. The second send of that writer meets at the barrier.
        while stack.take().iter().filter(|e| e.operation == "UpdateItem").count() == 0 {
            tokio::task::yield_now().await;
        }
        let known = loop {
            let tip = second.tip(&stream, Consistency::Strong, envelope).await.expect("an answer");
            if tip.as_ref().is_some_and(|tip| tip.version == between.start) {
                break tip;
            }
        };
        for n in between {
            let tip = second.tip(&stream, Consistency::Strong, envelope).await.expect("an answer");
            written(append(&second, tip.as_ref().or(known.as_ref()), n..n + 1).await);
        }
        unread.into_iter().for_each(|fault| stack.wire.inject("Query", 0, fault));
        barrier.wait().await;
    };
    let (outcome, ()) = tokio::join!(append_first, overtake);
    assert!(stack.wire.is_spent());
    outcome
}

#[tokio::test]
async fn the_outcome_of_a_lost_write_stays_open_if_the_stream_can_not_be_read_again() {
    let unread = Some(Fault::error("AccessDeniedException"));
    let outcome = overtaken_and(unread, &command("c-1"), Fault::LostAfter, 2..3).await;
    assert!(
        matches!(outcome, Err(DocumentError::Store(StoreError::OutcomeUnknown { .. }))),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn an_own_event_before_events_of_others_is_found() {
    // The own event is in a calf after one more event, and after several.
    for end in [3, 5] {
        let outcome = overtaken(&command("c-1"), Fault::LostAfter, 2..end).await;
        assert_eq!(written(outcome.expect("it is settled")).version, 2);
    }
    // An empty id is not stored.
    let mut command = command("c-1");
    command.metadata.insert("correlationId", "").expect("not a key of the log");
    let outcome = overtaken(&command, Fault::LostAfter, 2..3).await;
    assert_eq!(written(outcome.expect("it is settled")).version, 2);
}

#[tokio::test]
async fn an_event_of_another_writer_in_its_place_is_a_conflict() {
    let outcome = overtaken(&command("c-1"), Fault::LostBefore, 1..3).await;
    assert!(matches!(outcome, Ok(StreamAppended::Conflict(Some(_)))), "{outcome:?}");
}

#[tokio::test]
async fn an_equal_event_without_the_id_of_a_command_leaves_the_outcome_open() {
    let outcome = overtaken(&Envelope::default(), Fault::LostAfter, 2..3).await;
    assert!(
        matches!(outcome, Err(DocumentError::Store(StoreError::OutcomeUnknown { .. }))),
        "{outcome:?}"
    );
    let outcome = overtaken(&Envelope::default(), Fault::LostBefore, 1..2).await;
    assert!(
        matches!(outcome, Err(DocumentError::Store(StoreError::OutcomeUnknown { .. }))),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_rolling_state_that_was_overtaken_leaves_the_outcome_open() {
    let stack = Stack::start().await;
    let category = baskets(log(stack.store()), rolling(), Cache::none());
    let other = baskets(log(stack.other_store()), rolling(), Cache::none());
    add(&category, "x", 1).await;
    let barrier = Arc::new(Barrier::new(2));
    stack.wire.inject("UpdateItem", 0, Fault::LostAfter);
    stack.wire.inject("UpdateItem", 0, Fault::Meet(barrier.clone()));
    let envelope = Envelope::default();
    let decide = |state: &State| state.add(1, 1).map(|events| of("x", events));
    let first = category.transact("x", Load::Eventual, &envelope, decide);
    let overtake = async {
        while state(&other, "x").await.total() < 2 {}
        add(&other, "x", 1).await;
        barrier.wait().await;
    };
    let (outcome, ()) = tokio::join!(first, overtake);
    assert!(
        matches!(outcome, Err(DocumentError::Store(StoreError::OutcomeUnknown { .. }))),
        "{outcome:?}"
    );
    assert_eq!(state(&other, "x").await.total(), 3, "decided once");
}

/// Five calves of one event each, and the Tip.
async fn six<S: Store>(log: &DocumentLog<S>) -> Batch {
    let mut tip = None;
    for n in 0..6 {
        tip = Some(written(append(log, tip.as_ref(), n..n + 1).await));
    }
    tip.expect("six events")
}

/// A page without the calf at this key.
pub(crate) fn without(key: u64) -> Fault {
    let key = key.to_string();
    Fault::Reply(Edit::new(move |answer| {
        let items = answer["Items"].as_array_mut().expect("items");
        items.retain(|item| item["i"]["N"] != *key);
    }))
}

#[tokio::test]
async fn a_read_with_a_gap_is_made_again() {
    let stack = Stack::start().await;
    let log = log(stack.store()).with_limits(events_max(1));
    six(&log).await;
    for hidden in 0..5 {
        for direction in [Direction::Forward, Direction::Backward] {
            stack.wire.inject("Query", 0, without(hidden));
            let found = read(&log, 0..6, direction).await.expect("whole").len();
            assert_eq!((found, stack.wire.is_spent()), (6, true), "{hidden} {direction:?}");
            let again = stack.take().pop().expect("a request").request;
            assert_eq!(again["ConsistentRead"], true, "a replica could show the gap once more");
        }
    }
    // A Tip that the replica does not have yet.
    let hide = Edit::new(|answer| {
        answer["Items"].as_array_mut().expect("items").retain(|item| item["etag"].is_null());
    });
    stack.wire.inject("Query", 0, Fault::Reply(hide.clone()));
    assert_eq!(read(&log, 0..6, Direction::Backward).await.expect("whole").len(), 6);
    stack.wire.inject("Query", 0, Fault::Reply(hide));
    assert_eq!(read(&log, 0..6, Direction::Forward).await.expect("whole").len(), 6);
}

#[tokio::test]
async fn an_event_that_is_seen_in_a_calf_and_in_an_old_tip_is_one_event() {
    let stack = Stack::start().await;
    let log = log(stack.store()).with_limits(events_max(2));
    let mut tip = written(append(&log, None, 0..2).await);
    let old = tip.clone();
    for n in 2..4 {
        tip = written(append(&log, Some(&tip), n..n + 1).await);
    }
    // A page with the new calf and the old Tip.
    let old_tip = crate::requests::json(&old.to_item());
    let torn = Edit::new(move |answer| {
        for item in answer["Items"].as_array_mut().expect("items") {
            if !item["etag"].is_null() {
                *item = old_tip.clone();
            }
        }
    });
    for direction in [Direction::Forward, Direction::Backward] {
        stack.wire.inject("Query", 0, Fault::Reply(torn.clone()));
        let mut found = read(&log, 0..9, direction).await.expect("whole");
        found.sort_unstable();
        assert_eq!(found, [0, 1], "the events of that time");
    }
}

#[tokio::test]
async fn a_state_is_never_folded_from_a_gap() {
    let stack = Stack::start().await;
    let limited = log(stack.store()).with_limits(events_max(1));
    let category = baskets(limited, AccessStrategy::Unoptimized, Cache::none());
    for sku in 0..6 {
        add(&category, "x", sku).await;
    }
    for hidden in 0..5 {
        stack.wire.inject("Query", 0, without(hidden));
        let read = category.query("x", Load::Eventual, &Envelope::default(), |s| s.total()).await;
        assert_eq!((read.expect("whole"), stack.wire.is_spent()), ((6, 6), true), "{hidden}");
    }
}

#[tokio::test]
async fn a_replica_that_lags_behind_the_cache_is_ignored() {
    let stack = Stack::start().await;
    let category =
        baskets(log(stack.store()), AccessStrategy::Unoptimized, crate::basket::some_cache());
    add(&category, "x", 1).await;
    let old = category.log().tip(&name("x"), Consistency::Strong, &Envelope::default()).await;
    let old = crate::requests::json(&old.expect("an answer").expect("a Tip").to_item());
    add(&category, "x", 2).await;
    stack.wire.inject("GetItem", 0, Fault::Reply(Edit::new(move |a| a["Item"] = old.clone())));
    stack.take();
    add(&category, "x", 3).await;
    assert_eq!(stack.operations(), ["GetItem", "UpdateItem"], "no conflict");
}

#[tokio::test]
async fn no_attempt_goes_on_past_the_deadline() {
    let stack = Stack::start().await;
    let log = log(stack.store());
    let deadline_ms = Some(crate::stack::NOW_MS);
    let envelope = Envelope { deadline_ms, ..Envelope::default() };
    let (stream, events) = (name("a"), events(0..1));
    stack.wire.inject("PutItem", 0, Fault::Delay(std::time::Duration::from_secs(3_600)));
    let append = StreamAppend {
        stream: &stream,
        known: None,
        by_etag: false,
        events,
        unfolds: vec![],
        envelope: &envelope,
    };
    let error = log.append(append).await.expect_err("no time is left");
    assert!(
        matches!(error, DocumentError::Store(StoreError::OutcomeUnknown { attempts: 1, .. })),
        "{error:?}"
    );
}
