//! A table of each layout in this process, and the wire to them.
//!
//! Requests are function calls. In tests with competing writers, a stream or the original, they go to a server.

use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use futures::TryStreamExt;
use ringfence_aggregate_log::{
    AggregateError, AggregateEvent, AggregateKey, AggregateLog, AggregateTable, NewAggregateEvent,
    Range, VersionConflict, legacy_table_layout, table_layout,
};
use ringfence_aws::wire::Wire;
use ringfence_aws::{Clock, Item};
use ringfence_core::{Decisions, Envelope, HandleError, Handled, Outcome, Slice, handle};
use ringfence_local::embedded::{Embedded, StreamReader};
use ringfence_local::engine::Engine;
use serde_json::Value;

use crate::customers::{catalog, envelope};

pub(crate) const TABLE: &str = "aggregates";
pub(crate) const LEGACY: &str = "legacy";
/// Another table for any stores.
pub(crate) const OTHER: &str = "others";
/// The time of every fixed clock: 2024-06-23T00:00:00Z.
pub(crate) const NOW_MS: u64 = 1_719_100_800_000;
pub(crate) const NOW: &str = "2024-06-23T00:00:00.000Z";

/// A DynamoDB with a table of each layout, and a recorder of its requests.
pub(crate) struct Stack {
    server: Option<Embedded>,
    pub(crate) wire: Wire,
    pub(crate) client: Client,
    pub(crate) clock: Clock,
}

impl Stack {
    pub(crate) fn start() -> Self {
        let engine = Engine::memory().expect("an engine");
        for (table, properties) in tables() {
            engine.create_table(&properties, table).expect(table);
        }
        let wire = Wire::default();
        let call = move |operation: &str, body: &[u8]| engine.call(operation, body);
        let client = wire.client_of(Arc::new(call));
        Self { server: None, wire, client, clock: Clock::fixed(NOW_MS) }
    }

    pub(crate) async fn serve() -> Self {
        let server = Embedded::start().await.expect("an embedded DynamoDB");
        for (table, properties) in tables() {
            server.create_table(&properties, table).expect(table);
        }
        let wire = Wire::default();
        let client = wire.client(server.endpoint());
        Self { server: Some(server), wire, client, clock: Clock::fixed(NOW_MS) }
    }

    fn server(&self) -> &Embedded {
        self.server.as_ref().expect("a stack with a server")
    }

    pub(crate) fn endpoint(&self) -> &str {
        self.server().endpoint()
    }

    pub(crate) fn stream(&self) -> StreamReader {
        self.server().stream(TABLE).expect("a stream")
    }

    pub(crate) fn table(&self) -> AggregateTable {
        AggregateTable::new(self.client.clone(), TABLE, self.clock.clone())
    }

    pub(crate) fn other_table(&self) -> AggregateTable {
        AggregateTable::new(self.client.clone(), OTHER, self.clock.clone())
    }

    /// The table of the customers in the older layout.
    pub(crate) fn legacy_table(&self) -> AggregateTable {
        let (client, clock) = (self.client.clone(), self.clock.clone());
        AggregateTable::legacy(client, LEGACY, "CUSTOMERS", clock).expect("a store")
    }

    /// The log of the customers.
    pub(crate) fn log(&self) -> AggregateLog {
        AggregateLog::new(self.table(), catalog(), self.clock.clone())
    }

    /// Every item of a table.
    pub(crate) async fn items(&self, table: &str) -> Vec<Item> {
        let pages = self.client.scan().table_name(table).into_paginator().items().send();
        pages.collect::<Result<_, _>>().await.expect("a scan")
    }

    /// Puts an item without any checks.
    pub(crate) async fn put(&self, table: &str, item: Item) {
        let put = self.client.put_item().table_name(table).set_item(Some(item));
        put.send().await.expect("a put");
    }

    /// The operations since the last call.
    pub(crate) fn operations(&self) -> Vec<String> {
        self.wire.take().into_iter().map(|exchange| exchange.operation).collect()
    }
}

/// Imports a table into another one. Says of each event whether it is new there.
pub(crate) async fn import(
    from: &AggregateTable,
    to: &AggregateTable,
) -> Result<Vec<bool>, AggregateError> {
    from.scan().and_then(|item| to.import(item)).try_collect().await
}

/// The tables and their properties.
fn tables() -> [(&'static str, Value); 3] {
    let (new, legacy) = (table_layout().properties(), legacy_table_layout().properties());
    [(TABLE, new.clone()), (OTHER, new), (LEGACY, legacy)]
}

/// A table and its clock.
pub(crate) fn in_process() -> (AggregateTable, Clock) {
    let stack = Stack::start();
    (stack.table(), stack.clock)
}

/// Runs a command on a handler that is not warm.
pub(crate) async fn run_with<S: Slice>(
    log: &AggregateLog,
    command: &S,
    envelope: &Envelope,
) -> Result<Handled, HandleError> {
    handle(log, &catalog(), &Decisions::new(0), command, envelope).await
}

/// Runs a command under this key, if any.
pub(crate) async fn run<S: Slice>(log: &AggregateLog, command: &S, key: Option<&str>) -> Handled {
    let handled = run_with(log, command, &envelope(key)).await;
    handled.unwrap_or_else(|error| panic!("{}: {error:?}", S::NAME))
}

/// The places of the events of an accepted command.
#[track_caller]
pub(crate) fn accepted(handled: &Handled) -> Vec<String> {
    let Outcome::Accepted(events) = &handled.outcome else { panic!("{handled:?}") };
    events.iter().map(|event| format!("{} {}", event.partition, event.slot)).collect()
}

/// The code of a rejection.
#[track_caller]
pub(crate) fn code(handled: &Handled) -> &str {
    let Outcome::Rejected { rejected, .. } = &handled.outcome else { panic!("{handled:?}") };
    rejected.rejection["code"].as_str().expect("a code")
}

pub(crate) fn key(store: &str, id: &str) -> AggregateKey {
    AggregateKey::new(store, id).expect("an aggregate")
}

pub(crate) fn event(event_type: &str, payload: Value) -> NewAggregateEvent {
    let event_type = event_type.to_owned();
    NewAggregateEvent { event_type, payload: Some(payload), metadata: None, timestamp_ms: None }
}

/// The events of an aggregate.
pub(crate) async fn events(
    table: &AggregateTable,
    key: &AggregateKey,
    range: Range,
) -> Vec<AggregateEvent> {
    table.get_events(key, range).try_collect().await.expect("events")
}

/// The versions of an aggregate's events.
pub(crate) async fn versions(table: &AggregateTable, key: &AggregateKey, range: Range) -> Vec<u64> {
    let events = events(table, key, range).await;
    events.iter().map(|event| event.version.number()).collect()
}

/// The aggregate and the version of a conflict.
#[track_caller]
pub(crate) fn conflict<T: std::fmt::Debug>(pushed: Result<T, AggregateError>) -> (String, u64) {
    match pushed {
        Err(AggregateError::Conflict(VersionConflict { key, version, .. })) => {
            (key.to_string(), version)
        }
        other => panic!("no conflict: {other:?}"),
    }
}
