//! The template's event source mappings, on the records that a table's stream really has.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use add_product::AddProduct;
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use create_invoice::CreateInvoice;
use order_product::OrderProduct;
use ringfence::{Decisions, Envelope, NewEvent, Slice, handle, kit::id};
use ringfence_catalog::Money;
use ringfence_dcb_log::DcbLog;
use ringfence_dynamo::{Clock, wire::Wire};
use ringfence_local::{
    buckets::Buckets,
    destinations::Destinations,
    embedded::Embedded,
    invoke::{Invoke, InvokeError},
    notices::Notices,
    queues::Queues,
    stream::Poller,
    template::{Mapping, Model, Table, Template},
};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// Command items of this time have expired: 2024-06-23T00:00:00Z.
const LONG_AGO_MS: u64 = 1_719_100_800_000;

fn model() -> Model {
    Template::of_workspace().unwrap().model("http://127.0.0.1:1").unwrap()
}

fn table<'a>(model: &'a Model, id: &str) -> &'a Table {
    model.table(id).unwrap()
}

/// The mappings that read the stream of this table.
fn readers<'a>(model: &'a Model, table: &'a Table) -> impl Iterator<Item = &'a Mapping> {
    model.mappings.iter().filter(|mapping| mapping.table == table.name)
}

async fn start(table: &Table) -> (Embedded, aws_sdk_dynamodb::Client) {
    let dynamo = Embedded::start().await.unwrap();
    dynamo.create_table(&table.properties, &table.name).unwrap();
    let client = Wire::default().client(dynamo.endpoint());
    (dynamo, client)
}

async fn run<S: Slice>(log: &DcbLog, command: &S, key: &str) {
    let catalog = S::catalog().unwrap();
    let envelope = Envelope { idempotency_key: Some(key.to_owned()), ..Envelope::default() };
    handle(log, &catalog, &Decisions::new(0), command, &envelope).await.unwrap();
}

/// Writes every kind of item, each for the first time and again.
async fn write_everything(client: &aws_sdk_dynamodb::Client, table: &str) {
    let catalog = ringfence_stack::catalog().unwrap();
    let clock = Clock::fixed(LONG_AGO_MS);
    let log = DcbLog::new(client.clone(), table, catalog, clock);
    for n in 0..2 {
        let order_id = id(&format!("o{n}"));
        let order =
            OrderProduct { customer_id: id("c1"), order_id, product_id: id("p1"), quantity: 1 };
        run(&log, &order, &format!("order-{n}")).await;
        let invoice = CreateInvoice { invoice_data: json!({}) };
        run(&log, &invoice, &format!("invoice-{n}")).await;
        // The second is refused, which is recorded as well.
        let name = "Lamp".to_owned();
        let price = Money::new(1_250, "EUR");
        let product = AddProduct { product_id: id("p1"), name, description: String::new(), price };
        run(&log, &product, &format!("product-{n}")).await;
    }
    let event = NewEvent::from(ringfence_catalog::ProductDemandRecorded {
        product_id: id("p9"),
        order_id: id("o9"),
    });
    log.import("elsewhere-1", event, &Envelope::default()).await.unwrap();
}

#[tokio::test]
async fn the_filter_passes_every_event_and_nothing_else() {
    let model = model();
    let table = table(&model, "EventTable");
    let (dynamo, client) = start(table).await;
    let mut stream = dynamo.stream(&table.name).unwrap();
    write_everything(&client, &table.name).await;
    assert!(dynamo.expire().unwrap() >= 6, "command items expire");
    let records = stream.read().unwrap();

    // What was recorded is everything that can be.
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
        ("tag", "INSERT"),
    ];
    assert_eq!(kinds, BTreeSet::from(expected));

    let items = client.scan().table_name(&table.name).send().await.unwrap().items.unwrap();
    let text = |value: &AttributeValue| value.as_s().unwrap().clone();
    let events = items.iter().filter(|item| item.contains_key("event"));
    let mut events: Vec<_> = events.map(|e| (text(&e["id"]), text(&e["position"]))).collect();
    events.sort();
    assert_eq!(events.len(), 6, "two orders, two invoices, a product, an import");
    let mut mappings = 0;
    for mapping in readers(&model, table) {
        mappings += 1;
        let passes = |record: &&Value| mapping.filters.iter().any(|filter| filter.matches(record));
        let key = |record: &Value, name: &str| {
            record["dynamodb"]["Keys"][name]["S"].as_str().unwrap().to_owned()
        };
        let passed = records.iter().filter(passes);
        let mut passed: Vec<_> = passed.map(|r| (key(r, "id"), key(r, "position"))).collect();
        passed.sort();
        assert_eq!(passed, events, "{}", mapping.function);
    }
    assert_eq!(mappings, 2, "publish-events and index-events");
}

#[tokio::test]
async fn a_new_page_of_the_index_rings_and_nothing_else_does() {
    let model = model();
    let table = table(&model, "IndexTable");
    let (dynamo, client) = start(table).await;
    let mut stream = dynamo.stream(&table.name).unwrap();
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let zero = || AttributeValue::N("0".to_owned());
    for n in 0..2 {
        for p in ["$AppendsEpoch-0_0", "$AppendsIndex-0", "$Progress-0#orderId:o1"] {
            // A page is written once; its key moves on. The others are written again.
            let i = if p.contains("Epoch") { AttributeValue::N(n.to_string()) } else { zero() };
            let put = client.put_item().table_name(&table.name).item("p", text(p)).item("i", i);
            put.item("n", AttributeValue::N(n.to_string())).send().await.unwrap();
        }
    }
    let records = stream.read().unwrap();
    assert_eq!(records.len(), 6);
    assert!(records.iter().all(|record| record["dynamodb"]["NewImage"].is_null()), "keys only");
    let mapping = readers(&model, table).next().unwrap();
    let passes = |record: &&Value| mapping.filters.iter().any(|filter| filter.matches(record));
    let passed: Vec<_> = records.iter().filter(passes).map(|r| &r["dynamodb"]["Keys"]).collect();
    let page = |n: &str| json!({ "p": { "S": "$AppendsEpoch-0_0" }, "i": { "N": n } });
    assert_eq!(passed, [&page("0"), &page("1")]);
}

/// Ends without an answer whenever a batch has the record `poison`.
struct Crashes {
    poison: String,
    /// By record, how often it was in an invocation that succeeded.
    done: Mutex<BTreeMap<String, u32>>,
    crashes: Mutex<u32>,
    progress: Notify,
}

impl Invoke for Crashes {
    async fn invoke(&self, function: &str, payload: &Value) -> Result<Value, InvokeError> {
        let records = payload["Records"].as_array().unwrap();
        let id =
            |record: &Value| record["dynamodb"]["Keys"]["id"]["S"].as_str().unwrap().to_owned();
        let ids: Vec<_> = records.iter().map(id).collect();
        if ids.contains(&self.poison) {
            *self.crashes.lock().unwrap() += 1;
            let error = json!({ "errorType": "Runtime.ExitError" });
            return Err(InvokeError::Function { function: function.to_owned(), error });
        }
        for id in ids {
            *self.done.lock().unwrap().entry(id).or_default() += 1;
        }
        self.progress.notify_one();
        Ok(json!({ "batchItemFailures": [] }))
    }
}

/// A thousand events, of which one ends the process of whoever handles it.
async fn put_events(client: &aws_sdk_dynamodb::Client, table: &str) {
    let ids: Vec<String> = (0..1_000).map(|n| format!("orderId:o{n}")).collect();
    for ids in ids.chunks(25) {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let write = |id: &String| {
            let put = PutRequest::builder().item("id", text(id)).item("position", text("1"));
            let put = put.item("event", text("OrderPlaced")).build().unwrap();
            WriteRequest::builder().put_request(put).build()
        };
        let writes = ids.iter().map(write).collect();
        client.batch_write_item().request_items(table, writes).send().await.unwrap();
    }
}

#[tokio::test]
async fn a_crash_loop_on_one_record_ends_within_the_retries_and_keeps_the_record() {
    let model = model();
    let table = table(&model, "EventTable");
    let (dynamo, client) = start(table).await;
    put_events(&client, &table.name).await;
    // Hours of retries pass at once; nothing waits for anything real from here on.
    tokio::time::pause();
    for mapping in readers(&model, table) {
        let crashes = Arc::new(Crashes {
            poison: "orderId:o537".to_owned(),
            done: Mutex::default(),
            crashes: Mutex::default(),
            progress: Notify::new(),
        });
        let folder = tempfile::tempdir().unwrap();
        let buckets = Buckets::new(folder.path().to_owned(), model.buckets.clone());
        let poller = Poller {
            mapping: mapping.clone(),
            stream: dynamo.stream(&table.name).unwrap(),
            functions: crashes.clone(),
            destinations: Destinations { queues: Queues::default(), buckets: buckets.clone() },
            notices: Notices::default(),
        };
        let running = tokio::spawn(poller.run());
        let all = async {
            while crashes.done.lock().unwrap().len() < 999 {
                crashes.progress.notified().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(3_600), all).await.expect("the others arrive");
        running.abort();

        let function = &mapping.function;
        let done = crashes.done.lock().unwrap();
        assert!(done.values().all(|times| *times == 1), "{function}: one arrived twice");
        // Halving the batch down to the record counts as no retry.
        let halvings = mapping.batch_size.next_power_of_two().ilog2();
        let most = mapping.retries.attempts_max.unwrap() + 1 + halvings;
        let found = *crashes.crashes.lock().unwrap();
        assert!(found <= most, "{function}: {found} crashes, at most {most}");
        let bucket = mapping.on_failure.as_ref().unwrap().rsplit(':').next().unwrap();
        let objects = buckets.list(bucket).unwrap();
        assert_eq!(objects.len(), 1, "{function}");
        let object = buckets.get(bucket, &objects[0].key).unwrap();
        let object: Value = serde_json::from_slice(&object).unwrap();
        assert_eq!(object["requestContext"]["condition"], "RetryAttemptsExhausted");
        let payload: Value = serde_json::from_str(object["payload"].as_str().unwrap()).unwrap();
        let records = payload["Records"].as_array().unwrap();
        assert_eq!(records.len(), 1, "{function}: the record alone");
        assert_eq!(records[0]["dynamodb"]["NewImage"]["id"]["S"], "orderId:o537");
    }
}
