//! Indexes a group of partitions.
//!
//! A round knows an end of the index before which every page was settled. Afterwards it has read the progress of its
//! partitions. So if a page can be put at that end, no other page has moved the progress since. If not, the pages after
//! that end show how it has moved; if there are too many, the progress is read again.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use ringfence_aws::{Failure, Retry, item_bytes};

use crate::backlog::{Backlog, Known};
use crate::error::{FeedError, IndexError, failed};
use crate::indexer::{End, Indexed, Indexer};
use crate::item::{Page, Progress};
use crate::lease::{CROWD, Turn};
use crate::page::{GROUP_PARTITIONS_MAX, Room};
use crate::partition::{Notification, Partition};
use crate::settle::settle;

/// How often a page is tried when others move the index at the same time.
const COMMITS_MAX: u32 = 16;
/// The most pages of others that are read after a refused one.
const PAGES_MAX: i32 = 4;
/// The bytes of a page that cost as much as the progress of a partition, which is read strongly too.
const UNIT_BYTES: usize = 4 * 1_024;
/// How often to look whether the last page is settled, before settling it here. The indexer that has put it needs some
/// ten milliseconds, unless it has crashed.
const LOOKS_MAX: u32 = 6;

impl Indexer {
    /// Indexes the new events of each of the partitions, within the deadline of `retry`. Each partition succeeds or
    /// fails alone. The memory for the notifications' events and for a few pages of queries is enough, however much is
    /// new.
    pub async fn index(
        &self,
        notifications: impl IntoIterator<Item = impl Into<Notification>>,
        retry: Retry,
    ) -> BTreeMap<Partition, Indexed> {
        let mut partitions: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for Notification { partition, events } in notifications.into_iter().map(Into::into) {
            partitions.entry(partition).or_default().extend(events);
        }
        let mut outcomes = BTreeMap::new();
        while !partitions.is_empty() {
            let later = partitions.keys().nth(GROUP_PARTITIONS_MAX).cloned();
            let later = later.map(|first| partitions.split_off(&first)).unwrap_or_default();
            let now = std::mem::replace(&mut partitions, later);
            outcomes.extend(Round::new(self, retry, now).run().await);
        }
        outcomes
    }
}

/// One run over some partitions.
struct Round<'a> {
    indexer: &'a Indexer,
    retry: Retry,
    backlog: Backlog<'a>,
    /// Where the next page begins.
    end: End,
    turn: Turn<'a>,
    /// The most entries of the next page. If a page is refused for its content, the number falls until the event that
    /// is the cause stands alone.
    entries_max: usize,
}

impl<'a> Round<'a> {
    fn new(indexer: &'a Indexer, retry: Retry, notifications: BTreeMap<Partition, Known>) -> Self {
        let backlog = Backlog::new(indexer, retry, notifications);
        let (end, turn) = (indexer.end().unwrap_or_default(), Turn::new(indexer, retry));
        Self { indexer, retry, backlog, end, turn, entries_max: usize::MAX }
    }

    async fn run(mut self) -> BTreeMap<Partition, Indexed> {
        let written = self.write().await;
        self.turn.give(&self.end).await;
        self.backlog.outcomes(written)
    }

    async fn write(&mut self) -> Result<(), FeedError> {
        if !self.backlog.is_open() {
            return Ok(());
        }
        if self.knows_end().await {
            self.backlog.read_progress(self.backlog.undone()).await?;
        } else {
            self.find_end(None, 1).await?;
        }
        self.backlog.take_known();
        loop {
            self.backlog.fill().await;
            while self.commit().await? {}
            if !self.backlog.is_open() {
                return Ok(());
            }
        }
    }

    /// Whether it knows where the index probably ends. If others were in the way lately, it takes the lease, whose end
    /// counts if the progress of the entry before it confirms that the index had this end.
    async fn knows_end(&mut self) -> bool {
        let remembers = self.indexer.end().is_some() && !self.end.shared;
        let Some(crowd) = self.end.crowd.checked_sub(1) else { return remembers };
        self.end.crowd = crowd;
        let Some((at, last)) = self.turn.take(&mut self.end).await else { return remembers };
        if at > self.end.at {
            let found = self.backlog.read_progress(vec![last.clone()]).await.unwrap_or_default();
            if found.get(&last).is_none_or(|progress| progress.end != Some(at)) {
                return false;
            }
            (self.end.at, self.end.last) = (at, Some(last));
        }
        true
    }

    /// Finds where the next page begins, once all pages before it are settled, and how far the partitions are indexed.
    /// `first`: the page that is where this round was to put its own.
    async fn find_end(&mut self, first: Option<Page>, attempt: u32) -> Result<(), FeedError> {
        let from = first.as_ref().map_or(Ok(self.end.at), Page::end)?;
        let pages_max = first.as_ref().map_or(1, |page| self.pages_max(page));
        let mut pages = self.indexer.index.last_pages(from, pages_max, self.retry).await?;
        // Then these are all pages since the progress was read, and show how it has moved.
        let all = first.is_some() && pages.last().is_none_or(|page| page.place() == from.place());
        pages.extend(first);
        for page in pages.iter().rev() {
            for (partition, progress) in page.progress()? {
                self.backlog.advance(&partition, progress);
            }
        }
        let unread = if all { Vec::new() } else { self.backlog.undone() };
        // Pages after the known end are by others.
        self.end.shared = self.indexer.end().is_some() && !pages.is_empty();
        match pages.first() {
            None => drop(self.backlog.read_progress(unread).await?),
            Some(last) => {
                let of_last_entry = self.wait_until_settled(last, unread, attempt).await?;
                (self.end.at, self.end.last) = (last.end()?, of_last_entry);
            }
        }
        self.indexer.remember(self.end.clone());
        Ok(())
    }

    /// How many pages to read after a refused one. Pages of that size cost at most as much as the progress that they
    /// show, not counting the last one, which is read in any case.
    fn pages_max(&self, page: &Page) -> i32 {
        let pages = self.backlog.undone().len() * UNIT_BYTES / item_bytes(&page.item());
        i32::try_from(pages).unwrap_or(PAGES_MAX).clamp(1, PAGES_MAX)
    }

    /// Waits until the last page is settled by the indexer that has put it. If that takes too long, settles it. Reads
    /// the progress of some more partitions. Returns the partition of the last entry.
    async fn wait_until_settled(
        &mut self,
        last: &Page,
        mut more: Vec<Partition>,
        attempt: u32,
    ) -> Result<Option<Partition>, FeedError> {
        let reached = last.progress()?;
        let is_behind = |found: &BTreeMap<Partition, Progress>, partition, to: &Progress| {
            found.get(partition).is_none_or(|found| found.checkpoint < to.checkpoint)
        };
        let of_last_entry = reached.iter().find(|(_, progress)| progress.end.is_some());
        let of_last_entry = of_last_entry.map(|(partition, _)| partition.clone());
        if let Some(partition) = &of_last_entry {
            for look in 0..LOOKS_MAX {
                more.push(partition.clone());
                let found = self.backlog.read_progress(std::mem::take(&mut more)).await?;
                if !is_behind(&found, partition, &reached[partition]) {
                    return Ok(of_last_entry);
                }
                if !self.retry.pause(attempt + look).await {
                    break;
                }
            }
        }
        more.extend(reached.keys().cloned());
        let found = self.backlog.read_progress(more).await?;
        let unsettled =
            reached.iter().filter(|(partition, progress)| is_behind(&found, partition, progress));
        settle(&self.indexer.index.table, unsettled, self.retry).await?;
        Ok(of_last_entry)
    }

    /// Puts the next page and settles it; false when nothing waits.
    async fn commit(&mut self) -> Result<bool, FeedError> {
        let (Indexer { index, epoch_entries, .. }, retry) = (self.indexer, self.retry);
        let mut attempts = retry.attempts_max(COMMITS_MAX).start();
        loop {
            let room = Room { epoch_entries: epoch_entries.get(), entries_max: self.entries_max };
            let Some(page) = Page::cut(&self.backlog.queues, self.end.at, room) else {
                return Ok(false);
            };
            self.turn.keep().await;
            let put = page.put(index.table.name());
            let Err(gave_up) = retry.run(|| index.table.put(put.clone())).await else {
                self.done(&page).await?;
                return Ok(true);
            };
            match gave_up.failure {
                Failure::Condition(_) if !attempts.again().await => {
                    return Err(FeedError::Contention { attempts: attempts.made() });
                }
                Failure::Condition(found) => {
                    let found = found.map(|item| Page::of(page.epoch, item)).transpose()?;
                    if found.as_ref() == Some(&page) {
                        // The page is our own: it was sent before, and the answer was lost. Nobody else settles it.
                        let reached = page.progress()?;
                        settle(&index.table, &reached, retry).await?;
                    } else {
                        self.end.crowd = CROWD;
                        drop(self.turn.take(&mut self.end).await);
                    }
                    self.find_end(found, attempts.made()).await?;
                }
                _ if gave_up.failure.is_of_content() => {
                    self.narrow(&page, failed("writing a page")(gave_up))?;
                    return Ok(true);
                }
                _ => return Err(failed("writing a page")(gave_up)),
            }
        }
    }

    /// Settles a page that was put, and goes on after it.
    async fn done(&mut self, page: &Page) -> Result<(), FeedError> {
        let reached = page.progress()?;
        settle(&self.indexer.index.table, &reached, self.retry).await?;
        let of_last_entry = reached.iter().find(|(_, progress)| progress.end.is_some());
        self.end.last = of_last_entry.map(|(partition, _)| partition.clone());
        self.end.at = page.end()?;
        self.backlog.indexed(reached);
        self.indexer.remember(self.end.clone());
        self.entries_max = self.entries_max.saturating_mul(2);
        Ok(())
    }

    /// After a page was refused for its content: halves the next page. If a single event is refused, its partition is
    /// given up, and its later events wait, to keep their order.
    fn narrow(&mut self, refused: &Page, error: FeedError) -> Result<(), FeedError> {
        self.entries_max = (refused.entries.len() / 2).max(1);
        if refused.entries.len() == 1
            && let Some((partition, Progress { slot, .. })) = refused.progress()?.pop_first()
            && let Some(queue) = self.backlog.queues.get_mut(&partition)
        {
            queue.fresh = VecDeque::new();
            let (partition, source) = (partition.clone(), Arc::new(error));
            let error = IndexError::Unwritable { partition: partition.clone(), slot, source };
            self.backlog.fail(partition, error);
        }
        Ok(())
    }
}
