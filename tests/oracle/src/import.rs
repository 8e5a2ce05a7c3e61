//! A large import: each event is in the log once, in its order, and a second run adds nothing.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;
use std::time::Instant;

use futures::TryStreamExt;
use ringfence_aws::wire::{Director, Fault, Wire};
use ringfence_aws::{Clock, Units};
use ringfence_core::kit::id;
use ringfence_core::{Catalog, Context, Envelope, NewEvent, SequencedEvent};
use ringfence_dcb_log::{DcbLog, Imported};
use ringfence_local::engine::Engine;
use serde_json::Value;

use crate::gates::GateClosed;
use crate::market::{Market, ProductStocked};
use crate::recount;
use crate::table::{NOW_MS, TABLE, table};

/// Partitions of the imported events, which get one event after the other.
const PARTITIONS: u64 = 1_000;
/// Boundaries with a fence that counts half of the events.
const HALLS: u64 = 50;
/// Recorded requests are dropped once per this many events.
const KEPT: u64 = 1_000;

/// Sends transactions without their tokens: at each transaction the embedded store looks through all tokens of the last
/// ten minutes.
struct Tokenless;

impl Director for Tokenless {
    fn faults(&self, operation: &str, _request: &Value) -> Vec<Fault> {
        match operation {
            "TransactWriteItems" => vec![Fault::without_token()],
            _ => Vec::new(),
        }
    }

    fn carried_out(&self, _operation: &str, _request: &Value, _status: u16) {}
}

/// The result of an import. Answers to refused transactions have no units, so those are not counted.
struct Run {
    imported: u64,
    seconds: f64,
    units: Units,
}

/// Imports so many events twice, with times a millisecond apart, and reports time and units of both runs.
///
/// # Errors
/// An event is missing, repeated or in the wrong place, or a fence has a wrong count.
pub fn check(events: u64) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime without input and output").block_on(check_all(events))
}

async fn check_all(events: u64) -> Result<String, String> {
    let catalogs = [crate::gates::catalog(), Market::catalog()];
    let catalogs = catalogs.map(|catalog| catalog.expect("free of contradictions"));
    let catalog = Catalog::compose(catalogs).expect("free of contradictions");
    let engine = Engine::memory().expect("a database in memory");
    engine.create_table(&table(&catalog, false), TABLE).expect("a table");
    let (wire, clock, store) = (Wire::default(), Clock::fixed(NOW_MS), engine.clone());
    wire.direct(Arc::new(Tokenless));
    let client = wire.client_of(Arc::new(move |name: &str, body: &[u8]| store.call(name, body)));
    let log = DcbLog::new(client, TABLE, catalog.clone(), clock.clone());

    let first = run(&log, &clock, &wire, events).await?;
    if first.imported != events {
        return Err(format!("{} of {events} events were new to an empty log", first.imported));
    }
    let found = found(&log).await?;
    in_order(&found, events)?;
    recount::check(&engine, &catalog, &found)?;

    let second = run(&log, &clock, &wire, events).await?;
    if second.imported > 0 || self::found(&log).await? != found {
        return Err(format!("the second run imported {} events", second.imported));
    }
    recount::check(&engine, &catalog, &found)?;
    Ok(format!("{events} events of {PARTITIONS} partitions, {first}; again, {second}"))
}

impl Display for Run {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { imported, seconds, units } = self;
        let Units { read, write } = units;
        write!(
            f,
            "{imported} new in {seconds:.0} s, answers with {read} read and {write} write units"
        )
    }
}

async fn run(log: &DcbLog, clock: &Clock, wire: &Wire, events: u64) -> Result<Run, String> {
    let (begun, before) = (Instant::now(), log.meter().snapshot());
    let mut imported = 0;
    for number in 0..events {
        clock.set(NOW_MS + number);
        let event_id = format!("event-{number}");
        let end = log.import(&event_id, event(number), &Envelope::default()).await;
        let end = end.map_err(|error| format!("{event_id}: {error:?}"))?;
        imported += u64::from(matches!(end, Imported::Now(_)));
        if number.is_multiple_of(KEPT) {
            wire.forget();
        }
    }
    let units = log.meter().snapshot().since(&before).total();
    Ok(Run { imported, seconds: begun.elapsed().as_secs_f64(), units })
}

/// An event. In every other partition it also counts in a fence.
fn event(number: u64) -> NewEvent {
    let partition = number % PARTITIONS;
    if partition.is_multiple_of(2) {
        return ProductStocked { product_id: id(&format!("p{partition}")) }.into();
    }
    let hall_id = id(&format!("h{}", partition % HALLS));
    GateClosed { gate_id: id(&format!("g{partition}")), hall_id }.into()
}

/// The events of the table, by id.
async fn found(log: &DcbLog) -> Result<BTreeMap<String, SequencedEvent>, String> {
    let events: Vec<_> = log.scan().try_collect().await.map_err(|error| format!("{error:?}"))?;
    Ok(events.into_iter().map(|event| (event.id(), event)).collect())
}

/// Checks that the events of each partition have slots and times in their order.
fn in_order(found: &BTreeMap<String, SequencedEvent>, events: u64) -> Result<(), String> {
    if found.len() as u64 != events {
        return Err(format!("{} events in the table", found.len()));
    }
    for number in 0..events {
        let NewEvent { event_type, tags, data } = event(number);
        let partition = format!("{}:{}", tags[0].key, tags[0].value);
        let (slot, at) = (number / PARTITIONS + 1, NOW_MS + number);
        let event = found.get(&format!("{partition}/{slot}"));
        let same = |event: &SequencedEvent| {
            (&*event.event_type, &event.tags, &event.data, event.at)
                == (&*event_type, &tags, &data, at)
        };
        if !event.is_some_and(same) {
            return Err(format!("event {number} should be {partition}/{slot}, found {event:?}"));
        }
    }
    Ok(())
}
