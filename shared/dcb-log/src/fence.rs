//! Fences: where they are, and what they say now.

use aws_sdk_dynamodb::types::{Get, ReturnConsumedCapacity, TransactGetItem};
use ringfence::{BoundaryId, Conflict, Envelope, LogError, Seen};
use ringfence_dynamo::{Failure, Item, Kind, Retry};

use crate::item::{count, key};
use crate::limits::TRANSACTION_ACTIONS_MAX;
use crate::log::{DcbLog, failed};

/// The sort key of every fence.
pub(crate) const FENCE: &str = "FENCE";
/// What the partition key of every fence begins with; the boundary's id follows.
pub(crate) const FENCE_ID: &str = "fence#";

/// The key of a boundary's fence.
pub(crate) fn fence_key(boundary: &BoundaryId) -> Item {
    key(format!("{FENCE_ID}{boundary}"), FENCE)
}

/// The first of the counts that the fence does not have.
///
/// # Errors
/// [`LogError::Corrupt`] when the fence counts fewer events than were seen: none is ever deleted.
pub(crate) fn difference<'a>(
    boundary: &BoundaryId,
    seen: impl IntoIterator<Item = (&'a &'static str, &'a u64)>,
    fence: Option<&Item>,
) -> Result<Option<Conflict>, LogError> {
    let mut conflict = None;
    for (&event_type, &seen) in seen {
        let found = count(fence, event_type);
        let differs = Conflict { boundary: boundary.clone(), event_type, seen, found };
        if found < seen {
            return Err(LogError::Corrupt(differs));
        }
        if found > seen && conflict.is_none() {
            conflict = Some(differs);
        }
    }
    Ok(conflict)
}

/// Compares the counts with the fences, after the reads (rule 6).
///
/// More fences than one transaction reads take several. That is as good as one snapshot: what was
/// seen was committed before the first of them, and counts only grow, so a count found equal by a
/// later one was equal at the time of the first as well.
pub(crate) async fn verify(
    log: &DcbLog,
    seen: &Seen,
    envelope: &Envelope,
) -> Result<Option<Conflict>, LogError> {
    let boundaries: Vec<_> = seen.iter().collect();
    let mut conflict = None;
    for chunk in boundaries.chunks(TRANSACTION_ACTIONS_MAX) {
        let boundaries = chunk.iter().map(|(boundary, _)| *boundary);
        let fences = snapshot(log, log.retry(envelope), boundaries).await?;
        for ((boundary, types), fence) in chunk.iter().zip(&fences) {
            let differs = difference(boundary, *types, fence.as_ref())?;
            conflict = conflict.or(differs);
        }
    }
    Ok(conflict)
}

/// The fences at one moment, in the order of `boundaries`; at most [`TRANSACTION_ACTIONS_MAX`].
pub(crate) async fn snapshot(
    log: &DcbLog,
    retry: Retry,
    boundaries: impl Iterator<Item = &BoundaryId>,
) -> Result<Vec<Option<Item>>, LogError> {
    const OPERATION: &str = "reading fences";
    let get = |boundary| {
        let get = Get::builder().table_name(&log.table).set_key(Some(fence_key(boundary))).build();
        TransactGetItem::builder().get(get.expect("table and key are set")).build()
    };
    let gets: Vec<TransactGetItem> = boundaries.map(get).collect();
    let fences = retry.run(|| send(log, gets.clone())).await;
    let fences = fences.map_err(|gave_up| failed(OPERATION, gave_up))?;
    if fences.len() != gets.len() {
        // Fewer would pass for fences that are not there.
        let source = format!("{} answers to {} keys", fences.len(), gets.len()).into();
        return Err(LogError::Failed { operation: OPERATION, source });
    }
    Ok(fences)
}

async fn send(log: &DcbLog, gets: Vec<TransactGetItem>) -> Result<Vec<Option<Item>>, Failure> {
    log.meter.sent(Kind::Read);
    let answer = log
        .client
        .transact_get_items()
        .set_transact_items(Some(gets))
        .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
        .send()
        .await?;
    log.meter.consumed(Kind::Read, answer.consumed_capacity());
    // A fence that is not there comes back as nothing or as an item without attributes; both
    // count zero.
    Ok(answer.responses.unwrap_or_default().into_iter().map(|response| response.item).collect())
}
