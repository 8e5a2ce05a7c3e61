//! What a command would do now, in plain values.

use std::collections::BTreeMap;

use ringfence_aws::{Intent, Usage};
use ringfence_log::{ReadBoundary, ReadEvent};
use serde::Serialize;
use serde_json::Value;

/// What a command would do now.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The slice, as `<context>/<slice>`.
    pub slice: String,
    /// The log that it is on: `DCB`, `aggregate` or `document`.
    pub log: &'static str,
    /// The command.
    pub command: Value,
    /// The caller of the command, or the one who caused the event that the slice reacts to, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The slice whose reaction gives the command, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The boundaries that the decision depends on.
    pub reads: Vec<ReadBoundary>,
    /// The events that were read, in fold order.
    pub events: Vec<ReadEvent>,
    /// The answer that the command would get.
    pub answer: Answer,
    /// The actions of the one request that would write.
    pub writes: Vec<Writing>,
    /// The write units of each index, by its name.
    pub indexes: BTreeMap<String, f64>,
    /// The cost for a function that has just started.
    pub cost: Cost,
    /// The conflicts with other commands during the dry run. After each, the command was decided again.
    pub conflicts: Vec<String>,
    /// How often it was decided.
    pub attempts: u32,
}

/// The answer to the command.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Whether it is accepted.
    pub accepted: bool,
    /// Why it is rejected, for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Why it is rejected, for a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejection: Option<Value>,
    /// Whether it took effect before, under the same key.
    pub repeated: bool,
    /// Its events.
    pub events: Vec<Written>,
}

/// An event of the answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Written {
    /// Its type.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The partition that stores it.
    pub partition: String,
    /// Its number in the partition.
    pub slot: u64,
    /// The payload; absent from an event that was there before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// An action of the request that writes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Writing {
    /// The item: its keys.
    pub item: String,
    /// The update; absent if the action only checks its condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub does: Option<String>,
    /// The condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires: Option<String>,
    /// The size of the item in bytes; 0 if the item is small and its size is not computed.
    pub bytes: usize,
    /// Write units.
    pub units: f64,
}

/// Requests and units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// Requests that read.
    pub read_requests: u32,
    /// Read units.
    pub read_units: f64,
    /// Requests that write.
    pub write_requests: u32,
    /// Write units, with those of indexes.
    pub write_units: f64,
}

impl Explanation {
    /// Adds the request that would be sent, and the cost: `usage` without the `looks` that only the dry run needed.
    pub(super) fn costs(mut self, intent: Option<Intent>, usage: &Usage, looks: &Usage) -> Self {
        self.cost.read_requests = usage.reads - looks.reads;
        self.cost.read_units = usage.total().read - looks.total().read;
        // Keys of new persons.
        self.cost.write_requests = usage.writes;
        self.cost.write_units = usage.total().write;
        let Some(intent) = intent else { return self };
        self.cost.write_requests += 1;
        self.cost.write_units += intent.units();
        let writing = |action: &ringfence_aws::Action| Writing {
            item: action.item.clone(),
            does: action.does.clone(),
            requires: action.requires.clone(),
            bytes: action.bytes,
            units: intent.units_of(action),
        };
        self.writes = intent.actions.iter().map(writing).collect();
        self.indexes = intent.indexes;
        self
    }
}
