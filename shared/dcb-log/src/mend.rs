//! The writes of a repair, each in one step: a fence, the index attributes of an event, an index item.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{Put, Update};
use ringfence_aws::{Failure, GaveUp, Item, Retry};
use ringfence_core::{LogError, StoreError};

use crate::compare::{Difference, Fence};
use crate::fence::{fence_key, read_free};
use crate::item::{ANNOUNCED, COPIES, HEAD, ID, REPAIRED, text};
use crate::log::DcbLog;

/// Mends a fence, unless another repair mends it or writers hold it at every attempt. The next examination shows the
/// result.
pub(crate) async fn mend(log: &DcbLog, differs: &Difference) -> Result<(), LogError> {
    let repair = Some(log.clock.uuid().to_string());
    let mut attempts = Retry::default().start();
    loop {
        let fences = read_free(log, std::slice::from_ref(&differs.boundary)).await?;
        let Some((_, fence)) = fences.into_iter().next() else { return Ok(()) };
        let fence = fence.unwrap_or_default();
        let now = Fence::of(Some(&fence));
        let next = differs.mended(&now);
        // Changed since by another repair, or by an earlier attempt whose answer was lost.
        if now.repaired != differs.repaired || next == now {
            return Ok(());
        }
        let mut mended = fence.clone();
        mended.extend(fence_key(&differs.boundary));
        next.write(&mut mended);
        mended.extend(repair.iter().map(|repair| (REPAIRED.to_owned(), text(repair))));
        match replace(log, &fence, mended).await {
            Ok(()) => return Ok(()),
            // An append changed it, or a transaction holds it. Try again, from the new counts.
            Err(Failure::Condition(_)) => {}
            Err(failure) if failure.is_transient() => {}
            Err(failure) => {
                let operation = "mending a fence";
                return Err(StoreError::Failed { operation, source: failure.into() }.into());
            }
        }
        if !attempts.again().await {
            return Ok(());
        }
    }
}

/// Replaces `old`. Every append changes the head, every repair `repaired`, and every announcement its number or, at its
/// end, how many copies there are. So if these are unchanged, nothing is lost; an announcement may be open again.
async fn replace(log: &DcbLog, old: &Item, new: Item) -> Result<(), Failure> {
    let mut names = HashMap::new();
    let mut values = Item::new();
    let mut conditions = Vec::new();
    for (n, name) in [HEAD, REPAIRED, ANNOUNCED, COPIES].into_iter().enumerate() {
        names.insert(format!("#n{n}"), name.to_owned());
        conditions.push(match old.get(name) {
            None => format!("attribute_not_exists(#n{n})"),
            Some(value) => {
                values.insert(format!(":v{n}"), value.clone());
                format!("#n{n} = :v{n}")
            }
        });
    }
    let put = Put::builder()
        .table_name(log.table.name())
        .set_item(Some(new))
        .condition_expression(conditions.join(" AND "))
        .set_expression_attribute_names(Some(names))
        // DynamoDB refuses an empty map of values.
        .set_expression_attribute_values((!values.is_empty()).then_some(values))
        .build();
    log.table.put(put.expect("table and item are set")).await
}

/// Gives an event the index attributes that it lacks. It can be sent many times with the same result, and no other
/// writer changes an event.
pub(crate) async fn set_attributes(
    log: &DcbLog,
    key: &Item,
    attributes: &Item,
) -> Result<(), LogError> {
    let update = || log.table.update(set(log.table.name(), key, attributes), None);
    let written = Retry::default().run(update).await;
    written.map(drop).map_err(|gave_up| gave_up.during("indexing an event").into())
}

fn set(table: &str, key: &Item, attributes: &Item) -> Update {
    let mut names = HashMap::from([("#id".to_owned(), ID.to_owned())]);
    let mut values = Item::new();
    let mut sets = Vec::new();
    for (n, (name, value)) in attributes.iter().enumerate() {
        names.insert(format!("#n{n}"), name.clone());
        values.insert(format!(":v{n}"), value.clone());
        sets.push(format!("#n{n} = :v{n}"));
    }
    Update::builder()
        .table_name(table)
        .set_key(Some(key.clone()))
        .update_expression(format!("SET {}", sets.join(", ")))
        .condition_expression("attribute_exists(#id)")
        .set_expression_attribute_names(Some(names))
        .set_expression_attribute_values(Some(values))
        .build()
        .expect("table, key and expression are set")
}

/// Puts an item if it is missing, and returns whether it was. If a second attempt finds the item, the first one may
/// have put it, so the item counts as missing.
pub(crate) async fn put_new(log: &DcbLog, item: &Item) -> Result<bool, LogError> {
    let put = || {
        let put = Put::builder()
            .table_name(log.table.name())
            .set_item(Some(item.clone()))
            .condition_expression("attribute_not_exists(#id)")
            .expression_attribute_names("#id", ID)
            .build();
        log.table.put(put.expect("table and item are set"))
    };
    match Retry::default().run(put).await {
        Ok(()) => Ok(true),
        Err(GaveUp { failure: Failure::Condition(_), attempts, .. }) => Ok(attempts > 1),
        Err(gave_up) => Err(gave_up.during("putting an index item").into()),
    }
}
