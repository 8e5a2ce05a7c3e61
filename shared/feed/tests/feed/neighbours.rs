//! Partitions that share a batch and a page: a fault of one does not stop another.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::Retry;
use ringfence_aws::wire::{Director, Edit, Fault, Wire};
use ringfence_feed::{FeedError, IndexError, Indexed, Partition};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::streams::{AGGREGATES, push};
use crate::world::{EVENTS, INDEX, World, changed, partition, run};

fn of(n: u64) -> Partition {
    partition(&changed(n, "x")).into()
}

fn counts(outcomes: &BTreeMap<Partition, Indexed>) -> u64 {
    outcomes.values().filter_map(|outcome| outcome.as_ref().ok()).sum()
}

/// Takes no page with the second event of some partitions, as if it were too large. Only a document's event can be.
struct Refused([&'static str; 2]);

impl Director for Refused {
    fn faults(&self, _: &str, request: &Value) -> Vec<Fault> {
        let entries = request["Item"]["e"]["L"].as_array();
        let is_refused = |entry: &Value| {
            let [partition, slot] = [&entry["L"][0]["S"], &entry["L"][1]["N"]];
            *slot == "2" && self.0.iter().any(|refused| partition == refused)
        };
        let hit = entries.into_iter().flatten().any(is_refused);
        hit.then(|| Fault::error("ValidationException")).into_iter().collect()
    }

    fn carried_out(&self, _: &str, _: &Value, _: u16) {}
}

/// Throttles every read of one partition.
struct Throttled(&'static str);

impl Director for Throttled {
    fn faults(&self, operation: &str, request: &Value) -> Vec<Fault> {
        let reads = operation == "Query" && request["TableName"] == EVENTS;
        let values = request["ExpressionAttributeValues"].as_object().into_iter().flatten();
        let hit = reads && values.into_iter().any(|(_, value)| value["S"] == self.0);
        hit.then(|| Fault::error("ThrottlingException")).into_iter().collect()
    }

    fn carried_out(&self, _: &str, _: &Value, _: u16) {}
}

#[test]
fn a_partition_that_can_not_be_read_stops_alone_and_for_now() {
    run(1, async {
        let world = World::new();
        for n in 0..100 {
            world.append(vec![changed(n, "x")]).await;
        }
        let throttled = Arc::new(Throttled("thingId:t2"));
        let indexer = world.indexer(world.directed(throttled), INDEX);
        let outcomes = indexer.index((0..100).map(of), Retry::default()).await;
        assert_eq!(counts(&outcomes), 99, "{outcomes:?}");
        let error = outcomes[&of(2)].as_ref().expect_err("it was not read");
        assert!(error.is_transient(), "{error:?}");
        world.index_all(INDEX).await;
        assert_eq!(world.check(INDEX).await.len(), 100);
    });
}

/// A batch that does not get to some of its keys.
#[test]
fn a_progress_that_is_read_late_stops_nothing() {
    run(2, async {
        let world = World::new();
        for note in ["x", "y"] {
            world.index_all(INDEX).await;
            for n in 0..20 {
                world.append(vec![changed(n, note)]).await;
            }
        }
        let wire = Wire::default();
        for batch in 0..5 {
            let left = Edit::new(move |answer| {
                let Some(items) = answer["Responses"][INDEX].as_array_mut() else { return };
                let late = items.split_off(items.len().div_ceil(2));
                let keys: Vec<_> =
                    late.iter().map(|i| json!({ "p": i["p"], "i": i["i"] })).collect();
                if !keys.is_empty() {
                    answer["UnprocessedKeys"] = json!({ INDEX: { "Keys": keys } });
                }
            });
            wire.inject("BatchGetItem", batch, Fault::Reply(left));
        }
        let indexer = world.indexer(world.wired(&wire), INDEX);
        let outcomes = indexer.index((0..20).map(of), Retry::default()).await;
        assert!(wire.is_spent());
        assert_eq!(counts(&outcomes), 20, "{outcomes:?}");
        assert_eq!(world.check(INDEX).await.len(), 40);
    });
}

#[test]
fn a_page_has_the_events_of_its_partitions_in_the_order_of_their_times() {
    run(8, async {
        let world = World::new();
        let mut appended = Vec::new();
        for n in [2, 0, 1, 2] {
            appended.extend(world.append(vec![changed(n, "x")]).await);
            sleep(Duration::from_millis(10)).await;
        }
        world.index_all(INDEX).await;
        let entries = world.check(INDEX).await.into_iter();
        assert_eq!(entries.map(|entry| entry.event).collect::<Vec<_>>(), appended);
    });
}

#[test]
fn an_event_that_no_page_can_hold_stops_only_its_partition() {
    run(5, async {
        let world = World::new();
        for n in 0..40 {
            world.append(vec![changed(n, "x"), changed(n, "y"), changed(n, "z")]).await;
        }
        let refused = Arc::new(Refused(["thingId:t7", "thingId:t23"]));
        let indexer = world.indexer(world.directed(refused), INDEX);
        let outcomes = indexer.index((0..40).map(of), Retry::default()).await;
        assert_eq!(counts(&outcomes), 38 * 3);
        for n in [7, 23] {
            let error = outcomes[&of(n)].as_ref().expect_err("no page holds it");
            let IndexError::Unwritable { slot: 2, source, .. } = error else { panic!("{error:?}") };
            assert!(matches!(**source, FeedError::Failed { .. }) && !error.is_transient());
        }
        // The events before it are there; those after it wait.
        assert_eq!(world.feed(INDEX).await.len(), 38 * 3 + 2);
        world.check_density(world.checkpoints(INDEX).await);
    });
}

#[test]
fn when_a_table_refuses_every_request_no_event_is_blamed() {
    run(6, async {
        let world = World::new();
        world.append(vec![changed(1, "x"), changed(2, "x")]).await;
        let wire = Wire::default();
        wire.inject("PutItem", 0, Fault::error("AccessDeniedException"));
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
