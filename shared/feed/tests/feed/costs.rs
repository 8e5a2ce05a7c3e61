//! Exact requests and units of an indexed event and of a replayed one.
//!
//! The item of an event has just less than 1,024 bytes, as it counts for the price of an append.

use futures::StreamExt;
use ringfence::{BoundaryId, NewEvent};
use ringfence_dynamo::{Retry, item_bytes};
use ringfence_feed::{Checkpoint, Index, Until};

use crate::world::{EVENTS, INDEX, World, changed, run};

/// What an index run costs: requests, read units of the log and of the index, write units.
#[derive(Debug, PartialEq)]
struct Cost {
    requests: u32,
    read: f64,
    write: f64,
}

/// Makes an event of almost 1,024 bytes.
const NOTE_BYTES: usize = 830;

fn event(thing: u64) -> NewEvent {
    changed(thing, &"x".repeat(NOTE_BYTES))
}

/// Appends, one event a transaction, and indexes it at once.
async fn cost(things: impl Iterator<Item = u64>) -> (Cost, World) {
    let world = World::new();
    // Neither the tip nor the partitions are new.
    for thing in 0..97 {
        world.append(vec![event(thing)]).await;
    }
    world.index_all(INDEX).await;
    let mut partitions: Vec<BoundaryId> = Vec::new();
    for thing in things {
        partitions.extend(world.append(vec![event(thing)]).await.into_iter().map(|e| e.partition));
    }
    for event in world.items(EVENTS).await.iter().filter(|item| item.contains_key("event")) {
        assert!((1_000..=1_024).contains(&item_bytes(event)), "{} bytes", item_bytes(event));
    }
    let indexer = world.indexer(world.client.clone(), INDEX);
    let outcomes = indexer.index(partitions, Retry::default()).await;
    assert!(outcomes.values().all(Result::is_ok), "{outcomes:?}");
    let (log, index) = (indexer.logs().dcb.meter().snapshot(), indexer.meter().snapshot());
    let (read, write) = (log.total().read + index.total().read, index.total().write);
    let requests = log.reads + log.writes + index.reads + index.writes;
    (Cost { requests, read, write }, world)
}

#[test]
fn an_event_alone() {
    run(0, async {
        let (cost, _) = cost([1].into_iter()).await;
        // What is indexed: 2. The fence: 1. The event: 1.
        // The page of a little over 1 KB, in a transaction: 4; the tip: 2; the progress: 2.
        assert_eq!(cost, Cost { requests: 4, read: 4.0, write: 8.0 });
    });
}

#[test]
fn a_hundred_events_of_one_partition() {
    run(1, async {
        let (cost, _) = cost([1; 100].into_iter()).await;
        // 0.28 and 2.04 an event: the page takes 2 for each of its 100 KB.
        assert_eq!(cost, Cost { requests: 4, read: 28.0, write: 204.0 });
    });
}

#[test]
fn events_of_ninety_seven_partitions() {
    run(2, async {
        let (cost, _) = cost(0..97).await;
        // 3.01 and 4.04 an event: each partition has its progress, its fence and its query.
        assert_eq!(cost, Cost { requests: 100, read: 292.0, write: 392.0 });
    });
}

#[test]
fn what_is_indexed_already_costs_no_query() {
    run(3, async {
        let (_, world) = cost([1].into_iter()).await;
        let indexer = world.indexer(world.client.clone(), INDEX);
        let of = world.events().await.into_keys().next();
        indexer.index(of, Retry::default()).await;
        let (log, index) = (indexer.logs().dcb.meter().snapshot(), indexer.meter().snapshot());
        assert_eq!((log.reads, index.reads, index.writes), (1, 1, 0));
        assert_eq!((log.total().read, index.total().read), (1.0, 2.0));
    });
}

#[test]
fn a_replayed_event() {
    run(4, async {
        let (_, world) = cost([1; 903].into_iter()).await;
        let index = Index::new(world.client.clone(), INDEX);
        assert_eq!(index.read(Checkpoint::START, Until::Present).count().await, 1_000);
        let usage = index.meter().snapshot();
        // A replica's answer with all of 1 MB, and two with nothing: a replica's and a strong one.
        assert_eq!((usage.reads, usage.total().read), (3, 125.0 + 0.5 + 1.0));
    });
}
