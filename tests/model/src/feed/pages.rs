//! The content of the index: pages, and the progress of each partition; and the requests to it.

use super::rules::PARTITIONS;

/// Sets of slots of each partition, one bit each: slot 1 is bit 0.
pub(super) type Sets = [u8; PARTITIONS];

/// The progress of a partition, or its move; not indexed at all without a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Progress {
    pub(super) checkpoint: u8,
    pub(super) slot: u8,
}

/// A page: its place, its events, and the place before which it says that all pages are settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Page {
    pub(super) place: u8,
    pub(super) events: Sets,
    pub(super) settled: u8,
}

impl Page {
    pub(super) fn end(self) -> u8 {
        self.place + u8::try_from(size(self.events)).unwrap_or(u8::MAX)
    }

    /// The progress of its partitions after it.
    pub(super) fn reached(self) -> [Progress; PARTITIONS] {
        self.events.map(|events| match events {
            0 => Progress::default(),
            _ => Progress { checkpoint: self.end(), slot: last(events) },
        })
    }
}

/// The pages between two places.
pub(super) fn between(pages: &[Page], from: u8, end: u8) -> impl Iterator<Item = Page> {
    pages.iter().copied().filter(move |page| (from..end).contains(&page.place))
}

/// A request to the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Request {
    Page(Page),
    /// Of a partition.
    Move(usize, Progress),
}

/// Slots 1 to `slot`.
pub(super) fn until(slot: u8) -> u8 {
    (1 << slot) - 1
}

/// The last slot of `set` without a gap after `slot`.
pub(super) fn dense(set: u8, slot: u8) -> u8 {
    if set & 1 << slot == 0 { slot } else { dense(set, slot + 1) }
}

/// The slots of a set.
pub(super) fn slots(set: u8) -> impl DoubleEndedIterator<Item = u8> {
    (1..=8).filter(move |slot| set & 1 << (slot - 1) != 0)
}

/// The last slot of a set, or 0.
pub(super) fn last(set: u8) -> u8 {
    slots(set).next_back().unwrap_or(0)
}

/// How many slots there are.
pub(super) fn size(sets: Sets) -> usize {
    sets.into_iter().flat_map(slots).count()
}

/// The partitions with slots in `sets`, one bit each.
pub(super) fn partitions(sets: Sets) -> u8 {
    (0..PARTITIONS).filter(|p| sets[*p] != 0).map(|p| 1 << p).sum()
}

/// All parts of two sets.
pub(super) fn parts([first, second]: Sets) -> impl Iterator<Item = Sets> {
    let part = |set: u8| (0..=set).filter(move |part| part & !set == 0);
    part(first).flat_map(move |a| part(second).map(move |b| [a, b]))
}

/// Whether a part of a set is its first slots.
pub(super) fn is_prefix(part: u8, set: u8) -> bool {
    part == set & until(last(part))
}
