//! Compares copies with their fences, and levels those that differ or that are too many or too few.
//!
//! A scan shows fence and copies at different moments, so it only finds suspects. A suspect is read in one transaction.
//! No open copy may count less than the fence, and none may have a later number. If nobody announces there, each counts
//! what the fence counts. A repair also levels behind an open announcement: if the fence was mended meanwhile, its
//! copies count too few, and may come late.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_aws::{Item, Retry};
use ringfence_core::{BoundaryId, LogError, StoreError};

use crate::compare::{Difference, Fence, FenceDefect};
use crate::copies::{announced, copy_key, is_recent, level, patient};
use crate::fence::fence_key;
use crate::get::get_together;
use crate::item::{ANNOUNCED, ANNOUNCER, COPIES, OPEN, POSITION, whole};
use crate::log::DcbLog;

/// The fences that have copies, or should have.
#[derive(Default)]
pub(crate) struct Copied {
    found: BTreeMap<BoundaryId, Copies>,
    /// The fence that the scan found last. Its copies follow it.
    last: Option<(BoundaryId, Item)>,
}

/// The copies of one fence, as a scan found them.
#[derive(Default)]
struct Copies {
    /// The last one that is there.
    last: u64,
    /// How many the fence names.
    named: u64,
    /// How many the types of the found events declare.
    wanted: u64,
    /// Whether one of them seems to be wrong.
    is_suspect: bool,
}

impl Copied {
    /// Adds a fence or a copy.
    pub(crate) fn add(&mut self, log: &DcbLog, boundary: &BoundaryId, item: Item) {
        let place = whole(&item, POSITION).unwrap_or(0);
        if item.contains_key(ANNOUNCED) {
            let copies = self.found.entry(boundary.clone()).or_default();
            copies.last = copies.last.max(place);
            if place == 0 {
                copies.named = whole(&item, COPIES).unwrap_or(0);
                copies.is_suspect |= item.contains_key(ANNOUNCER);
            } else {
                let fence = self.last.as_ref().filter(|(of, _)| of == boundary);
                let fence = fence.map(|(_, item)| item);
                copies.is_suspect |= wrong(log, fence, [(place, &item)]).is_some();
            }
        }
        if place == 0 {
            self.last = Some((boundary.clone(), item));
        }
    }

    /// Notes how many copies a type declares for the fence.
    pub(crate) fn want(&mut self, boundary: &BoundaryId, copies: u16) {
        if copies > 0 {
            let wanted = &mut self.found.entry(boundary.clone()).or_default().wanted;
            *wanted = u64::from(copies).max(*wanted);
        }
    }

    /// Examines the copies that seem to differ, and those of fences that seemed `suspect`, which may be mended now. A
    /// repair levels them. Returns the fences that still differ, and those that do no longer.
    pub(crate) async fn examine(
        mut self,
        log: &DcbLog,
        repair: bool,
        suspect: &BTreeSet<BoundaryId>,
    ) -> Result<[Vec<Difference>; 2], LogError> {
        let (mut differ, mut mended) = (Vec::new(), Vec::new());
        // Somebody may have announced there for the first time since the survey.
        for boundary in suspect.iter().filter(|_| repair) {
            if !self.found.contains_key(boundary) {
                let get = || log.table.get(fence_key(boundary), true);
                let fence = Retry::default().run(get).await;
                let fence = fence.map_err(|gave_up| gave_up.during("reading a fence"))?;
                self.add(log, boundary, fence.unwrap_or_default());
            }
        }
        for (boundary, Copies { last, named, wanted, is_suspect }) in self.found {
            let last = last.max(wanted);
            let (mut left, mut is_open) = (None, false);
            if is_suspect || suspect.contains(&boundary) {
                (left, is_open) = examined(log, &boundary, last).await?;
            }
            let difference = |wrong| Difference::of_copies(&boundary, wrong);
            if repair && (is_open || left.is_some() || named != wanted) {
                let was = left;
                left = levelled(log, &boundary, last, wanted).await?;
                mended.extend(was.filter(|_| left.is_none()).map(difference));
            }
            differ.extend(left.map(difference));
        }
        Ok([differ, mended])
    }
}

/// Levels the copies, which waits for announcements of others. Returns what is left to do.
async fn levelled(
    log: &DcbLog,
    boundary: &BoundaryId,
    last: u64,
    wanted: u64,
) -> Result<Option<FenceDefect>, LogError> {
    let mut attempts = patient(Retry::default()).start();
    loop {
        match level(log, Retry::default(), boundary, None, Some([wanted, last]), 0).await {
            Ok(true) => break,
            Ok(false) | Err(LogError::Store(StoreError::Contention { .. })) => {}
            Err(error) => return Err(error),
        }
        if !attempts.again().await {
            return Ok(Some(FenceDefect::Undecided));
        }
    }
    Ok(examined(log, boundary, last).await?.0)
}

/// The copies that differ, and whether an announcement is open, in one transaction.
async fn examined(
    log: &DcbLog,
    boundary: &BoundaryId,
    last: u64,
) -> Result<(Option<FenceDefect>, bool), LogError> {
    let keys = (0..=last).map(|place| copy_key(boundary, place));
    match get_together(log, Retry::default(), keys).await {
        Ok(found) => {
            let (fence, copies) = (found[0].as_ref(), (1..).zip(&found[1..]));
            let named = fence.and_then(|fence| whole(fence, COPIES)).unwrap_or(0);
            if named > last {
                return Box::pin(examined(log, boundary, named)).await;
            }
            let copies = copies.filter_map(|(place, item)| Some((place, item.as_ref()?)));
            let is_open = fence.is_some_and(|fence| fence.contains_key(ANNOUNCER));
            Ok((wrong(log, fence, copies), is_open))
        }
        Err(LogError::Store(StoreError::Contention { .. })) => {
            Ok((Some(FenceDefect::Undecided), false))
        }
        Err(error) => Err(error),
    }
}

/// The copies of a fence that are wrong.
fn wrong<'a>(
    log: &DcbLog,
    fence: Option<&Item>,
    copies: impl IntoIterator<Item = (u64, &'a Item)>,
) -> Option<FenceDefect> {
    let (counts, named) = (Fence::of(fence).counts, fence.and_then(|fence| whole(fence, COPIES)));
    let is_announced = fence.is_some_and(|fence| is_recent(log.clock.now_ms(), fence));
    let differs = |(place, item): &(u64, &Item)| {
        let copy = Fence::of(Some(item)).counts;
        let counts_less = counts.iter().any(|(name, n)| copy.get(name).is_none_or(|it| it < n));
        let is_off = !is_announced && (Some(*place) > named || copy != counts);
        let is_later = announced(item) > fence.map_or(0, announced);
        is_later || item.contains_key(OPEN) && (counts_less || is_off)
    };
    let copies: Vec<u64> = copies.into_iter().filter(differs).map(|(place, _)| place).collect();
    (!copies.is_empty()).then_some(FenceDefect::Copies { copies })
}
