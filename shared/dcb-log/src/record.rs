//! The command item. It makes a command with an idempotency key take effect once, if the command's events can't be
//! its record.

use aws_sdk_dynamodb::types::{
    AttributeValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use ringfence_aws::{Item, from_attribute, item_bytes, to_attribute};
use ringfence_core::{
    CommandRecord, Envelope, EventRef, KEY_KEPT_SECONDS, LogError, SequencedEvent, StoreError,
    rfc3339,
};
use serde_json::json;

use crate::item::{RECORDED_AT, key, number, text};
use crate::log::DcbLog;

/// SHA-256 of the command in canonical JSON, in hexadecimal.
const COMMAND_HASH: &str = "commandHash";
/// The command's events, as the answer has them.
const EVENTS: &str = "events";
/// Seconds since 1970; the table's TTL attribute. Only snapshots and command items of callers' keys have it. DynamoDB
/// deletes such an item some time afterwards, by its own clock. A command item counts until it is deleted: if writers
/// compared the time with their clocks, a clock that is ahead would let a command take effect again.
pub const EXPIRES_AT: &str = "expiresAt";
const OPERATION: &str = "reading the record of a command";

/// The item that records the events of a command. `at` is the time of the first event.
pub(crate) fn item<'a>(
    record: &CommandRecord,
    events: impl Iterator<Item = &'a SequencedEvent>,
    at: u64,
) -> Result<Item, LogError> {
    let mut item = key(record.id()?, 0);
    let events: Vec<EventRef> = events.map(EventRef::from).collect();
    item.extend([
        (COMMAND_HASH.to_owned(), text(&record.sha256)),
        (EVENTS.to_owned(), to_attribute(EVENTS, &json!(events))?),
        (RECORDED_AT.to_owned(), text(rfc3339(at))),
    ]);
    let expires_at = expires_at(record, at);
    item.extend(expires_at.map(|seconds| (EXPIRES_AT.to_owned(), number(seconds))));
    Ok(item)
}

/// When a command's item expires, in seconds since 1970. `at` is the time of the command's first event. The key of a
/// reaction or a due never expires.
fn expires_at(record: &CommandRecord, at: u64) -> Option<u64> {
    (!record.is_of_event()).then_some(at / 1_000 + KEY_KEPT_SECONDS)
}

/// Whether a command's item has not expired yet. `at` is the time of one of the command's events.
pub(crate) fn is_kept(record: &CommandRecord, at: u64, now_ms: u64) -> bool {
    expires_at(record, at).is_none_or(|seconds| seconds > now_ms / 1_000)
}

/// The action that adds a copied event to the item of its command, and its bytes. An append's events are copied one
/// after another, so the item lists all that were copied.
pub(crate) fn add(
    table: &str,
    record: &CommandRecord,
    event: &SequencedEvent,
) -> Result<(TransactWriteItem, usize), LogError> {
    let mut item = item(record, [event].into_iter(), event.at)?;
    let key = key(record.id()?, 0);
    let bytes = item_bytes(&item);
    item.retain(|name, _| !key.contains_key(name));
    let mut update = Update::builder().table_name(table).set_key(Some(key));
    let mut sets = Vec::new();
    for (n, (name, value)) in item.into_iter().enumerate() {
        let kept = match &*name {
            EVENTS => format!("#a{n} = list_append(if_not_exists(#a{n}, :none), :a{n})"),
            _ => format!("#a{n} = if_not_exists(#a{n}, :a{n})"),
        };
        if name == COMMAND_HASH {
            update = update
                .condition_expression(format!("attribute_not_exists(#a{n}) OR #a{n} = :a{n}"));
        }
        sets.push(kept);
        update = update
            .expression_attribute_names(format!("#a{n}"), name)
            .expression_attribute_values(format!(":a{n}"), value);
    }
    let update = update
        .update_expression(format!("SET {}", sets.join(", ")))
        .expression_attribute_values(":none", AttributeValue::L(Vec::new()))
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .build();
    let update = update.expect("table, key and expression are set");
    Ok((TransactWriteItem::builder().update(update).build(), bytes))
}

/// The events in a command's item.
///
/// # Errors
/// The item belongs to another command, or does not name its command.
pub(crate) fn events(record: &CommandRecord, mut item: Item) -> Result<Vec<EventRef>, LogError> {
    let events = item.remove(EVENTS).unwrap_or(AttributeValue::Null(true));
    let undecodable = |source| StoreError::Failed { operation: OPERATION, source };
    let events = from_attribute(EVENTS, events).map_err(|error| undecodable(error.into()))?;
    let events: Vec<EventRef> =
        serde_json::from_value(events).map_err(|error| undecodable(error.into()))?;
    let sha256 = item.get(COMMAND_HASH).and_then(|sha256| sha256.as_s().ok());
    record.check(sha256.map_or("", String::as_str), || events.first().map(EventRef::id))?;
    Ok(events)
}

/// The events of a command that took effect before the call, from its item.
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
