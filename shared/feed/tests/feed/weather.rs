//! Faults of an indexer's requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringfence_aws::Random;
use ringfence_aws::wire::{Director, Edit, Fault};
use serde_json::{Value, json};

use tokio::sync::Notify;

use crate::streams::AGGREGATES;
use crate::world::{EVENTS, INDEX};

/// Longer than any test lets an indexer run.
const FOR_EVER: Duration = Duration::from_secs(1_000_000);
/// The most looks in which an item of a committed transaction stays hidden.
const HIDDEN_MAX: u8 = 3;

/// Faults that follow from a seed, and a crash before or after the effect of one request.
#[derive(Clone)]
pub(crate) struct Weather(Arc<Mutex<State>>, Arc<Notify>);

struct State {
    random: Random,
    /// How many requests out of a hundred meet a fault.
    percent: u64,
    /// How many requests until the crash.
    crash: Option<u64>,
    /// Whether it crashes as soon as a request has taken effect.
    crashes: bool,
    /// In how many looks at a partition each of its events was not visible yet. An event that was seen
    /// once stays visible.
    hidden: BTreeMap<String, u8>,
}

impl Weather {
    pub(crate) fn new(seed: &[u64], percent: u64, crash: Option<u64>) -> Self {
        let (random, hidden) = (Random::new(seed), BTreeMap::new());
        let state = State { random, percent, crash, hidden, crashes: false };
        Self(Arc::new(Mutex::new(state)), Arc::default())
    }

    /// Runs `run`, which makes requests, until it ends or crashes.
    pub(crate) async fn over(&self, run: impl Future) {
        tokio::select! {
            _ = run => {}
            () = self.1.notified() => {}
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Director for Weather {
    fn faults(&self, operation: &str, request: &Value) -> Vec<Fault> {
        let mut state = self.state();
        let latency = Duration::from_millis(state.random.below(8));
        let mut faults = vec![Fault::Delay(latency)];
        if operation == "Query" && state.random.chance(20) {
            faults.push(Fault::page(1 + state.random.below(3)));
        }
        let log = [EVENTS, AGGREGATES].iter().any(|table| request["TableName"] == *table);
        if operation == "Query" && log && state.percent > 0 {
            faults.push(torn(self.clone()));
        }
        if let Some(left) = &mut state.crash {
            *left = left.saturating_sub(1);
            if *left == 0 {
                faults.push(Fault::Late(FOR_EVER));
                state.crashes = true;
                if state.random.chance(50) {
                    faults.push(Fault::Delay(FOR_EVER));
                    self.1.notify_one();
                }
                return faults;
            }
        }
        let percent = state.percent;
        if operation == "BatchGetItem" && state.random.chance(percent) {
            faults.push(unprocessed(state.random.next()));
        }
        let replica = request["TableName"] == INDEX && request["ConsistentRead"] != true;
        if operation == "Query" && replica && state.random.chance(percent) {
            faults.push(Fault::stale(state.random.next()));
        }
        if state.random.chance(percent) {
            faults.push(fault(&mut state.random, operation));
        }
        faults
    }

    fn carried_out(&self, _: &str, _: &Value, _: u16) {
        if self.state().crashes {
            self.1.notify_one();
        }
    }
}

fn fault(random: &mut Random, operation: &str) -> Fault {
    let failed = json!({ "__type": "InternalServerError", "message": "injected" });
    let writes = ["PutItem", "UpdateItem"].contains(&operation);
    match random.below(if writes { 6 } else { 4 }) {
        0 => Fault::error("ThrottlingException"),
        1 => Fault::LostBefore,
        2 => Fault::LostAfter,
        3 => Fault::Answer(500, failed),
        4 => Fault::AnswerAfter(500, failed),
        _ => Fault::Stray(Duration::from_millis(random.below(3_000))),
    }
}

/// The items of one transaction become visible one by one, in any order.
fn torn(weather: Weather) -> Fault {
    Fault::Reply(Edit::new(move |answer| {
        let mut state = weather.state();
        let State { random, hidden, percent, .. } = &mut *state;
        let Some(items) = answer["Items"].as_array_mut() else { return };
        items.retain(|item| {
            let key = ["id", "position", "aggregateId", "version"];
            let key = key.map(|name| item[name].to_string());
            let times = hidden.entry(key.concat()).or_default();
            if *times < HIDDEN_MAX && random.chance(*percent) {
                *times += 1;
                return false;
            }
            *times = HIDDEN_MAX;
            true
        });
    }))
}

/// A batch that leaves some of its keys unprocessed.
fn unprocessed(seed: u64) -> Fault {
    Fault::Reply(Edit::new(move |answer| {
        let mut random = Random::new(&[seed]);
        let Some(tables) = answer["Responses"].as_object_mut() else { return };
        let mut left = serde_json::Map::new();
        for (table, items) in tables.iter_mut() {
            let Some(items) = items.as_array_mut() else { continue };
            let keys: Vec<_> = items
                .extract_if(.., |_| random.chance(50))
                .map(|item| json!({ "p": item["p"], "i": item["i"] }))
                .collect();
            if !keys.is_empty() {
                left.insert(table.clone(), json!({ "Keys": keys }));
            }
        }
        answer["UnprocessedKeys"] = left.into();
    }))
}
