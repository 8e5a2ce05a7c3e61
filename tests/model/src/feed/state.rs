//! What there is at a moment: the log, the index, and what is under way to it.

use super::{INDEXERS, PARTITIONS, Rules, indexer::Indexer};

/// Sets of slots of each partition, a bit each: slot 1 is bit 0.
pub(super) type Sets = [u8; PARTITIONS];

/// How far a partition is indexed, or is to be moved; without a checkpoint, not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Progress {
    pub(super) checkpoint: u8,
    pub(super) slot: u8,
}

/// A page: where it begins, and the events that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Page {
    pub(super) place: u8,
    pub(super) events: Sets,
}

impl Page {
    pub(super) fn end(self) -> u8 {
        self.place + u8::try_from(size(self.events)).unwrap_or(u8::MAX)
    }

    /// How far its partitions are indexed with it.
    pub(super) fn reached(self) -> [Progress; PARTITIONS] {
        self.events.map(|events| match events {
            0 => Progress::default(),
            _ => Progress { checkpoint: self.end(), slot: last(events) },
        })
    }
}

/// What is sent to the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Request {
    Page(Page),
    Move(usize, Progress),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// How many appends are committed, of all in their order.
    pub(super) appended: u8,
    pub(super) committed: [u8; PARTITIONS],
    pub(super) visible: Sets,
    /// Images that were not acknowledged.
    pub(super) images: Sets,
    pub(super) indexers: [Indexer; INDEXERS],
    pub(super) progress: [Progress; PARTITIONS],
    /// In the order of their places.
    pub(super) pages: Vec<Page>,
    /// Requests that have not arrived, in an order of their own.
    pub(super) late: Vec<Request>,
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

/// The partitions that have something in `sets`, a bit each.
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

impl State {
    /// Applies a request; false if its condition fails.
    pub(super) fn apply(&mut self, request: Request, rules: Rules) -> bool {
        match request {
            Request::Page(page) => {
                let taken = self.pages.iter().any(|other| other.place == page.place);
                if taken && rules.place_condition {
                    return false;
                }
                self.pages.retain(|other| other.place != page.place);
                self.pages.push(page);
                self.pages.sort_unstable();
                true
            }
            Request::Move(p, to) => {
                let progress = &mut self.progress[p];
                let moves = progress.checkpoint < to.checkpoint || !rules.grows;
                if moves {
                    *progress = to;
                }
                moves
            }
        }
    }

    /// The last slot of each partition in the index, read from its beginning, page after page; `None`
    /// unless each partition has slots 1, 2, 3, … in it, and all that its progress says.
    pub(super) fn indexed(&self) -> Option<[u8; PARTITIONS]> {
        let mut slots = [0; PARTITIONS];
        let mut at = 0;
        while let Some(page) = self.pages.iter().find(|page| page.place == at) {
            for (slot, events) in slots.iter_mut().zip(page.events) {
                if events != 0 && events != until(last(events)) & !until(*slot) {
                    return None;
                }
                *slot = last(events).max(*slot);
            }
            at = page.end();
        }
        let reached = |p: usize| self.progress[p].slot <= slots[p];
        (0..PARTITIONS).all(reached).then_some(slots)
    }
}
