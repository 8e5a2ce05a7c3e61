//! Indexes a group of partitions whose progress one request can read.
//!
//! A round knows an end of the index before which every page was settled. Afterwards it has read the progress of its
//! partitions. So if a page can be put at that end, no other page has moved the progress since. If not, the pages after
//! that end show how it has moved; if there are too many, the progress is read again.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures::stream::{StreamExt, iter};
use ringfence_aws::{Failure, Item, Retry, item_bytes};
use ringfence_core::BOUNDARY_BYTES_MAX;
use ringfence_log::{Sources, news::dense};

use crate::checkpoint::Checkpoint;
use crate::error::{FeedError, IndexError, failed};
use crate::indexer::{End, Indexed, Indexer};
use crate::item::{Page, Progress, checkpoint, progress_key};
use crate::news::News;
use crate::page::{GROUP_PARTITIONS_MAX, Queue, Room};
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
/// Partitions that are read at once.
const READS_AT_ONCE: usize = 8;
/// The bytes of events that are held before they are written; reads under way may add to them.
const HELD_BYTES_MAX: usize = 8 * 1_024 * 1_024;

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
            outcomes.extend(Round::new(self, retry).run(now).await);
        }
        outcomes
    }
}

/// Events that a partition is known to have, by slot.
type Known = BTreeMap<u64, Item>;

/// One run over some partitions.
struct Round<'a> {
    indexer: &'a Indexer,
    retry: Retry,
    /// Where the next page begins.
    end: End,
    queues: BTreeMap<Partition, Queue>,
    /// Partitions that may have more events than their queue, and the events that are known.
    open: BTreeMap<Partition, Known>,
    outcomes: BTreeMap<Partition, Indexed>,
    /// The most entries of the next page. If a page is refused for its content, the number falls until the event that
    /// is the cause stands alone.
    entries_max: usize,
}

impl<'a> Round<'a> {
    fn new(indexer: &'a Indexer, retry: Retry) -> Self {
        let end = End { at: Checkpoint::START, shared: false };
        let (queues, open) = (BTreeMap::new(), BTreeMap::new());
        let (outcomes, entries_max) = (BTreeMap::new(), usize::MAX);
        Self { indexer, retry, end, queues, open, outcomes, entries_max }
    }

    async fn run(
        mut self,
        notifications: BTreeMap<Partition, Known>,
    ) -> BTreeMap<Partition, Indexed> {
        for (partition, known) in notifications {
            let bytes = partition.id.as_str().len();
            let log = self.indexer.log(partition.log);
            if log.is_ok_and(|log| log.source.is_internal(&partition.id)) {
                self.outcomes.insert(partition, Ok(0));
            } else if bytes > BOUNDARY_BYTES_MAX {
                self.fail(partition.clone(), IndexError::Name { partition, bytes });
            } else {
                self.outcomes.insert(partition.clone(), Ok(0));
                self.queues.insert(partition.clone(), Queue::default());
                self.open.insert(partition, known);
            }
        }
        let Err(error) = self.write().await else { return self.outcomes };
        // The index takes nothing now, so every partition that is not done yet has failed.
        let error = IndexError::Feed(Arc::new(error));
        for partition in self.undone().cloned().collect::<Vec<_>>() {
            if let Some(outcome) = self.outcomes.get_mut(&partition)
                && outcome.is_ok()
            {
                *outcome = Err(error.clone());
            }
        }
        self.outcomes
    }

    async fn write(&mut self) -> Result<(), FeedError> {
        if self.open.is_empty() {
            return Ok(());
        }
        match self.indexer.end() {
            Some(end) if !end.shared => {
                self.end = end;
                self.read_progress(self.undone().cloned().collect()).await?;
            }
            known => {
                self.end = known.unwrap_or(self.end);
                self.find_end(None, 1).await?;
            }
        }
        self.take_known();
        loop {
            self.fill().await;
            while self.commit().await? {}
            if self.open.is_empty() {
                return Ok(());
            }
        }
    }

    fn sources(&self) -> &'a Sources {
        &self.indexer.index.sources
    }

    /// Partitions that have more, or whose events are not all in the index.
    fn undone(&self) -> impl Iterator<Item = &Partition> {
        let undone = |(partition, queue): &(&Partition, &Queue)| {
            !queue.fresh.is_empty() || self.open.contains_key(*partition)
        };
        self.queues.iter().filter(undone).map(|(partition, _)| partition)
    }

    fn fail(&mut self, partition: Partition, error: IndexError) {
        self.open.remove(&partition);
        self.outcomes.insert(partition, Err(error));
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
            for (partition, progress) in page.progress(self.sources())? {
                self.advance(&partition, progress);
            }
        }
        let unread = if all { Vec::new() } else { self.undone().cloned().collect() };
        // Pages after the known end are by others.
        self.end.shared = self.indexer.end().is_some() && !pages.is_empty();
        match pages.first() {
            None => drop(self.read_progress(unread).await?),
            Some(last) => {
                self.wait_until_settled(last, unread, attempt).await?;
                self.end.at = last.end()?;
            }
        }
        self.indexer.remember(self.end);
        Ok(())
    }

    /// How many pages to read after a refused one. Pages of that size cost at most as much as the progress that they
    /// show, not counting the last one, which is read in any case.
    fn pages_max(&self, page: &Page) -> i32 {
        let pages = self.undone().count() * UNIT_BYTES / item_bytes(&page.item());
        i32::try_from(pages).unwrap_or(PAGES_MAX).clamp(1, PAGES_MAX)
    }

    /// Waits until the last page is settled by the indexer that has put it. If that takes too long, settles it. Reads the
    /// progress of some more partitions.
    async fn wait_until_settled(
        &mut self,
        last: &Page,
        mut more: Vec<Partition>,
        attempt: u32,
    ) -> Result<(), FeedError> {
        let reached = last.progress(self.sources())?;
        let of_last_entry = reached.iter().max_by_key(|(_, progress)| progress.checkpoint);
        let Some((partition, entry)) = of_last_entry else { return Ok(()) };
        let is_behind = |found: &BTreeMap<Partition, Progress>, partition, to: &Progress| {
            found.get(partition).is_none_or(|found| found.checkpoint < to.checkpoint)
        };
        // If the last entry is of a log that the stack no longer has, no entry shows that all are settled.
        let is_last = entry.checkpoint == checkpoint(last.epoch, last.n())?;
        for look in 0..if is_last { LOOKS_MAX } else { 0 } {
            more.push(partition.clone());
            let found = self.read_progress(std::mem::take(&mut more)).await?;
            if !is_behind(&found, partition, entry) {
                return Ok(());
            }
            if !self.retry.pause(attempt + look).await {
                break;
            }
        }
        let found = self.read_progress(reached.keys().cloned().collect()).await?;
        let unsettled =
            reached.iter().filter(|(partition, progress)| is_behind(&found, partition, progress));
        settle(&self.indexer.index.table, unsettled, self.retry).await
    }

    /// Reads the progress of partitions.
    async fn read_progress(
        &mut self,
        mut partitions: Vec<Partition>,
    ) -> Result<BTreeMap<Partition, Progress>, FeedError> {
        partitions.sort_unstable();
        partitions.dedup();
        let keys = partitions.iter().map(|partition| progress_key(&partition.id)).collect();
        let items = self.indexer.index.table.get_all(self.retry, keys, true).await;
        let items = items.map_err(failed("reading what is indexed"))?;
        let found: BTreeMap<_, _> = items.iter().map(Progress::of).collect::<Result<_, _>>()?;
        for (partition, progress) in &found {
            self.advance(partition, progress.clone());
        }
        Ok(found)
    }

    /// Takes over how far a partition is indexed. Returns how many of the waiting events are indexed by now. The others
    /// follow on this progress. An exception is a stream whose first events were pruned: if another indexer had these
    /// as images, the events here are dropped, and the partition is read again.
    fn advance(&mut self, partition: &Partition, progress: Progress) -> usize {
        let Some(queue) = self.queues.get_mut(partition) else { return 0 };
        if queue.progress.as_ref().is_some_and(|known| known.checkpoint >= progress.checkpoint) {
            return 0;
        }
        let waiting = queue.fresh.len();
        queue.fresh.retain(|fresh| fresh.slot > progress.slot);
        let done = waiting - queue.fresh.len();
        let follows = partition.log.slot_after(Some(progress.slot));
        if queue.fresh.front().is_some_and(|fresh| fresh.slot != follows) {
            queue.fresh.clear();
            self.open.entry(partition.clone()).or_default();
        }
        queue.progress = Some(progress);
        done
    }

    /// Takes the known events that continue the progress. A partition is still to be read if it has other events, or if
    /// no event of it is known.
    fn take_known(&mut self) {
        for (partition, mut known) in std::mem::take(&mut self.open) {
            let progress = self.queues.get(&partition).and_then(|queue| queue.progress.as_ref());
            let (is_read, last) = (known.is_empty(), progress.map(|progress| progress.slot));
            let source = match self.indexer.log(partition.log) {
                Ok(log) => log.source,
                Err(error) => {
                    self.fail(partition, error.into());
                    continue;
                }
            };
            if let Some(Progress { slot, append_id: Some(indexed), .. }) = progress
                && known
                    .get(slot)
                    .and_then(|item| source.append_id(item))
                    .is_some_and(|it| it != indexed)
            {
                let (partition, slot) = (partition.clone(), *slot);
                self.fail(partition.clone(), IndexError::Replaced { partition, slot });
                continue;
            }
            let taken = dense(&mut known, partition.log.slot_after(last));
            let more = is_read || !known.is_empty();
            let news = News::of(source, &partition, (taken, more));
            self.open.insert(partition.clone(), known);
            self.accept(partition, news);
        }
    }

    /// Reads the new events of open partitions, until enough is held.
    async fn fill(&mut self) {
        let Self { indexer, retry, queues, open, .. } = &*self;
        let read = |(partition, known): (&Partition, &Known)| {
            let (partition, known) = (partition.clone(), known.clone());
            let after = queues.get(&partition).and_then(Queue::last);
            async move {
                let news = indexer.news(&partition, after, &known, *retry).await;
                (partition, news)
            }
        };
        let reads: Vec<_> = open.iter().map(read).collect();
        let mut reads = iter(reads).buffer_unordered(READS_AT_ONCE);
        let mut all = Vec::new();
        let mut held = 0;
        while held < HELD_BYTES_MAX
            && let Some((partition, news)) = reads.next().await
        {
            let bytes = |news: &News| news.fresh.iter().map(|fresh| fresh.bytes).sum();
            held += news.as_ref().map_or(0, bytes);
            all.push((partition, news));
        }
        drop(reads);
        for (partition, news) in all {
            match news {
                Ok(news) => self.accept(partition, news),
                Err(error) => self.fail(partition, error),
            }
        }
    }

    fn accept(&mut self, partition: Partition, news: News) {
        if !news.more {
            self.open.remove(&partition);
        }
        self.queues.entry(partition.clone()).or_default().fresh.extend(news.fresh);
        if let Some(error) = news.failed {
            self.fail(partition, error);
        }
    }

    /// Puts the next page and settles it; false when nothing waits.
    async fn commit(&mut self) -> Result<bool, FeedError> {
        let (Indexer { index, epoch_entries, .. }, retry) = (self.indexer, self.retry);
        let mut attempts = retry.attempts_max(COMMITS_MAX).start();
        loop {
            let room = Room { epoch_entries: epoch_entries.get(), entries_max: self.entries_max };
            let Some(page) = Page::cut(&self.queues, self.end.at, room) else { return Ok(false) };
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
                        settle(&index.table, &page.progress(self.sources())?, retry).await?;
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
        let reached = page.progress(self.sources())?;
        settle(&self.indexer.index.table, &reached, self.retry).await?;
        for (partition, progress) in reached {
            let indexed = self.advance(&partition, progress) as u64;
            if let Some(Ok(total)) = self.outcomes.get_mut(&partition) {
                *total += indexed;
            }
        }
        self.end.at = page.end()?;
        self.indexer.remember(self.end);
        self.entries_max = self.entries_max.saturating_mul(2);
        Ok(())
    }

    /// After a page was refused for its content: halves the next page. If a single event is refused, its partition is
    /// given up, and its later events wait, to keep their order.
    fn narrow(&mut self, refused: &Page, error: FeedError) -> Result<(), FeedError> {
        self.entries_max = (refused.entries.len() / 2).max(1);
        if refused.entries.len() == 1
            && let Some((partition, Progress { slot, .. })) =
                refused.progress(self.sources())?.pop_first()
            && let Some(queue) = self.queues.get_mut(&partition)
        {
            queue.fresh = VecDeque::new();
            let (partition, source) = (partition.clone(), Arc::new(error));
            self.fail(partition.clone(), IndexError::Unwritable { partition, slot, source });
        }
        Ok(())
    }
}
