//! DynamoDB's limits and the limit of nested JSON, checked before the request.
//!
//! Source: "Quotas in Amazon DynamoDB", Amazon DynamoDB Developer Guide.

use ringfence_core::{LimitExceeded, LimitKind};
use serde_json::Value;

/// One item, in bytes: names and values.
pub const ITEM_BYTES_MAX: usize = 400 * 1_024;
/// The events of one append, in bytes as [`crate::StoredEvent::bytes`] estimates them, so that they
/// fit a page of the feed, where an entry also has the stream's name and its own attributes' names.
pub const APPEND_BYTES_MAX: usize = 346 * 1_024;

/// The levels of lists and maps in the JSON of a payload, an unfold or a piece of metadata. A body is a text, so the
/// table holds any depth. But readers refuse more than 127 levels, and the EventTopic adds levels around a payload.
pub const NESTING_MAX: usize = 120;

/// Checks that every reader can read a JSON.
///
/// # Errors
/// It nests deeper than [`NESTING_MAX`].
pub(crate) fn nesting(subject: &str, json: &Value) -> Result<(), LimitExceeded> {
    let advice = "nest its data less, or keep what is nested as a text";
    let (kind, unit) = (LimitKind::Event, "levels of lists and maps");
    LimitExceeded::check(kind, subject, unit, levels(json), NESTING_MAX, advice)
}

/// The number of nested levels of lists and maps.
fn levels(json: &Value) -> usize {
    let (mut deepest, mut left) = (0, vec![(json, 1)]);
    while let Some((json, level)) = left.pop() {
        match json {
            Value::Array(items) => left.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(fields) => left.extend(fields.values().map(|field| (field, level + 1))),
            _ => continue,
        }
        deepest = deepest.max(level);
    }
    deepest
}
