//! A DynamoDB in this process with the tables of a template.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use ringfence_aws::wire::{Director, Fault, Wire};
use ringfence_aws::{Clock, Random, seed_thread};
use ringfence_core::Catalog;
use ringfence_core::LogKind;
use ringfence_core::kit::{BEGIN_MS, fail};
use ringfence_local::engine::Engine;
use ringfence_local::template::Template;
use ringfence_log::{InTable, StackLogs};
use ringfence_template::written::table_of;
use serde_json::Value;

/// A request takes at most this long, if requests take time.
const LATENCY_MAX_MS: u64 = 8;

/// The logical ids of the tables that a template has.
pub(crate) fn tables(template: &Template) -> Vec<&'static str> {
    let all = ["EventTable", "AggregateTable", "DocumentTable", "IndexTable", "ViewTable"];
    all.into_iter().filter(|table| template.table(table).is_ok()).collect()
}

/// An empty DynamoDB in this process, and a recorder in front of it. The name of a table is its logical id in the
/// template. A request is a function call, so it needs no socket and no time.
pub struct Dynamo {
    /// Records each request, and can make it fail.
    pub wire: Wire,
    /// Sends requests through the recorder.
    pub client: Client,
    /// A clock that stands still until it is set.
    pub clock: Clock,
}

impl Dynamo {
    /// A DynamoDB with the tables of these logical ids. Panics if the template lacks one of them, unless it is the
    /// event table.
    #[must_use]
    pub fn with(template: &Template, tables: &[&str]) -> Self {
        let engine = Engine::memory().unwrap_or_else(|error| fail("the DynamoDB", error));
        for table in tables {
            let mut properties = match template.table(table) {
                Ok(properties) => properties,
                // Checks of readers write their own events, on the DCB log.
                Err(_) if *table == "EventTable" => dcb_table(),
                Err(error) => fail("the template", error),
            };
            // No test reads its stream.
            if let Some(properties) = properties.as_object_mut() {
                properties.remove("StreamSpecification");
            }
            let created = engine.create_table(&properties, table);
            created.unwrap_or_else(|error| fail(table, error));
        }
        let wire = Wire::default();
        let client = wire
            .client_of(Arc::new(move |operation: &str, body: &[u8]| engine.call(operation, body)));
        Self { wire, client, clock: Clock::fixed(BEGIN_MS) }
    }

    /// The logs in the tables of a stack.
    #[must_use]
    pub fn logs(&self) -> StackLogs {
        let all = [LogKind::Dcb, LogKind::Aggregates, LogKind::Documents];
        let tables = all.map(|log| (log, table_of(log).to_owned())).into();
        StackLogs { client: self.client.clone(), clock: self.clock.clone(), tables }
    }

    /// The table of a log.
    #[must_use]
    pub fn table(&self, log: LogKind) -> InTable {
        InTable::new(self.client.clone(), table_of(log), self.clock.clone())
    }

    /// From now on each request takes some milliseconds, at random from a seed. So concurrent commands overlap, and
    /// always in the same way in a test with paused time.
    pub fn take_time(&self, seed: u64) {
        seed_thread(seed);
        self.wire.direct(Arc::new(Latency(Mutex::new(Random::new(&[seed])))));
    }
}

/// The event table of a stack that has no context on the DCB log.
fn dcb_table() -> Value {
    let catalog = Catalog::new("none", []).unwrap_or_else(|error| fail("the catalog", error));
    let mut properties = ringfence_dcb_log::table_layout(&catalog).properties();
    properties["BillingMode"] = "PAY_PER_REQUEST".into();
    properties
}

struct Latency(Mutex<Random>);

impl Director for Latency {
    fn faults(&self, _operation: &str, _request: &Value) -> Vec<Fault> {
        let mut random = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        vec![Fault::Delay(Duration::from_millis(random.below(LATENCY_MAX_MS + 1)))]
    }

    fn carried_out(&self, _operation: &str, _request: &Value, _status: u16) {}
}
