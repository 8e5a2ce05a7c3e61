//! The writes of a repair, each in one step: a fence, the index attributes of an event, an index
//! item.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use ringfence::LogError;
use ringfence_dynamo::{Failure, GaveUp, Item, Kind, Retry};

use crate::compare::{Counts, Difference};
use crate::fence::{fence_key, snapshot_free};
use crate::item::{HEAD, ID, REPAIRED, text};
use crate::log::DcbLog;

/// Mends a fence, unless another repair is at it or writers hold it at every attempt; the next
/// examination says what became of it.
pub(crate) async fn mend(log: &DcbLog, differs: &Difference) -> Result<(), LogError> {
    let repair = Some(log.clock.uuid().to_string());
    let mut attempts = Retry::default().start();
    loop {
        let fences = snapshot_free(log, std::slice::from_ref(&differs.boundary)).await?;
        let Some((_, fence)) = fences.into_iter().next() else { return Ok(()) };
        let fence = fence.unwrap_or_default();
        let now = Counts::of(Some(&fence));
        let next = differs.mended(&now);
        // Changed since: by an earlier attempt whose answer was lost, or by another repair.
        if now.repaired != differs.repaired || next == now {
            return Ok(());
        }
        let mut mended = fence.clone();
        mended.extend(fence_key(&differs.boundary));
        next.write(&mut mended);
        mended.extend(repair.iter().map(|repair| (REPAIRED.to_owned(), text(repair))));
        match replace(log, &fence, mended).await {
            Ok(()) => return Ok(()),
            // Appended to, or held by a transaction: again, with what the fence counts then.
            Err(Failure::Condition(_)) => {}
            Err(failure) if failure.is_transient() => {}
            Err(failure) => {
                let attempts = attempts.made();
                return Err(GaveUp { failure, attempts }.during("mending a fence").into());
            }
        }
        if !attempts.again().await {
            return Ok(());
        }
    }
}

/// Puts a fence in the place of `old`. Every append changes the head and every repair `repaired`,
/// so what has both unchanged is unchanged.
async fn replace(log: &DcbLog, old: &Item, new: Item) -> Result<(), Failure> {
    let mut names = HashMap::new();
    let mut values = Item::new();
    let mut conditions = Vec::new();
    for (n, name) in [HEAD, REPAIRED].into_iter().enumerate() {
        names.insert(format!("#n{n}"), name.to_owned());
        conditions.push(match old.get(name) {
            None => format!("attribute_not_exists(#n{n})"),
            Some(value) => {
                values.insert(format!(":v{n}"), value.clone());
                format!("#n{n} = :v{n}")
            }
        });
    }
    log.meter.sent(Kind::Write);
    let answer = log
        .client
        .put_item()
        .table_name(&log.table)
        .set_item(Some(new))
        .condition_expression(conditions.join(" AND "))
        .set_expression_attribute_names(Some(names))
        // DynamoDB refuses an empty map of values.
        .set_expression_attribute_values((!values.is_empty()).then_some(values))
        .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
        .send()
        .await?;
    log.meter.consumed(Kind::Write, answer.consumed_capacity());
    Ok(())
}

/// Gives an event the attributes of indexes that it lacks. It says the same however often it is
/// sent, and nobody else writes to an event.
pub(crate) async fn set_attributes(
    log: &DcbLog,
    key: &Item,
    attributes: &Item,
) -> Result<(), LogError> {
    let written = Retry::default().run(|| set(log, key, attributes)).await;
    written.map_err(|gave_up| gave_up.during("indexing an event").into())
}

async fn set(log: &DcbLog, key: &Item, attributes: &Item) -> Result<(), Failure> {
    let mut names = HashMap::from([("#id".to_owned(), ID.to_owned())]);
    let mut values = Item::new();
    let mut sets = Vec::new();
    for (n, (name, value)) in attributes.iter().enumerate() {
        names.insert(format!("#n{n}"), name.clone());
        values.insert(format!(":v{n}"), value.clone());
        sets.push(format!("#n{n} = :v{n}"));
    }
    log.meter.sent(Kind::Write);
    let answer = log
        .client
        .update_item()
        .table_name(&log.table)
        .set_key(Some(key.clone()))
        .update_expression(format!("SET {}", sets.join(", ")))
        .condition_expression("attribute_exists(#id)")
        .set_expression_attribute_names(Some(names))
        .set_expression_attribute_values(Some(values))
        .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
        .send()
        .await?;
    log.meter.consumed(Kind::Write, answer.consumed_capacity());
    Ok(())
}

/// Puts an item where none is; whether none was. What a second attempt finds, the first may have
/// put, so it counts as lacking.
pub(crate) async fn put_new(log: &DcbLog, item: &Item) -> Result<bool, LogError> {
    match Retry::default().run(|| put(log, item)).await {
        Ok(()) => Ok(true),
        Err(GaveUp { failure: Failure::Condition(_), attempts }) => Ok(attempts > 1),
        Err(gave_up) => Err(gave_up.during("putting an index item").into()),
    }
}

async fn put(log: &DcbLog, item: &Item) -> Result<(), Failure> {
    log.meter.sent(Kind::Write);
    let answer = log
        .client
        .put_item()
        .table_name(&log.table)
        .set_item(Some(item.clone()))
        .condition_expression("attribute_not_exists(#id)")
        .expression_attribute_names("#id", ID)
        .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
        .send()
        .await?;
    log.meter.consumed(Kind::Write, answer.consumed_capacity());
    Ok(())
}
