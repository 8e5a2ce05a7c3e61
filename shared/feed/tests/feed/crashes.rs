//! Indexers that crash at any point, meet any failure and run beside each other.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{join, join_all};
use ringfence_aws::{Random, Retry};
use ringfence_feed::{Notification, Partition};
use ringfence_harness::bound;
use tokio::time::sleep;

use crate::lease::spoil;
use crate::streams;
use crate::weather::Weather;
use crate::world::{INDEX, World, any, run};

/// Crash points of one world, whose index grows with each run.
const CRASHES_OF_WORLD: u64 = 50;
/// About the number of requests of a run that has something to do.
const REQUESTS: u64 = 12;

/// One world: writers append, runs crash, and between crashes one run is not disturbed.
async fn survive(seed: u64) {
    let mut random = Random::new(&[seed, 1]);
    let mut world = World::new();
    world.epoch_entries = 3 + random.below(9);
    let things = 1 + random.below(4);
    let mut known = Vec::new();
    let mut notifications: BTreeSet<Partition> = BTreeSet::new();
    for crash in 0..CRASHES_OF_WORLD {
        for _ in 0..random.below(3) {
            let events = (0..=random.below(3)).map(|_| any(&mut random, things)).collect();
            notifications.extend(world.append(events).await.iter().map(Partition::of));
        }
        if random.chance(20) {
            notifications.extend(streams::any(&world, &mut random, things).await);
        }
        // Each notification is delivered at least once, together with any others.
        let due = notifications.iter().filter(|_| random.chance(80)).cloned().collect();
        let due = delivered(&world, &mut random, due).await;
        let at = 1 + random.below(REQUESTS);
        let percent = [0, 10, 30][usize::try_from(random.below(3)).unwrap_or(0)];
        let weather = Weather::new(&[seed, crash], percent, Some(at));
        let indexer = world.indexer(world.directed(Arc::new(weather.clone())), INDEX);
        weather.over(indexer.index(due, Retry::default())).await;
        if random.chance(5) {
            // Requests that are still on their way arrive.
            sleep(Duration::from_secs(10)).await;
            world.index_all(INDEX).await;
            notifications.clear();
            let entries = world.check(INDEX).await;
            // Earlier entries have not changed.
            assert_eq!(entries[..known.len()], known[..]);
            known = entries;
        }
    }
    sleep(Duration::from_secs(10)).await;
    world.index_all(INDEX).await;
    let entries = world.check(INDEX).await;
    assert_eq!(entries[..known.len()], known[..]);
}

/// Notifications of the partitions: some with nothing else, some with whichever events are delivered together.
async fn delivered(world: &World, random: &mut Random, due: Vec<Partition>) -> Vec<Notification> {
    let mut notifications = Vec::new();
    for partition in due {
        let percent = [0, 50, 100][usize::try_from(random.below(3)).unwrap_or(0)];
        if percent == 0 {
            notifications.push(partition.into());
        } else {
            let records = world.records(&partition).await.into_iter();
            notifications.extend(records.filter(|_| random.chance(percent)));
        }
    }
    notifications
}

fn survive_all(worlds: impl Iterator<Item = u64>) {
    for seed in worlds {
        let survived = std::panic::catch_unwind(|| run(seed, survive(seed)));
        if let Err(panic) = survived {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// With 10,000 crash points in `cargo proof`.
fn worlds() -> u64 {
    bound(4, 200)
}

#[test]
fn no_crash_loses_or_repeats_an_event() {
    survive_all(0..worlds() / 2);
}

#[test]
fn no_crash_loses_or_repeats_an_event_in_other_worlds() {
    survive_all(worlds() / 2..worlds());
}

#[test]
fn eight_indexers_of_the_same_partitions_agree() {
    for seed in 0..bound(1, 6) {
        run(seed, async move {
            let mut random = Random::new(&[seed, 2]);
            let mut world = World::new();
            world.epoch_entries = 5 + random.below(50);
            // Most remember an end of the index that the others have left behind. Some crash, perhaps with the lease.
            let begin = |n: u64, crash: Option<u64>| {
                let weather = Weather::new(&[seed, n], 10, crash);
                (weather.clone(), world.indexer(world.directed(Arc::new(weather)), INDEX))
            };
            let mut indexers: Vec<_> = (0..8).map(|n| begin(n, None)).collect();
            for round in 1..5 {
                for (n, indexer) in indexers.iter_mut().enumerate().skip(5) {
                    *indexer = begin(8 * round + n as u64, Some(10 + random.below(90)));
                }
                for n in 0..10 {
                    let events = (0..=random.below(4)).map(|_| any(&mut random, 5)).collect();
                    world.append(events).await;
                    streams::any(&world, &mut random, 3).await;
                    if n == 0 {
                        // The ends that the others remember are old from the beginning.
                        world.index_all(INDEX).await;
                        spoil(&world, &mut random).await;
                    }
                }
                let partitions: Vec<_> = world.events().await.into_keys().collect();
                let mut runs = Vec::new();
                for (weather, indexer) in &indexers {
                    let due = delivered(&world, &mut random, partitions.clone()).await;
                    runs.push(weather.over(indexer.index(due, Retry::default())));
                }
                let spoil = async {
                    for _ in 0..4 {
                        sleep(Duration::from_millis(random.below(300))).await;
                        spoil(&world, &mut random).await;
                    }
                };
                // With such faults each may give up; its effects stay.
                join(join_all(runs), spoil).await;
                sleep(Duration::from_secs(10)).await;
                world.check_density(world.checkpoints(INDEX).await);
            }
            world.index_all(INDEX).await;
            world.check(INDEX).await;
        });
    }
}
