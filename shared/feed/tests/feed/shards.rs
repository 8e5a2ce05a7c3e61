//! Several indexers that put their pages at one end. Their cost: the same backlog for 1 and 4 of them, and in
//! `cargo proof` for 8 and 16. And a table that refuses many of their requests.
//!
//! Each request takes some milliseconds, by a seed, in a time that only requests and pauses move. So a run repeats exactly.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use ringfence_aws::wire::{Director, Fault, Limits, Wire};
use ringfence_aws::{Random, Retry};
use ringfence_feed::Notification;
use ringfence_harness::bound;
use serde_json::Value;

use crate::world::{EVENTS, INDEX, World, changed, run, sources};

/// Events of the backlog, each the first of its partition.
const BACKLOG: u64 = 800;
/// Events that a stream delivers together.
const BATCH: usize = 50;

/// Delays each request.
struct Line(Mutex<Random>);

impl Director for Line {
    fn faults(&self, _: &str, _: &Value) -> Vec<Fault> {
        let ms = 3 + self.0.lock().expect("no panic").below(6);
        vec![Fault::Delay(Duration::from_millis(ms))]
    }

    fn carried_out(&self, _: &str, _: &Value, _: u16) {}
}

/// Read and write units an event. The meter counts a refused write as if it had been carried out.
#[derive(Debug)]
struct Cost {
    read: f64,
    write: f64,
}

/// Indexes the backlog into a new table by as many indexers, each of a part of it.
async fn cost(world: &World, backlog: &[Notification], shards: usize) -> Cost {
    let table = &format!("index-{shards}");
    world.add_index(table);
    let lines: Vec<_> =
        (0..shards).map(|n| Arc::new(Line(Mutex::new(Random::new(&[n as u64]))))).collect();
    let shard = async |line: Arc<Line>, records: &[Notification]| {
        let indexer = world.indexer(world.directed(line), table);
        for batch in records.chunks(BATCH) {
            while indexer.index(batch.to_vec(), Retry::default()).await.values().any(Result::is_err)
            {
            }
        }
        indexer.meter().snapshot().total()
    };
    let parts = lines.iter().zip(backlog.chunks(backlog.len() / shards));
    let totals = join_all(parts.map(|(line, records)| shard(line.clone(), records))).await;
    assert_eq!(world.feed(table).await.len() as u64, BACKLOG);
    let write = totals.iter().map(|total| total.write).sum::<f64>();
    let read = totals.iter().map(|total| total.read).sum::<f64>();
    Cost { read: read / BACKLOG as f64, write: write / BACKLOG as f64 }
}

/// Appends so many events. Returns what the stream shows of them.
async fn backlog(world: &World, events: u64) -> Vec<Notification> {
    for first in (0..events).step_by(80) {
        world.append((first..first + 80).map(|n| changed(n, "x")).collect()).await;
    }
    let mut images = world.items(EVENTS).await;
    images.sort_by_key(|image| image["at"].as_n().expect("a time").clone());
    let notifications = images.into_iter().map(|image| Notification::of_image(&sources(), image));
    notifications.map(|shown| shown.expect("an image").expect("an event")).collect()
}

#[test]
fn several_indexers_at_one_end_cost_little_more_than_one() {
    run(1, async {
        let world = World::new();
        let backlog = backlog(&world, BACKLOG).await;
        // A little more than what docs/limits.md says. When each indexer read the progress of all partitions after a
        // refused page, and settled the last page itself, 16 of them took 7.6 and 2.2 units.
        let most = [(1, 1.01, 1.2), (4, 1.2, 1.5), (8, 1.3, 1.65), (16, 1.45, 1.9)];
        for (shards, read, write) in most.into_iter().take(bound(2, 4)) {
            let cost = cost(&world, &backlog, shards).await;
            println!("{shards}: {cost:?}");
            assert!(cost.read < read && cost.write < write, "{shards}: {cost:?}");
        }
    });
}

#[test]
fn indexers_that_a_table_refuses_catch_up_and_lose_and_double_nothing() {
    run(2, async {
        let world = World::new();
        let backlog = backlog(&world, 240).await;
        let capacity = world.limited(Limits { ranges: 4, write: 20.0, read: 200.0 });
        let shard = async |n: usize, records: &[Notification]| {
            let wire = Wire::default();
            wire.direct(Arc::new(Line(Mutex::new(Random::new(&[n as u64])))));
            let indexer = world.indexer(wire.client_of(capacity.backend()), INDEX);
            for batch in records.chunks(20) {
                let retry = Retry::default().within(Duration::from_secs(600));
                for rounds in 1.. {
                    let mut outcomes = indexer.index(batch.to_vec(), retry).await;
                    outcomes.retain(|_, outcome| outcome.is_err());
                    let Some(error) = outcomes.into_values().find_map(Result::err) else { break };
                    assert!(error.is_transient(), "{error:?}");
                    assert!(retry.pause(rounds).await, "it does not catch up");
                }
            }
        };
        let parts = backlog.chunks(80).enumerate();
        join_all(parts.map(|(n, records)| shard(n, records))).await;
        println!("{} refused", capacity.refused());
        assert!(capacity.refused() > 100, "{} refused", capacity.refused());
        world.check(INDEX).await;
    });
}
