//! Fences: where they are, and what they say now.

use ringfence::{BoundaryId, Conflict, Envelope, LogError, Name, Seen, StoreError};
use ringfence_dynamo::{Item, Retry};

use crate::get::{get_committed, get_together};
use crate::item::{count, key};
use crate::limits::TRANSACTION_ACTIONS_MAX;
use crate::log::DcbLog;

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
    seen: impl IntoIterator<Item = (&'a Name, &'a u64)>,
    fence: Option<&Item>,
) -> Result<Option<Conflict>, LogError> {
    let mut conflict = None;
    for (event_type, &seen) in seen {
        let found = count(fence, event_type);
        let differs = || {
            let (boundary, event_type) = (boundary.clone(), event_type.clone());
            Conflict { boundary, event_type, seen, found }
        };
        if found < seen {
            return Err(LogError::Corrupt(differs()));
        }
        if found > seen && conflict.is_none() {
            conflict = Some(differs());
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
        let fences = boundaries.map(fence_key);
        let fences = get_together(log, log.retry(envelope), fences).await?;
        for ((boundary, types), fence) in chunk.iter().zip(&fences) {
            let differs = difference(boundary, *types, fence.as_ref())?;
            conflict = conflict.or(differs);
        }
    }
    Ok(conflict)
}

/// The fences, each as of a moment after the call, in the order of `boundaries`; at most
/// [`TRANSACTION_ACTIONS_MAX`].
pub(crate) async fn snapshot(
    log: &DcbLog,
    retry: Retry,
    boundaries: impl Iterator<Item = &BoundaryId>,
) -> Result<Vec<Option<Item>>, LogError> {
    get_committed(log, retry, boundaries.map(fence_key)).await
}

/// The same, of those boundaries whose fence can be read: one that transactions hold at every attempt
/// is missing, and stops no other.
pub(crate) async fn snapshot_free(
    log: &DcbLog,
    boundaries: &[BoundaryId],
) -> Result<Vec<(BoundaryId, Option<Item>)>, LogError> {
    let mut fences = Vec::new();
    let mut open = vec![boundaries];
    while let Some(some) = open.pop() {
        match snapshot(log, Retry::default(), some.iter()).await {
            Ok(items) => fences.extend(some.iter().cloned().zip(items)),
            Err(LogError::Store(StoreError::Contention { .. })) if some.len() > 1 => {
                open.extend(some.chunks(1));
            }
            Err(LogError::Store(StoreError::Contention { .. })) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(fences)
}
