//! The template's event source mappings, on real records of a table's stream.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

extern crate ringfence_core as ringfence; // the derive macros use this name

mod crashes;
mod outages;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use catalog::Money;
use catalog::add_product::AddProduct;
use invoices::create_invoice::CreateInvoice;
use ordering::order_product::OrderProduct;
use ringfence_aggregate_log::{
    AggregateKey, AggregateTable as AggregateLog, NewAggregateEvent as Pushed, Push, PushPlace,
};
use ringfence_aws::{Clock, wire::Wire};
use ringfence_core::{
    Catalog, CatalogError, Context, Decisions, Envelope, Event, EventLog, NewEvent, Reads, Slice,
    State, events, handle, kit::id,
};
use ringfence_dcb_log::DcbLog;
use ringfence_document_log::{
    AccessStrategy, Cache, Category, Document, DocumentLog, Documents, DynamoStore, Load, Snapshot,
    TipLimits,
};
use ringfence_local::{
    embedded::Embedded,
    template::{Mapping, Model, TableResource, Template},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Command items of this time have expired: 2024-06-23T00:00:00Z.
const LONG_AGO_MS: u64 = 1_719_100_800_000;

fn model() -> Model {
    Template::of_stack().unwrap().model("http://127.0.0.1:1").unwrap()
}

fn table<'a>(model: &'a Model, id: &str) -> &'a TableResource {
    model.table(id).unwrap()
}

/// The mappings that read the stream of this table.
fn readers<'a>(model: &'a Model, table: &'a TableResource) -> impl Iterator<Item = &'a Mapping> {
    model.mappings.iter().filter(|mapping| mapping.table == table.name)
}

/// The records of this table that each function gets, by its name. There are two readers.
fn passed<'r>(
    model: &Model,
    table: &TableResource,
    records: &'r [Value],
) -> BTreeMap<String, Vec<&'r Value>> {
    let passed = |mapping: &Mapping| {
        let passes = |record: &&Value| mapping.filters.iter().any(|filter| filter.matches(record));
        (mapping.function.clone(), records.iter().filter(passes).collect())
    };
    let passed: BTreeMap<_, _> = readers(model, table).map(passed).collect();
    assert_eq!(passed.keys().collect::<Vec<_>>(), ["index-events", "publish-events"]);
    passed
}

async fn start(table: &TableResource) -> (Embedded, aws_sdk_dynamodb::Client) {
    let dynamo = Embedded::start().await.unwrap();
    dynamo.create_table(&table.properties, &table.name).unwrap();
    let client = Wire::default().client(dynamo.endpoint());
    (dynamo, client)
}

async fn run<S: Slice>(log: &DcbLog, command: &S, key: &str) {
    let catalog = S::Context::catalog().unwrap();
    let envelope = Envelope { idempotency_key: Some(key.to_owned()), ..Envelope::default() };
    handle(log, &catalog, &Decisions::new(0), command, &envelope).await.unwrap();
}

/// Writes every kind of item, each for the first time and again.
async fn write_everything(client: &aws_sdk_dynamodb::Client, table: &str) {
    let catalog = stack::stack().catalog;
    let clock = Clock::fixed(LONG_AGO_MS);
    let log = DcbLog::new(client.clone(), table, catalog, clock);
    for n in 0..2 {
        let order_id = id(&format!("o{n}"));
        let order =
            OrderProduct { customer_id: id("c1"), order_id, product_id: id("p1"), quantity: 1 };
        run(&log, &order, &format!("order-{n}")).await;
        let invoice = CreateInvoice { invoice_data: json!({}) };
        run(&log, &invoice, &format!("invoice-{n}")).await;
        // The second is refused.
        let (name, description) = (id("Lamp"), id(""));
        let price = Money::new(1_250, "EUR");
        let product = AddProduct { product_id: id("p1"), name, description, price };
        run(&log, &product, &format!("product-{n}")).await;
    }
    let event =
        NewEvent::from(catalog::ProductDemandRecorded { product_id: id("p9"), order_id: id("o9") });
    log.import("elsewhere-1", event, &Envelope::default()).await.unwrap();
    let id = "snapshot#change-product-name#1";
    for text in ["old", "new"] {
        log.keep_snapshot(id.to_owned(), text.to_owned());
        while log.snapshot(id, &Envelope::default()).await.unwrap().as_deref() != Some(text) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test]
async fn the_filter_passes_every_event_and_nothing_else() {
    let model = model();
    let table = table(&model, "EventTable");
    let (dynamo, client) = start(table).await;
    let mut stream = dynamo.stream(&table.name).unwrap();
    write_everything(&client, &table.name).await;
    assert_eq!(dynamo.expire().unwrap(), 3, "two command items and a snapshot expire");
    let records = stream.read().unwrap();

    // The records are of every possible kind.
    let mut kinds = BTreeSet::new();
    for record in &records {
        let id = record["dynamodb"]["Keys"]["id"]["S"].as_str().unwrap();
        let kind = id.split_once('#').map_or("event", |(kind, _)| kind);
        kinds.insert((kind, record["eventName"].as_str().unwrap()));
    }
    let expected = [
        ("command", "INSERT"),
        ("command", "REMOVE"),
        ("event", "INSERT"),
        ("fence", "INSERT"),
        ("fence", "MODIFY"),
        ("import", "INSERT"),
        ("snapshot", "INSERT"),
        ("snapshot", "MODIFY"),
        ("snapshot", "REMOVE"),
        ("tag", "INSERT"),
    ];
    assert_eq!(kinds, BTreeSet::from(expected));

    let items = client.scan().table_name(&table.name).send().await.unwrap().items.unwrap();
    let text = |value: &AttributeValue| value.as_s().or(value.as_n()).unwrap().clone();
    let events = items.iter().filter(|item| item.contains_key("event"));
    let mut events: Vec<_> = events.map(|e| (text(&e["id"]), text(&e["position"]))).collect();
    events.sort();
    assert_eq!(events.len(), 6, "two orders, two invoices, a product, an import");
    for (function, records) in passed(&model, table, &records) {
        let key = |record: &Value, name: &str| {
            let value = record["dynamodb"]["Keys"][name].as_object().unwrap().values().next();
            value.unwrap().as_str().unwrap().to_owned()
        };
        let mut passed: Vec<_> =
            records.into_iter().map(|r| (key(r, "id"), key(r, "position"))).collect();
        passed.sort();
        assert_eq!(passed, events, "{function}");
    }
}

/// The aggregate and the version of a record's item.
fn version(record: &Value) -> (&str, &str) {
    let keys = &record["dynamodb"]["Keys"];
    (keys["aggregateId"]["S"].as_str().unwrap(), keys["version"]["N"].as_str().unwrap())
}

#[tokio::test]
async fn every_event_of_an_aggregate_passes_when_it_is_new_and_never_again() {
    let model = model();
    let table = table(&model, "AggregateTable");
    let (dynamo, client) = start(table).await;
    let mut stream = dynamo.stream(&table.name).unwrap();
    let log = AggregateLog::new(client.clone(), &table.name, Clock::fixed(LONG_AGO_MS));
    let push = |id: &str, place, events| {
        let event = Pushed {
            event_type: "CustomerRenamed".to_owned(),
            payload: Some(json!({ "name": "Ada" })),
            metadata: None,
            timestamp_ms: None,
        };
        let key = AggregateKey::new("customers", id).unwrap();
        Push { key, place, events: vec![event; events] }
    };
    let group = vec![push("ada", PushPlace::End, 1), push("bob", PushPlace::End, 1)];
    log.push_event_group(group).await.unwrap();
    log.push_event_group(vec![push("ada", PushPlace::End, 2)]).await.unwrap();
    // A migration overwrites an event, and a person deletes one.
    log.push_event_group(vec![push("ada", PushPlace::Forced(2), 1)]).await.unwrap();
    let delete = client.delete_item().table_name(&table.name);
    let delete = delete.key("aggregateId", AttributeValue::S("customers#ada".to_owned()));
    delete.key("version", AttributeValue::N("3".to_owned())).send().await.unwrap();

    let records = stream.read().unwrap();
    let names: BTreeSet<_> = records.iter().map(|r| r["eventName"].as_str().unwrap()).collect();
    assert_eq!(names, ["INSERT", "MODIFY", "REMOVE"].into());
    let events = ["1", "2", "3"].map(|version| ("customers#ada", version));
    for (function, records) in passed(&model, table, &records) {
        let mut passed: Vec<_> = records.into_iter().map(version).collect();
        passed.sort_unstable();
        assert_eq!(passed, [&events[..], &[("customers#bob", "1")]].concat(), "{function}");
    }
}

#[derive(Event)]
struct Added {
    #[tag(partition)]
    sum_id: String,
    number: u32,
}

#[derive(Reads)]
enum Summed {
    Added { number: u32 },
}

/// A sum, for streams of each shape that a document can have.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Total(u32);

impl State for Total {
    type Reads = Summed;

    fn evolve(self, Summed::Added { number }: Summed) -> Self {
        Self(self.0 + number)
    }
}

impl Document for Total {}

struct Sum;

impl Context for Sum {
    const NAME: &'static str = "sums";
    type Log = Documents<Total>;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(Self::NAME, [Added::SCHEMA])
    }
}

/// Three streams: one of seven events, and the same with snapshots, both with Tips that calve at the third event and
/// with the older events pruned; and one that has a state and no events.
async fn write_documents(client: &aws_sdk_dynamodb::Client, table: &str) {
    let log = || {
        let limits = TipLimits { events_max: Some(2), ..TipLimits::default() };
        let store = DynamoStore::new(client.clone(), table);
        DocumentLog::new(store, Clock::fixed(LONG_AGO_MS)).with_limits(limits)
    };
    let envelope = Envelope::default();
    for (id, access) in [
        ("whole", AccessStrategy::Unoptimized),
        ("snapshot", AccessStrategy::Snapshot(Snapshot::named("Sum"))),
        ("rolling", AccessStrategy::RollingState(Snapshot::named("Sum"))),
    ] {
        let sums = Category::new::<Sum>(log(), access, Cache::none()).unwrap();
        for number in 0..7 {
            let added = || Added { sum_id: id.to_owned(), number };
            let decide = |_: &Total| Ok::<_, ()>(events![added()]);
            sums.transact(id, Load::Eventual, &envelope, decide).await.unwrap();
        }
        log().prune(&sums.stream(id).unwrap(), 99, &envelope).await.unwrap();
    }
}

#[tokio::test]
async fn every_append_to_a_document_passes_and_no_calf_unfold_or_trim_does() {
    let model = model();
    let table = table(&model, "DocumentTable");
    let (dynamo, client) = start(table).await;
    let mut stream = dynamo.stream(&table.name).unwrap();
    write_documents(&client, &table.name).await;
    let records = stream.read().unwrap();

    let number = |value: &Value| value["N"].as_str().map(|n| n.parse::<u64>().unwrap());
    let appended = |record: &Value| number(&record["dynamodb"]["NewImage"]["a"]);
    // The records are of every possible kind: Tips that say how much is new, and calves.
    let kind = |record: &Value| {
        let new = appended(record).map(|appended| appended.min(1));
        (record["eventName"].as_str().unwrap().to_owned(), new)
    };
    let kinds: BTreeSet<_> = records.iter().map(kind).collect();
    let expected = [
        ("INSERT", None),
        ("INSERT", Some(0)),
        ("INSERT", Some(1)),
        ("MODIFY", Some(0)),
        ("MODIFY", Some(1)),
        ("REMOVE", None),
    ];
    assert_eq!(kinds, expected.map(|(name, new)| (name.to_owned(), new)).into());
    for (function, records) in passed(&model, table, &records) {
        let mut indexes = BTreeMap::<_, Vec<_>>::new();
        for record in records {
            let image = &record["dynamodb"]["NewImage"];
            let (end, new) = (number(&image["n"]).unwrap(), appended(record).unwrap());
            let stream = image["p"]["S"].as_str().unwrap();
            indexes.entry(stream).or_default().extend(end - new..end);
        }
        let all: Vec<u64> = (0..7).collect();
        let expected = [("sums-snapshot", all.clone()), ("sums-whole", all)];
        assert_eq!(indexes, expected.into(), "{function}");
    }
}

#[tokio::test]
async fn a_new_page_of_the_index_notifies_and_nothing_else_does() {
    let model = model();
    let table = table(&model, "IndexTable");
    let (dynamo, client) = start(table).await;
    let mut stream = dynamo.stream(&table.name).unwrap();
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let zero = || AttributeValue::N("0".to_owned());
    for n in 0..2 {
        for p in ["$AppendsEpoch-0_0", "$Progress-0#orderId:o1"] {
            // A page is written once, and its key moves on. A progress is overwritten.
            let i = if p.contains("Epoch") { AttributeValue::N(n.to_string()) } else { zero() };
            let put = client.put_item().table_name(&table.name).item("p", text(p)).item("i", i);
            put.item("n", AttributeValue::N(n.to_string())).send().await.unwrap();
        }
    }
    let records = stream.read().unwrap();
    assert_eq!(records.len(), 4);
    assert!(records.iter().all(|record| record["dynamodb"]["NewImage"].is_null()), "keys only");
    let mapping = readers(&model, table).next().unwrap();
    let passes = |record: &&Value| mapping.filters.iter().any(|filter| filter.matches(record));
    let passed: Vec<_> = records.iter().filter(passes).map(|r| &r["dynamodb"]["Keys"]).collect();
    let page = |n: &str| json!({ "p": { "S": "$AppendsEpoch-0_0" }, "i": { "N": n } });
    assert_eq!(passed, [&page("0"), &page("1")]);
}
