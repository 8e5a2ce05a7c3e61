//! The knowledge of an indexer, and its use of answers.

use super::{
    pages::{Page, Progress, Sets, dense, partitions, until},
    rules::{PARTITIONS, Rules},
};

/// In a set of partitions: the check that the last page is settled.
pub(super) const MARK: u8 = 1 << 7;

/// The next action of an indexer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Turn {
    /// Take images.
    #[default]
    Take,
    /// Look whether the end of the lease is one. Then the progress of these partitions is read.
    Check { left: u8 },
    /// Find the end.
    Find,
    /// Read the pages that others put in the place of a refused page and after it.
    Follow,
    /// Read the progress of these partitions, and check that the last page is settled ([`MARK`]).
    Progress { left: u8 },
    /// Move the progress of partitions.
    Settle,
    /// Read the partitions whose images do not continue the progress.
    Read,
    /// Put a page.
    Put,
    /// Acknowledge the images up to the progress.
    Acknowledge,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Indexer {
    /// An end of the index before which all pages are settled, in the process's memory.
    pub(super) remembered: Option<u8>,
    pub(super) turn: Turn,
    /// Whether it puts pages without a condition, because it has the lease.
    pub(super) is_sure: bool,
    /// The batch.
    pub(super) images: Sets,
    /// Its events, and those that were read.
    pub(super) known: Sets,
    pub(super) has_read: bool,
    /// The beginning of the next page.
    pub(super) end: Option<u8>,
    /// As read, or moved by its own pages.
    pub(super) progress: [Progress; PARTITIONS],
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

    /// Everything before the end is settled, and the progress is known.
    pub(super) fn go_on(&mut self, rules: Rules) {
        self.turn = match () {
            () if (0..PARTITIONS).any(|p| self.reads(p, rules)) => Turn::Read,
            () if (0..PARTITIONS).any(|p| self.fresh(p, rules) != 0) => Turn::Put,
            () => Turn::Acknowledge,
        };
    }

    /// Adds the moves to what it knows, before they are made.
    pub(super) fn know(&mut self) {
        for (progress, to) in self.progress.iter_mut().zip(self.moves) {
            *progress = to.max(*progress);
        }
    }

    /// Makes the moves, if there are any.
    pub(super) fn settle(&mut self, rules: Rules) {
        if self.moves == [Progress::default(); PARTITIONS] {
            self.remembered = self.end;
            self.go_on(rules);
        } else {
            self.turn = Turn::Settle;
        }
    }

    /// Takes a batch, and perhaps the lease.
    pub(super) fn take(&mut self, images: Sets, leased: bool, rules: Rules) {
        (self.images, self.known, self.end) = (images, images, self.remembered);
        self.is_sure = leased && !rules.lease_condition;
        let left = partitions(images);
        self.turn = match leased {
            true => Turn::Check { left },
            false if self.remembered.is_none() && rules.end_first => Turn::Find,
            false => Turn::Progress { left },
        };
    }

    /// Checks the end of the lease by the progress of the entry before it, and by the end that is stored with that.
    pub(super) fn check(
        &mut self,
        end: u8,
        (found, stored): (Progress, u8),
        left: u8,
        rules: Rules,
    ) {
        let confirmed = match rules.lease_entry {
            true => stored == end,
            false => found.checkpoint == end,
        };
        self.turn = Turn::Find;
        if confirmed || !rules.lease_checked {
            self.end = Some(end);
            match left {
                0 => self.has_found(rules),
                left => self.turn = Turn::Progress { left },
            }
        }
    }

    /// Finds the last page, without knowing those before it.
    pub(super) fn find(&mut self, last: Option<Page>, rules: Rules) {
        self.end = Some(last.map_or(0, Page::end));
        self.moves = last.map(Page::reached).unwrap_or_default();
        let own = if rules.end_first { partitions(self.images) } else { 0 };
        match own | self.mark().map_or(0, |_| MARK) {
            0 => self.has_found(rules),
            left => self.turn = Turn::Progress { left },
        }
    }

    /// Takes over the pages from a refused one on, in order.
    pub(super) fn follow(&mut self, pages: &[Page], rules: Rules) {
        let taken = if rules.takes_all { pages } else { &pages[pages.len().saturating_sub(1)..] };
        for page in taken {
            self.end = Some(page.end());
            self.moves = page.reached();
            self.know();
        }
        self.turn = Turn::Progress { left: MARK };
    }

    /// The partition of the last page's last entry, whose progress moves last: here the last one of the page.
    pub(super) fn mark(&self) -> Option<usize> {
        (0..PARTITIONS).rev().find(|p| self.moves[*p] != Progress::default())
    }

    /// Checks whether the last page is settled, by the progress of its last entry. If it is not, reads the progress of
    /// all its partitions, to settle it.
    pub(super) fn look(&mut self, found: &[Progress; PARTITIONS], left: u8, rules: Rules) {
        let is_settled = |p: usize| self.moves[p].checkpoint <= found[p].checkpoint;
        let mut left = left & !MARK;
        if self.mark().is_none_or(is_settled) {
            self.know();
            self.moves = [Progress::default(); PARTITIONS];
        } else {
            let page = |p: &usize| self.moves[*p] != Progress::default();
            left |= (0..PARTITIONS).filter(page).map(|p| 1 << p).sum::<u8>();
        }
        match left {
            0 => self.has_found(rules),
            left => self.turn = Turn::Progress { left },
        }
    }

    pub(super) fn read_progress(&mut self, p: usize, found: Progress, left: u8, rules: Rules) {
        self.progress[p] = found.max(self.progress[p]);
        if self.moves[p].checkpoint <= found.checkpoint {
            self.moves[p] = Progress::default();
        }
        match left & !(1 << p) {
            left if matches!(self.turn, Turn::Check { .. }) => self.turn = Turn::Check { left },
            0 if self.end.is_none() => self.turn = Turn::Find,
            0 => self.has_found(rules),
            left => self.turn = Turn::Progress { left },
        }
    }

    /// The end and the progress are known.
    pub(super) fn has_found(&mut self, rules: Rules) {
        self.know();
        if !rules.settles_found {
            self.moves = [Progress::default(); PARTITIONS];
        }
        self.settle(rules);
    }

    pub(super) fn moved(&mut self, p: usize, rules: Rules) {
        self.moves[p] = Progress::default();
        self.settle(rules);
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

    pub(super) fn has_put(&mut self, page: Page, rules: Rules) {
        self.end = Some(page.end());
        for (to, reached) in self.moves.iter_mut().zip(page.reached()) {
            *to = reached.max(*to);
        }
        self.know();
        if !rules.remembers_settled {
            self.remembered = self.end;
        }
        if !rules.settles_first && (0..PARTITIONS).any(|p| self.fresh(p, rules) != 0) {
            self.turn = Turn::Put;
        } else {
            self.settle(rules);
        }
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
