//! The table of each test, and the wire to it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use futures::TryStreamExt;
use ringfence_aws::wire::{Exchange, Wire};
use ringfence_aws::{Clock, Item};
use ringfence_core::{
    Append, Appended, BoundaryId, Catalog, CatalogError, Decisions, Envelope, EventLog,
    HandleError, Handled, LogError, Metadata, NewEvent, Outcome, SequencedEvent, Slice, handle,
};
use ringfence_dcb_log::DcbLog;
use ringfence_local::engine::Engine;
use serde_json::Value;

pub(crate) const TABLE: &str = "events";
/// The time of every fixed clock: 2024-06-23T00:00:00Z.
pub(crate) const NOW_MS: u64 = 1_719_100_800_000;

/// One table, the catalog of its events, and a recorder on the way to it.
pub(crate) struct Stack {
    engine: Engine,
    pub(crate) wire: Wire,
    pub(crate) client: Client,
    pub(crate) catalog: Catalog,
    pub(crate) clock: Clock,
    /// Seeds events, each at a later time.
    seeder: DcbLog,
}

impl Stack {
    /// Creates the table that the catalog needs.
    pub(crate) async fn start(catalog: Result<Catalog, CatalogError>) -> Self {
        let catalog = catalog.expect("the catalog is free of contradictions");
        let properties = ringfence_dcb_log::table_layout(&catalog).properties();
        Self::on(catalog, properties)
    }

    pub(crate) async fn projecting(
        catalog: Result<Catalog, CatalogError>,
        projection: &Value,
    ) -> Self {
        let catalog = catalog.expect("the catalog is free of contradictions");
        let properties = table(&catalog, projection);
        Self::on(catalog, properties)
    }

    fn on(catalog: Catalog, mut properties: Value) -> Self {
        // Nobody reads the stream here, and the engine would search all of its records at each write.
        properties.as_object_mut().expect("a map").remove("StreamSpecification");
        let engine = Engine::memory().expect("a database in memory");
        engine.create_table(&properties, TABLE).expect("the table");
        let wire = Wire::default();
        let client = client(&engine, &wire);
        let clock = Clock::fixed(NOW_MS);
        let seeder = DcbLog::new(client.clone(), TABLE, catalog.clone(), clock.clone());
        Self { engine, wire, client, catalog, clock, seeder }
    }

    /// A writer on the stack's clock.
    pub(crate) fn log(&self) -> DcbLog {
        self.log_at(&self.clock)
    }

    /// A writer on another clock.
    pub(crate) fn log_at(&self, clock: &Clock) -> DcbLog {
        self.log_of(&self.catalog, clock)
    }

    /// A log of other events in the same table, on another clock.
    pub(crate) fn log_of(&self, catalog: &Catalog, clock: &Clock) -> DcbLog {
        DcbLog::new(self.client.clone(), TABLE, catalog.clone(), clock.clone())
    }

    /// A log of other events in the same table, on another wire.
    pub(crate) fn log_through(&self, wire: &Wire, catalog: &Catalog) -> DcbLog {
        let client = client(&self.engine, wire);
        DcbLog::new(client, TABLE, catalog.clone(), self.clock.clone())
    }

    /// Runs a command on a new writer, without cache.
    pub(crate) async fn run<S: Slice>(&self, command: &S) -> Result<Handled, HandleError> {
        self.run_with(command, &envelope()).await
    }

    pub(crate) async fn run_with<S: Slice>(
        &self,
        command: &S,
        envelope: &Envelope,
    ) -> Result<Handled, HandleError> {
        handle(&self.log(), &self.catalog, &Decisions::new(0), command, envelope).await
    }

    /// Runs a command that is accepted.
    #[track_caller]
    pub(crate) fn accept<S: Slice>(&self, command: S) -> impl Future<Output = Handled> {
        let at = std::panic::Location::caller();
        async move {
            let handled = self.run(&command).await.unwrap_or_else(|e| panic!("{at}: {e:?}"));
            assert!(matches!(handled.outcome, Outcome::Accepted(_)), "{at}: {handled:?}");
            handled
        }
    }

    /// Appends unconditionally, in one transaction.
    pub(crate) async fn seed(&self, events: Vec<NewEvent>) -> Vec<SequencedEvent> {
        let envelope = envelope();
        committed(append(&self.seeder, events, &envelope).await)
    }

    /// Every item of the table.
    pub(crate) async fn items(&self) -> Vec<Item> {
        let pages = self.client.scan().table_name(TABLE).into_paginator().items().send();
        pages.collect::<Result<_, _>>().await.expect("a scan")
    }

    /// How many events of a type the table has.
    pub(crate) async fn count(&self, event_type: &str) -> usize {
        let event_type = AttributeValue::S(event_type.to_owned());
        self.items().await.iter().filter(|item| item.get("event") == Some(&event_type)).count()
    }

    /// Recomputes every fence and all index items from the events, and looks for gaps.
    pub(crate) async fn check_fences(&self) {
        let mut expected: BTreeMap<String, Fence> = BTreeMap::new();
        let mut index_items: BTreeSet<(String, String, u64)> = BTreeSet::new();
        let mut slots: BTreeMap<BoundaryId, BTreeMap<u64, u64>> = BTreeMap::new();
        let events: Vec<_> = self.log().scan().try_collect().await.expect("every event");
        for SequencedEvent { event_type, tags, data, partition, slot, at, .. } in events {
            let event_type =
                self.catalog.schema(&event_type).expect("a declared type").name.clone();
            let filing =
                self.catalog.filing(&NewEvent { event_type: event_type.clone(), tags, data });
            let filing = filing.expect("it was filed");
            assert_eq!(partition, filing.partition);
            let copy = |id| (format!("tag#{id}"), partition.to_string(), slot);
            index_items.extend(filing.items.iter().map(copy));
            slots.entry(partition).or_default().insert(slot, at);
            for boundary in filing.fences {
                let (counts, head) = expected.entry(format!("fence#{boundary}")).or_default();
                *counts.entry(event_type.to_string()).or_default() += 1;
                *head = at.max(*head);
            }
        }
        for (partition, slots) in slots {
            assert!(slots.keys().copied().eq(1..=slots.len() as u64), "{partition}: {slots:?}");
            assert!(slots.values().is_sorted_by(|a, b| a < b), "{partition}: {slots:?}");
        }
        let items = self.items().await;
        let fences = items.iter().filter(|item| item.contains_key("head"));
        let found: BTreeMap<_, _> = fences.map(|item| (text(item, "id"), fence(item))).collect();
        assert_eq!(found, expected);
        let copies = items.iter().filter(|item| item.contains_key("indexOf"));
        let found = copies.map(|item| {
            let at = number(item, "at").to_string();
            let (whole, _) = number_text(item, "position").split_once('.').expect("a fraction");
            assert_eq!(whole, at);
            (text(item, "id"), text(item, "partition"), number(item, "slot"))
        });
        assert_eq!(found.collect::<BTreeSet<_>>(), index_items);
    }

    /// The requests of one operation since the last call.
    pub(crate) fn take(&self, operation: &str) -> Vec<Exchange> {
        let all = self.wire.take().into_iter();
        all.filter(|exchange| exchange.operation == operation).collect()
    }
}

fn client(engine: &Engine, wire: &Wire) -> Client {
    let engine = engine.clone();
    wire.client_of(Arc::new(move |operation: &str, body: &[u8]| engine.call(operation, body)))
}

/// The number of events of each type, and the time of the newest event.
type Fence = (BTreeMap<String, u64>, u64);

fn text(item: &Item, name: &str) -> String {
    item[name].as_s().expect("a text").clone()
}

fn number_text<'a>(item: &'a Item, name: &str) -> &'a str {
    item[name].as_n().expect("a number")
}

fn number(item: &Item, name: &str) -> u64 {
    number_text(item, name).parse().expect("an integer")
}

fn fence(item: &Item) -> Fence {
    let types = item.keys().filter_map(|name| name.strip_prefix("cnt#"));
    let count = |name: &str| (name.to_owned(), number(item, &format!("cnt#{name}")));
    (types.map(count).collect(), number(item, "head"))
}

/// The table of the catalog's events, with indexes that have other projections.
pub(crate) fn table(catalog: &Catalog, projection: &Value) -> Value {
    let mut table = ringfence_dcb_log::table_layout(catalog).properties();
    let indexes = table["GlobalSecondaryIndexes"].as_array_mut().into_iter().flatten();
    indexes.for_each(|index| index["Projection"] = projection.clone());
    table
}

/// The metadata that every command of a traced stack has.
pub(crate) fn envelope() -> Envelope {
    let mut metadata = Metadata::default();
    for (key, value) in [
        ("correlationId", "0190f3a1-0000-7000-8000-000000000001"),
        ("causationId", "orderId:cause/1"),
        ("commandId", "0190f3a1-0000-7000-8000-000000000003"),
        ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    ] {
        metadata.insert(key, value).expect("not a key of the log");
    }
    Envelope { metadata, ..Envelope::default() }
}

pub(crate) async fn append(
    log: &DcbLog,
    events: Vec<NewEvent>,
    envelope: &Envelope,
) -> Result<Appended, LogError> {
    log.append(Append { events, seen: None, record: None, envelope }).await
}

#[track_caller]
pub(crate) fn committed(appended: Result<Appended, LogError>) -> Vec<SequencedEvent> {
    match appended {
        Ok(Appended::Committed(events)) => events,
        other => panic!("not committed: {other:?}"),
    }
}

/// The `code` of a rejection.
#[track_caller]
pub(crate) fn code(handled: &Result<Handled, HandleError>) -> &str {
    match handled {
        Ok(Handled { outcome: Outcome::Rejected { rejected, .. }, .. }) => {
            rejected.rejection["code"].as_str().expect("a rejection has a code")
        }
        other => panic!("not rejected: {other:?}"),
    }
}
