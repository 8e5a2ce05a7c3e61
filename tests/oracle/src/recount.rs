//! Fences and index items, recomputed from the events.

use std::collections::{BTreeMap, BTreeSet};

use ringfence::{Catalog, Filing, NewEvent, SequencedEvent};
use ringfence_local::engine::Engine;
use serde_json::{Value, json};

use crate::world::TABLE;

fn filing(catalog: &Catalog, event: &SequencedEvent) -> Filing {
    let schema = catalog.schema(&event.event_type).expect("a declared type");
    let (tags, data) = (event.tags.clone(), event.data.clone());
    catalog.filing(&NewEvent { event_type: schema.name.clone(), tags, data }).expect("it was filed")
}

/// The ids of the fences that count `event`.
pub(crate) fn fences_of(catalog: &Catalog, event: &SequencedEvent) -> Vec<String> {
    let boundaries = filing(catalog, event).boundaries;
    boundaries.iter().map(|boundary| format!("fence#{boundary}")).collect()
}

/// Compares the fences and the index items of the table with what follows from its events.
///
/// # Errors
/// What is there and what should be.
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
    let found: BTreeMap<_, _> = fences.map(|item| (text(item, "id"), item.clone())).collect();
    let expected = fences_from(catalog, events);
    if found != expected {
        return Err(format!("fences {found:#?}, recomputed {expected:#?}"));
    }

    let copies = items.iter().filter(|item| item.get("indexOf").is_some());
    let found: BTreeSet<_> =
        copies.map(|item| (text(item, "id"), text(item, "position"))).collect();
    let expected = events.iter().flat_map(|(position, event)| {
        let copies = filing(catalog, event).items.into_iter();
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
    let mut fences: BTreeMap<String, BTreeMap<String, (usize, String)>> = BTreeMap::new();
    for (position, event) in events {
        for fence in fences_of(catalog, event) {
            let types = fences.entry(fence).or_default();
            let (count, newest) = types.entry(event.event_type.clone()).or_default();
            *count += 1;
            newest.clone_from(position);
        }
    }
    let item = |(id, types): (String, BTreeMap<String, (usize, String)>)| {
        let head = types.values().map(|(_, newest)| newest).max().cloned();
        let mut fence = json!({
            "id": { "S": id }, "position": { "S": "FENCE" }, "head": { "S": head },
        });
        for (event_type, (count, newest)) in types {
            fence[format!("cnt#{event_type}")] = json!({ "N": count.to_string() });
            fence[format!("pos#{event_type}")] = json!({ "S": newest });
        }
        (id, fence)
    };
    fences.into_iter().map(item).collect()
}
