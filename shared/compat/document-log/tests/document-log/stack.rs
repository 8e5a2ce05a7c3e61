//! A new table for each test, and the wire to it.

use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use ringfence_aws::Clock;
use ringfence_aws::wire::{Exchange, Wire};
use ringfence_core::{Envelope, Metadata};
use ringfence_document_log::{
    DocumentLog, DynamoStore, Store, StreamName, TipLimits, table_layout,
};
use ringfence_local::embedded::{Embedded, StreamReader};
use ringfence_local::engine::Engine;

pub(crate) const TABLE: &str = "documents";
/// The time of every fixed clock: 2024-06-23T00:00:00Z.
pub(crate) const NOW_MS: u64 = 1_719_100_800_000;

/// One table and a recorder of its requests.
pub(crate) struct Stack {
    dynamo: Embedded,
    pub(crate) wire: Wire,
    pub(crate) client: Client,
}

impl Stack {
    pub(crate) async fn start() -> Self {
        let dynamo = Embedded::start().await.expect("an embedded DynamoDB");
        dynamo.create_table(&table_layout().properties(), TABLE).expect("the table");
        let wire = Wire::default();
        let client = wire.client(dynamo.endpoint());
        Self { dynamo, wire, client }
    }

    pub(crate) fn store(&self) -> DynamoStore {
        DynamoStore::new(self.client.clone(), TABLE)
    }

    /// The same table, without the recorder.
    pub(crate) fn other_store(&self) -> DynamoStore {
        DynamoStore::new(Wire::default().client(self.dynamo.endpoint()), TABLE)
    }

    pub(crate) fn stream(&self) -> StreamReader {
        self.dynamo.stream(TABLE).expect("the table has a stream")
    }

    pub(crate) fn endpoint(&self) -> &str {
        self.dynamo.endpoint()
    }

    /// The requests since the last call.
    pub(crate) fn take(&self) -> Vec<Exchange> {
        self.wire.take()
    }

    /// The operations since the last call.
    pub(crate) fn operations(&self) -> Vec<String> {
        self.take().into_iter().map(|exchange| exchange.operation).collect()
    }
}

pub(crate) fn log<S: Store>(store: S) -> DocumentLog<S> {
    DocumentLog::new(store, Clock::fixed(NOW_MS))
}

/// A Tip of at most this many events.
pub(crate) fn events_max(most: usize) -> TipLimits {
    TipLimits { events_max: Some(most), ..TipLimits::default() }
}

pub(crate) fn name(id: &str) -> StreamName {
    StreamName::new("Basket", id).expect("a name")
}

/// A table whose requests are function calls, for one writer, and its recorder.
pub(crate) fn in_process() -> (DynamoStore, Wire) {
    let engine = Engine::memory().expect("an engine");
    engine.create_table(&table_layout().properties(), TABLE).expect("the table");
    let wire = Wire::default();
    let call = move |operation: &str, body: &[u8]| engine.call(operation, body);
    (DynamoStore::new(wire.client_of(Arc::new(call)), TABLE), wire)
}

/// The metadata of a command `id`.
pub(crate) fn command(id: &str) -> Envelope {
    let mut metadata = Metadata::default();
    for (key, value) in [("commandId", id), ("correlationId", "corr"), ("causationId", "cause")] {
        metadata.insert(key, value).expect("not a key of the log");
    }
    Envelope { metadata, ..Envelope::default() }
}
