//! The state at a moment: the log, the index, and the requests under way.

use super::{
    indexer::Indexer,
    pages::{Page, Progress, Request, Sets, last, until},
    rules::{INDEXERS, PARTITIONS, Rules},
};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// How many of all appends are committed, in their order.
    pub(super) appended: u8,
    pub(super) committed: [u8; PARTITIONS],
    pub(super) visible: Sets,
    /// Images that were not acknowledged.
    pub(super) images: Sets,
    pub(super) indexers: [Indexer; INDEXERS],
    pub(super) progress: [Progress; PARTITIONS],
    /// In the order of their places.
    pub(super) pages: Vec<Page>,
    /// Requests that have not arrived, in a canonical order.
    pub(super) late: Vec<Request>,
}

impl State {
    /// Applies a request. Returns false if its condition fails.
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

    /// The end of the settled pages from a place on.
    pub(super) fn settled(&self, mut from: u8, rules: Rules) -> u8 {
        while let Some(page) = self.pages.iter().find(|page| page.place == from) {
            let mut moves =
                page.reached().into_iter().zip(self.progress).filter(|(to, _)| to.slot > 0);
            let moved = |(to, progress): (Progress, Progress)| to <= progress;
            if !(if rules.settles_whole { moves.all(moved) } else { moves.any(moved) }) {
                break;
            }
            from = page.end();
        }
        from
    }

    /// The last slot of each partition in the index, read from its beginning, page after page; `None` unless each
    /// partition has slots 1, 2, 3, … in it, up to its progress.
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
