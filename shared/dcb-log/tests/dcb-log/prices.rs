//! The costs of requests, computed from the documented sizes of items and metered by the log.

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::wire::Exchange;
use ringfence_aws::{Item, Usage, item_bytes, read_units, transact_write_units, write_units};
use ringfence_core::{Catalog, Consistency};
use serde_json::Value;

use crate::stack::{Stack, TABLE};

/// The cost of a command.
#[derive(Debug, PartialEq)]
pub(crate) struct Cost {
    pub(crate) requests: (u32, u32),
    /// Read units of the table and of the indexes that are queried.
    pub(crate) read: f64,
    /// Write units of the table.
    pub(crate) write: f64,
    /// Write units of the declared indexes, by name.
    pub(crate) index_write: Vec<(String, f64)>,
}

impl Cost {
    /// Checks that docs/limits.md has this cost for a command.
    #[track_caller]
    pub(crate) fn is_documented(&self, command: &str) {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/limits.md");
        let page = std::fs::read_to_string(page).expect("the page is there");
        let (Self { read, write, .. }, requests) = (self, self.requests.0 + self.requests.1);
        let row = format!("| {command} | {read} | {write} | {requests} |");
        assert!(page.lines().any(|line| line == row), "docs/limits.md lacks the row {row}");
    }
}

/// Reads and writes, each as the number of requests and their units.
pub(crate) fn cost(reads: (u32, f64), writes: (u32, f64)) -> Cost {
    let (requests, index_write) = ((reads.0, writes.0), vec![]);
    Cost { requests, read: reads.1, write: writes.1, index_write }
}

pub(crate) fn metered(usage: &Usage) -> Cost {
    let index_write = usage.indexes.iter().filter(|(_, units)| units.write > 0.0);
    let name = |name: &str| name.trim_start_matches(TABLE).trim_start_matches('/').to_owned();
    Cost {
        requests: (usage.reads, usage.writes),
        read: usage.total().read,
        write: usage.tables.write,
        index_write: index_write.map(|(index, units)| (name(index), units.write)).collect(),
    }
}

/// The documented price of the recorded requests.
pub(crate) async fn computed(stack: &Stack, exchanges: &[Exchange]) -> Cost {
    let mut computed = cost((0, 0.0), (0, 0.0));
    for Exchange { operation, request, answer } in exchanges {
        let (reads, writes) = &mut computed.requests;
        match operation.as_str() {
            "Query" | "GetItem" | "TransactGetItems" => {
                *reads += 1;
                computed.read += read_price(operation, request, answer);
            }
            "PutItem" => {
                *writes += 1;
                let item = item(&request["Item"]);
                computed.write += write_units(item_bytes(&item));
                let committed = answer["__type"].is_null();
                computed
                    .index_write
                    .extend(index_entries(&stack.catalog, &item).into_iter().filter(|_| committed));
            }
            "TransactWriteItems" => {
                *writes += 1;
                let committed = answer["__type"].is_null();
                for action in request["TransactItems"].as_array().into_iter().flatten() {
                    let item = item_of(stack, action).await;
                    computed.write += transact_write_units(item_bytes(&item));
                    let entries = index_entries(&stack.catalog, &item);
                    computed.index_write.extend(entries.into_iter().filter(|_| committed));
                }
            }
            other => panic!("{other} is in no command"),
        }
    }
    computed
}

fn read_price(operation: &str, request: &Value, answer: &Value) -> f64 {
    let sizes = |items: &Value| -> Vec<usize> {
        let items = items.as_array().into_iter().flatten();
        items.map(|json| item_bytes(&item(json))).collect()
    };
    let strong = request["ConsistentRead"] == true;
    let consistency = if strong { Consistency::Strong } else { Consistency::Eventual };
    match operation {
        "Query" => read_units(sizes(&answer["Items"]).iter().sum(), consistency),
        "GetItem" => {
            let bytes =
                answer["Item"].as_object().map_or(0, |_| item_bytes(&item(&answer["Item"])));
            read_units(bytes, consistency)
        }
        _ => {
            let found = answer["Responses"].as_array().into_iter().flatten();
            let sizes = found.map(|found| {
                found["Item"].as_object().map_or(0, |_| item_bytes(&item(&found["Item"])))
            });
            sizes.map(|bytes| 2.0 * read_units(bytes, Consistency::Strong)).sum()
        }
    }
}

/// The current item of an action. A fence only grows, and the larger size counts, so the size afterwards is right. A
/// free slot has no size.
async fn item_of(stack: &Stack, action: &Value) -> Item {
    let action = action.as_object().and_then(|a| a.values().next()).expect("an action");
    let key = action.get("Key").unwrap_or(&action["Item"]);
    let key = ["id", "position"].map(|name| (name.to_owned(), attribute(&key[name])));
    let get = stack.client.get_item().table_name(TABLE).set_key(Some(key.into()));
    get.send().await.expect("an answer").item.unwrap_or_default()
}

/// Each index that the item is in, with its keys and projected attributes. In a transaction an index costs the same
/// as outside.
fn index_entries(catalog: &Catalog, item: &Item) -> Vec<(String, f64)> {
    let indexes = catalog.indexes().into_iter().filter(|index| item.contains_key(index));
    let units = |index: String| {
        let mut entry = item.clone();
        let projected = ["id", "position", "at", "event", "data", "tags", &index];
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
