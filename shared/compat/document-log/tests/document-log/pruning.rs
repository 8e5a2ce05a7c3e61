//! Pruning: whole calves go first, from the oldest on, then events in the Tip. Nothing is reported again.

use ringfence_aws::wire::{Edit, Fault};
use ringfence_core::{Consistency, Envelope};
use ringfence_document_log::{
    AccessStrategy, Cache, Direction, DocumentError, Load, Payload, Pruned, Span, Store,
    StreamAppend, StreamAppended,
};
use serde_json::Value;

use crate::basket::{add, baskets, snapshot, state};
use crate::contract::{append, read, written};
use crate::on_both;
use crate::stack::{Stack, events_max, log, name};

on_both![
    calves_are_pruned_whole_and_the_tip_event_by_event,
    a_snapshot_outlives_its_events,
    a_stream_without_a_tip_is_not_pruned,
    a_writer_that_read_the_tip_before_a_trim_brings_nothing_back,
];

#[tokio::test]
async fn events_that_the_prune_has_not_seen_are_not_trimmed() {
    let stack = Stack::start().await;
    let (log, envelope) = (log(stack.store()).with_limits(events_max(3)), Envelope::default());
    let before = written(append(&log, None, 0..3).await);
    written(append(&log, Some(&before), 3..4).await);
    // The Tip calves after the prune has looked for calves and before it reads the Tip.
    let before = crate::requests::json(&before.to_item());
    let stale = Edit::new(move |answer| answer["Items"] = Value::from(vec![before.clone()]));
    stack.wire.inject("Query", 0, Fault::Reply(stale));
    let pruned = log.prune(&name("a"), 2, &envelope).await.expect("pruned");
    assert_eq!(pruned, Pruned { deleted: 0, deferred: 2, first: 0 });
    assert!(stack.wire.is_spent());
    assert_eq!(read(&log, 0..9, Direction::Forward).await.expect("whole"), [0, 1, 2, 3]);
}

#[tokio::test]
async fn a_trim_that_read_the_tip_before_an_unfold_keeps_the_unfold() {
    let stack = Stack::start().await;
    let (log, envelope, stream) = (log(stack.store()), Envelope::default(), name("a"));
    let before = written(append(&log, None, 0..3).await);
    let (known, events, unfolds) = (Some(&before), vec![], vec![Payload::new("State", None)]);
    let unfold = StreamAppend {
        stream: &stream,
        known,
        by_etag: true,
        events,
        unfolds,
        envelope: &envelope,
    };
    let tip = written(log.append(unfold).await.expect("it is settled"));
    let before = crate::requests::json(&before.to_item());
    let stale = Edit::new(move |answer| answer["Item"] = before.clone());
    stack.wire.inject("GetItem", 1, Fault::Reply(stale));
    let pruned = log.prune(&stream, 2, &envelope).await.expect("pruned");
    assert_eq!((pruned.first, stack.wire.is_spent()), (2, true));
    let left = log.tip(&stream, Consistency::Strong, &envelope).await.expect("an answer");
    assert_eq!(left.map(|left| (left.unfolds, left.events.len())), Some((tip.unfolds, 1)));
}

async fn calves_are_pruned_whole_and_the_tip_event_by_event<S: Store>(store: S) {
    let (log, envelope) = (log(store).with_limits(events_max(3)), Envelope::default());
    let mut tip = None;
    for n in 0..8 {
        tip = Some(written(append(&log, tip.as_ref(), n..n + 1).await));
    }
    // Calves of 0..3 and 3..6, and 6 and 7 in the Tip.
    let prune = async |before| log.prune(&name("a"), before, &envelope).await.expect("pruned");
    let pruned = |deleted, deferred, first| Pruned { deleted, deferred, first };
    assert_eq!(prune(0).await, pruned(0, 0, 0));
    assert_eq!(prune(2).await, pruned(0, 2, 0));
    assert_eq!(prune(4).await, pruned(3, 1, 3));
    assert_eq!(prune(4).await, pruned(0, 1, 3));
    assert_eq!(read(&log, 3..9, Direction::Forward).await.expect("whole"), [3, 4, 5, 6, 7]);
    let error = read(&log, 2..9, Direction::Forward).await.expect_err("it is gone");
    assert_eq!(error.to_string(), "Basket-a begins at event 3, event 2 was pruned");
    let error = read(&log, 2..9, Direction::Backward).await.expect_err("it is gone");
    assert!(matches!(error, DocumentError::Pruned { wanted: 2, first: 3, .. }), "{error}");
    assert_eq!(prune(7).await, pruned(4, 0, 7));
    assert_eq!(read(&log, 7..9, Direction::Backward).await.expect("whole"), [7]);
    assert_eq!(prune(99).await, pruned(1, 0, 8));
    assert_eq!(prune(99).await, pruned(0, 0, 8));
    assert_eq!(log.verify(&name("a"), &envelope).await.expect("an answer").problems, []);
    let tip = log.tip(&name("a"), Consistency::Strong, &envelope).await.expect("an answer");
    let tip = written(append(&log, tip.as_ref(), 8..9).await);
    assert_eq!((tip.version, tip.base()), (9, 8));
}

async fn a_snapshot_outlives_its_events<S: Store + Clone>(store: S) {
    let (log, envelope) = (|| log(store.clone()).with_limits(events_max(2)), Envelope::default());
    let category = baskets(log(), snapshot(), Cache::none());
    for sku in 0..5 {
        add(&category, "x", sku).await;
    }
    let pruned = log().prune(&name("x"), 5, &envelope).await.expect("pruned");
    assert_eq!((pruned.deleted, pruned.first), (5, 5));
    assert_eq!(state(&category, "x").await.total(), 5);
    assert_eq!(add(&category, "x", 9).await, 6);
    let all = baskets(log(), AccessStrategy::Unoptimized, Cache::none());
    let error = all.query("x", Load::Eventual, &envelope, |_| ()).await.expect_err("they are gone");
    assert_eq!(error.to_string(), "Basket-x begins at event 5, event 0 was pruned");
}

#[tokio::test]
async fn a_trim_reports_nothing_to_the_stream() {
    let stack = Stack::start().await;
    let (log, envelope) = (log(stack.store()), Envelope::default());
    let tip = written(append(&log, None, 0..3).await);
    written(append(&log, Some(&tip), 3..5).await);
    log.prune(&name("a"), 4, &envelope).await.expect("pruned");
    let records = stack.stream().read().expect("records");
    let images =
        records.iter().map(|record| crate::streams::image(&record["dynamodb"]["NewImage"]));
    let spans: Vec<_> = images.map(|image| Span::of_image(image).expect("a batch")).collect();
    let reported: Vec<_> =
        spans.iter().map(|s| s.as_ref().map(|s| (s.index, s.events.len()))).collect();
    assert_eq!(reported, [Some((0, 3)), Some((3, 2)), None]);
}

#[tokio::test]
async fn a_lost_answer_to_a_trim_or_a_deletion_changes_nothing() {
    let stack = Stack::start().await;
    let (log, envelope) = (log(stack.store()).with_limits(events_max(2)), Envelope::default());
    let mut tip = None;
    for n in 0..4 {
        tip = Some(written(append(&log, tip.as_ref(), n..n + 1).await));
    }
    stack.wire.inject("DeleteItem", 0, Fault::LostAfter);
    stack.wire.inject("UpdateItem", 0, Fault::LostAfter);
    let pruned = log.prune(&name("a"), 3, &envelope).await.expect("pruned");
    assert_eq!(pruned, Pruned { deleted: 3, deferred: 0, first: 3 });
    assert!(stack.wire.is_spent());
}

/// It can be repaired from its calves.
async fn a_stream_without_a_tip_is_not_pruned<S: Store + Clone>(store: S) {
    let (log, envelope) = (log(store.clone()).with_limits(events_max(2)), Envelope::default());
    let before = written(append(&log, None, 0..2).await);
    let tip = written(append(&log, Some(&before), 2..3).await);
    store.delete(&name("a"), tip.key).await.expect("deleted");
    let refused = log.prune(&name("a"), 99, &envelope).await;
    assert!(matches!(refused, Err(DocumentError::NoTip { .. })), "{refused:?}");
    let report = log.verify(&name("a"), &envelope).await.expect("an answer");
    assert_ne!(report.problems, [], "the calf is still there");
    store.delete(&name("a"), 0).await.expect("deleted");
    let nothing = log.prune(&name("a"), 99, &envelope).await.expect("nothing is there");
    assert_eq!(nothing, Pruned::default());
}

async fn a_writer_that_read_the_tip_before_a_trim_brings_nothing_back<S: Store + Clone>(store: S) {
    let limited = || log(store.clone()).with_limits(events_max(3));
    let (writer, envelope) = (limited(), Envelope::default());
    let tip = written(append(&writer, None, 0..3).await);
    limited().prune(&name("a"), 2, &envelope).await.expect("pruned");
    let found = match append(&writer, Some(&tip), 3..4).await {
        StreamAppended::Conflict(Some(found)) => found,
        other => panic!("{other:?}"),
    };
    let tip = written(append(&writer, Some(&found), 3..6).await);
    assert_eq!((tip.version, tip.events.len()), (6, 3), "it calved");
    let error = read(&writer, 0..9, Direction::Forward).await.expect_err("they stay gone");
    assert!(matches!(error, DocumentError::Pruned { first: 2, .. }), "{error}");
}
