//! The throughput and the cost of several indexers that put their pages at one end: of 4 and 16, in `cargo proof` also
//! of 1 and 48.
//!
//! Each request takes some milliseconds, by a seed, in a time that only requests and pauses move. So a run repeats
//! exactly. The key of the pages bears as much as one key of DynamoDB.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::join_all;
use ringfence_aws::wire::{Director, Fault};
use ringfence_aws::{Clock, Item, Random, Retry, write_units};
use ringfence_feed::{Indexer, Notification};
use ringfence_harness::bound;
use serde_json::Value;

use crate::world::{EVENTS, NOW_MS, World, changed, event_key, run, sources};

/// Events of all indexers together, at least two batches of each.
const EVENTS_MIN: u64 = 2_000;
/// Events that each indexer has put before.
const WARM: u64 = 2;
/// An entry has about so many bytes.
const ENTRY_BYTES: usize = 64;
/// Write units a second of one key.
const KEY_UNITS: f64 = 1_000.0;

/// Delays each request, and limits the key of the pages.
struct Tip {
    clock: Clock,
    state: Mutex<State>,
}

struct State {
    random: Random,
    /// Units of the key that were left, and when, in milliseconds.
    left: (f64, u64),
    /// The units of the last page.
    page_units: f64,
    puts: u32,
    refused: u32,
}

fn is_page(operation: &str, request: &Value) -> bool {
    operation == "PutItem" && request["Item"]["e"].is_object()
}

impl Director for Tip {
    fn faults(&self, operation: &str, request: &Value) -> Vec<Fault> {
        let state = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let writes = ["PutItem", "UpdateItem"].contains(&operation);
        let (least, more) = if writes { (5, 7) } else { (2, 6) };
        let delay = Fault::Delay(Duration::from_millis(least + state.random.below(more)));
        if is_page(operation, request) {
            let (left, at) = state.left;
            let now = self.clock.now_ms();
            let left = (left + (now - at) as f64 / 1_000.0 * KEY_UNITS).min(KEY_UNITS);
            state.left = (left, now);
            if left <= 0.0 {
                return vec![delay, Fault::error("ThrottlingException")];
            }
        }
        vec![delay]
    }

    fn carried_out(&self, operation: &str, request: &Value, status: u16) {
        if is_page(operation, request) {
            let state = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if status == 200 {
                let entries = request["Item"]["e"]["L"].as_array().map_or(0, Vec::len);
                state.page_units = write_units(entries * ENTRY_BYTES);
            }
            // A refused put costs as much as the page that is there.
            state.left.0 -= state.page_units;
            state.puts += 1;
            state.refused += u32::from(status != 200);
        }
    }
}

/// The speed and the cost of indexing.
#[derive(Debug)]
struct Figures {
    events_a_second: f64,
    refused_percent: f64,
    /// Units an event. The meter counts a refused write as if it had been carried out.
    read: f64,
    write: f64,
}

/// Indexes batches of events of as many partitions into a new table, by as many indexers as the logs have shards.
async fn figures(world: &World, image: &Item, shards: u64, batch: u64) -> Figures {
    let table = &format!("index-{shards}-{batch}");
    world.add_index(table);
    let random = Random::new(&[shards]);
    let state = State { random, left: (0.0, 0), page_units: 0.0, puts: 0, refused: 0 };
    let state = Mutex::new(state);
    let tip = Arc::new(Tip { clock: world.clock.clone(), state });
    let indexers: Vec<_> =
        (0..shards).map(|_| world.indexer(world.directed(tip.clone()), table)).collect();
    let index = async |(indexer, shard): (&Indexer, u64), events: std::ops::Range<u64>| {
        let batch: Vec<_> = events.map(|n| notification(image, shard, n)).collect();
        while indexer.index(batch.clone(), Retry::default()).await.values().any(Result::is_err) {}
    };
    // Each has met the others.
    for n in 0..WARM {
        join_all(indexers.iter().zip(0..).map(|it| index(it, n..n + 1))).await;
    }
    let used = || {
        let totals = indexers.iter().map(|indexer| indexer.meter().snapshot().total());
        totals.fold((0.0, 0.0), |(read, write), it| (read + it.read, write + it.write))
    };
    let puts = || {
        let state = tip.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.puts, state.refused)
    };
    // From here on the key bears no burst.
    let now = world.clock.now_ms();
    tip.state.lock().unwrap_or_else(PoisonError::into_inner).left = (0.0, now);
    let (began, before, puts_before) = (world.clock.now_ms(), used(), puts());
    let each = EVENTS_MIN.div_ceil(shards).next_multiple_of(batch).max(2 * batch);
    let batches = async |it: (&Indexer, u64)| {
        for n in (0..each / batch).map(|n| WARM + n * batch) {
            index(it, n..n + batch).await;
        }
    };
    join_all(indexers.iter().zip(0..).map(batches)).await;
    let (after, puts_after) = (used(), puts());
    let checkpoints = world.checkpoints(table).await;
    assert_eq!(checkpoints.len() as u64, shards * (WARM + each));
    world.check_density(checkpoints);
    let events = (shards * each) as f64;
    Figures {
        events_a_second: events * 1_000.0 / (world.clock.now_ms() - began) as f64,
        refused_percent: 100.0 * f64::from(puts_after.1 - puts_before.1)
            / f64::from(puts_after.0 - puts_before.0),
        read: (after.0 - before.0) / events,
        write: (after.1 - before.1) / events,
    }
}

/// A record of the first event of a partition.
fn notification(image: &Item, shard: u64, n: u64) -> Notification {
    let mut image = image.clone();
    image.insert("id".to_owned(), AttributeValue::S(format!("thingId:s{shard}e{n}")));
    image.insert("at".to_owned(), AttributeValue::N((NOW_MS + n).to_string()));
    Notification::of_image(&sources(), image).expect("an image").expect("an event")
}

#[test]
fn more_indexers_are_as_fast_and_cost_little_more() {
    run(1, async {
        let world = World::new();
        let event = world.append(vec![changed(1, "x")]).await.remove(0);
        let get = world.client.get_item().table_name(EVENTS).set_key(Some(event_key(&event)));
        let image = get.send().await.expect("an answer").item.expect("an event");
        // About the figures in docs/limits.md.
        let bounds = [
            (4, 1_000, 6_000.0, 1.08),
            (16, 100, 1_500.0, 1.16),
            (1, 1_000, 10_000.0, 1.06),
            (48, 100, 1_700.0, 1.22),
            (16, 1_000, 7_000.0, 1.08),
        ];
        for (shards, batch, least, write_most) in bounds.into_iter().take(bound(2, 5)) {
            let figures = figures(&world, &image, shards, batch).await;
            println!("{shards} {batch}: {figures:?}");
            let Figures { events_a_second, refused_percent, read, write } = figures;
            assert!(
                events_a_second >= least && refused_percent <= 5.0,
                "{shards} {batch}: {figures:?}"
            );
            assert!(read <= 1.05 && write <= write_most, "{shards} {batch}: {figures:?}");
        }
    });
}
