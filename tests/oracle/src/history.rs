//! The effects of a schedule, as the store carried them out.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde_json::Value;

use crate::Tally;

/// An append that took effect.
#[derive(Debug)]
pub(crate) struct Commit {
    /// The metadata `commandId` of its events.
    pub(crate) command: String,
    /// The ids of its events.
    pub(crate) events: Vec<String>,
    /// When the last of them was recorded, in milliseconds since 1970.
    pub(crate) at: u64,
    /// When they took effect by the store's clock, in milliseconds since 1970.
    pub(crate) effect_ms: u64,
}

/// The effects, in their order.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) commits: Vec<Commit>,
    /// By caller, how many commits came before its last look at what it had seen: all of the first number, and some of
    /// those up to the last one, because a query can come between the items of a transaction.
    pub(crate) looks: BTreeMap<(usize, usize), RangeInclusive<usize>>,
    pub(crate) tally: Tally,
    pub(crate) trace: Vec<String>,
}

/// The append in a put or a transaction.
pub(crate) fn commit(request: &Value, effect_ms: u64) -> Option<Commit> {
    let items = match request["TransactItems"].as_array() {
        Some(actions) => actions.iter().map(|action| &action["Put"]["Item"]).collect(),
        None => vec![&request["Item"]],
    };
    let events: Vec<_> = items.into_iter().filter(|item| item.get("event").is_some()).collect();
    let command = events.first()?["commandId"]["S"].as_str().unwrap_or_default().to_owned();
    let at = events.last()?["at"]["N"].as_str()?.parse().ok()?;
    let events = events.into_iter().filter_map(event_of).collect();
    Some(Commit { command, events, at, effect_ms })
}

/// The id of the event in an item, which is its own or an index item.
pub(crate) fn event_of(item: &Value) -> Option<String> {
    let (partition, slot) = match item.get("indexOf") {
        Some(_) => (&item["partition"], &item["slot"]),
        None => (&item["id"], &item["position"]),
    };
    Some(format!("{}/{}", partition["S"].as_str()?, slot["N"].as_str()?))
}
