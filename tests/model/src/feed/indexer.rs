//! The knowledge of an indexer, and its use of answers.

use super::{
    pages::{Page, Progress, Sets, between, dense, partitions, until},
    rules::{PARTITIONS, Rules},
};

/// The next action of an indexer. Besides, it moves the progress of partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Turn {
    /// Take images.
    #[default]
    Take,
    /// Find the end.
    Find,
    /// Read the pages that others put in the place of a refused page and after it.
    Follow,
    /// Read the progress of these partitions.
    Progress { left: u8 },
    /// Read the partitions whose images do not continue the progress.
    Read,
    /// Put a page.
    Put,
    /// Acknowledge the images up to the progress.
    Acknowledge,
}

/// An end of the index, and the place before which all pages are settled. The indexer knows the pages between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct End {
    pub(super) settled: u8,
    pub(super) at: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Indexer {
    /// An end in the process's memory.
    pub(super) remembered: Option<End>,
    pub(super) turn: Turn,
    /// Whether it puts pages without a condition, because it has the lease.
    pub(super) is_sure: bool,
    /// The batch.
    pub(super) images: Sets,
    /// Its events, and those that were read.
    pub(super) known: Sets,
    pub(super) has_read: bool,
    /// The beginning of the next page.
    pub(super) end: Option<End>,
    /// As read, or as pages bring it.
    pub(super) progress: [Progress; PARTITIONS],
    /// The partitions whose stored progress may not have come as far, one bit each.
    pub(super) lags: u8,
    /// The moves to be made.
    pub(super) moves: [Progress; PARTITIONS],
}

impl Indexer {
    /// Between two batches.
    pub(super) fn idle(self) -> Self {
        Self { remembered: self.remembered, ..Self::default() }
    }

    /// The rules of its next put.
    pub(super) fn rules(&self, rules: Rules) -> Rules {
        Rules { place_condition: rules.place_condition && !self.is_sure, ..rules }
    }

    /// The known events of a partition that wait for a page.
    pub(super) fn fresh(&self, p: usize, rules: Rules) -> u8 {
        let slot = self.progress[p].slot;
        let taken = match () {
            () if !rules.images_continue || (self.has_read && !rules.dense_prefix) => self.known[p],
            () => until(dense(self.known[p], slot)),
        };
        taken & !until(slot)
    }

    /// Whether a read must complete the known events.
    pub(super) fn reads(&self, p: usize, rules: Rules) -> bool {
        let slot = self.progress[p].slot;
        let over = self.known[p] & !until(dense(self.known[p], slot)) & !until(slot);
        rules.images_continue && !self.has_read && over != 0
    }

    /// The end and the progress are known.
    pub(super) fn go_on(&mut self, rules: Rules) {
        self.remembered = self.end.map(|end| match rules.remembers_unsettled {
            true => end,
            false => End { settled: end.at, ..end },
        });
        self.turn = match () {
            () if (0..PARTITIONS).any(|p| self.reads(p, rules)) => Turn::Read,
            () if (0..PARTITIONS).any(|p| self.fresh(p, rules) != 0) => Turn::Put,
            () => Turn::Acknowledge,
        };
    }

    /// Takes a batch. With the lease it looks for the end. `lease`: an end that it believes.
    pub(super) fn take(
        &mut self,
        (images, leased): (Sets, bool),
        lease: Option<u8>,
        pages: &[Page],
        rules: Rules,
    ) {
        (self.images, self.known) = (images, images);
        self.end = lease.map(|at| End { settled: at, at }).or(self.remembered);
        self.is_sure = leased && !rules.lease_condition;
        let finds = self.end.is_none() || leased && rules.lease_read;
        self.turn = match finds && rules.end_first {
            true => Turn::Find,
            false => Turn::Progress { left: partitions(images) },
        };
        if let Some(end) = self.end {
            self.take_pages(between(pages, end.settled, end.at), rules);
        }
    }

    /// Takes over how far pages bring their partitions.
    fn take_pages(&mut self, pages: impl Iterator<Item = Page>, rules: Rules) {
        for to in pages.map(Page::reached).filter(|_| rules.takes_unsettled) {
            for (p, (progress, to)) in self.progress.iter_mut().zip(to).enumerate() {
                if to > *progress {
                    *progress = to;
                    self.lags |= 1 << p;
                }
            }
        }
    }

    /// Finds the last page, and reads the pages before it that may not be settled.
    pub(super) fn find(&mut self, pages: &[Page], rules: Rules) {
        let end = pages.last().map_or(End::default(), |page| {
            let settled = if rules.reads_unsettled { page.settled } else { page.place };
            End { settled, at: page.end() }
        });
        self.end = Some(end);
        self.take_pages(between(pages, end.settled, end.at), rules);
        match partitions(self.images) {
            0 => self.go_on(rules),
            _ if !rules.end_first => self.go_on(rules),
            left => self.turn = Turn::Progress { left },
        }
    }

    /// Takes over the pages from a refused one on, in order.
    pub(super) fn follow(&mut self, pages: &[Page], rules: Rules) {
        let taken = if rules.takes_all { pages } else { &pages[pages.len().saturating_sub(1)..] };
        self.take_pages(taken.iter().copied(), rules);
        if let (Some(end), Some(last)) = (&mut self.end, pages.last()) {
            end.at = last.end();
        }
        self.go_on(rules);
    }

    pub(super) fn read_progress(&mut self, p: usize, found: Progress, left: u8, rules: Rules) {
        if found >= self.progress[p] {
            self.progress[p] = found;
            self.lags &= !(1 << p);
        }
        match left & !(1 << p) {
            0 if self.end.is_none() => self.turn = Turn::Find,
            0 => self.go_on(rules),
            left => self.turn = Turn::Progress { left },
        }
    }

    pub(super) fn moved(&mut self, p: usize) {
        if self.moves[p] >= self.progress[p] {
            self.lags &= !(1 << p);
        }
        self.moves[p] = Progress::default();
    }

    pub(super) fn read(&mut self, seen: Sets, rules: Rules) {
        for (p, seen) in seen.into_iter().enumerate() {
            if !self.reads(p, rules) {
                continue;
            }
            let known = self.known[p] | seen;
            let slot = self.progress[p].slot;
            self.known[p] = match rules.dense_prefix {
                true => until(dense(known, slot)),
                false => known,
            };
        }
        self.has_read = true;
        self.go_on(rules);
    }

    /// Its page is there. Moves the progress from now on.
    pub(super) fn has_put(&mut self, page: Page, rules: Rules) {
        self.end = Some(End { settled: page.settled, at: page.end() });
        self.take_pages([page].into_iter(), Rules { takes_unsettled: true, ..rules });
        self.moves(page);
        self.go_on(rules);
    }

    /// Settles a page: moves the progress of its partitions.
    pub(super) fn moves(&mut self, page: Page) {
        for (to, reached) in self.moves.iter_mut().zip(page.reached()) {
            *to = reached.max(*to);
        }
    }

    /// The moves of partitions of the batch whose stored progress may lag.
    pub(super) fn lagging(&self) -> [Progress; PARTITIONS] {
        let lags = self.lags & partitions(self.done());
        std::array::from_fn(
            |p| if lags & 1 << p == 0 { Progress::default() } else { self.progress[p] },
        )
    }

    pub(super) fn was_refused(&mut self, rules: Rules) {
        self.turn = match rules.finds_anew {
            true => Turn::Follow,
            false => Turn::Progress { left: partitions(self.images) },
        };
    }

    /// The images of the batch up to the progress.
    pub(super) fn done(&self) -> Sets {
        std::array::from_fn(|p| self.images[p] & until(self.progress[p].slot))
    }
}
