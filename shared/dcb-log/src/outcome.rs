//! The meaning of a failed send of an append, in the order of rule 9.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_aws::{Failure, Item, Judged, Reason};
use ringfence_core::{BoundaryId, Change, Conflict, LogError};

use crate::copies::announced;
use crate::fence::differences;
use crate::item::{AT, HEAD, OPEN, append_id, event_type, whole};
use crate::transaction::{Action, Transaction, Via};

/// How a draft ended.
pub(crate) enum End {
    /// The events are in the log, as the last request has them.
    Committed,
    /// The command took effect before, as this item shows.
    Recorded(Item),
    /// The imported event was in the log before.
    Imported,
}

/// The consequence of a failed send.
pub(crate) enum Verdict {
    /// The append has ended.
    End(End),
    /// Something was added to what the decision saw.
    Conflict(Conflict),
    /// Nothing that the decision depends on has changed, but the events can't have these slots or times.
    Again(Again),
    /// Copies of these fences count more than was seen, each with its number, or are not there. Only the fences can
    /// tell whether that is a conflict, and the copies can take the same request later.
    Copies(BTreeMap<BoundaryId, Option<u64>>),
}

/// The slots and times that an append can't have.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Again {
    /// The clock must reach this time, in milliseconds since 1970.
    pub(crate) raise: u64,
    /// Partitions that the decision did not read, and whose slots are taken.
    pub(crate) taken: BTreeSet<BoundaryId>,
    /// Fences that must be announced, because they have been before, or because somebody has taken over.
    pub(crate) announce: BTreeSet<BoundaryId>,
}

/// Classifies a failed send. `sent_before` means that the outcome of an earlier send of the same append is unknown.
///
/// # Errors
/// [`LogError::Corrupt`] when a fence counts fewer events than were seen.
pub(crate) fn classify(
    transaction: &Transaction,
    failure: Failure,
    sent_before: bool,
) -> Result<Judged<Verdict>, LogError> {
    let ended = |end| Ok(Judged::Known(Verdict::End(end)));
    let reasons = match failure {
        // The condition of a single put.
        Failure::Condition(item) => vec![Reason::Condition(item)],
        Failure::Cancelled(reasons) => reasons,
        failure => return Ok(Judged::Failed(failure)),
    };
    let failed = || {
        transaction.actions.iter().zip(&reasons).filter_map(|(action, reason)| match reason {
            Reason::Condition(item) => Some((action, item.as_ref())),
            _ => None,
        })
    };
    // This comes first: our own commit makes everything else differ as well.
    let is_ours = |item: &Item| append_id(item) == Some(&*transaction.append_id);
    let own = failed().filter(|(action, _)| matches!(action, Action::Event { .. }));
    if own.clone().any(|(_, item)| item.is_some_and(is_ours)) {
        return ended(End::Committed);
    }
    // DynamoDB does not judge items that others hold, and may not judge the other items either. It did judge a put of
    // ours if the put failed because of another's event.
    let held = reasons.iter().any(|reason| matches!(reason, Reason::Conflict | Reason::Throttled));
    if sent_before && held && own.count() == 0 {
        return Ok(Judged::Held(Failure::Cancelled(reasons)));
    }
    for (action, item) in failed() {
        match (action, item) {
            (Action::Import, _) => return ended(End::Imported),
            (Action::Command, Some(item)) => return ended(End::Recorded(item.clone())),
            _ => {}
        }
    }
    let mut changes = Vec::new();
    let mut named = BTreeSet::new();
    let mut again = Again::default();
    let mut copies = BTreeMap::new();
    for (action, item) in failed() {
        match action {
            Action::Event { partition, slot, is_read: true }
            | Action::Check { partition, slot } => {
                // If several puts go into one partition, the first one counts.
                if named.insert(partition) {
                    changes.push(taken(partition, *slot, item));
                }
            }
            Action::Event { partition, is_read: false, .. } => {
                again.taken.insert(partition.clone());
                again.raise = again.raise.max(after(item, AT));
            }
            Action::Fence { boundary, via: Via::Copy(copy), requires, .. } => {
                let is_open = item.is_some_and(|item| item.contains_key(OPEN));
                if is_open {
                    differences(boundary, requires, item)?;
                }
                copies.insert(boundary.clone(), is_open.then_some(*copy));
            }
            Action::Fence { boundary, requires, via, .. } => {
                let known = match via {
                    Via::Announced(number) => *number,
                    Via::Fence | Via::Copy(_) => 0,
                };
                changes.extend(differences(boundary, requires, item)?);
                again.raise = again.raise.max(after(item, HEAD));
                if item.is_some_and(|item| announced(item) != known) {
                    again.announce.insert(boundary.clone());
                }
            }
            Action::Copy | Action::Command | Action::Import => {}
        }
    }
    // First the conditions that will fail for ever.
    Ok(match (changes.is_empty(), again == Again::default()) {
        (false, _) => Judged::Known(Verdict::Conflict(Conflict(changes))),
        (true, false) => Judged::Known(Verdict::Again(again)),
        (true, true) if !copies.is_empty() => Judged::Known(Verdict::Copies(copies)),
        (true, true) => Judged::Failed(Failure::Cancelled(reasons)),
    })
}

/// The change that the item in a taken slot means.
pub(crate) fn taken(partition: &BoundaryId, slot: u64, item: Option<&Item>) -> Change {
    let event_type = item.and_then(event_type).unwrap_or("something else").to_owned();
    Change::Slot { partition: partition.clone(), slot, event_type: event_type.into() }
}

/// The millisecond after a time in an item; 0 without an item.
fn after(item: Option<&Item>, name: &str) -> u64 {
    item.and_then(|item| whole(item, name)).map_or(0, |ms| ms + 1)
}

#[cfg(test)]
mod tests;
