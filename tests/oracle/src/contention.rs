//! Ten commands a second on one boundary: fewer than one in a thousand gives up.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use courses::change_course_capacity::ChangeCourseCapacity;
use courses::define_course::DefineCourse;
use futures::future::join_all;
use ringfence::kit::id;
use ringfence::{DcbContext, Decisions, Envelope, Handled, handle};
use ringfence_dcb_log::DcbLog;
use ringfence_dynamo::wire::{Director, Fault, Wire};
use ringfence_dynamo::{Clock, Random, seed_thread};
use ringfence_local::engine::Engine;
use serde_json::Value;
use tokio::time::sleep;

use crate::world::{NOW_MS, TABLE, table};

/// Commands on one boundary before the next one has its turn, which keeps the reads short.
const COMMANDS: u64 = 50;
/// Boundaries, one after the other.
const BOUNDARIES: u64 = 40;
/// Between two commands on average, in milliseconds; they arrive independently of each other.
const ARRIVAL_MS: f64 = 100.0;
/// A read takes from this to twice this, in milliseconds.
const READ_MS: u64 = 4;
/// A transaction holds its items from this to twice this, in milliseconds.
const WRITE_MS: u64 = 12;

/// A store that takes its time and refuses a transaction whose items another one holds.
struct Busy {
    clock: Clock,
    /// The items that a transaction holds, and until when.
    state: Mutex<(Random, BTreeMap<String, u64>)>,
}

impl Director for Busy {
    fn faults(&self, operation: &str, request: &Value) -> Vec<Fault> {
        let (random, held) = &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut takes = |ms| ms + random.below(ms);
        if operation != "TransactWriteItems" {
            return vec![Fault::Delay(Duration::from_millis(takes(READ_MS)))];
        }
        let (now, takes) = (self.clock.now_ms(), takes(WRITE_MS));
        let delay = Fault::Delay(Duration::from_millis(takes));
        let items = request["TransactItems"].as_array().into_iter().flatten();
        let fences = items.filter_map(|item| item.pointer("/Update/Key/id/S")?.as_str());
        let fences: Vec<String> = fences.map(str::to_owned).collect();
        held.retain(|_, until| *until > now);
        if fences.iter().any(|fence| held.contains_key(fence)) {
            let codes = vec!["TransactionConflict"; fences.len() + 1];
            return vec![delay, Fault::cancelled(&codes)];
        }
        held.extend(fences.into_iter().map(|fence| (fence, now + takes)));
        vec![delay]
    }

    fn carried_out(&self, _operation: &str, _request: &Value, _status: u16) {}
}

#[test]
fn at_ten_commands_a_second_on_one_boundary_fewer_than_one_in_a_thousand_gives_up() {
    let seed = 1;
    seed_thread(seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without input and output");
    let attempts = runtime.block_on(contend(seed));
    let given_up = attempts.iter().filter(|attempts| attempts.is_none()).count();
    let again = attempts.iter().filter(|attempts| attempts.is_some_and(|n| n > 1)).count();
    println!("{} commands, {again} decided again, {given_up} gave up", attempts.len());
    assert!(given_up * 1_000 < attempts.len(), "seed {seed}: {given_up}");
    // Else there was nothing to contend for.
    assert!(again * 20 > attempts.len(), "seed {seed}: {again}");
}

/// How often each command was decided; `None` for those that gave up.
async fn contend(seed: u64) -> Vec<Option<u32>> {
    let catalog = courses::Courses::catalog().expect("free of contradictions");
    let engine = Engine::memory().expect("a database in memory");
    engine.create_table(&table(&catalog, false), TABLE).expect("a table");
    let wire = Wire::default();
    let clock = Clock::running(NOW_MS);
    let state = Mutex::new((Random::new(&[seed, 1]), BTreeMap::new()));
    wire.direct(Arc::new(Busy { clock: clock.clone(), state }));
    let client =
        wire.client_of(Arc::new(move |operation: &str, body: &[u8]| engine.call(operation, body)));
    let log = || DcbLog::new(client.clone(), TABLE, catalog.clone(), clock.clone());
    let mut random = Random::new(&[seed, 2]);
    let mut attempts = Vec::new();
    for boundary in 0..BOUNDARIES {
        let course = format!("c{boundary}");
        let define = DefineCourse { course_id: id(&course), capacity: 0 };
        let envelope = Envelope::default();
        handle(&log(), &catalog, &Decisions::new(0), &define, &envelope).await.expect("settled");
        let mut start_ms = 0.0;
        let commands = (1..=COMMANDS).map(|n| {
            // Exponentially distributed, from a number above 0 and at most 1.
            start_ms -= ARRIVAL_MS * ((1 + random.below(1_000)) as f64 / 1_000.0).ln();
            let start = Duration::from_secs_f64(start_ms / 1_000.0);
            let new_capacity = u32::try_from(n).unwrap_or(u32::MAX);
            let command = ChangeCourseCapacity { course_id: id(&course), new_capacity };
            // Each in a function of its own, which has just started.
            let (log, catalog, envelope) = (log(), &catalog, &envelope);
            async move {
                sleep(start).await;
                let end = handle(&log, catalog, &Decisions::new(0), &command, envelope).await;
                end.ok().map(|Handled { attempts, .. }| attempts)
            }
        });
        attempts.extend(join_all(commands.collect::<Vec<_>>()).await);
        let _ = wire.take();
    }
    attempts
}
