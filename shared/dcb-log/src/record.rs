//! The command item: what makes a command with an idempotency key take effect once, whose events can't be its
//! record.

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence::{
    CommandRecord, Envelope, EventRef, KEY_KEPT_SECONDS, KeyReused, LogError, SequencedEvent,
    StoreError, rfc3339,
};
use ringfence_dynamo::{Item, from_attribute, to_attribute};
use serde_json::json;

use crate::item::{RECORDED_AT, key, number, text};
use crate::log::DcbLog;

/// SHA-256 of the command in canonical JSON, in hexadecimal.
const COMMAND_HASH: &str = "commandHash";
/// The command's events, as they are answered.
const EVENTS: &str = "events";
/// Seconds since 1970; the table's TTL attribute, on snapshots and command items of callers' keys only. The store
/// deletes such an item some time afterwards, by its own clock. Until then a command item counts: if a writer judged by
/// its clock that the time is over, a clock that is ahead would let a command take effect again.
pub const EXPIRES_AT: &str = "expiresAt";
const OPERATION: &str = "reading the record of a command";

/// The item that records the events of a command; the first of them has the time `at`.
pub(crate) fn item<'a>(
    record: &CommandRecord,
    events: impl Iterator<Item = &'a SequencedEvent>,
    at: u64,
) -> Result<Item, LogError> {
    let mut item = key(record.id()?, 0);
    let events: Vec<EventRef> = events.map(EventRef::from).collect();
    item.extend([
        (COMMAND_HASH.to_owned(), text(record.sha256())),
        (EVENTS.to_owned(), to_attribute(EVENTS, &json!(events))?),
        (RECORDED_AT.to_owned(), text(rfc3339(at))),
    ]);
    if !record.is_of_event() {
        item.insert(EXPIRES_AT.to_owned(), number(at / 1_000 + KEY_KEPT_SECONDS));
    }
    Ok(item)
}

/// The events that a command's item names.
///
/// # Errors
/// The item is another command's.
pub(crate) fn events(record: &CommandRecord, mut item: Item) -> Result<Vec<EventRef>, LogError> {
    if item.get(COMMAND_HASH) != Some(&text(record.sha256())) {
        return Err(KeyReused { key: record.key.clone() }.into());
    }
    let events = item.remove(EVENTS).unwrap_or(AttributeValue::Null(true));
    let undecodable = |source| StoreError::Failed { operation: OPERATION, source };
    let events = from_attribute(EVENTS, events).map_err(|error| undecodable(error.into()))?;
    Ok(serde_json::from_value(events).map_err(|error| undecodable(error.into()))?)
}

/// The events of a command that took effect before the call, by its item.
pub(crate) async fn find(
    log: &DcbLog,
    record: &CommandRecord,
    envelope: &Envelope,
) -> Result<Option<Vec<EventRef>>, LogError> {
    let key = key(record.id()?, 0);
    let item = log.retry(envelope).run(|| log.table.get(key.clone(), true)).await;
    let item = item.map_err(|gave_up| gave_up.during(OPERATION))?;
    item.map(|item| events(record, item)).transpose()
}
