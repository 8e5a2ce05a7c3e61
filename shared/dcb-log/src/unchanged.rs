//! Checks that nothing was added since a decision's reads (rule 6), for answers that append nothing.

use ringfence_core::{Conflict, Effect, Envelope, LogError, Seen};

use crate::fence::{differences, fence_key};
use crate::get::{OPERATION, get_together};
use crate::item::key;
use crate::log::DcbLog;
use crate::outcome::taken;

/// Reads the next slot of each partition and the fence of each other boundary, all at one moment after the decision's
/// reads.
///
/// One partition needs no transaction: a strong read shows that its next slot is free if the partition still ends
/// where the decision saw it end. If the decision's reads ended within an append, only a transaction can tell,
/// because the append's items may become visible one by one.
pub(crate) async fn verify(
    log: &DcbLog,
    seen: &Seen,
    envelope: &Envelope,
) -> Result<Option<Conflict>, LogError> {
    let Effect { checks, fences, .. } = Effect::look(&log.catalog, seen)?;
    let retry = log.retry(envelope);
    let slots = checks.iter().map(|(partition, slot)| key(partition.as_str(), slot + 1));
    let keys: Vec<_> = slots.chain(fences.keys().map(fence_key)).collect();
    let is_whole = |partition| seen.prefix(partition).is_some_and(|prefix| prefix.rest == 0);
    let items = match (&keys[..], checks.keys().next()) {
        ([key], Some(partition)) if is_whole(partition) => {
            let item = retry.run(|| log.table.get(key.clone(), true)).await;
            vec![item.map_err(|gave_up| gave_up.during(OPERATION))?]
        }
        _ => get_together(log, retry, keys.into_iter()).await?,
    };
    let mut items = items.iter().map(Option::as_ref);
    let mut changes = Vec::new();
    for ((partition, slot), item) in checks.iter().zip(items.by_ref()) {
        changes.extend(item.map(|item| taken(partition, slot + 1, Some(item))));
    }
    for ((boundary, fence), item) in fences.iter().zip(items) {
        changes.extend(differences(boundary, &fence.requires, item)?);
    }
    Ok((!changes.is_empty()).then_some(Conflict(changes)))
}
