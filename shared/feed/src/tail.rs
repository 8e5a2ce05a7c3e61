//! The end of the index, with the pages before it that may not be settled.
//!
//! A page says before which place all pages are settled. So whoever reads the last page knows which pages to read for
//! the progress of a partition: the stored progress, or a later one that these pages bring.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::checkpoint::Checkpoint;
use crate::error::FeedError;
use crate::item::{Page, Progress, Reached};
use crate::partition::Partition;
use crate::settle::Group;

/// The most pages that may not be settled. An indexer that finds the end reads so many at most.
pub(crate) const UNSETTLED_MAX: u8 = 8;

/// A page that may not be settled.
#[derive(Clone, Debug)]
struct Unsettled {
    place: Checkpoint,
    end: Checkpoint,
    reached: Arc<Reached>,
    leased: bool,
    /// It is settled, but an earlier one may not be.
    is_settled: bool,
}

/// The end of the index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail {
    end: Checkpoint,
    /// The last pages, in order. Those before them are settled.
    pages: VecDeque<Unsettled>,
}

impl Tail {
    /// Where the next page begins, if there is no later page.
    pub(crate) fn end(&self) -> Checkpoint {
        self.end
    }

    /// The place before which all pages are settled.
    pub(crate) fn settled(&self) -> Checkpoint {
        self.pages.front().map_or(self.end, |page| page.place)
    }

    /// Whether a page must be settled before the next one is put. An epoch begins with all pages settled, so no reader
    /// looks for such pages in an earlier epoch.
    pub(crate) fn is_full(&self) -> bool {
        let begins_epoch = self.end.place().1 == 0;
        self.pages.len() >= usize::from(UNSETTLED_MAX) || begins_epoch && !self.pages.is_empty()
    }

    /// Whether the lease will list the oldest page: it has more than so many partitions, and its indexer had the lease.
    pub(crate) fn is_announced(&self, partitions: usize) -> bool {
        self.pages.front().is_some_and(|page| page.leased && page.reached.len() > partitions)
    }

    /// The oldest page that may not be settled.
    pub(crate) fn first(&self) -> Group {
        let mut group = Group::default();
        if let Some(page) = self.pages.front() {
            group.add(page.end, &page.reached);
        }
        group
    }

    /// The oldest pages that may not be settled, of so many partitions at most.
    pub(crate) fn oldest(&self, partitions_max: usize) -> Group {
        let mut group = Group::default();
        for page in &self.pages {
            if group.reached.len() + page.reached.len() > partitions_max {
                break;
            }
            group.add(page.end, &page.reached);
        }
        group
    }

    /// The ends of the pages of more than so many partitions, if each of these is known to have come as far.
    pub(crate) fn ends_where(
        &self,
        partitions: usize,
        is_stored: impl Fn(&Partition, &Progress) -> bool,
    ) -> Vec<Checkpoint> {
        let is_settled = |page: &&Unsettled| {
            page.reached.len() > partitions
                && page.reached.iter().all(|(partition, to)| is_stored(partition, to))
        };
        self.pages.iter().filter(is_settled).map(|page| page.end).collect()
    }

    /// What the pages bring that may not be settled, in their order.
    pub(crate) fn reached(&self) -> impl Iterator<Item = (&Partition, &Progress)> {
        self.pages.iter().flat_map(|page| page.reached.iter())
    }

    /// Goes on after a page.
    pub(crate) fn push(&mut self, page: &Page) -> Result<Arc<Reached>, FeedError> {
        let (place, end) = (page.start()?, page.end()?);
        let reached = Arc::new(page.progress()?);
        let (leased, is_settled) = (page.leased, false);
        self.pages.push_back(Unsettled {
            place,
            end,
            reached: reached.clone(),
            leased,
            is_settled,
        });
        self.end = end;
        Ok(reached)
    }

    /// Notes that all pages before a place are settled.
    pub(crate) fn settled_before(&mut self, place: Checkpoint) {
        while self.pages.pop_front_if(|page| page.place < place || page.is_settled).is_some() {}
    }

    /// Notes that the pages with these ends are settled.
    pub(crate) fn settle(&mut self, ends: &[Checkpoint]) {
        for page in &mut self.pages {
            page.is_settled |= ends.contains(&page.end);
        }
        self.settled_before(Checkpoint::START);
    }
}
