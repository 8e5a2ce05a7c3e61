//! Copies of a fence, so that decisions that depend on it do not meet at one item.
//!
//! A decision that only checks the fence checks one copy. The fence itself is updated with the events as always, so its
//! counts are exact, and whoever looks at it needs no copy. For the copies one thing suffices: **no open copy counts
//! less than the fence.** Then a decision that has seen as many events as a copy counts has seen all of them.
//!
//! So a writer announces its append first. It gives itself the fence's next number, then puts every copy with the counts
//! that the fence will have, each by a request alone, and then appends under the condition that no later number was
//! given. A check that meets such a copy waits until the append has come, or has not.
//!
//! Announcements are numbered, and a copy is replaced only by one with a later number. If a writer gives up or dies,
//! somebody else takes the next number and puts the copies with the fence's counts: it levels them. From then on the
//! writer can't append, and its late copies are refused. A copy that is no longer wanted is closed and not deleted,
//! because a late request could bring it back. `tests/model` has the rules and their mutants.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{
    AttributeValue, Put, ReturnValue, ReturnValuesOnConditionCheckFailure, Update,
};
use futures::future::try_join_all;
use ringfence_aws::{Failure, GaveUp, Item, Retry};
use ringfence_core::{BoundaryId, Conflict, Counts, FenceEffect, LogError};

use crate::compare::Fence;
use crate::fence::{differences, fence_id, fence_key};
use crate::item::{
    ANNOUNCED, ANNOUNCER, COPIES, HEAD, OPEN, SINCE, count_name, key, number, text, whole,
};
use crate::log::{DcbLog, SENDS_MAX};

const OPERATION: &str = "announcing an append";
/// Others may take over an announcement after this time, in milliseconds.
const TAKEN_OVER_MS: u64 = 10_000;

/// How often a copy is put.
const PUTS_MAX: u32 = 40;

/// An announcement on a fence.
#[derive(Clone, Debug)]
pub(crate) struct Announcement {
    /// Its number.
    pub(crate) number: u64,
    /// The fence's item.
    fence: Item,
}

impl Announcement {
    /// The announcement that is open on a fence.
    pub(crate) fn of(fence: Item) -> Self {
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

/// Whether somebody announces on the fence, and has not begun too long ago.
pub(crate) fn is_recent(log: &DcbLog, fence: &Item) -> bool {
    let begun = whole(fence, SINCE);
    begun.is_some_and(|since| since.saturating_add(TAKEN_OVER_MS) > log.clock.now_ms())
}

/// Announces an append that updates the fence: puts all its copies with the counts that it will have. `None` if somebody
/// has taken the announcement over meanwhile.
///
/// # Errors
/// The fence counts something else than the append requires, others announce at every attempt, or a request fails.
pub(crate) async fn announce(
    log: &DcbLog,
    retry: Retry,
    boundary: &BoundaryId,
    fence: &FenceEffect,
) -> Result<Option<Announcement>, LogError> {
    let announcer = log.clock.uuid().to_string();
    let retry = retry.attempts_max(SENDS_MAX);
    let mut attempts = retry.start();
    let update = || {
        let mut update = Opening::new(log, &announcer);
        update.require(&fence.requires);
        let copies = format!("{COPIES_NAME} = if_not_exists({COPIES_NAME}, :copies)");
        update.build(log, boundary, &copies, u64::from(fence.copies))
    };
    let found = loop {
        let sent = attempts.run(|| log.table.update(update(), Some(ReturnValue::AllNew))).await;
        match sent {
            Ok(found) => break found.unwrap_or_default(),
            Err(GaveUp { failure: Failure::Condition(found), .. }) => {
                let found = found.unwrap_or_default();
                // An earlier send, whose answer was lost.
                if found.get(ANNOUNCER) == Some(&text(&*announcer)) {
                    break found;
                }
                let changes = differences(boundary, &fence.requires, Some(&found))?;
                if !changes.is_empty() {
                    return Err(LogError::Conflict(Conflict(changes)));
                }
                attempts.contend(None).await?;
            }
            Err(gave_up) => return Err(gave_up.during(OPERATION).into()),
        }
    };
    let announcement = Announcement::of(found);
    let mut counts = Fence::of(Some(&announcement.fence));
    for (event_type, added) in &fence.adds {
        *counts.counts.entry(event_type.to_string()).or_default() += added;
    }
    let copies = whole(&announcement.fence, COPIES).unwrap_or(0);
    match put(log, retry, boundary, &announcement, &counts, [copies, copies]).await {
        Ok(is_put) => Ok(is_put.then_some(announcement)),
        Err(error) => {
            give_up(log, retry, boundary, announcement.number).await;
            Err(error)
        }
    }
}

/// Levels the copies after an announcement whose append will not come, so checks need not wait. If that fails, those
/// who meet the copies level them later.
pub(crate) async fn give_up(log: &DcbLog, retry: Retry, boundary: &BoundaryId, number: u64) {
    drop(level(log, retry, boundary, Some(number), None).await);
}

/// Levels the copies of a fence, unless somebody else announces: puts them all with the fence's counts. `of` is an own
/// announcement that is given up. With `wanted`, the fence has so many copies from now on.
///
/// # Errors
/// A request fails.
pub(crate) async fn level(
    log: &DcbLog,
    retry: Retry,
    boundary: &BoundaryId,
    of: Option<u64>,
    wanted: Option<u64>,
) -> Result<(), LogError> {
    let get = retry.run(|| log.table.get(fence_key(boundary), true)).await;
    let found = get.map_err(|gave_up| gave_up.during(OPERATION))?.unwrap_or_default();
    let now = whole(&found, COPIES).unwrap_or(0);
    let (open, put_to) = (wanted.unwrap_or(now), wanted.unwrap_or(now).max(now));
    if found.get(ANNOUNCER).is_none() && of.is_some() {
        return Ok(());
    }
    let announcer = log.clock.uuid().to_string();
    let update = || {
        let mut update = Opening::new(log, &announcer);
        update.replace(&found, of);
        update.build(log, boundary, &format!("{COPIES_NAME} = :copies"), put_to)
    };
    let sent = retry.run(|| log.table.update(update(), Some(ReturnValue::AllNew))).await;
    let found = match sent {
        Ok(found) => found.unwrap_or_default(),
        // Somebody else announces, or an earlier send was carried out.
        Err(GaveUp { failure: Failure::Condition(found), .. })
            if found.as_ref().and_then(|it| it.get(ANNOUNCER)) == Some(&text(&*announcer)) =>
        {
            found.unwrap_or_default()
        }
        Err(GaveUp { failure: Failure::Condition(_), .. }) => return Ok(()),
        Err(gave_up) => return Err(gave_up.during(OPERATION).into()),
    };
    end(log, retry, boundary, &Announcement::of(found), [open, put_to]).await
}

/// Puts the copies with the fence's counts, and ends the announcement.
pub(crate) async fn end(
    log: &DcbLog,
    retry: Retry,
    boundary: &BoundaryId,
    announcement: &Announcement,
    [open, put_to]: [u64; 2],
) -> Result<(), LogError> {
    let counts = Fence::of(Some(&announcement.fence));
    if !put(log, retry, boundary, announcement, &counts, [open, put_to]).await? {
        return Ok(());
    }
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
            .expression_attribute_values(":announced", number(announcement.number))
            .expression_attribute_values(":copies", number(open))
            .build();
        log.table.update(update.expect("table, key and expression are set"), None)
    };
    match retry.run(end).await {
        Ok(_) | Err(GaveUp { failure: Failure::Condition(_), .. }) => Ok(()),
        Err(gave_up) => Err(gave_up.during(OPERATION).into()),
    }
}

/// Puts copies 1 to `put_to`, side by side. Those after `open` are closed. Returns false if one is of a later
/// announcement.
async fn put(
    log: &DcbLog,
    retry: Retry,
    boundary: &BoundaryId,
    announcement: &Announcement,
    counts: &Fence,
    [open, put_to]: [u64; 2],
) -> Result<bool, LogError> {
    let put = |copy: u64| {
        let mut item = copy_key(boundary, copy);
        item.insert(ANNOUNCED.to_owned(), number(announcement.number));
        if copy <= open {
            item.insert(OPEN.to_owned(), AttributeValue::Bool(true));
            let counts = counts.counts.iter();
            item.extend(counts.map(|(name, count)| (count_name(name), number(*count))));
        }
        async move {
            let mut attempt = 1;
            loop {
                let once = retry.attempts_max(1);
                let sent = once.run(|| log.table.put(put_copy(log, item.clone()))).await;
                let gave_up = match sent {
                    Ok(()) => return Ok(true),
                    Err(GaveUp { failure: Failure::Condition(_), .. }) => return Ok(false),
                    Err(gave_up) => gave_up,
                };
                // Checks hold a copy for moments, and others wait for this one.
                let waits = if gave_up.failure.is_contention() { 1 } else { attempt };
                let is_over = attempt == PUTS_MAX || !gave_up.failure.is_transient();
                if is_over || !retry.pause(waits).await {
                    return Err(LogError::from(gave_up.during(OPERATION)));
                }
                attempt += 1;
            }
        }
    };
    let put = try_join_all((1..=put_to).map(put)).await?;
    Ok(put.into_iter().all(|is_put| is_put))
}

fn put_copy(log: &DcbLog, item: Item) -> Put {
    let announced = item[ANNOUNCED].clone();
    let put = Put::builder()
        .table_name(log.table.name())
        .set_item(Some(item))
        .condition_expression("attribute_not_exists(#announced) OR #announced <= :announced")
        .expression_attribute_names("#announced", ANNOUNCED)
        .expression_attribute_values(":announced", announced)
        .build();
    put.expect("table and item are set")
}

const COPIES_NAME: &str = "#copies";

/// The update that opens an announcement on a fence.
struct Opening {
    names: HashMap<String, String>,
    values: Item,
    conditions: Vec<String>,
}

impl Opening {
    /// Nobody announces, or somebody has announced too long ago.
    fn new(log: &DcbLog, announcer: &str) -> Self {
        let now_ms = log.clock.now_ms();
        let names = [
            ("#announced", ANNOUNCED),
            ("#announcer", ANNOUNCER),
            ("#since", SINCE),
            (COPIES_NAME, COPIES),
        ];
        let values = [
            (":one", number(1)),
            (":announcer", text(announcer)),
            (":now", number(now_ms)),
            (":old", number(now_ms.saturating_sub(TAKEN_OVER_MS))),
        ];
        let free = "(attribute_not_exists(#announcer) OR #since <= :old)";
        Self {
            names: names.map(|(alias, name)| (alias.to_owned(), name.to_owned())).into(),
            values: values.map(|(name, value)| (name.to_owned(), value)).into(),
            conditions: vec![free.to_owned()],
        }
    }

    /// The fence has these counts.
    fn require(&mut self, counts: &Counts) {
        for (n, (event_type, seen)) in counts.iter().enumerate() {
            self.names.insert(format!("#c{n}"), count_name(event_type));
            self.conditions.push(match seen {
                0 => format!("attribute_not_exists(#c{n})"),
                seen => {
                    self.values.insert(format!(":n{n}"), number(*seen));
                    format!("#c{n} = :n{n}")
                }
            });
        }
    }

    /// Nobody has announced since the fence was `found`. An own announcement `of` may be open.
    fn replace(&mut self, found: &Item, of: Option<u64>) {
        if of.is_some_and(|of| of == announced(found)) {
            self.conditions.clear();
            self.values.remove(":old");
        }
        self.conditions.push(match found.get(ANNOUNCED) {
            None => "attribute_not_exists(#announced)".to_owned(),
            Some(announced) => {
                self.values.insert(":announced".to_owned(), announced.clone());
                "#announced = :announced".to_owned()
            }
        });
    }

    fn build(mut self, log: &DcbLog, boundary: &BoundaryId, set: &str, copies: u64) -> Update {
        self.values.insert(":copies".to_owned(), number(copies));
        let sets = "SET #announcer = :announcer, #since = :now";
        let update = Update::builder()
            .table_name(log.table.name())
            .set_key(Some(fence_key(boundary)))
            .update_expression(format!("{sets}, {set} ADD #announced :one"))
            .condition_expression(self.conditions.join(" AND "))
            .set_expression_attribute_names(Some(self.names))
            .set_expression_attribute_values(Some(self.values))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build();
        update.expect("table, key and expression are set")
    }
}

/// Looks at a fence after a check that met a copy with other counts. Returns whether the check can be sent again:
/// false if somebody announces an append, which must be awaited. An announcement that is too old, or over, leaves copies
/// that must be levelled.
///
/// # Errors
/// The fence itself counts something else, or a request fails.
pub(crate) async fn look(
    log: &DcbLog,
    retry: Retry,
    boundary: &BoundaryId,
    requires: &Counts,
) -> Result<bool, LogError> {
    let found = retry.run(|| log.table.get(fence_key(boundary), true)).await;
    let found = found.map_err(|gave_up| gave_up.during("reading a fence"))?;
    let changes = differences(boundary, requires, found.as_ref())?;
    if !changes.is_empty() {
        return Err(LogError::Conflict(Conflict(changes)));
    }
    if found.is_some_and(|fence| is_recent(log, &fence)) {
        return Ok(false);
    }
    // If it fails, for want of a permission for example, the next writer does it.
    Ok(level(log, retry, boundary, None, None).await.is_ok())
}
