//! Items by their keys: as they come, all at one moment, or each with all that was committed before.

use aws_sdk_dynamodb::types::{Get, KeysAndAttributes, ReturnConsumedCapacity, TransactGetItem};
use ringfence::{LogError, StoreError};
use ringfence_dynamo::{Failure, Item, Kind, Retry};

use crate::log::DcbLog;

pub(crate) const OPERATION: &str = "reading items";
/// The most keys of a BatchGetItem.
pub(crate) const KEYS_MAX: usize = 100;

/// Those of at most [`KEYS_MAX`] items that are there, in no order.
pub(crate) async fn get_all(
    log: &DcbLog,
    retry: Retry,
    mut keys: Vec<Item>,
    strong: bool,
) -> Result<Vec<Item>, LogError> {
    let mut items = Vec::new();
    let mut attempts = retry.start();
    while !keys.is_empty() {
        let asked = keys.len();
        let batch = retry.run(|| batch(log, keys.clone(), strong)).await;
        let (found, left) = batch.map_err(|gave_up| gave_up.during(OPERATION))?;
        items.extend(found);
        keys = left;
        // 16 MB end a batch too, so only one without progress counts as throttled.
        if keys.len() == asked && !attempts.again().await {
            return Err(StoreError::Throttled { attempts: attempts.made() }.into());
        }
    }
    Ok(items)
}

/// Some of the items, and the keys that are not processed.
pub(crate) async fn batch(
    log: &DcbLog,
    keys: Vec<Item>,
    strong: bool,
) -> Result<(Vec<Item>, Vec<Item>), Failure> {
    let keys = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(strong);
    let keys = keys.build().expect("keys are set");
    log.meter.sent(Kind::Read);
    let mut answer = log
        .client
        .batch_get_item()
        .request_items(&log.table, keys)
        .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
        .send()
        .await?;
    log.meter.consumed(Kind::Read, answer.consumed_capacity());
    let items = answer.responses.as_mut().and_then(|tables| tables.remove(&log.table));
    let left = answer.unprocessed_keys.and_then(|mut tables| tables.remove(&log.table));
    Ok((items.unwrap_or_default(), left.map(|keys| keys.keys).unwrap_or_default()))
}

/// The items at one moment, in the order of `keys`: at most as many as a transaction has actions,
/// and 4 MB of them.
pub(crate) async fn get_together(
    log: &DcbLog,
    retry: Retry,
    keys: impl Iterator<Item = Item>,
) -> Result<Vec<Option<Item>>, LogError> {
    let gets = gets(log, keys);
    let found = retry.run(|| together(log, gets.clone())).await;
    whole(found.map_err(|gave_up| gave_up.during(OPERATION))?, gets.len())
}

/// The items, in the order of `keys`, each as of a moment after the call: what was committed before it
/// shows. At most as many keys as a transaction has actions, and 4 MB of items.
///
/// They are read in one transaction if possible. `DynamoDB` rejects it as a whole while one of the
/// items is being written; then each half is read by itself, so that a busy item stops no other.
pub(crate) async fn get_committed(
    log: &DcbLog,
    retry: Retry,
    keys: impl Iterator<Item = Item>,
) -> Result<Vec<Option<Item>>, LogError> {
    let mut open = vec![gets(log, keys)];
    let mut items = Vec::new();
    while let Some(mut gets) = open.pop() {
        let found = retry.run(async || match together(log, gets.clone()).await {
            Err(failure) if gets.len() > 1 && failure.is_contention() => Ok(None),
            found => found.map(Some),
        });
        let found = found.await.map_err(|gave_up| gave_up.during(OPERATION))?;
        let Some(found) = found else {
            let second = gets.split_off(gets.len() / 2);
            open.extend([second, gets]);
            continue;
        };
        items.extend(whole(found, gets.len())?);
    }
    Ok(items)
}

fn gets(log: &DcbLog, keys: impl Iterator<Item = Item>) -> Vec<TransactGetItem> {
    let get = |key| {
        let get = Get::builder().table_name(&log.table).set_key(Some(key)).build();
        TransactGetItem::builder().get(get.expect("table and key are set")).build()
    };
    keys.map(get).collect()
}

/// The answers, if there are as many as keys: what lacks at the end would pass for items that are not
/// there.
fn whole(found: Vec<Option<Item>>, keys: usize) -> Result<Vec<Option<Item>>, LogError> {
    if found.len() == keys {
        return Ok(found);
    }
    let source = format!("{} answers to {keys} keys", found.len()).into();
    Err(StoreError::Failed { operation: OPERATION, source }.into())
}

async fn together(log: &DcbLog, gets: Vec<TransactGetItem>) -> Result<Vec<Option<Item>>, Failure> {
    log.meter.sent(Kind::Read);
    let answer = log
        .client
        .transact_get_items()
        .set_transact_items(Some(gets))
        .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
        .send()
        .await?;
    log.meter.consumed(Kind::Read, answer.consumed_capacity());
    let responses = answer.responses.unwrap_or_default().into_iter();
    // What is not there comes back as nothing or as an item without attributes.
    Ok(responses.map(|response| response.item.filter(|item| !item.is_empty())).collect())
}
