//! Several indexers and a table that refuses many of their requests.
//!
//! Each request takes some milliseconds, by a seed, in a time that only requests and pauses move. So a run repeats exactly.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use ringfence_aws::wire::{Director, Fault, Limits, Wire};
use ringfence_aws::{Random, Retry};
use ringfence_feed::Notification;
use serde_json::Value;

use crate::world::{EVENTS, INDEX, World, changed, run, sources};

/// Delays each request.
struct Line(Mutex<Random>);

impl Director for Line {
    fn faults(&self, _: &str, _: &Value) -> Vec<Fault> {
        let ms = 3 + self.0.lock().expect("no panic").below(6);
        vec![Fault::Delay(Duration::from_millis(ms))]
    }

    fn carried_out(&self, _: &str, _: &Value, _: u16) {}
}

/// Appends this many events. Returns their records in the stream.
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
