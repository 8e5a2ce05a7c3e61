//! Partitions that share a batch and a page: a fault of one does not stop another.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_dynamo::wire::{Director, Edit, Fault, Wire};
use ringfence_dynamo::{Item, Retry};
use ringfence_feed::{Doorbell, FeedError, IndexError, Outcome, Partition};
use serde_json::{Value, json};

use crate::streams::{AGGREGATES, push};
use crate::world::{EVENTS, INDEX, World, changed, partition, run};

/// The item of an event as someone else might have written it.
async fn rewrite(world: &World, id: &str, position: &str, edit: impl FnOnce(&mut Item)) {
    let mut events = world.items(EVENTS).await;
    events.retain(|item| item["id"].as_s().is_ok_and(|found| found == id));
    events.retain(|item| item["position"].as_s().is_ok_and(|found| found == position));
    let mut item = events.remove(0);
    edit(&mut item);
    let put = world.client.put_item().table_name(EVENTS).set_item(Some(item));
    put.send().await.expect("someone writes over an event");
}

/// Nested lists; an item may have 32 levels.
fn nested(levels: usize) -> AttributeValue {
    let innermost = AttributeValue::N("1".to_owned());
    (0..levels).fold(innermost, |inner, _| AttributeValue::L(vec![inner]))
}

fn of(n: u64) -> Partition {
    partition(&changed(n, "x")).into()
}

fn counts(outcomes: &BTreeMap<Partition, Outcome>) -> u64 {
    outcomes.values().filter_map(|outcome| outcome.as_ref().ok()).sum()
}

/// Refuses every transaction that reads, as the store does while one of the items is being written.
struct Busy;

impl Director for Busy {
    fn faults(&self, operation: &str, request: &Value) -> Vec<Fault> {
        let reads = request["TransactItems"].as_array().map_or(0, Vec::len);
        let mut reasons = vec!["None"; reads];
        reasons.fill("TransactionConflict");
        (operation == "TransactGetItems").then(|| Fault::cancelled(&reasons)).into_iter().collect()
    }

    fn carried_out(&self, _: &str, _: &Value, _: u16) {}
}

#[test]
fn a_partition_is_indexed_while_its_fence_is_being_written() {
    run(1, async {
        let world = World::new();
        for n in 0..97 {
            world.append(vec![changed(n, "x")]).await;
        }
        let indexer = world.indexer(world.directed(Arc::new(Busy)), INDEX);
        let outcomes = indexer.index((0..97).map(of), Retry::default()).await;
        assert_eq!(counts(&outcomes), 97, "{outcomes:?}");
        assert_eq!(world.check(INDEX).await.len(), 97);
    });
}

/// A batch that leaves the fence of a partition unprocessed whose name ends with this.
fn unprocessed(name: &'static str) -> Fault {
    Fault::Reply(Edit::new(move |answer| {
        let Some(fences) = answer["Responses"][EVENTS].as_array_mut() else { return };
        let late =
            |fence: &mut Value| fence["id"]["S"].as_str().is_some_and(|id| id.ends_with(name));
        let left: Vec<_> = fences.extract_if(.., late).collect();
        let keys: Vec<_> =
            left.iter().map(|f| json!({ "id": f["id"], "position": f["position"] })).collect();
        if !keys.is_empty() {
            answer["UnprocessedKeys"] = json!({ EVENTS: { "Keys": keys } });
        }
    }))
}

/// Throttles the fence of one partition in each look but the first. The fault of the first look is `first`.
fn throttled_after(first: Fault) {
    run(2, async {
        let world = World::new();
        for n in 1..4 {
            world.append(vec![changed(n, "x")]).await;
        }
        let wire = Wire::default();
        // The first batch reads what is indexed.
        wire.inject("BatchGetItem", 1, first);
        for look in 2..=8 {
            wire.inject("BatchGetItem", look, unprocessed(":t2"));
        }
        let indexer = world.indexer(world.wired(&wire), INDEX);
        let outcomes = indexer.index((1..4).map(of), Retry::default()).await;
        assert!(wire.is_spent());
        assert_eq!(counts(&outcomes), 2);
        let error = outcomes[&of(2)].as_ref().expect_err("its fence was not read in the end");
        assert!(error.is_transient(), "{error:?}");
        world.index_all(INDEX).await;
        world.check(INDEX).await;
    });
}

#[test]
fn a_fence_that_stays_throttled_stops_only_its_partition_and_only_for_now() {
    throttled_after(unprocessed(":t2"));
}

#[test]
fn a_fence_that_was_read_too_early_and_is_then_throttled_is_asked_for_again() {
    throttled_after(without_fences());
}

/// In the middle of an append a read may show the event and not yet the fence that counts it.
fn without_fences() -> Fault {
    Fault::Reply(Edit::new(|answer| {
        if let Some(fences) = answer["Responses"][EVENTS].as_array_mut() {
            fences.clear();
        }
    }))
}

#[test]
fn a_fence_that_does_not_count_the_event_of_the_doorbell_yet_is_read_again() {
    run(3, async {
        let world = World::new();
        world.append(vec![changed(1, "x")]).await;
        world.index_all(INDEX).await;
        let wire = Wire::default();
        let indexer = world.indexer(world.wired(&wire), INDEX);
        // The fence as it is now is the answer after the next append.
        indexer.index([of(1)], Retry::default()).await;
        let mut before =
            wire.take().into_iter().filter(|exchange| exchange.operation == "BatchGetItem");
        let old = before.next_back().expect("a read of the fence").answer;
        let event = world.append(vec![changed(1, "y")]).await.remove(0);
        let old = move |answer: &mut Value| answer["Responses"] = old["Responses"].clone();
        wire.inject("BatchGetItem", 1, Fault::Reply(Edit::new(old)));
        wire.inject("BatchGetItem", 2, without_fences());
        let doorbell = Doorbell { partition: of(1), event: event.position.position().cloned() };
        let outcomes = indexer.index([doorbell], Retry::default()).await;
        assert!(wire.is_spent());
        assert_eq!(outcomes[&of(1)].as_ref().ok(), Some(&1), "{outcomes:?}");
        world.check(INDEX).await;
    });
}

#[test]
fn an_event_that_no_fence_ever_counts_is_named_and_waits_for_a_person() {
    run(4, async {
        let world = World::new();
        let event = world.append(vec![changed(1, "x")]).await.remove(0);
        let position = event.position.position().expect("of the DCB log").to_string();
        let later = position.replacen("17", "18", 1);
        let doorbell = Doorbell { partition: of(1), event: later.clone().try_into().ok() };
        let indexer = world.indexer(world.client.clone(), INDEX);
        let outcomes = indexer.index([doorbell], Retry::default()).await;
        let error = outcomes[&of(1)].as_ref().expect_err("no fence counts it");
        let IndexError::News(cause) = error else { panic!("{error:?}") };
        let expected =
            format!("fence#thingId:t1 does not count event {later}; run `ringfence repair`");
        assert_eq!(cause.to_string(), expected);
        assert!(!error.is_transient());
    });
}

#[test]
fn an_event_that_no_page_can_hold_stops_only_its_partition() {
    run(5, async {
        let world = World::new();
        let mut culprits = Vec::new();
        for n in 0..40 {
            let events =
                world.append(vec![changed(n, "x"), changed(n, "y"), changed(n, "z")]).await;
            if n == 7 || n == 23 {
                let event = &events[1];
                let (id, position) = (event.partition.as_str(), event.position.to_string());
                rewrite(&world, id, &position, |item| {
                    item.insert("data".to_owned(), nested(31));
                })
                .await;
                culprits.push((of(n), position));
            }
        }
        let indexer = world.indexer(world.client.clone(), INDEX);
        let outcomes = indexer.index((0..40).map(of), Retry::default()).await;
        assert_eq!(counts(&outcomes), 38 * 3);
        for (partition, position) in culprits {
            let error = outcomes[&partition].as_ref().expect_err("no page holds it");
            let IndexError::Unwritable { position: found, source, .. } = error else {
                panic!("{error:?}")
            };
            assert_eq!(found.to_string(), position);
            assert!(matches!(**source, FeedError::Failed { .. }) && !error.is_transient());
        }
        // The events before it are there; those after it wait.
        assert_eq!(world.feed(INDEX).await.len(), 38 * 3 + 2);
        world.check_density(&world.feed(INDEX).await);
    });
}

#[test]
fn when_a_table_refuses_every_request_no_event_is_blamed() {
    run(6, async {
        let world = World::new();
        world.append(vec![changed(1, "x"), changed(2, "x")]).await;
        let wire = Wire::default();
        wire.inject("TransactWriteItems", 0, Fault::error("AccessDeniedException"));
        let indexer = world.indexer(world.wired(&wire), INDEX);
        let outcomes = indexer.index([of(1), of(2)], Retry::default()).await;
        for outcome in outcomes.values() {
            let error = outcome.as_ref().expect_err("no permission");
            assert!(error.is_transient(), "{error:?}");
        }
    });
}

#[test]
fn an_event_of_almost_400_kb_has_a_page_of_its_own() {
    run(7, async {
        let world = World::new();
        let partition = push(&world.aggregates, &[1], 3).await.remove(0);
        let mut events = world.items(AGGREGATES).await;
        events.retain(|item| item["version"] == AttributeValue::N("2".to_owned()));
        let mut item = events.remove(0);
        let text = AttributeValue::S("x".repeat(408_000));
        item.insert("payload".to_owned(), AttributeValue::M([("text".to_owned(), text)].into()));
        let put = world.client.put_item().table_name(AGGREGATES).set_item(Some(item));
        put.send().await.expect("someone writes a large event");
        let indexer = world.indexer(world.client.clone(), INDEX);
        let outcomes = indexer.index([partition.clone()], Retry::default()).await;
        assert_eq!(outcomes[&partition].as_ref().ok(), Some(&3), "{outcomes:?}");
        assert_eq!(world.check(INDEX).await.len(), 3);
    });
}
