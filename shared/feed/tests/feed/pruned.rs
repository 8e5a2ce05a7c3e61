//! Streams whose first events are pruned before, while or after several indexers see them for the first time.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use ringfence_aws::{Random, Retry};
use ringfence_core::Envelope;
use ringfence_feed::{Indexed, Indexer, Notification, Partition};
use ringfence_harness::bound;
use tokio::time::sleep;

use crate::streams::{append, stream};
use crate::weather::Weather;
use crate::world::{INDEX, World, by_partition, run};

/// Small worlds, each with another interleaving.
fn worlds() -> u64 {
    bound(20, 64)
}

/// The slots of the one stream that are in the index.
async fn indexed(world: &World) -> Vec<u64> {
    let entries = world.feed(INDEX).await;
    let partitions = by_partition(entries.into_iter().map(|entry| entry.event));
    partitions.into_values().flatten().map(|event| event.slot).collect()
}

/// The index has no gap. An event that counts as done is in it, or was pruned before the stream's first entry.
async fn check(world: &World, done: &[(Vec<u64>, Indexed)], seed: u64) {
    let slots = indexed(world).await;
    let first = slots.first().copied().unwrap_or_default();
    assert!(slots.iter().copied().eq((first..).take(slots.len())), "seed {seed}: {slots:?}");
    for (shown, outcome) in done {
        match outcome {
            Ok(_) => {
                let missing = shown.iter().find(|slot| **slot >= first && !slots.contains(slot));
                assert_eq!(missing, None, "seed {seed}: {shown:?} counts as done: {slots:?}");
            }
            Err(error) => assert!(!error.is_transient(), "seed {seed}: {error}"),
        }
    }
}

/// A stream gets some events, and loses some of the first. Meanwhile indexers see any of its records, or none, in any
/// order; at the end every record is delivered.
async fn survive(seed: u64) {
    let (world, mut random) = (World::new(), Random::new(&[seed, 4]));
    let mut records = Vec::new();
    let mut partition = None;
    for _ in 0..2 + random.below(3) {
        let of = append(&world.documents, 1, 1 + random.below(3), "x").await;
        records.extend(world.records(&of).await);
        partition = Some(of);
    }
    let partition: Partition = partition.expect("at least two appends");
    let indexers = 2 + random.below(2);
    let runs = (0..indexers).map(|n| {
        let weather = Weather::new(&[seed, n], 0, None);
        let indexer = world.indexer(world.directed(Arc::new(weather)), INDEX);
        let percent = [0, 40][usize::from(random.chance(70))];
        (indexer, records.iter().filter(|_| random.chance(percent)).cloned().collect())
    });
    let runs: Vec<(_, Vec<Notification>)> = runs.collect();
    let (name, envelope, upto) = (stream(1), Envelope::default(), random.below(9));
    let pruned_after = Duration::from_millis(random.below(2) * random.below(20));
    let prune = async {
        sleep(pruned_after).await;
        world.documents.prune(&name, upto, &envelope).await.expect("pruned");
    };
    let run = async |(indexer, shown): (Indexer, Vec<Notification>)| {
        let slots =
            shown.iter().flat_map(|notification| notification.events.keys().copied()).collect();
        let notifications = if shown.is_empty() { vec![partition.clone().into()] } else { shown };
        let outcome = indexer.index(notifications, Retry::default()).await.remove(&partition);
        (slots, outcome.expect("an outcome"))
    };
    let (mut done, ()): (Vec<_>, _) = futures::join!(join_all(runs.into_iter().map(run)), prune);
    check(&world, &done, seed).await;
    for record in records {
        let indexer = world.indexer(world.client.clone(), INDEX);
        done.push(run((indexer, vec![record])).await);
    }
    check(&world, &done, seed).await;
}

#[test]
fn no_interleaving_puts_an_event_over_a_gap_or_loses_one_that_counts_as_done() {
    for seed in 0..worlds() {
        run(seed, survive(seed));
    }
}
