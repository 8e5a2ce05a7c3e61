//! Fences: their keys, and their current values.

use ringfence_aws::{Item, Retry};
use ringfence_core::{BoundaryId, Change, Counts, LogError, StoreError};

use crate::get::get_committed;
use crate::item::{count, key};
use crate::log::DcbLog;

/// The partition keys of all fences begin with this; the boundary's id follows.
pub(crate) const FENCE_ID: &str = "fence#";

/// The partition key of a boundary's fence and of its copies.
pub(crate) fn fence_id(boundary: &BoundaryId) -> String {
    format!("{FENCE_ID}{boundary}")
}

/// The key of a boundary's fence.
pub(crate) fn fence_key(boundary: &BoundaryId) -> Item {
    key(fence_id(boundary), 0)
}

/// The counts that differ from the fence.
///
/// # Errors
/// [`LogError::Corrupt`] when the fence counts fewer events than were seen: events are never deleted.
pub(crate) fn differences(
    boundary: &BoundaryId,
    seen: &Counts,
    fence: Option<&Item>,
) -> Result<Vec<Change>, LogError> {
    let mut changes = Vec::new();
    for (event_type, &seen) in seen {
        let found = count(fence, event_type);
        if found != seen {
            let (boundary, event_type) = (boundary.clone(), event_type.clone());
            let change = Change::Count { boundary, event_type, seen, found };
            match found < seen {
                true => return Err(LogError::Corrupt(change)),
                false => changes.push(change),
            }
        }
    }
    Ok(changes)
}

/// Reads the fences, in the order of `boundaries`. Each is as of a moment after the call. Takes at most as many
/// boundaries as a transaction has actions.
pub(crate) async fn read(
    log: &DcbLog,
    retry: Retry,
    boundaries: impl Iterator<Item = &BoundaryId>,
) -> Result<Vec<Option<Item>>, LogError> {
    get_committed(log, retry, boundaries.map(fence_key)).await
}

/// As [`read`], without the fences that transactions hold at every attempt. Such a fence does not stop the others.
pub(crate) async fn read_free(
    log: &DcbLog,
    boundaries: &[BoundaryId],
) -> Result<Vec<(BoundaryId, Option<Item>)>, LogError> {
    let mut fences = Vec::new();
    let mut open = vec![boundaries];
    while let Some(some) = open.pop() {
        match read(log, Retry::default(), some.iter()).await {
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
