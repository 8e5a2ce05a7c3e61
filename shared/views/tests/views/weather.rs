//! Requests take some time, and some go wrong.

use std::sync::Mutex;
use std::time::Duration;

use ringfence_aws::Random;
use ringfence_aws::wire::{Director, Edit, Fault};
use serde_json::{Value, json};

/// A request takes at most this long, in milliseconds.
const LATENCY_MAX_MS: u64 = 6;

/// Faults that follow from a seed, until it is calm.
pub(crate) struct Weather(Mutex<Option<(Random, u64)>>);

impl Weather {
    /// Out of a hundred requests, `percent` go wrong.
    pub(crate) fn new(seed: u64, percent: u64) -> Self {
        Self(Mutex::new(Some((Random::new(&[seed, 1]), percent))))
    }

    /// From now on requests take no time and succeed.
    pub(crate) fn calm(&self) {
        *self.0.lock().unwrap() = None;
    }
}

impl Director for Weather {
    fn faults(&self, operation: &str, request: &Value) -> Vec<Fault> {
        let mut state = self.0.lock().unwrap();
        let Some((random, percent)) = state.as_mut() else { return Vec::new() };
        let mut faults = vec![Fault::Delay(Duration::from_millis(random.below(LATENCY_MAX_MS)))];
        if random.chance(*percent) {
            faults.push(fault(operation, request, random));
        }
        faults
    }

    fn carried_out(&self, _operation: &str, _request: &Value, _status: u16) {}
}

fn fault(operation: &str, request: &Value, random: &mut Random) -> Fault {
    let failed = || json!({ "__type": "InternalServerError", "message": "injected" });
    match (random.below(8), operation) {
        (0, _) => Fault::error("ThrottlingException"),
        (1, _) => Fault::Answer(500, failed()),
        (2, _) => Fault::AnswerAfter(500, failed()),
        (3, _) => Fault::LostBefore,
        (4, _) => Fault::LostAfter,
        (5, "TransactWriteItems") => {
            let actions = request["TransactItems"].as_array().map_or(1, Vec::len);
            let mut codes = vec!["None"; actions];
            codes[actions - 1] = "TransactionConflict";
            Fault::cancelled(&codes)
        }
        (6, "TransactWriteItems") => Fault::without_token(),
        // The caller has given it up, and sends it again, or goes on.
        (5 | 6, "PutItem") => Fault::Stray(Duration::from_millis(random.below(100))),
        // Not all of a transaction is visible yet. Nothing is written to the index in one.
        (5, "BatchGetItem") if request["RequestItems"].get("views").is_some() => {
            Fault::stale(random.next())
        }
        (6, "BatchGetItem") => unprocessed(random.next()),
        _ => Fault::Delay(Duration::from_millis(20)),
    }
}

/// A batch that leaves some of its items for later.
fn unprocessed(seed: u64) -> Fault {
    Fault::Reply(Edit::new(move |answer| {
        let mut random = Random::new(&[seed]);
        let Some(tables) = answer["Responses"].as_object_mut() else { return };
        let mut left = serde_json::Map::new();
        for (table, items) in tables.iter_mut() {
            let items = items.as_array_mut().unwrap();
            let late = items.extract_if(.., |_| random.chance(50));
            let key = |item: Value| match item.get("view") {
                Some(view) => json!({ "view": view, "id": item["id"] }),
                None => json!({ "p": item["p"], "i": item["i"] }),
            };
            let keys: Vec<_> = late.map(key).collect();
            if !keys.is_empty() {
                left.insert(table.clone(), json!({ "Keys": keys, "ConsistentRead": true }));
            }
        }
        answer["UnprocessedKeys"] = left.into();
    }))
}
