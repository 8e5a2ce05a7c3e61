//! The throughput and the cost of several indexers that put their pages at one end: of 4 and 16, in `cargo proof` also
//! of 1 and 48. And the cost of four at low load.
//!
//! Each request takes some milliseconds, by a seed, in a time that only requests and pauses move. So a run repeats
//! exactly. A key range bears as much as one of DynamoDB.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::join_all;
use ringfence_aws::wire::{Backend, Capacity, Director, Fault, Limits, Wire};
use ringfence_aws::{Item, Random, Retry};
use ringfence_feed::{Indexer, Notification};
use ringfence_harness::bound;
use serde_json::Value;

use crate::world::{EVENTS, NOW_MS, World, changed, event_key, run, sources};

/// Events of all indexers together, at least two batches of each.
const EVENTS_MIN: u64 = 2_000;
/// Events that each indexer has put before, in two pages of this many.
const WARM: u64 = 2 * WARM_PAGE;
const WARM_PAGE: u64 = 40;

/// Delays each request.
struct Line(Mutex<Random>);

impl Director for Line {
    fn faults(&self, operation: &str, _: &Value) -> Vec<Fault> {
        let writes = ["PutItem", "UpdateItem"].contains(&operation);
        let (least, more) = if writes { (5, 7) } else { (2, 6) };
        let more = self.0.lock().unwrap_or_else(PoisonError::into_inner).below(more);
        vec![Fault::Delay(Duration::from_millis(least + more))]
    }

    fn carried_out(&self, _: &str, _: &Value, _: u16) {}
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

/// An index table, and its pages that were put, and that came second.
fn counted(world: &World, table: &str) -> (Backend, Arc<[AtomicU64; 2]>) {
    world.add_index(table);
    let pages: Arc<[AtomicU64; 2]> = Arc::default();
    let (engine, counts) = (world.backend(), pages.clone());
    let engine: Backend = Arc::new(move |operation: &str, body: &[u8]| {
        let answer = engine(operation, body);
        if operation == "PutItem" {
            counts[usize::from(answer.0 != 200)].fetch_add(1, Ordering::Relaxed);
        }
        answer
    });
    (engine, pages)
}

/// As many indexers as the logs have shards.
fn indexers(world: &World, backend: &Backend, table: &str, shards: u64) -> Vec<Indexer> {
    let wire = Wire::default();
    wire.direct(Arc::new(Line(Mutex::new(Random::new(&[shards])))));
    (0..shards).map(|_| world.indexer(wire.client_of(backend.clone()), table)).collect()
}

/// The units that they have used together, to read and to write.
fn used(indexers: &[Indexer]) -> (f64, f64) {
    let totals = indexers.iter().map(|indexer| indexer.meter().snapshot().total());
    totals.fold((0.0, 0.0), |(read, write), it| (read + it.read, write + it.write))
}

/// Indexes batches of events of as many partitions into a new table with these limits, by as many indexers as the logs
/// have shards.
async fn figures(
    world: &World,
    image: &Item,
    (shards, batch): (u64, u64),
    limits: Limits,
) -> Figures {
    let table = &format!("index-{shards}-{batch}");
    let (engine, pages) = counted(world, table);
    let limited = || Capacity::new(engine.clone(), limits);
    let capacity = Arc::new(Mutex::new(limited()));
    let now = capacity.clone();
    let backend: Backend = Arc::new(move |operation: &str, body: &[u8]| {
        let capacity = now.lock().unwrap_or_else(PoisonError::into_inner).clone();
        capacity.call(operation, body)
    });
    let indexers = indexers(world, &backend, table, shards);
    let index = async |(indexer, shard): (&Indexer, u64), events: std::ops::Range<u64>| {
        let batch: Vec<_> = events.map(|n| notification(image, shard, n)).collect();
        while indexer.index(batch.clone(), Retry::default()).await.values().any(Result::is_err) {}
    };
    // Each has met the others.
    for n in [0, WARM_PAGE] {
        join_all(indexers.iter().zip(0..).map(|it| index(it, n..n + WARM_PAGE))).await;
    }
    let puts = || [0, 1].map(|n| pages[n].load(Ordering::Relaxed) as f64);
    // From here on the key bears no burst.
    *capacity.lock().unwrap_or_else(PoisonError::into_inner) = limited();
    let (began, before, puts_before) = (world.clock.now_ms(), used(&indexers), puts());
    let each = EVENTS_MIN.div_ceil(shards).next_multiple_of(batch).max(2 * batch);
    let batches = async |it: (&Indexer, u64)| {
        for n in (0..each / batch).map(|n| WARM + n * batch) {
            index(it, n..n + batch).await;
        }
    };
    join_all(indexers.iter().zip(0..).map(batches)).await;
    let (after, puts_after) = (used(&indexers), puts());
    let checkpoints = world.checkpoints(table).await;
    assert_eq!(checkpoints.len() as u64, shards * (WARM + each));
    world.check_density(checkpoints);
    let events = (shards * each) as f64;
    let [put, second] = [0, 1].map(|n| puts_after[n] - puts_before[n]);
    Figures {
        events_a_second: events * 1_000.0 / (world.clock.now_ms() - began) as f64,
        refused_percent: 100.0 * second / (put + second),
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

/// A world, and the item of an event.
async fn world() -> (World, Item) {
    let world = World::new();
    let event = world.append(vec![changed(1, "x")]).await.remove(0);
    let get = world.client.get_item().table_name(EVENTS).set_key(Some(event_key(&event)));
    let image = get.send().await.expect("an answer").item.expect("an event");
    (world, image)
}

/// The table takes half of the moves that the indexers would make.
#[test]
fn indexers_that_a_table_throttles_read_no_progress_of_the_pages_of_others() {
    run(2, async {
        let (world, image) = world().await;
        let limits = Limits { ranges: 4, write: 100.0, ..Limits::default() };
        let figures = figures(&world, &image, (4, 100), limits).await;
        println!("{figures:?}");
        assert!(figures.read <= 1.2 && figures.events_a_second >= 250.0, "{figures:?}");
    });
}

#[test]
fn more_indexers_are_as_fast_and_cost_little_more() {
    run(1, async {
        let (world, image) = world().await;
        // The end of the index is alone in its key range.
        let limits = Limits { ranges: 1 << 20, ..Limits::default() };
        // About the figures in docs/limits.md.
        let bounds = [
            (4, 1_000, 12_000.0, 1.07),
            (16, 100, 2_500.0, 1.16),
            (1, 1_000, 8_500.0, 1.06),
            (48, 100, 2_500.0, 1.20),
            (16, 1_000, 15_000.0, 1.07),
        ];
        for (shards, batch, least, write_most) in bounds.into_iter().take(bound(2, 5)) {
            let figures = figures(&world, &image, (shards, batch), limits).await;
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

/// A million events a day come to the four shards of a new table. Refused pages cost less than the lease would.
#[test]
fn indexers_of_lone_events_take_no_lease() {
    run(2, async {
        const SHARDS: u64 = 4;
        const EACH: u64 = 100;
        let (world, image) = world().await;
        let (table, image) = ("index-lone", &image);
        let (engine, pages) = counted(&world, table);
        let indexers = indexers(&world, &engine, table, SHARDS);
        let shard = async |(indexer, shard): (&Indexer, u64)| {
            let [mut gaps, mut pauses] = [0, 1].map(|of| Random::new(&[shard, of]));
            let (began, mut at) = (world.clock.now_ms(), 0.0);
            let times = (0..EACH).map(|n| {
                let unit = (1 + gaps.below(1_000)) as f64 / 1_001.0;
                at -= unit.ln() * (SHARDS * 86_400) as f64 / 1_000_000.0;
                (n, Duration::from_secs_f64(at))
            });
            let (mut times, mut batches) = (times.peekable(), 0);
            while times.peek().is_some() {
                let now = Duration::from_millis(world.clock.now_ms() - began);
                let batch = std::iter::from_fn(|| times.next_if(|(_, at)| *at <= now));
                let batch: Vec<_> = batch.map(|(n, _)| notification(image, shard, n)).collect();
                batches += u64::from(!batch.is_empty());
                let outcomes = indexer.index(batch, Retry::default()).await;
                assert!(outcomes.values().all(Result::is_ok), "{outcomes:?}");
                tokio::time::sleep(Duration::from_millis(50 + pauses.below(100))).await;
            }
            batches
        };
        let batches: u64 = join_all(indexers.iter().zip(0..).map(shard)).await.iter().sum();
        let (events, (read, write)) = ((SHARDS * EACH) as f64, used(&indexers));
        let [put, second] = [0, 1].map(|n| pages[n].load(Ordering::Relaxed));
        // Each event has its progress, and each batch its page.
        assert_eq!(write, events + (put + second) as f64);
        assert!(put == batches && second * 7 <= put, "{second} of {put}");
        // The progress, a look at the end, and the progress that tells whether the page before it is settled.
        assert!(read <= 2.5 * events, "{} an event", read / events);
    });
}
