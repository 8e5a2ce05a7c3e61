//! The command item: what makes a command with an idempotency key take effect once.

use aws_sdk_dynamodb::types::{AttributeValue, Put, ReturnValuesOnConditionCheckFailure};
use ringfence::{
    CommandRecord, Envelope, KeyReused, LogError, Outcome, Settled, StoreError, limits, rfc3339,
};
use ringfence_dynamo::{Failure, GaveUp, Item, from_attribute, item_bytes, to_attribute};
use serde_json::json;

use crate::item::{ID, RECORDED_AT, key, number, text};
use crate::log::DcbLog;

/// How long the outcome of a command is kept: longer than a queue keeps a message (14 days), so
/// that a message taken from a dead-letter queue meets it.
pub const COMMAND_KEPT_SECONDS: u64 = 15 * 24 * 3_600;

/// SHA-256 of the command in canonical JSON, in hexadecimal.
const COMMAND_HASH: &str = "commandHash";
const OUTCOME: &str = "outcome";
/// Seconds since 1970; the table's TTL attribute, on command items only.
pub(crate) const EXPIRES_AT: &str = "expiresAt";
/// TTL deletes late, so an item that is past its time counts as deleted.
const CONDITION: &str = "attribute_not_exists(#id) OR #expiresAt < :now";
const OPERATION: &str = "recording the outcome of a command";

/// The action that records `outcome`, unless the command is settled.
pub(crate) fn put(
    table: &str,
    record: &CommandRecord,
    outcome: &Outcome,
    now_ms: u64,
) -> Result<Put, LogError> {
    let mut item = key(record.id()?, 0);
    let now = now_ms / 1_000;
    item.extend([
        (COMMAND_HASH.to_owned(), text(record.sha256())),
        (OUTCOME.to_owned(), to_attribute(OUTCOME, &json!(outcome))?),
        (RECORDED_AT.to_owned(), text(rfc3339(now_ms))),
        (EXPIRES_AT.to_owned(), number(now + COMMAND_KEPT_SECONDS)),
    ]);
    limits::record(item_bytes(&item))?;
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

/// The outcome that an earlier command with the same key left behind.
pub(crate) fn recorded(record: &CommandRecord, mut item: Item) -> Result<Outcome, LogError> {
    if item.get(COMMAND_HASH) != Some(&text(record.sha256())) {
        return Err(KeyReused { key: record.key.clone() }.into());
    }
    let outcome = item.remove(OUTCOME).unwrap_or(AttributeValue::Null(true));
    let undecodable =
        |source| StoreError::Failed { operation: "reading a recorded outcome", source };
    let outcome = from_attribute(OUTCOME, outcome).map_err(|error| undecodable(error.into()))?;
    Ok(serde_json::from_value(outcome).map_err(|error| undecodable(error.into()))?)
}

/// Records an outcome that comes with no append.
pub(crate) async fn settle(
    log: &DcbLog,
    record: &CommandRecord,
    outcome: &Outcome,
    envelope: &Envelope,
) -> Result<Settled, LogError> {
    let put = put(log.table.name(), record, outcome, log.clock.now_ms())?;
    // A single write is half the price of a transaction of one.
    let sent = log.retry(envelope).run(|| log.table.put(put.clone())).await;
    let Err(gave_up) = sent else { return Ok(Settled::Now) };
    match gave_up {
        // An earlier send, whose answer was lost, did it.
        GaveUp { failure: Failure::Condition(Some(item)), unknown: Some(_), .. }
            if item == put.item =>
        {
            Ok(Settled::Now)
        }
        GaveUp { failure: Failure::Condition(Some(item)), .. } => {
            recorded(record, item).map(Settled::Repeated)
        }
        gave_up => Err(gave_up.writing(OPERATION).into()),
    }
}
