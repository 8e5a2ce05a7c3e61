//! A DynamoDB in this process with the tables of a template.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io};

use aws_sdk_dynamodb::Client;
use ringfence_aws::wire::{Director, Exchange, Fault, Wire};
use ringfence_aws::{Clock, Item, Random, seed_thread};
use ringfence_core::kit::{BEGIN_MS, fail};
use ringfence_core::personal::{MARKED, OF};
use ringfence_core::{Catalog, LogKind, Tag, Vault, VaultError};
use ringfence_local::engine::Engine;
use ringfence_local::template::Template;
use ringfence_log::{InTable, StackLogs};
use ringfence_subjects::{KeyTable, KeyVault, Wrap};
use ringfence_template::written::table_of;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A request takes at most this long, if requests take time.
const LATENCY_MAX_MS: u64 = 8;

/// The table of keys of personal data.
pub(crate) const KEYS: &str = "KeyTable";

/// The logical ids of the tables that a template has.
pub(crate) fn tables(template: &Template) -> Vec<&'static str> {
    let all = ["EventTable", "AggregateTable", "DocumentTable", "IndexTable", "ViewTable", KEYS];
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
    /// The folder of the key that wraps the keys of personal data, if the template has a table of them.
    keys: Option<TempDir>,
}

impl Dynamo {
    /// A DynamoDB with the tables of these logical ids, and with the template's table of keys. Panics if the template
    /// lacks one of them, unless it is the event table.
    #[must_use]
    pub fn with(template: &Template, tables: &[&str]) -> Self {
        let engine = Engine::memory().unwrap_or_else(|error| fail("the DynamoDB", error));
        let keys = template.table(KEYS).is_ok().then_some(KEYS);
        for table in tables.iter().copied().chain(keys.filter(|keys| !tables.contains(keys))) {
            let mut properties = match template.table(table) {
                Ok(properties) => properties,
                // Checks of readers write their own events, on the DCB log.
                Err(_) if table == "EventTable" => dcb_table(),
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
        let keys = keys.map(|_| folder_with_key().unwrap_or_else(|error| fail(KEYS, error)));
        Self { wire, client, clock: Clock::fixed(BEGIN_MS), keys }
    }

    /// The logs in the tables of a stack.
    #[must_use]
    pub fn logs(&self) -> StackLogs {
        let all = [LogKind::Dcb, LogKind::Aggregates, LogKind::Documents];
        let tables = all.map(|log| (log, table_of(log).to_owned())).into();
        let (client, clock) = (self.client.clone(), self.clock.clone());
        StackLogs { client, clock, tables, vault: self.vault().map(|vault| vault as _) }
    }

    /// The table of a log.
    #[must_use]
    pub fn table(&self, log: LogKind) -> InTable {
        let table = InTable::new(self.client.clone(), table_of(log), self.clock.clone());
        InTable { vault: self.vault().map(|vault| vault as _), ..table }
    }

    /// A vault that knows no key yet, if the template has a table of keys.
    #[must_use]
    pub fn vault(&self) -> Option<Arc<KeyVault>> {
        let wrap = Wrap::file(&self.keys.as_ref()?.path().join("key"));
        let wrap = wrap.unwrap_or_else(|error| fail(KEYS, error));
        let table = KeyTable::new(self.client.clone(), KEYS, self.clock.clone());
        Some(Arc::new(KeyVault::new("stack", table, wrap, self.clock.clone())))
    }

    /// The items of a table.
    pub(crate) async fn items(&self, table: &str) -> Vec<Item> {
        let scanned = self.client.scan().table_name(table).consistent_read(true).send().await;
        scanned.unwrap_or_else(|error| fail(table, error)).items.unwrap_or_default()
    }

    /// The requests of functions that open personal data, of which some also seal new ones.
    pub(crate) async fn requests_of_vaults(&self, seals: bool) -> Vec<Exchange> {
        let Some((writer, reader)) = self.vault().zip(self.vault()) else { return Vec::new() };
        let mut value = json!({ MARKED: "a", OF: "s" });
        let tags = [Tag::new("t", "a")];
        let asked = async {
            self.wire.forget();
            writer.seal(vec![&mut value]).await?;
            writer.blind(&tags).await?;
            let sealed = self.wire.take();
            reader.open(vec![&mut value]).await?;
            let opened = self.wire.take();
            Ok::<_, VaultError>(if seals { [sealed, opened].concat() } else { opened })
        };
        asked.await.unwrap_or_else(|error| fail("a vault", error))
    }

    /// The requests of a function that destroys keys.
    pub(crate) async fn requests_of_forgetting(&self) -> Vec<Exchange> {
        let table = KeyTable::new(self.client.clone(), KEYS, self.clock.clone());
        let fence = table.forget("s", BEGIN_MS, "asked for it").await;
        fence.unwrap_or_else(|error| fail(KEYS, error));
        self.wire.take()
    }

    /// From now on each request takes some milliseconds, at random from a seed. So concurrent commands overlap, and
    /// always in the same way in a test with paused time.
    pub fn take_time(&self, seed: u64) {
        seed_thread(seed);
        self.wire.direct(Arc::new(Latency(Mutex::new(Random::new(&[seed])))));
    }
}

/// A folder with the file `key`, which stands in for a key of KMS.
fn folder_with_key() -> io::Result<TempDir> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("key"), [1; 32])?;
    Ok(folder)
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
