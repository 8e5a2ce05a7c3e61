//! Exact requests and units of a command, without idempotency key and with the cache off.
//!
//! Payloads have 500 bytes, ids at most 12, and the metadata is that of a traced command, so that
//! an event's item has at most 1,024 bytes. The units are computed from the documented sizes of
//! the items; the emulator's own figures agree.

use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence::kit::id;
use ringfence::{Catalog, DcbContext, DcbSlice, Decisions, NewEvent, handle};
use ringfence_dynamo::wire::{Exchange, Fault};
use ringfence_dynamo::{
    Consistency, Item, Usage, item_bytes, read_units, transact_write_units, write_units,
};
use serde_json::Value;
use tokio::sync::Barrier;

use crate::shop::{
    AddProduct, ChangeProductName, OrderProduct, PlaceOrder, ProductAdded, ProductNameChanged,
    ProductOrdered, ProductStocked, RecordDemand,
};
use crate::stack::{Stack, TABLE, envelope};

/// JSON bytes of a payload.
const PAYLOAD_BYTES: usize = 500;
/// What an event's item may have, so that it takes one unit to write outside a transaction.
const EVENT_ITEM_BYTES_MAX: usize = 1_024;

/// What a command costs.
#[derive(Debug, PartialEq)]
struct Cost {
    requests: (u32, u32),
    /// Of the table and of the indexes that are queried.
    read: f64,
    /// Of the table.
    write: f64,
    /// Units to keep the declared indexes, by name.
    index_write: Vec<(String, f64)>,
}

/// The event with a payload of [`PAYLOAD_BYTES`].
fn padded(event: impl Into<NewEvent>) -> NewEvent {
    let mut event = event.into();
    event.data["note"] = "".into();
    let missing = PAYLOAD_BYTES - event.data.to_string().len();
    event.data["note"] = "x".repeat(missing).into();
    event
}

/// Runs the command after these events; all of its reads have to be under way at once.
async fn cost<S: DcbSlice>(given: Vec<NewEvent>, command: S, reads: usize) -> Cost {
    let stack = Stack::start(S::Context::catalog()).await;
    for event in given {
        stack.seed(vec![event]).await;
    }
    let _ = stack.wire.take();
    let barrier = Arc::new(Barrier::new(reads));
    for _ in 0..reads {
        stack.wire.inject("Query", 0, Fault::Meet(barrier.clone()));
    }
    let log = stack.log();
    let decisions = Decisions::new(0);
    let handled = handle(&log, &stack.catalog, &decisions, &command, &envelope()).await;
    assert_eq!(handled.expect("it is accepted").attempts, 1);
    assert!(stack.wire.is_spent(), "fewer reads than expected");

    let exchanges = stack.wire.take();
    let events = stack.items().await.into_iter().filter(|item| item.contains_key("event"));
    for bytes in events.map(|item| item_bytes(&item)) {
        assert!(bytes <= EVENT_ITEM_BYTES_MAX, "an event of {bytes} bytes");
    }
    let computed = computed(&stack, &exchanges).await;
    assert_eq!(computed, metered(&log.meter().snapshot()), "computed, metered");
    computed
}

fn metered(usage: &Usage) -> Cost {
    let index_write = usage.indexes.iter().filter(|(_, units)| units.write > 0.0);
    let name = |name: &str| name.trim_start_matches(TABLE).trim_start_matches('/').to_owned();
    Cost {
        requests: (usage.reads, usage.writes),
        read: usage.total().read,
        write: usage.tables.write,
        index_write: index_write.map(|(index, units)| (name(index), units.write)).collect(),
    }
}

/// The documented price of what was on the wire.
async fn computed(stack: &Stack, exchanges: &[Exchange]) -> Cost {
    let of = |operation| exchanges.iter().filter(move |e| e.operation == operation);
    let number = |operation| u32::try_from(of(operation).count()).expect("few");
    let mut cost = Cost {
        requests: (number("Query"), number("TransactWriteItems")),
        read: of("Query").map(|exchange| page_units(&exchange.answer)).sum(),
        write: 0.0,
        index_write: Vec::new(),
    };
    for action in of("TransactWriteItems").flat_map(|e| e.request["TransactItems"].as_array()) {
        for action in action.iter().flat_map(|action| action.as_object()).flat_map(|a| a.values()) {
            let key = action.get("Key").unwrap_or(&action["Item"]);
            let key = ["id", "position"].map(|name| (name.to_owned(), attribute(&key[name])));
            let get = stack.client.get_item().table_name(TABLE).set_key(Some(key.into()));
            // A fence only grows, so its size afterwards is the larger one, which counts.
            let item = get.send().await.expect("an answer").item.unwrap_or_default();
            cost.write += transact_write_units(item_bytes(&item));
            cost.index_write.extend(index_entries(&stack.catalog, &item));
        }
    }
    cost
}

fn page_units(page: &Value) -> f64 {
    let items = page["Items"].as_array().into_iter().flatten().map(item);
    read_units(items.map(|item| item_bytes(&item)).sum(), Consistency::Eventual)
}

/// Each index that the item is in: its keys and what the index projects. In a transaction an
/// index costs what it costs outside of it.
fn index_entries(catalog: &Catalog, item: &Item) -> Vec<(String, f64)> {
    let indexes = catalog.indexes().into_iter().filter(|index| item.contains_key(index));
    let units = |index: String| {
        let mut entry = item.clone();
        let projected = ["id", "position", "event", "data", "tags", &index];
        entry.retain(|name, _| projected.contains(&name.as_str()));
        (index, write_units(item_bytes(&entry)))
    };
    indexes.map(units).collect()
}

fn item(json: &Value) -> Item {
    let attributes = json.as_object().expect("an item").iter();
    attributes.map(|(name, value)| (name.clone(), attribute(value))).collect()
}

fn attribute(json: &Value) -> AttributeValue {
    let (kind, value) = json.as_object().and_then(|a| a.iter().next()).expect("an attribute");
    let text = || value.as_str().expect("a text").to_owned();
    match kind.as_str() {
        "S" => AttributeValue::S(text()),
        "N" => AttributeValue::N(text()),
        "L" => AttributeValue::L(value.as_array().expect("a list").iter().map(attribute).collect()),
        "M" => AttributeValue::M(item(value)),
        other => panic!("{other} is in no event"),
    }
}

#[tokio::test]
async fn create_one_entity() {
    let mut command = AddProduct { product_id: id("product-0001"), name: String::new() };
    let empty = serde_json::to_string(&command).expect("JSON").len();
    command.name = "x".repeat(PAYLOAD_BYTES - empty);
    let cost = cost(vec![], command, 1).await;
    let expected = Cost { requests: (1, 1), read: 0.5, write: 4.0, index_write: vec![] };
    assert_eq!(cost, expected);
}

#[tokio::test]
async fn place_an_order_of_two_products() {
    let products = ["product-0001", "product-0002"];
    let given = products.map(|product| padded(ProductStocked { product_id: id(product) }));
    let command =
        PlaceOrder { order_id: id("order-000001"), product_ids: products.map(id).to_vec() };
    let cost = cost(given.to_vec(), command, 3).await;
    let expected = Cost { requests: (3, 1), read: 1.5, write: 8.0, index_write: vec![] };
    assert_eq!(cost, expected);
}

#[tokio::test]
async fn record_one_pair() {
    let command =
        RecordDemand::Record { product_id: id("product-0001"), order_id: id("order-000001") };
    let cost = cost(vec![], command, 1).await;
    let index_write = vec![("tag_composite".to_owned(), 1.0)];
    let expected = Cost { requests: (1, 1), read: 0.5, write: 6.0, index_write };
    assert_eq!(cost, expected);
}

#[tokio::test]
async fn cap_over_fifty_events_of_other_partitions() {
    let given = (0..50).map(|n| {
        padded(ProductOrdered {
            order_id: id(&format!("order-{n:06}")),
            customer_id: id("customer-001"),
            product_id: id("product-0002"),
            quantity: 1,
        })
    });
    let command = OrderProduct {
        order_id: id("order-999999"),
        customer_id: id("customer-001"),
        product_id: id("product-0001"),
        quantity: 1,
    };
    let cost = cost(given.collect(), command, 2).await;
    let index_write = vec![("tag_customerId".to_owned(), 1.0)];
    let expected = Cost { requests: (2, 1), read: 5.0, write: 6.0, index_write };
    assert_eq!(cost, expected);
}

#[tokio::test]
async fn append_to_an_entity_of_a_hundred_events() {
    let added = padded(ProductAdded { product_id: id("product-0001"), name: "Lamp".to_owned() });
    let renamed = (1..100).map(|n| {
        padded(ProductNameChanged { product_id: id("product-0001"), name: format!("Lamp {n}") })
    });
    let command = ChangeProductName { product_id: id("product-0001"), name: id("Lantern") };
    let cost = cost(std::iter::once(added).chain(renamed).collect(), command, 1).await;
    let expected = Cost { requests: (1, 1), read: 11.5, write: 4.0, index_write: vec![] };
    assert_eq!(cost, expected);
}
