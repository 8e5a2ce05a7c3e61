//! Compares copies with their fences, and levels those that differ or that are too many or too few.
//!
//! A scan shows fence and copies at different moments, so it only finds suspects. A suspect is read in one transaction.
//! If nobody announces there, each open copy must count what the fence counts.

use std::collections::BTreeMap;

use ringfence_aws::{Item, Retry};
use ringfence_core::{BoundaryId, LogError, StoreError};

use crate::compare::{Difference, Fence, FenceDefect};
use crate::copies::{copy_key, is_recent, level};
use crate::get::get_together;
use crate::item::{ANNOUNCED, COPIES, OPEN, POSITION, whole};
use crate::log::DcbLog;

/// The fences that have copies, or should have.
#[derive(Default)]
pub(crate) struct Copied(BTreeMap<BoundaryId, Copies>);

#[derive(Default)]
struct Copies {
    /// The fence in place 0 and its copies, as a scan found them.
    items: BTreeMap<u64, Item>,
    /// How many copies the types of the found events declare.
    wanted: u64,
}

impl Copied {
    /// Adds a fence or a copy.
    pub(crate) fn add(&mut self, boundary: &BoundaryId, item: Item) {
        if item.contains_key(ANNOUNCED) {
            let place = whole(&item, POSITION).unwrap_or(0);
            self.0.entry(boundary.clone()).or_default().items.insert(place, item);
        }
    }

    /// Notes how many copies a type declares for the fence.
    pub(crate) fn want(&mut self, boundary: &BoundaryId, copies: u16) {
        if copies > 0 {
            let wanted = &mut self.0.entry(boundary.clone()).or_default().wanted;
            *wanted = u64::from(copies).max(*wanted);
        }
    }

    /// Examines all, and levels them in a repair. Returns the fences that still differ, and those that do no longer.
    pub(crate) async fn examine(
        self,
        log: &DcbLog,
        repair: bool,
    ) -> Result<[Vec<Difference>; 2], LogError> {
        let (mut differ, mut mended) = (Vec::new(), Vec::new());
        for (boundary, Copies { items, wanted }) in self.0 {
            let last = items.keys().last().copied().unwrap_or(0);
            let mut wrong = wrong(log, &items);
            if wrong.is_some() {
                wrong = examined(log, &boundary, last).await?;
            }
            let named = items.get(&0).and_then(|fence| whole(fence, COPIES)).unwrap_or(0);
            let difference = |wrong| Difference::of_copies(&boundary, wrong);
            if repair && (wrong.is_some() || named != wanted) {
                level(log, Retry::default(), &boundary, None, Some(wanted)).await?;
                let left = examined(log, &boundary, last.max(wanted)).await?;
                mended.extend(wrong.filter(|_| left.is_none()).map(difference));
                wrong = left;
            }
            differ.extend(wrong.map(difference));
        }
        Ok([differ, mended])
    }
}

/// The copies that differ, in one transaction.
async fn examined(
    log: &DcbLog,
    boundary: &BoundaryId,
    last: u64,
) -> Result<Option<FenceDefect>, LogError> {
    let keys = (0..=last).map(|place| copy_key(boundary, place));
    match get_together(log, Retry::default(), keys).await {
        Ok(found) => {
            let items = (0..).zip(found).filter_map(|(place, item)| Some((place, item?)));
            Ok(wrong(log, &items.collect()))
        }
        Err(LogError::Store(StoreError::Contention { .. })) => Ok(Some(FenceDefect::Undecided)),
        Err(error) => Err(error),
    }
}

/// The open copies that differ from the fence, or that it does not name.
fn wrong(log: &DcbLog, items: &BTreeMap<u64, Item>) -> Option<FenceDefect> {
    let fence = items.get(&0);
    if fence.is_some_and(|fence| is_recent(log, fence)) {
        return None;
    }
    let (counts, named) = (Fence::of(fence).counts, fence.and_then(|fence| whole(fence, COPIES)));
    let differs = |(place, item): &(&u64, &Item)| {
        let is_open = **place > 0 && item.contains_key(OPEN);
        is_open && (Some(**place) > named || Fence::of(Some(item)).counts != counts)
    };
    let copies: Vec<u64> = items.iter().filter(differs).map(|(place, _)| *place).collect();
    (!copies.is_empty()).then_some(FenceDefect::Copies { copies })
}
