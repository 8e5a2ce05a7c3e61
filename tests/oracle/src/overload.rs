//! Commands on a store with limits: more than it takes, and a hot key range beside cold ones.
//!
//! The commands create things, each in its own partition, so they never meet. The limits are a fiftieth of DynamoDB's:
//! only the ratio of load and limit counts, and a small load is quick to simulate.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use futures::future::join_all;
use ringfence_aws::wire::{Backend, Capacity, Limits, Wire};
use ringfence_aws::{Clock, Random};
use ringfence_core::{
    BoundaryId, Context, Decisions, Envelope, HandleError, LogError, StoreError, handle,
};
use ringfence_dcb_log::DcbLog;
use ringfence_local::engine::Engine;
use tokio::time::{Instant, sleep};

use crate::contention::{Busy, Ends, after, arrivals, paused};
use crate::market::{Market, OrderId, PlaceOrder};
use crate::table::{NOW_MS, TABLE, table};

/// Write units of a key range a second. A command that creates something writes one.
pub const RANGE_UNITS: u64 = 20;
const LIMITS: Limits = Limits { ranges: 4, write: RANGE_UNITS as f64, read: 60.0 };
/// Functions that the commands share. Each has its tokens for retries.
const FUNCTIONS: usize = 2;
/// Buckets are full after this time.
const FULL: Duration = Duration::from_secs(1);
/// A command that creates something reads and writes once.
const REQUESTS: f64 = 2.0;

/// Commands a second.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// In the first range.
    pub hot: u64,
    /// In each of the others.
    pub cold: u64,
}

/// A deliberate mistake of the store.
#[derive(Clone, Copy, Debug)]
pub enum Mistake {
    /// It has no limits.
    NeverRefuses,
    /// It carries out the writes that it refuses.
    WritesRefused,
}

/// The results of a load.
#[derive(Debug)]
pub struct Overload {
    /// The commands of the first range, and those of the others. Those that were refused have given up.
    pub ends: [Ends; 2],
    /// Accepted commands for each that the limits allow.
    pub goodput: f64,
    /// Requests that were sent for each that an unlimited store would have got.
    pub sends: f64,
}

fn store(engine: Backend, capacity: &Capacity, mistake: Option<Mistake>) -> Backend {
    let limited = capacity.clone();
    match mistake {
        None => capacity.backend(),
        Some(Mistake::NeverRefuses) => engine,
        Some(Mistake::WritesRefused) => Arc::new(move |operation: &str, body: &[u8]| {
            let before = limited.refused();
            let answer = limited.call(operation, body);
            if limited.refused() > before {
                let _ = engine(operation, body);
            }
            answer
        }),
    }
}

/// Simulates the load for so many seconds, until every command has ended.
///
/// # Errors
/// The log lacks the event of a command that was accepted, or has two, or one of a command that was refused; or more
/// was accepted than the limits allow.
pub fn simulate(
    load: Load,
    seconds: u64,
    seed: u64,
    mistake: Option<Mistake>,
) -> Result<Overload, String> {
    paused(seed).block_on(async {
        let catalog = Market::catalog().expect("free of contradictions");
        let engine = Engine::memory().expect("a database in memory");
        engine.create_table(&table(&catalog, false), TABLE).expect("a table");
        let engine: Backend =
            Arc::new(move |operation: &str, body: &[u8]| engine.call(operation, body));
        let capacity = Capacity::new(engine.clone(), LIMITS);
        let (wire, clock) = (Wire::default(), Clock::running(NOW_MS));
        wire.direct(Arc::new(Busy::new(&clock, seed)));
        let client = wire.client_of(store(engine, &capacity, mistake));
        let log = |_| DcbLog::new(client.clone(), TABLE, catalog.clone(), clock.clone());
        let functions: [DcbLog; FUNCTIONS] = std::array::from_fn(log);

        let mut random = Random::new(&[seed, 2]);
        let mut orders = Vec::new();
        for range in 0..LIMITS.ranges {
            let a_second = if range == 0 { load.hot } else { load.cold };
            let ids = (0..).map(|n| format!("o{n}"));
            let ids =
                ids.filter(|id| capacity.range(BoundaryId::tag("orderId", id).as_str()) == range);
            for (start, id) in arrivals(&mut random, a_second, seconds).into_iter().zip(ids) {
                orders.push((start, range, id));
            }
        }
        sleep(FULL).await;
        let begun = Instant::now();
        let place = async |log: &DcbLog, id: &str| {
            let order_id: OrderId = ringfence_core::kit::id(id);
            let (placed, order) =
                (Instant::now(), PlaceOrder { order_id, product_ids: Vec::new() });
            let (envelope, decisions) = (Envelope::default(), Decisions::new(0));
            let attempts = match handle(log, &catalog, &decisions, &order, &envelope).await {
                Ok(handled) => Some(handled.attempts),
                Err(HandleError::Log(LogError::Store(StoreError::Throttled { .. }))) => None,
                Err(other) => panic!("{other:?}"),
            };
            let took = u64::try_from(placed.elapsed().as_millis()).unwrap_or(u64::MAX);
            (attempts, took, begun.elapsed().as_secs() < seconds)
        };
        let placed = orders
            .iter()
            .enumerate()
            .map(|(n, (start, _, id))| after(*start, place(&functions[n % FUNCTIONS], id)));
        let placed = join_all(placed).await;
        let sent = wire.take().len();

        let events: Vec<_> = functions[0].scan().try_collect().await.expect("a scan");
        let mut found = BTreeMap::<String, usize>::new();
        for event in events {
            *found.entry(event.partition.to_string()).or_default() += 1;
        }
        for ((_, _, id), (attempts, ..)) in orders.iter().zip(&placed) {
            let id = BoundaryId::tag("orderId", id).to_string();
            let (found, expected) = (found.get(&id).copied().unwrap_or(0), attempts.iter().count());
            if found != expected {
                return Err(format!("{id} was accepted {expected} times and has {found} events"));
            }
        }
        let in_time = placed.iter().filter(|(attempts, _, in_time)| attempts.is_some() && *in_time);
        // A full bucket is worth a second.
        let allowed = LIMITS.write * (LIMITS.ranges * (seconds + FULL.as_secs())) as f64;
        let goodput = in_time.count() as f64 / allowed;
        let ends = [true, false].map(|is_hot| {
            let of =
                orders.iter().zip(&placed).filter(|((_, range, _), _)| (*range == 0) == is_hot);
            Ends::of(of.map(|(_, (attempts, took, _))| (*attempts, *took)).collect())
        });
        // Each bucket may be overdrawn once.
        match goodput > 1.0 + LIMITS.ranges as f64 / allowed {
            true => Err(format!("{goodput} of the limit was accepted")),
            false => {
                let sends = sent as f64 / (orders.len() as f64 * REQUESTS);
                Ok(Overload { ends, goodput, sends })
            }
        }
    })
}
