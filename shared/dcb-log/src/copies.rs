//! Copies of a fence, so that decisions that depend on it do not meet at one item.
//!
//! A decision that only checks the fence checks one copy. The fence itself is updated with the events as always, so its
//! counts are exact. The copies need not be exact. One thing must hold: **no open copy counts less than the fence.**
//! Then a decision that has seen as many events as a copy counts has seen all of them.
//!
//! So a writer announces its append first. It gives itself the fence's next number, then puts every copy with the
//! counts that the fence will have, each by a request alone, and then appends under the condition that no later number
//! was given. A check that meets such a copy waits until the append has come, or has not. It may always check the fence
//! itself: it sends the same events for the same slots with the same `appendId`, so only one of its requests commits.
//!
//! Announcements are numbered, and a copy is replaced only by one with a later number. If a writer gives up or dies,
//! somebody else takes the next number and puts the copies with the fence's counts: it levels them. From then on the
//! first writer can't append, and the table refuses its late copies. A copy that the fence no longer needs is closed.
//! It is not deleted, because a late request could bring it back. `tests/model` has the rules and their mutants.

use std::time::Duration;

use aws_sdk_dynamodb::types::{
    AttributeValue, Put, ReturnValue, ReturnValuesOnConditionCheckFailure, Update,
};
use futures::future::try_join_all;
use ringfence_aws::{Failure, GaveUp, Item, Retry};
use ringfence_core::{BoundaryId, Change, Conflict, Counts, FenceEffect, LogError};

use crate::compare::Fence;
use crate::fence::{differences, fence_id, fence_key};
use crate::item::{
    ANNOUNCED, ANNOUNCER, COPIES, HEAD, OPEN, SINCE, count, count_name, key, number, whole,
};
use crate::log::DcbLog;
use crate::opening::{AHEAD_MS, Opening, TAKEN_OVER_MS};

const OPERATION: &str = "announcing an append";
/// How often somebody looks whether an announcement has ended. With these waits that takes longer than ten seconds, so
/// the announcement of a dead writer can be taken over.
const LOOKS_MAX: u32 = 256;
const WAIT_MAX: Duration = Duration::from_millis(100);
/// How often a check looks, with the usual waits, which also takes longer than ten seconds.
const CHECKS_MAX: u32 = 28;
/// How often a copy is put, and the longest wait in between. Checks hold it for moments.
const PUTS_MAX: u32 = 40;
const PUT_WAIT_MAX: Duration = Duration::from_millis(25);

/// An announcement that is open on a fence.
pub(crate) struct Announcement {
    /// Its number.
    pub(crate) number: u64,
    /// The fence's item.
    fence: Item,
}

impl Announcement {
    fn of(fence: Item) -> Self {
        Self { number: announced(&fence), fence }
    }

    /// The first millisecond after the newest event under the fence.
    pub(crate) fn after_head(&self) -> u64 {
        whole(&self.fence, HEAD).map_or(0, |ms| ms + 1)
    }
}

/// The copy that a decision checks, by the partition to which it writes: 1 to `copies`.
pub(crate) fn copy_of(partition: &BoundaryId, copies: u16) -> u64 {
    // Any choice is right. This one is the same for each attempt, and spreads partitions evenly (FNV-1a).
    let hash = partition.as_str().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    1 + (hash ^ hash >> 32) % u64::from(copies.max(1))
}

/// The key of a copy.
pub(crate) fn copy_key(boundary: &BoundaryId, copy: u64) -> Item {
    key(fence_id(boundary), copy)
}

/// The number of the last announcement on a fence or of the one that put a copy; 0 before the first.
pub(crate) fn announced(item: &Item) -> u64 {
    whole(item, ANNOUNCED).unwrap_or(0)
}

fn is_by(fence: &Item, announcer: &str) -> bool {
    fence.get(ANNOUNCER).and_then(|by| by.as_s().ok()).is_some_and(|by| by == announcer)
}

/// Whether somebody announces on the fence, and has not begun too long before this time.
pub(crate) fn is_recent(now_ms: u64, fence: &Item) -> bool {
    let begun = whole(fence, SINCE);
    begun.is_some_and(|since| {
        since.saturating_add(TAKEN_OVER_MS) > now_ms && since <= now_ms + AHEAD_MS
    })
}

/// As often as it takes to see an announcement end, or to take it over.
pub(crate) fn patient(retry: Retry) -> Retry {
    retry.attempts_max(LOOKS_MAX).wait_max(WAIT_MAX)
}

/// Announces an append that updates the fence: puts all its copies with the counts that it will have. `is_read` means
/// that the decision has read the partition of this fence. An open announcement of the same announcer is replaced. The
/// time is at least `from_ms`, in milliseconds since 1970, because the clock of an import shows the times of events.
///
/// # Errors
/// The fence counts something else than the append requires, others announce at every attempt, or a request fails.
pub(crate) async fn announce(
    log: &DcbLog,
    retry: Retry,
    boundary: &BoundaryId,
    fence: &FenceEffect,
    is_read: bool,
    announcer: &str,
    from_ms: u64,
) -> Result<Announcement, LogError> {
    let mut attempts = patient(retry).start();
    let mut requires = fence.requires.clone();
    let mut step = 1;
    loop {
        let update = || {
            let now_ms = log.clock.now_ms().max(from_ms);
            let mut update = Opening::new(now_ms, announcer, step);
            update.require_free(now_ms);
            update.require(&requires);
            update.build(log, boundary, "if_not_exists(#copies, :copies)", fence.copies.into())
        };
        let sent = attempts.run(|| log.table.update(update(), Some(ReturnValue::AllNew))).await;
        match sent {
            Ok(found) => {
                let announcement = Announcement::of(found.unwrap_or_default());
                let mut counts = Fence::of(Some(&announcement.fence));
                for (event_type, added) in &fence.adds {
                    *counts.counts.entry(event_type.to_string()).or_default() += added;
                }
                let copies = whole(&announcement.fence, COPIES).unwrap_or(0);
                match put(log, retry, boundary, &announcement, &counts, [copies, copies]).await? {
                    0 => return Ok(announcement),
                    behind => step = 1 + behind,
                }
            }
            Err(GaveUp { failure: Failure::Condition(found), .. }) => {
                let changes = differences(boundary, &requires, found.as_ref())?;
                if !changes.is_empty() {
                    return Err(LogError::Conflict(Conflict(changes)));
                }
                // Another append to this partition is under way. If it commits, it takes the slot of this one.
                let types = fence.adds.keys().filter(|_| is_read);
                requires.extend(types.map(|it| (it.clone(), count(found.as_ref(), it))));
            }
            Err(gave_up) => return Err(gave_up.during(OPERATION).into()),
        }
        attempts.contend(None).await?;
    }
}

/// Levels the copies after an announcement whose append will not come, so checks need not wait. If that fails, those
/// who meet the copies level them later.
pub(crate) async fn give_up(log: &DcbLog, retry: Retry, boundary: &BoundaryId, announcer: &str) {
    drop(level(log, retry, boundary, Some(announcer), None, 0).await);
}

/// Levels the copies of a fence: puts them all with the fence's counts. Returns whether it did; it does not if somebody
/// else announces. `own` is an own announcement that is given up; if it is not open any more, nothing is to be done.
/// `wanted` says how many copies the fence has from now on, and how many there may be. The time is at least
/// `from_ms`, in milliseconds since 1970.
///
/// # Errors
/// A request fails.
pub(crate) async fn level(
    log: &DcbLog,
    retry: Retry,
    boundary: &BoundaryId,
    own: Option<&str>,
    wanted: Option<[u64; 2]>,
    from_ms: u64,
) -> Result<bool, LogError> {
    let get = retry.run(|| log.table.get(fence_key(boundary), true)).await;
    let found = get.map_err(|gave_up| gave_up.during(OPERATION))?.unwrap_or_default();
    let is_own = own.is_some_and(|own| is_by(&found, own));
    if !is_own && (own.is_some() || is_recent(log.clock.now_ms().max(from_ms), &found)) {
        return Ok(false);
    }
    let now = whole(&found, COPIES).unwrap_or(0);
    let [open, there] = wanted.unwrap_or([now, now]);
    let put_to = open.max(there).max(now);
    let announcer = log.clock.uuid().to_string();
    let (mut last, mut step) = (announced(&found), 1);
    loop {
        let update = || {
            let mut update = Opening::new(log.clock.now_ms().max(from_ms), &announcer, step);
            update.require_last(last);
            update.build(log, boundary, ":copies", put_to)
        };
        let sent = retry.run(|| log.table.update(update(), Some(ReturnValue::AllNew))).await;
        let found = match sent {
            Ok(found) => found.unwrap_or_default(),
            // Somebody else announces, or an earlier send was carried out.
            Err(GaveUp { failure: Failure::Condition(Some(found)), .. })
                if is_by(&found, &announcer) =>
            {
                found
            }
            Err(GaveUp { failure: Failure::Condition(_), .. }) => return Ok(false),
            Err(gave_up) => return Err(gave_up.during(OPERATION).into()),
        };
        let of = Announcement::of(found);
        let counts = Fence::of(Some(&of.fence));
        match put(log, retry, boundary, &of, &counts, [open, put_to]).await? {
            0 => return end(log, retry, boundary, of.number, open).await,
            // Somebody has taken over, or the copies are of a table before it was restored.
            behind => (last, step) = (of.number, 1 + behind),
        }
    }
}

/// Ends an announcement that puts no events. Returns false if somebody has taken it over.
async fn end(
    log: &DcbLog,
    retry: Retry,
    boundary: &BoundaryId,
    of: u64,
    copies: u64,
) -> Result<bool, LogError> {
    let end = || {
        let update = Update::builder()
            .table_name(log.table.name())
            .set_key(Some(fence_key(boundary)))
            .update_expression("SET #copies = :copies REMOVE #announcer, #since")
            .condition_expression("#announced = :announced")
            .expression_attribute_names("#announced", ANNOUNCED)
            .expression_attribute_names("#announcer", ANNOUNCER)
            .expression_attribute_names("#since", SINCE)
            .expression_attribute_names("#copies", COPIES)
            .expression_attribute_values(":announced", number(of))
            .expression_attribute_values(":copies", number(copies))
            .build();
        log.table.update(update.expect("table, key and expression are set"), None)
    };
    match retry.run(end).await {
        Ok(_) => Ok(true),
        Err(GaveUp { failure: Failure::Condition(_), .. }) => Ok(false),
        Err(gave_up) => Err(gave_up.during(OPERATION).into()),
    }
}

/// Puts copies 1 to `put_to`, side by side. Those after `open` are closed. Returns 0, or by how much the number of a
/// copy that is there is later.
async fn put(
    log: &DcbLog,
    retry: Retry,
    boundary: &BoundaryId,
    announcement: &Announcement,
    counts: &Fence,
    [open, put_to]: [u64; 2],
) -> Result<u64, LogError> {
    let of = announcement.number;
    let put = |copy: u64| {
        let mut item = copy_key(boundary, copy);
        item.insert(ANNOUNCED.to_owned(), number(of));
        if copy <= open {
            item.insert(OPEN.to_owned(), AttributeValue::Bool(true));
            let counts = counts.counts.iter();
            item.extend(counts.map(|(name, count)| (count_name(name), number(*count))));
        }
        let retry = retry.attempts_max(PUTS_MAX).wait_max(PUT_WAIT_MAX);
        async move {
            match retry.run(|| log.table.put(put_copy(log, item.clone()))).await {
                Ok(()) => Ok(0),
                Err(GaveUp { failure: Failure::Condition(found), .. }) => {
                    Ok(found.as_ref().map_or(0, announced).saturating_sub(of).max(1))
                }
                Err(gave_up) => Err(LogError::from(gave_up.during(OPERATION))),
            }
        }
    };
    let behind = try_join_all((1..=put_to).map(put)).await?;
    Ok(behind.into_iter().max().unwrap_or(0))
}

fn put_copy(log: &DcbLog, item: Item) -> Put {
    let announced = item[ANNOUNCED].clone();
    let put = Put::builder()
        .table_name(log.table.name())
        .set_item(Some(item))
        .condition_expression("attribute_not_exists(#announced) OR #announced <= :announced")
        .expression_attribute_names("#announced", ANNOUNCED)
        .expression_attribute_values(":announced", announced)
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .build();
    put.expect("table and item are set")
}

/// How to go on after a check that met a copy with a larger count than the decision has seen.
pub(crate) enum Look {
    /// The fence itself counts more.
    More(Vec<Change>),
    /// The append that was announced did not come, and the copy is level.
    Again,
    /// It must check the fence itself.
    Fence,
}

/// Waits until the announcement on a fence has ended. If it is too old, or over, the copies are levelled. All of this
/// only spares the fence: a check of the fence itself is right at any time.
pub(crate) async fn look(
    log: &DcbLog,
    retry: Retry,
    boundary: &BoundaryId,
    copy: u64,
    requires: &Counts,
    from_ms: u64,
) -> Look {
    // Half of the time is left for the fence itself.
    let retry = retry.left().map_or(retry, |left| retry.within(left / 2));
    // Many may wait for a dead writer, so they look less and less often.
    let mut looks = retry.attempts_max(CHECKS_MAX).start();
    loop {
        let found = looks.run(|| log.table.get(fence_key(boundary), true)).await;
        let Ok(Some(fence)) = found else { return Look::Fence };
        match differences(boundary, requires, Some(&fence)) {
            Ok(changes) if changes.is_empty() => {}
            Ok(changes) => return Look::More(changes),
            Err(_) => return Look::Fence,
        }
        if !is_recent(log.clock.now_ms().max(from_ms), &fence) {
            let found = looks.run(|| log.table.get(copy_key(boundary, copy), true)).await;
            let Ok(Some(found)) = found else { return Look::Fence };
            if differences(boundary, requires, Some(&found)).is_ok_and(|it| it.is_empty()) {
                return Look::Again;
            }
            match level(log, retry, boundary, None, None, from_ms).await {
                Ok(true) => return Look::Again,
                Ok(false) => {}
                // For want of a permission, for example.
                Err(_) => return Look::Fence,
            }
        }
        if !looks.again().await {
            return Look::Fence;
        }
    }
}
