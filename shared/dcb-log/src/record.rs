//! The command item: what makes a command with an idempotency key take effect once, whose events can't be its
//! record.

use aws_sdk_dynamodb::types::{AttributeValue, Put, ReturnValuesOnConditionCheckFailure};
use ringfence::{
    CommandRecord, Envelope, EventRef, KEY_KEPT_SECONDS, KeyReused, LogError, SequencedEvent,
    StoreError, rfc3339,
};
use ringfence_dynamo::{Item, from_attribute, to_attribute};
use serde_json::json;

use crate::item::{ID, RECORDED_AT, key, number, text, whole};
use crate::log::DcbLog;

/// SHA-256 of the command in canonical JSON, in hexadecimal.
const COMMAND_HASH: &str = "commandHash";
/// The command's events, as they are answered.
const EVENTS: &str = "events";
/// Seconds since 1970; the table's TTL attribute, on command items and snapshots only.
pub(crate) const EXPIRES_AT: &str = "expiresAt";
/// TTL deletes late, so an item that is past its time counts as deleted.
const CONDITION: &str = "attribute_not_exists(#id) OR #expiresAt < :now";
const OPERATION: &str = "reading the record of a command";

/// The action that records the events of a command, unless it took effect before.
pub(crate) fn put<'a>(
    table: &str,
    record: &CommandRecord,
    events: impl Iterator<Item = &'a SequencedEvent>,
    now_ms: u64,
) -> Result<Put, LogError> {
    let mut item = key(record.id()?, 0);
    let now = now_ms / 1_000;
    let events: Vec<EventRef> = events.map(EventRef::from).collect();
    item.extend([
        (COMMAND_HASH.to_owned(), text(record.sha256())),
        (EVENTS.to_owned(), to_attribute(EVENTS, &json!(events))?),
        (RECORDED_AT.to_owned(), text(rfc3339(now_ms))),
        (EXPIRES_AT.to_owned(), number(now + KEY_KEPT_SECONDS)),
    ]);
    let put = Put::builder()
        .table_name(table)
        .set_item(Some(item))
        .condition_expression(CONDITION)
        .expression_attribute_names("#id", ID)
        .expression_attribute_names("#expiresAt", EXPIRES_AT)
        .expression_attribute_values(":now", number(now))
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .build();
    Ok(put.expect("table and item are set"))
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
    let now = log.clock.now_ms() / 1_000;
    let item = item.filter(|item| whole(item, EXPIRES_AT).is_none_or(|expires| expires >= now));
    item.map(|item| events(record, item)).transpose()
}
