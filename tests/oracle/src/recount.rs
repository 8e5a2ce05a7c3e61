//! Fences and index items, recomputed from the events.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::{Catalog, Filing, NewEvent, SequencedEvent};
use ringfence_local::engine::Engine;
use serde_json::{Value, json};

use crate::table::TABLE;

fn filing(catalog: &Catalog, event: &SequencedEvent) -> Filing {
    let schema = catalog.schema(&event.event_type).expect("a declared type");
    let (tags, data) = (event.tags.clone(), event.data.clone());
    catalog.filing(&NewEvent { event_type: schema.name.clone(), tags, data }).expect("it was filed")
}

/// The ids of the fences that count `event`.
pub(crate) fn fences_of(catalog: &Catalog, event: &SequencedEvent) -> Vec<String> {
    let fences = filing(catalog, event).fences;
    fences.iter().map(|boundary| format!("fence#{boundary}")).collect()
}

/// Compares the fences and the index items of the table with those that follow from its events.
///
/// # Errors
/// The found and the expected items.
pub(crate) fn check(
    engine: &Engine,
    catalog: &Catalog,
    events: &BTreeMap<String, SequencedEvent>,
) -> Result<(), String> {
    let request = json!({ "TableName": TABLE }).to_string();
    let (_, answer) = engine.call("Scan", request.as_bytes());
    let answer: Value = serde_json::from_slice(&answer).map_err(|e| e.to_string())?;
    let items = answer["Items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |item: &Value, name: &str| item[name]["S"].as_str().unwrap_or_default().to_owned();

    let fences = items.iter().filter(|item| item.get("head").is_some());
    let counted = |item: &Value| {
        let mut item = item.clone();
        let of_copies = ["announced", "announcer", "since", "copies"];
        of_copies.iter().for_each(|name| drop(item.as_object_mut().map(|it| it.remove(*name))));
        item
    };
    let found: BTreeMap<_, _> = fences.map(|item| (text(item, "id"), counted(item))).collect();
    let expected = fences_from(catalog, events);
    if found != expected {
        return Err(format!("fences {found:#?}, recomputed {expected:#?}"));
    }
    // A dead writer may have left a copy that counts more.
    for copy in items.iter().filter(|item| item.get("open").is_some()) {
        let fence = found.get(&text(copy, "id")).and_then(Value::as_object);
        let is_less = fence.into_iter().flatten().any(|(name, count)| {
            let number = |value: &Value| value["N"].as_str().and_then(|n| n.parse::<u64>().ok());
            name.starts_with("cnt#") && number(&copy[&**name]) < number(count)
        });
        if is_less {
            return Err(format!("{copy:#?} counts less than the fence, {fence:#?}"));
        }
    }

    let copies = items.iter().filter(|item| item.get("indexOf").is_some());
    let position = |item: &Value| item["position"]["N"].as_str().unwrap_or_default().to_owned();
    let found: BTreeSet<_> = copies.map(|item| (text(item, "id"), position(item))).collect();
    let expected = events.values().flat_map(|event| {
        let copies = filing(catalog, event).items.into_iter();
        let position = event.place().index_position();
        copies.map(move |boundary| (format!("tag#{boundary}"), position.clone()))
    });
    let expected = expected.collect();
    if found != expected {
        return Err(format!("index items {found:#?}, recomputed {expected:#?}"));
    }
    Ok(())
}

fn fences_from(
    catalog: &Catalog,
    events: &BTreeMap<String, SequencedEvent>,
) -> BTreeMap<String, Value> {
    let mut fences: BTreeMap<String, (BTreeMap<&str, u64>, u64)> = BTreeMap::new();
    for event in events.values() {
        for fence in fences_of(catalog, event) {
            let (counts, head) = fences.entry(fence).or_default();
            *counts.entry(&event.event_type).or_default() += 1;
            *head = event.at.max(*head);
        }
    }
    let item = |(id, (counts, head)): (String, (BTreeMap<&str, u64>, u64))| {
        let mut fence = json!({
            "id": { "S": id }, "position": { "N": "0" }, "head": { "N": head.to_string() },
        });
        for (event_type, count) in counts {
            fence[format!("cnt#{event_type}")] = json!({ "N": count.to_string() });
        }
        (id, fence)
    };
    fences.into_iter().map(item).collect()
}
