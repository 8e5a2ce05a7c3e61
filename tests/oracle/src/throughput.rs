//! What one stack carries in a second: the real crates on a store with the limits of a new table.
//!
//! Time is simulated: requests take as long as on DynamoDB, and code takes no time. The stores of a part begin with
//! empty buckets. Not measured: HTTP API, Lambda's delivery beyond a pause between batches, run-commands,
//! fire-deadlines, query-views, and the split of a busy key range.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use futures::future::{BoxFuture, LocalBoxFuture, join, join_all};
use futures::{FutureExt, StreamExt};
use ringfence_aws::Retry;
use ringfence_aws::wire::Limits;
use ringfence_core::prelude::*;
use ringfence_core::{BoundaryId, Catalogs, Lane, SequencedEvent};
use ringfence_feed::{Checkpoint, Index, Notification, Until};
use ringfence_lambda::DeadLetters;
use ringfence_local::template::Template;
use ringfence_local::workspace_root;
use ringfence_reactors::{Delivery, Failed, Handler, InDoubt, Lanes, ReactorTable, Starts};
use ringfence_services::topic::{Bus, Publisher, TopicEntry, Unreachable, Verdict};
use ringfence_views::{Definition, Projector, Ran, View};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

mod world;

use crate::contention::{self, Load, paused};
use crate::market::{Market, OrderId};
use world::{EVENT_BYTES, World, sources};

/// The sample of a stream's batch.
const RECORDS: &str = include_str!("../../../events/publish-events/stream.json");
/// The pause before the next records of a stream.
const DELIVERY: Duration = Duration::from_millis(20);
/// A call of PutEvents, and an effect such as a webhook.
const PUT_EVENTS: Duration = Duration::from_millis(20);
const EFFECT: Duration = Duration::from_millis(108);
/// Longer than anything takes.
const LONG: Duration = Duration::from_secs(900);
/// Events for each other part than the index.
const EVENTS: u64 = 2_000;
/// Rows of a view, its shards, the key ranges of the table (of a new one, or warm for 40,000 units), and the least rows
/// a second. A range may have several shards: of 40, one has three of 16, and none more than two of 32.
const ROWS: [(u64, u32, u64, f64); 3] =
    [(EVENTS, 1, 4, 900.0), (5 * EVENTS, 16, 40, 4_500.0), (10 * EVENTS, 32, 40, 8_000.0)];
/// Shards of the logs' streams.
const SHARDS: [usize; 4] = [1, 4, 16, 48];
/// Events of each partition.
const OF_PARTITION: [u64; 2] = [1, 4];
/// Key ranges of the index: of a new table, and of one that `WarmWriteUnits` has warmed to 40,000 write units.
const TABLES: [(u64, &str); 2] = [(4, "new"), (40, "warm")];
/// Orders a second that check one product, and the copies of its fence.
const ORDERS: [(u64, u16); 5] = [(20, 0), (50, 0), (50, 16), (100, 32), (200, 32)];

/// A measured part.
pub struct Measured {
    /// The part.
    pub what: String,
    /// Its figures.
    pub found: String,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "| {} | {} |", self.what, self.found)
    }
}

/// The most records that a stream delivers together to this function of the shop.
fn batch(function: &str) -> usize {
    let template = Template::load(&workspace_root().join("template.yaml")).expect("a template");
    let model = template.model("http://127.0.0.1:1").expect("the shop's template");
    let mut mappings = model.mappings.iter();
    mappings.find(|mapping| mapping.function == function).expect("a reader of streams").batch_size
}

/// Measures the index with so many shards, each of which delivers as much as is taken, so many events a partition, and
/// so many key ranges. A reader follows that wants each event.
fn index(
    (shards, of_partition): (usize, u64),
    (ranges, table): (u64, &str),
    seconds: u64,
) -> Measured {
    paused(1).block_on(async {
        let world = World::with(Limits { ranges, ..Limits::default() }).await;
        let most = batch("index-events");
        let shard = async |shard: usize| {
            let (client, wire) = world.client(shard as u64);
            let indexer = world.indexer(&client);
            let mut next = 0_u64..;
            loop {
                let mut batch = BTreeMap::new();
                for n in next.by_ref().take(most) {
                    let order = format!("s{shard}e{}", n / of_partition);
                    let Notification { partition, events } =
                        world.recorded(&order, 1 + n % of_partition).await;
                    batch.entry(partition).or_insert_with(BTreeMap::new).extend(events);
                }
                for rounds in 1.. {
                    let due = batch.iter().map(|(partition, events)| Notification {
                        partition: partition.clone(),
                        events: events.clone(),
                    });
                    let outcomes = indexer.index(due, Retry::default()).await;
                    wire.forget();
                    batch.retain(|partition, _| outcomes[partition].is_err());
                    if batch.is_empty() {
                        break;
                    }
                    Retry::default().pause(rounds).await;
                }
                sleep(DELIVERY).await;
            }
        };
        let read = Cell::new(Checkpoint::START);
        let reader = async {
            let (client, wire) = world.client(shards as u64);
            let index = world.index(client);
            loop {
                let mut entries = index.read(read.get(), Until::Forever);
                while let Some(entry) = entries.next().await {
                    wire.forget();
                    match entry {
                        Ok(entry) => read.set(entry.checkpoint),
                        // The function's next run goes on after a failure.
                        Err(error) => assert!(error.is_transient(), "{error:?}"),
                    }
                }
            }
        };
        let shards_at_once = join(reader, join_all((0..shards).map(shard)));
        let ended = timeout(Duration::from_secs(seconds), shards_at_once).await;
        assert!(ended.is_err(), "they never end");
        let end = Index::new(world.calm(), "index", []).end().await.expect("an answer");
        let events = i64::from(end) as f64;
        let [put, lost] = [0, 1].map(|n| world.pages[n].load(Ordering::Relaxed) as f64);
        let units = world.capacity.consumed("index");
        Measured {
            what: format!(
                "index in a {table} table, {shards} shards, {of_partition} events a partition"
            ),
            found: format!(
                "{:.0} events, {:.0} % of puts lost, {:.2} read and {:.2} write units an event, \
                 the reader is {:.1} s behind",
                events / seconds as f64,
                100.0 * lost / (put + lost),
                units.read / events,
                units.write / events,
                (events - i64::from(read.get()) as f64) * seconds as f64 / events,
            ),
        }
    })
}

#[derive(Reads)]
enum Placed {
    OrderPlaced { order_id: OrderId },
}

/// An order.
#[ringfence::value]
#[derive(Debug, Default, PartialEq)]
struct Order {
    placed: bool,
}

/// A view with a row for each event.
struct Orders;

impl View for Orders {
    const NAME: &'static str = "orders";
    type Reads = Placed;
    type Row = Order;

    fn rows(Placed::OrderPlaced { order_id }: &Placed) -> Vec<String> {
        vec![order_id.to_string()]
    }

    fn evolve(_: Option<Order>, _: &str, _: &Placed) -> Option<Order> {
        Some(Order { placed: true })
    }
}

/// Measures a new view that catches up.
fn rows((rows, shards, ranges, least): (u64, u32, u64, f64)) -> Measured {
    paused(2).block_on(async {
        let world = World::with(Limits { ranges, ..Limits::default() }).await;
        let index = world.indexed(rows).await;
        let (client, _) = world.client(2);
        let projector =
            Projector::new(client, index, "views", Catalogs::default(), world.clock.clone());
        let (mut view, mut ran) = (Definition::of::<Orders>(), Ran::default());
        view.shards = shards;
        let registered = projector.register(&view).await.expect("a new view");
        let (begun, before) = (Instant::now(), world.capacity.consumed("views"));
        while !ran.present {
            // The function's next run goes on after a failure.
            let failed = projector.run(&view, registered.live, LONG, &mut ran).await.err();
            assert!(failed.as_ref().is_none_or(|error| error.is_transient()), "{failed:?}");
        }
        projector.serve(&view, &registered, &ran).await.expect("a view");
        let units = world.capacity.consumed("views").write - before.write;
        let a_second = rows as f64 / begun.elapsed().as_secs_f64();
        assert!(a_second >= least, "{a_second} rows a second with {shards} shards");
        Measured {
            what: format!("a new view that catches up, a row an event, {shards} shards"),
            found: format!("{a_second:.0} rows, {:.2} write units a row", units / rows as f64),
        }
    })
}

/// A bus that takes its time.
struct Slow;

impl Bus for Slow {
    fn put<'a>(
        &'a self,
        entries: &'a [&'a TopicEntry],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, Unreachable>> {
        async {
            sleep(PUT_EVENTS).await;
            Ok(vec![Verdict::Sent; entries.len()])
        }
        .boxed()
    }
}

impl DeadLetters for Slow {
    fn keep(
        &self,
        dead_letter: Value,
    ) -> BoxFuture<'_, Result<(), Box<dyn std::error::Error + Send + Sync>>> {
        panic!("{dead_letter}")
    }
}

/// Measures publish-events on one shard.
fn publish() -> Measured {
    paused(3).block_on(async {
        let catalog = Market::catalog().expect("free of contradictions");
        let publisher = Publisher { bus: Slow, dead_letters: Slow, sources: sources(), catalog };
        let sample: Value = serde_json::from_str(RECORDS).expect("a batch");
        let record = |n: u64| {
            let mut record = sample["Records"][0].clone();
            let image = &mut record["dynamodb"]["NewImage"];
            image["id"]["S"] = format!("orderId:o{n}").into();
            image["data"]["M"]["text"] = json!({ "S": "x".repeat(EVENT_BYTES) });
            record
        };
        let (begun, most) = (Instant::now(), batch("publish-events"));
        for first in (0..EVENTS).step_by(most) {
            let records: Vec<_> = (first..EVENTS).take(most).map(record).collect();
            let report = publisher.publish(&records, LONG).await;
            assert_eq!((report.published, report.cause), (records.len(), None));
            sleep(DELIVERY).await;
        }
        Measured {
            what: "publish-events, a shard".to_owned(),
            found: format!("{:.0} events", EVENTS as f64 / begun.elapsed().as_secs_f64()),
        }
    })
}

/// Each event has an effect that takes its time.
struct Post;

impl Handler for Post {
    fn name(&self) -> &'static str {
        "post"
    }

    fn handles(&self, _: &SequencedEvent) -> bool {
        true
    }

    fn lane(&self, event: &SequencedEvent) -> BoundaryId {
        Lane::Partition.of(event)
    }

    fn starts(&self) -> Starts {
        Starts::Beginning
    }

    fn in_doubt(&self) -> InDoubt {
        InDoubt::Repeat
    }

    fn keeps_receipts(&self) -> bool {
        true
    }

    fn plan(&self, _: &SequencedEvent) -> Result<usize, Failed> {
        Ok(1)
    }

    fn carry_out<'a>(&'a self, _: Delivery<'a>) -> LocalBoxFuture<'a, Result<(), Failed>> {
        sleep(EFFECT).map(Ok).boxed_local()
    }
}

/// Measures an ordered reactor.
fn react() -> Measured {
    paused(4).block_on(async {
        let world = World::new().await;
        let index = world.indexed(EVENTS).await;
        let table = ReactorTable::new(world.client(2).0, "views", world.clock.clone());
        let lanes = Lanes { handler: Post, index, table };
        let begun = Instant::now();
        let mut effects = 0;
        while effects < EVENTS {
            effects += lanes.run(LONG).await.expect("nothing disturbs it").effects;
        }
        Measured {
            what: format!("an ordered reactor, effects of {} ms", EFFECT.as_millis()),
            found: format!("{:.0} effects", effects as f64 / begun.elapsed().as_secs_f64()),
        }
    })
}

/// Measures orders that check one product, which changes every second, whose fence has so many copies.
fn contend(orders: u64, copies: u16) -> Measured {
    let load = Load { fenced: true, copies, changes: 1, ..Load::orders(orders) };
    let [checks, _, changes] = contention::simulate(load, 2, contention::TURN_SECONDS, 1);
    let of = |ends: &contention::Ends| {
        let gave_up = 100.0 * ends.gave_up() as f64 / ends.commands() as f64;
        format!("99 of 100 within {} ms, {gave_up:.1} % give up", ends.p99_ms())
    };
    Measured {
        what: format!("{orders} orders that check one product with {copies} copies of its fence"),
        found: format!("orders {}; changes {}", of(&checks), of(&changes)),
    }
}

/// Measures all parts at once, the index for so many simulated seconds, and calls `done` with each in their order.
pub fn all(seconds: u64, done: impl Fn(Measured)) {
    thread::scope(|scope| {
        let parts = [publish, react].map(|part| scope.spawn(part));
        let views = ROWS.map(|of| scope.spawn(move || rows(of)));
        let meetings = ORDERS.map(|(orders, copies)| scope.spawn(move || contend(orders, copies)));
        for part in views.into_iter().chain(parts).chain(meetings) {
            done(part.join().expect("no simulation panics"));
        }
        // They hold their events, so only some run at once.
        for (ranges, table) in TABLES {
            for each in OF_PARTITION {
                let of = |shards| move || index((shards, each), (ranges, table), seconds);
                for part in SHARDS.map(|shards| scope.spawn(of(shards))) {
                    done(part.join().expect("no simulation panics"));
                }
            }
        }
    });
}
