//! Limits on what an append writes, checked before it writes, so that the error names the numbers. They are
//! DynamoDB's; the log in memory keeps them as well, so that a slice meets them where it is tried.
//!
//! Source: "Quotas in Amazon DynamoDB", Amazon DynamoDB Developer Guide.

use std::fmt;

use crate::{
    BoundaryId, Filing, LimitExceeded, LimitKind, SequencedEvent,
    storable::{bytes, number_bytes},
};

/// How many actions one append may have: as many as a transaction.
pub const ACTIONS_MAX: usize = 100;
/// How many event types the condition on one boundary may name. A condition expression of
/// DynamoDB has at most 4,096 bytes and 300 operators. A type takes up to 32 bytes and 2 operators, and the guard of the
/// fence's head takes 48 and 4.
pub const TYPES_MAX: usize = 100;
/// The items of one append together, in bytes.
pub const TRANSACTION_BYTES_MAX: usize = 4 * 1_024 * 1_024;
/// The item of one event, in bytes. An item may have 400 KB; the rest is kept free, so that an
/// event fits a page of the feed.
pub const EVENT_BYTES_MAX: usize = 350 * 1_024;
/// The text of a snapshot, in bytes. An item may have 400 KB, its key among them.
pub const SNAPSHOT_BYTES_MAX: usize = 390 * 1_024;
/// A partition key, in bytes.
pub(crate) const KEY_BYTES_MAX: usize = 2_048;

/// The number of an append's actions.
///
/// # Errors
/// It is above the limit.
pub fn actions(found: usize) -> Result<(), LimitExceeded> {
    let advice = "read and write fewer things in one decision";
    LimitExceeded::check(LimitKind::Append, TRANSACTION, "actions", found, ACTIONS_MAX, advice)
}

/// The event types in the condition on a boundary.
///
/// # Errors
/// There are more than the limit.
pub(crate) fn types(boundary: &BoundaryId, found: usize) -> Result<(), LimitExceeded> {
    let (unit, advice) = ("event types", "read fewer event types in one decision");
    let subject = fmt::from_fn(|f| write!(f, "the condition on {boundary}"));
    LimitExceeded::check(LimitKind::Condition, subject, unit, found, TYPES_MAX, advice)
}

/// The bytes of an append.
///
/// # Errors
/// They are above the limit.
pub fn transaction(bytes: usize) -> Result<(), LimitExceeded> {
    let advice = "write fewer or smaller events in one decision";
    let limit = TRANSACTION_BYTES_MAX;
    LimitExceeded::check(LimitKind::Append, TRANSACTION, "bytes", bytes, limit, advice)
}

const TRANSACTION: &str = "the command's transaction";

/// The bytes of an event's item.
///
/// # Errors
/// They are above the limit.
pub fn event(event_type: &str, bytes: usize) -> Result<(), LimitExceeded> {
    let advice = "keep large payloads elsewhere and refer to them";
    LimitExceeded::check(LimitKind::Event, event_type, "bytes", bytes, EVENT_BYTES_MAX, advice)
}

/// The text of a snapshot.
///
/// # Errors
/// It is longer than the limit.
pub fn snapshot(text: &str) -> Result<(), LimitExceeded> {
    let advice = "keep less in the state, or send fewer commands with a key about one thing: each takes eleven bytes, \
                  until there are commands on twenty later days";
    let (subject, limit) = ("the snapshot", SNAPSHOT_BYTES_MAX);
    LimitExceeded::check(LimitKind::Snapshot, subject, "bytes", text.len(), limit, advice)
}

/// The partition key of an item that is not an event: its id.
///
/// # Errors
/// It is longer than the limit.
pub fn key(subject: &str, id: &str) -> Result<(), LimitExceeded> {
    let advice = "use a shorter one";
    LimitExceeded::check(LimitKind::Key, subject, "bytes", id.len(), KEY_BYTES_MAX, advice)
}

/// The size of an event's item in bytes.
#[must_use]
pub fn event_bytes(event: &SequencedEvent, filing: &Filing) -> usize {
    let indexed = filing.indexed.iter().map(|tag| "tag_".len() + tag.key.len() + tag.value.len());
    let composite = filing.composite.iter().map(|id| "tag_composite".len() + id.as_str().len());
    shared_bytes(event)
        + text("id", event.partition.as_str())
        + number("position", event.slot)
        + text("event", &event.event_type)
        + indexed.chain(composite).sum::<usize>()
}

/// The size in bytes of the index item that repeats an event under a boundary.
#[must_use]
pub fn index_item_bytes(event: &SequencedEvent, boundary: &BoundaryId) -> usize {
    shared_bytes(event)
        + text("id", "tag#")
        + boundary.as_str().len()
        + "position".len()
        + number_bytes(&event.place().index_position())
        + text("indexOf", &event.event_type)
        + text("partition", event.partition.as_str())
        + number("slot", event.slot)
}

/// What an event's item and its index items have alike.
fn shared_bytes(event: &SequencedEvent) -> usize {
    let metadata = event.metadata.iter().map(|(name, value)| name.len() + bytes(value));
    // A list of maps of two texts each.
    let tag = |key: &str, value: &str| 1 + 3 + 1 + text("key", key) + 1 + text("value", value);
    let tags = event.tags.iter().map(|of| tag(&of.key, &of.value));
    let rest = if event.rest > 0 { number("rest", event.rest) } else { 0 };
    text("context", &event.context)
        + "data".len()
        + bytes(&event.data)
        + number("at", event.at)
        + text("appendId", APPEND_ID)
        + "tags".len()
        + 3
        + tags.chain(metadata).sum::<usize>()
        + rest
}

/// Any UUID.
const APPEND_ID: &str = "00000000-0000-0000-0000-000000000000";

fn text(name: &str, value: &str) -> usize {
    name.len() + value.len()
}

fn number(name: &str, value: u64) -> usize {
    name.len() + number_bytes(&value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_limit_is_allowed_and_one_more_is_not() {
        let kind = |checked: Result<(), LimitExceeded>| checked.map_err(|exceeded| exceeded.kind);
        let id = |bytes| "x".repeat(bytes);
        assert_eq!((kind(actions(100)), kind(actions(101))), (Ok(()), Err(LimitKind::Append)));
        assert_eq!(kind(transaction(4_194_304)), Ok(()));
        assert_eq!(kind(transaction(4_194_305)), Err(LimitKind::Append));
        assert_eq!(
            (kind(event("E", 358_400)), kind(event("E", 358_401))),
            (Ok(()), Err(LimitKind::Event))
        );
        assert_eq!(
            (kind(snapshot(&id(399_360))), kind(snapshot(&id(399_361)))),
            (Ok(()), Err(LimitKind::Snapshot))
        );
        assert_eq!(
            (kind(key("k", &id(2_048))), kind(key("k", &id(2_049)))),
            (Ok(()), Err(LimitKind::Key))
        );
    }
}
