//! Reads items by their keys: eventually consistent, all at one moment, or each with everything committed before.

use ringfence_aws::{Item, Retry};
use ringfence_core::{LogError, StoreError};

use crate::log::DcbLog;

pub(crate) const OPERATION: &str = "reading items";

/// The items that exist, in no order.
pub(crate) async fn get_all(
    log: &DcbLog,
    retry: Retry,
    keys: Vec<Item>,
    strong: bool,
) -> Result<Vec<Item>, LogError> {
    let found = log.table.get_all(retry, keys, strong).await;
    found.map_err(|gave_up| gave_up.during(OPERATION).into())
}

/// The items at one moment, in the order of `keys`. Takes at most as many keys as a transaction has actions, and 4 MB
/// of items.
pub(crate) async fn get_together(
    log: &DcbLog,
    retry: Retry,
    keys: impl Iterator<Item = Item>,
) -> Result<Vec<Option<Item>>, LogError> {
    let keys: Vec<_> = keys.collect();
    let found = retry.run(|| log.table.get_together(&keys)).await;
    whole(found.map_err(|gave_up| gave_up.during(OPERATION))?, keys.len())
}

/// The items, in the order of `keys`. Each is as of a moment after the call, so it shows everything committed before
/// the call. Takes at most as many keys as a transaction has actions, and 4 MB of items.
///
/// One transaction reads them if possible. `DynamoDB` rejects it as a whole while one of the items is being written.
/// Then each half is read by itself, so a busy item does not stop the others.
pub(crate) async fn get_committed(
    log: &DcbLog,
    retry: Retry,
    keys: impl Iterator<Item = Item>,
) -> Result<Vec<Option<Item>>, LogError> {
    let mut open = vec![keys.collect::<Vec<_>>()];
    let mut items = Vec::new();
    while let Some(mut keys) = open.pop() {
        let found = retry.run(async || match log.table.get_together(&keys).await {
            Err(failure) if keys.len() > 1 && failure.is_contention() => Ok(None),
            found => found.map(Some),
        });
        let found = found.await.map_err(|gave_up| gave_up.during(OPERATION))?;
        let Some(found) = found else {
            let second = keys.split_off(keys.len() / 2);
            open.extend([second, keys]);
            continue;
        };
        items.extend(whole(found, keys.len())?);
    }
    Ok(items)
}

/// Checks that there are as many answers as keys. Otherwise missing answers at the end would look like missing items.
fn whole(found: Vec<Option<Item>>, keys: usize) -> Result<Vec<Option<Item>>, LogError> {
    if found.len() == keys {
        return Ok(found);
    }
    let source = format!("{} answers to {keys} keys", found.len()).into();
    Err(StoreError::Failed { operation: OPERATION, source }.into())
}
