//! Commands that meet at one boundary: how many commit at once, decide again, give up, and how long they take.
//!
//! The log is the real one, the store the embedded one, and time is simulated. A request takes as long as on DynamoDB:
//! drawn from a log-normal distribution with the published median and 99th percentile. A transaction holds its items
//! until it takes effect. Until then the store refuses every other transaction with one of them, and every single write
//! of one. Two transactions that only check an item also refuse each other here; DynamoDB's documentation does not say
//! it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use futures::future::join_all;
use ringfence_aws::wire::{Director, Fault, Wire};
use ringfence_aws::{Clock, Random, seed_thread};
use ringfence_core::{
    Catalog, Context, Decisions, Envelope, Event, EventSchema, HandleError, Handled, LogError,
    Slice, StoreError, handle,
};
use ringfence_dcb_log::DcbLog;
use ringfence_local::engine::Engine;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep};

use crate::market::{
    AddProduct, Market, OrderPlaced, PlaceOrder, ProductAdded, ProductId, ProductStocked,
    StockProduct,
};
use crate::table::{NOW_MS, TABLE, table};

/// The duration of requests, in milliseconds: the median and the 99th percentile.
const PUT_MS: (f64, f64) = (7.6, 16.0);
const TRANSACTION_MS: (f64, f64) = (25.0, 92.0);
const READ_MS: (f64, f64) = (4.0, 10.0);
/// The 99th percentile of a normal distribution, in standard deviations.
const NORMAL_P99: f64 = 2.326;
/// Commands come to one product for this long before the next product has its turn, which keeps the reads short.
pub const TURN_SECONDS: u64 = 5;

/// The load on one product.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Orders a second, each of which checks the product.
    pub orders: u64,
    /// Appends a second to the product's partition that the orders do not read.
    pub appends: u64,
    /// Whether the types that the orders read are declared `fenced`.
    pub fenced: bool,
    /// How many copies this fence has.
    pub copies: u16,
    /// Changes a second of what the orders read.
    pub changes: u64,
}

impl Load {
    /// Nothing but so many orders a second.
    pub const fn orders(orders: u64) -> Self {
        Self { orders, appends: 0, fenced: false, copies: 0, changes: 0 }
    }
}

/// The results of commands of one kind.
#[derive(Clone, Debug, Default)]
pub struct Ends {
    /// How often each was decided; `None` for those that gave up.
    attempts: Vec<Option<u32>>,
    /// How long each took, in milliseconds.
    took_ms: Vec<u64>,
}

impl Ends {
    pub(crate) fn of(ends: Vec<(Option<u32>, u64)>) -> Self {
        let (attempts, took_ms) = ends.into_iter().unzip();
        Self { attempts, took_ms }
    }

    fn extend(&mut self, other: Self) {
        self.attempts.extend(other.attempts);
        self.took_ms.extend(other.took_ms);
    }

    /// The number of commands.
    #[must_use]
    pub fn commands(&self) -> usize {
        self.attempts.len()
    }

    /// How many gave up.
    #[must_use]
    pub fn gave_up(&self) -> usize {
        self.attempts.iter().filter(|attempts| attempts.is_none()).count()
    }

    /// How many committed their first decision.
    #[must_use]
    pub fn at_once(&self) -> usize {
        self.attempts.iter().filter(|attempts| **attempts == Some(1)).count()
    }

    /// The time within which 99 of 100 ended, in milliseconds.
    #[must_use]
    pub fn p99_ms(&self) -> u64 {
        let mut took = self.took_ms.clone();
        took.sort_unstable();
        took.get(took.len() * 99 / 100).copied().unwrap_or(0)
    }
}

/// A store that takes time and refuses a transaction whose items another one holds.
pub(crate) struct Busy {
    clock: Clock,
    /// The items that transactions hold, each with the end of its hold.
    state: Mutex<(Random, BTreeMap<String, u64>)>,
}

impl Busy {
    pub(crate) fn new(clock: &Clock, seed: u64) -> Self {
        let state = Mutex::new((Random::new(&[seed, 1]), BTreeMap::new()));
        Self { clock: clock.clone(), state }
    }
}

/// A runtime without input and output, whose clock moves only when everything waits, with random numbers of a seed.
pub(crate) fn paused(seed: u64) -> Runtime {
    seed_thread(seed);
    let mut runtime = Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().expect("a runtime")
}

/// A duration from the log-normal distribution with this median and 99th percentile, in milliseconds.
pub(crate) fn takes(random: &mut Random, (median, p99): (f64, f64)) -> u64 {
    // The sum of twelve uniform numbers is normal enough.
    let uniform = (0..12).map(|_| random.below(1_000_000) as f64 / 1_000_000.0).sum::<f64>();
    let sigma = (p99 / median).ln() / NORMAL_P99;
    let ms = median * (sigma * (uniform - 6.0)).exp();
    // A store answers in at least a millisecond, and within some seconds.
    let time = Duration::from_secs_f64(ms.clamp(1.0, 5_000.0) / 1_000.0);
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The usual duration of a request.
pub(crate) fn usual(operation: &str) -> (f64, f64) {
    match operation {
        "TransactWriteItems" => TRANSACTION_MS,
        "PutItem" | "UpdateItem" | "DeleteItem" => PUT_MS,
        _ => READ_MS,
    }
}

/// The item of an action.
fn item_of(action: &Value) -> Option<String> {
    let key = ["/Put/Item", "/Update/Key", "/ConditionCheck/Key"];
    let key = key.into_iter().find_map(|key| action.pointer(key))?;
    Some(format!("{}/{}", key["id"]["S"], key["position"]["N"]))
}

impl Director for Busy {
    fn faults(&self, operation: &str, request: &Value) -> Vec<Fault> {
        let (random, held) = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now_ms();
        held.retain(|_, until| *until > now);
        let usual = usual(operation);
        let takes = takes(random, usual);
        let delay = Fault::Delay(Duration::from_millis(takes));
        let actions: Vec<String> = match request["TransactItems"].as_array() {
            Some(actions) => actions.iter().filter_map(item_of).collect(),
            None => Vec::new(),
        };
        if operation == "TransactWriteItems" {
            if actions.iter().any(|item| held.contains_key(item)) {
                let code =
                    |item| if held.contains_key(item) { "TransactionConflict" } else { "None" };
                return vec![
                    delay,
                    Fault::cancelled(&actions.iter().map(code).collect::<Vec<_>>()),
                ];
            }
            held.extend(actions.into_iter().map(|item| (item, now + takes)));
        } else if usual == PUT_MS {
            let item = &request[if operation == "PutItem" { "Item" } else { "Key" }];
            let item = format!("{}/{}", item["id"]["S"], item["position"]["N"]);
            if held.contains_key(&item) {
                return vec![delay, Fault::error("TransactionConflictException")];
            }
        }
        vec![delay]
    }

    fn carried_out(&self, _operation: &str, _request: &Value, _status: u16) {}
}

/// Simulates the load on one product after the other, for so many seconds each. Returns the results of the orders, of
/// the appends and of the changes.
#[must_use]
pub fn simulate(load: Load, products: u64, seconds: u64, seed: u64) -> [Ends; 3] {
    let schemas = [ProductAdded::SCHEMA, ProductStocked::SCHEMA, OrderPlaced::SCHEMA];
    let schemas = schemas.map(|schema| {
        let fenced = schema.fenced && load.fenced;
        EventSchema { fenced, copies: load.copies, ..schema }
    });
    let catalog = Catalog::new(Market::NAME, schemas).expect("free of contradictions");
    paused(seed).block_on(async {
        let engine = Engine::memory().expect("a database in memory");
        engine.create_table(&table(&catalog, false), TABLE).expect("a table");
        let wire = Wire::default();
        let clock = Clock::running(NOW_MS);
        wire.direct(Arc::new(Busy::new(&clock, seed)));
        let client = wire
            .client_of(Arc::new(move |operation: &str, body: &[u8]| engine.call(operation, body)));
        let log = || DcbLog::new(client.clone(), TABLE, catalog.clone(), clock.clone());
        let mut random = Random::new(&[seed, 2]);
        let mut all = [Ends::default(), Ends::default(), Ends::default()];
        for product in 0..products {
            let product_id: ProductId = ringfence_core::kit::id(&format!("p{product}"));
            let add = AddProduct { product_id: product_id.clone() };
            run(log(), &catalog, add).await.0.expect("nobody is in its way");
            let orders = arrivals(&mut random, load.orders, seconds).into_iter().zip(0..).map(
                |(start, n)| {
                    let order_id = ringfence_core::kit::id(&format!("o{product}-{n}"));
                    let order = PlaceOrder { order_id, product_ids: vec![product_id.clone()] };
                    after(start, run(log(), &catalog, order))
                },
            );
            let orders: Vec<_> = orders.collect();
            let appends = arrivals(&mut random, load.appends, seconds).into_iter().map(|start| {
                let append = StockProduct { product_id: product_id.clone() };
                after(start, run(log(), &catalog, append))
            });
            let appends: Vec<_> = appends.collect();
            let changes = arrivals(&mut random, load.changes, seconds).into_iter().map(|start| {
                let change = AddProduct { product_id: product_id.clone() };
                after(start, run(log(), &catalog, change))
            });
            let changes: Vec<_> = changes.collect();
            let (orders, appends, changes) =
                futures::join!(join_all(orders), join_all(appends), join_all(changes));
            for (all, ends) in all.iter_mut().zip([orders, appends, changes]) {
                all.extend(Ends::of(ends));
            }
            wire.forget();
        }
        all
    })
}

/// The times of so many independent arrivals a second, in one turn.
pub(crate) fn arrivals(random: &mut Random, a_second: u64, seconds: u64) -> Vec<Duration> {
    let mut at = 0.0;
    let arrivals = (0..a_second * seconds).map(|_| {
        // Exponentially distributed, from a number above 0 and at most 1.
        at -= ((1 + random.below(1_000_000)) as f64 / 1_000_000.0).ln() / a_second as f64;
        Duration::from_secs_f64(at)
    });
    arrivals.collect()
}

pub(crate) async fn after<T>(start: Duration, then: impl Future<Output = T>) -> T {
    sleep(start).await;
    then.await
}

/// Runs a command in a new function.
async fn run<S: Slice>(log: DcbLog, catalog: &Catalog, command: S) -> (Option<u32>, u64) {
    let begun = Instant::now();
    let envelope = Envelope::default();
    let end = match handle(&log, catalog, &Decisions::new(0), &command, &envelope).await {
        Ok(Handled { attempts, .. }) => Some(attempts),
        Err(HandleError::Log(LogError::Store(StoreError::Contention { .. }))) => None,
        Err(other) => panic!("{other:?} is not contention"),
    };
    let took = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    (end, took)
}

/// Checks that few commands give up under the highest loads that docs/limits.md recommends, on so many products, for so
/// many seconds each.
///
/// # Errors
/// More gave up, or there was no contention.
pub fn check(products: u64, seconds: u64) -> Result<String, String> {
    let simulated = |load| move || simulate(load, products, seconds, 1);
    let orders = |fenced| Load { appends: 40, fenced, ..Load::orders(10) };
    let ([_, appends, _], [by_slot, ..], [fenced, ..], [copied, _, changes]) =
        thread::scope(|scope| {
            let alone = scope.spawn(simulated(Load { appends: 20, ..Load::orders(0) }));
            let fenced = scope.spawn(simulated(orders(true)));
            let copied = scope.spawn(simulated(COPIED));
            let by_slot = simulated(orders(false))();
            let of = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().expect("no panic");
            (of(alone), by_slot, of(fenced), of(copied))
        });
    // If all committed at once, there was no contention.
    let is_right = [
        (appends.gave_up() * 1_000 < appends.commands(), "20 commands a second on a boundary"),
        (appends.at_once() * 20 < appends.commands() * 19, "20 commands a second, all at once"),
        (by_slot.gave_up() * 100 < by_slot.commands(), "10 orders beside 40 events"),
        (
            by_slot.at_once() * 10 < by_slot.commands() * 9,
            "10 orders beside 40 events, all at once",
        ),
        ((fenced.gave_up(), fenced.at_once()) == (0, fenced.commands()), "10 fenced orders"),
        ((copied.gave_up(), changes.gave_up()) == (0, 0), "50 orders on copies, and a change"),
        (copied.p99_ms().max(changes.p99_ms()) <= 300, "50 orders on copies, within 300 ms"),
    ];
    let counts = [appends, by_slot, fenced, copied, changes].map(|ends| {
        let (gave_up, all, at_once) = (ends.gave_up(), ends.commands(), ends.at_once());
        format!("{gave_up} of {all} gave up, {at_once} at once, p99 {} ms", ends.p99_ms())
    });
    let counts = counts.join("; ");
    match is_right.into_iter().find(|(is_right, _)| !is_right) {
        None => Ok(counts),
        Some((_, load)) => Err(format!("{load}: {counts}")),
    }
}

/// Orders that check a fence with copies, and changes that announce themselves.
const COPIED: Load = Load { fenced: true, copies: 16, changes: 1, ..Load::orders(50) };

/// The table of docs/limits.md: orders on one fenced product that changes every second, by the fence's copies.
#[must_use]
pub fn of_copies(products: u64) -> String {
    let orders = [20, 50, 100, 200];
    let of = |ends: &Ends| {
        let gave_up = 100.0 * ends.gave_up() as f64 / ends.commands() as f64;
        let gave_up = if gave_up > 0.0 { format!(", {gave_up:.1} %") } else { String::new() };
        format!("{}{gave_up}", ends.p99_ms())
    };
    let cell = |orders, copies| {
        let load = Load { orders, copies, ..COPIED };
        let [orders, _, changes] = simulate(load, products, TURN_SECONDS, 1);
        format!(" {} · {} |", of(&orders), of(&changes))
    };
    let row = |orders: u64| {
        thread::scope(|scope| {
            let cells = [0, 4, 16, 32].map(|copies| scope.spawn(move || cell(orders, copies)));
            let cells = cells.map(|cell| cell.join().expect("no simulation panics"));
            format!("| {orders} |{}\n", cells.concat())
        })
    };
    orders.map(row).concat()
}

/// Orders a second, in the curves of the picture.
pub const ORDERS: [u64; 3] = [5, 10, 20];
/// Appends a second to the product that the orders check, or to one boundary.
pub const RATES: [u64; 6] = [1, 5, 10, 20, 40, 80];

/// The results of commands of one kind at each of the [`RATES`].
pub struct Curve {
    /// The name of the commands.
    pub name: String,
    /// The results for each rate.
    pub ends: Vec<Ends>,
}

/// The curves of the picture in docs/limits.md, each with its loads simulated.
#[must_use]
pub fn curves(products: u64, orders: &[u64]) -> Vec<Curve> {
    let checked = |orders, fenced| {
        move |appends| {
            let load = Load { appends, fenced, ..Load::orders(orders) };
            let [orders, ..] = simulate(load, products, TURN_SECONDS, 1);
            orders
        }
    };
    let alone = move |appends| {
        let load = Load { appends, ..Load::orders(0) };
        let [_, appends, _] = simulate(load, products, TURN_SECONDS, 1);
        appends
    };
    thread::scope(|scope| {
        let mut curves = Vec::new();
        for (how, fenced) in [("by its slot", false), ("fenced", true)] {
            for orders in orders {
                let name = format!("{orders} orders a second, {how}");
                let ends = checked(*orders, fenced);
                curves.push(scope.spawn(move || Curve { name, ends: RATES.map(ends).into() }));
            }
        }
        let name = "the appends alone".to_owned();
        curves.push(scope.spawn(move || Curve { name, ends: RATES.map(alone).into() }));
        curves.into_iter().map(|it| it.join().expect("no simulation panics")).collect()
    })
}
