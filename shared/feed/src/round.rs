//! Indexes a group of partitions.
//!
//! A round knows an end of the index, and all pages before it that may not be settled. Afterwards it has read the
//! progress of its partitions. So if a page can be put at that end, no other page has brought the partitions further.
//! If not, the pages after that end show how far they have come; if there are too many, the progress is read again.
//!
//! While a page is settled, the next one is put. In the end all pages of the round are settled, and the progress of
//! each partition is stored, whoever has indexed its events. So a reader that waits for an acknowledged event finds it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use ringfence_aws::{Failure, Retry, item_bytes};

use crate::backlog::{Backlog, Known};
use crate::checkpoint::Checkpoint;
use crate::error::{FeedError, IndexError, failed};
use crate::index::Index;
use crate::indexer::{End, Indexed, Indexer};
use crate::item::{Page, Progress, Reached};
use crate::lease::{CROWD, Turn};
use crate::page::{GROUP_PARTITIONS_MAX, Room};
use crate::partition::{Notification, Partition};
use crate::settle::{Group, Settling, settle};
use crate::tail::{Tail, UNSETTLED_MAX};

/// How often a page is tried when others move the index at the same time.
const COMMITS_MAX: u32 = 16;
/// For how many rounds an indexer looks for pages of others after it has found one. A look costs a tenth of a page that
/// is refused.
const SHARED: u32 = 16;
/// The most pages of others that are read after a refused one.
const PAGES_MAX: i32 = 4;
/// The most partitions of pages for which every indexer checks whether they are settled. Larger pages are announced in
/// the lease: a read unit costs a fifth of a write unit.
const CHECKED_MAX: usize = 5;
/// How often it asks whether others have settled a page before it settles the page itself, and the longest pause
/// before: some two seconds.
const LOOKS_MAX: u32 = 20;
const LOOK_PAUSE_MAX: Duration = Duration::from_millis(200);
/// A refused page costs as much as one that is put. Up to this size that is no more than the lease, two units.
const LEASE_BYTES: usize = 2 * 1_024;
/// Refusals of smaller pages, one after another, after which an indexer takes the lease all the same.
const REFUSED_MAX: u32 = 4;
/// The bytes of a page that cost as much as the progress of a partition, which is read strongly too.
const UNIT_BYTES: usize = 4 * 1_024;

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
    settling: Settling,
    /// The end of the last page that it has put, and the place before which that says that all pages are settled.
    put: Option<(Checkpoint, Checkpoint)>,
    /// The most entries of the next page. If a page is refused for its content, the number falls until the event that
    /// is the cause stands alone.
    entries_max: usize,
}

impl<'a> Round<'a> {
    fn new(indexer: &'a Indexer, retry: Retry, notifications: BTreeMap<Partition, Known>) -> Self {
        let backlog = Backlog::new(indexer, retry, notifications);
        let (end, turn) = (indexer.end().unwrap_or_default(), Turn::new(indexer, retry));
        let settling = Settling::new(indexer.index.table.clone(), retry);
        Self { indexer, retry, backlog, end, turn, settling, put: None, entries_max: usize::MAX }
    }

    async fn run(mut self) -> BTreeMap<Partition, Indexed> {
        let written = self.write().await;
        // Others put their pages while the round settles its own.
        let had_turn = self.turn.give(self.put).await;
        let settled = self.settle(had_turn).await;
        if self.indexer.end().is_some() {
            self.indexer.remember(self.end.clone());
        }
        self.backlog.outcomes(written.and(settled))
    }

    async fn write(&mut self) -> Result<(), FeedError> {
        if !self.backlog.is_open() {
            return Ok(());
        }
        self.approach().await?;
        self.read_progress().await?;
        self.take_unsettled();
        self.backlog.take_known();
        loop {
            self.backlog.fill().await;
            while self.commit().await? {}
            if !self.backlog.is_open() {
                return Ok(());
            }
        }
    }

    /// Learns where the index probably ends. If others were in the way of large pages lately, it takes the lease, which
    /// says where to read.
    async fn approach(&mut self) -> Result<(), FeedError> {
        let remembers = self.indexer.end().is_some() && self.end.shared == 0;
        let is_known = match self.end.crowd.checked_sub(1) {
            None => remembers,
            Some(crowd) => {
                self.end.crowd = crowd;
                match self.turn.take(&mut self.end).await {
                    None => remembers,
                    Some((end, s)) => self.catch_up(end, s).await?,
                }
            }
        };
        if !is_known {
            self.look().await?;
        }
        self.indexer.remember(self.end.clone());
        Ok(())
    }

    /// Looks for pages of others. What a replica shows is as good as what an indexer remembers.
    async fn look(&mut self) -> Result<(), FeedError> {
        let (from, is_first) = (self.end.tail.end(), self.indexer.end().is_none());
        let pages_max = if is_first { 1 } else { PAGES_MAX };
        let pages = self.index().last_pages(from, pages_max, is_first, self.retry).await?;
        self.end.shared = self.end.shared.saturating_sub(1);
        self.go_on_after(pages).await?;
        Ok(())
    }

    fn index(&self) -> &'a Index {
        &self.indexer.index
    }

    /// Reads the pages that the lease speaks of. Returns false if they are not there.
    async fn catch_up(&mut self, end: Checkpoint, s: Checkpoint) -> Result<bool, FeedError> {
        let known = self.end.tail.end();
        if end == known {
            self.end.tail.settle(self.turn.settled());
            return Ok(true);
        }
        let (from, pages_max) = (known.max(s), i32::from(UNSETTLED_MAX));
        let pages = self.index().last_pages(from, pages_max, true, self.retry).await?;
        let is_known = from == known || !pages.is_empty();
        self.go_on_after(pages).await?;
        Ok(is_known)
    }

    /// Goes on after pages of others, the last one first. Returns whether all pages since the end that it knew are
    /// among them. If not, reads the pages before them that may not be settled.
    async fn go_on_after(&mut self, mut pages: Vec<Page>) -> Result<bool, FeedError> {
        if self.indexer.end().is_some() && !pages.is_empty() {
            self.end.shared = SHARED;
        }
        let Some(settled) = pages.first().map(|last| last.settled) else { return Ok(true) };
        let mut first = 0;
        while let Some(earlier) = pages.get(first + 1)
            && earlier.end()? == pages[first].start()?
        {
            first += 1;
        }
        let start = pages[first].start()?;
        let are_all = first + 1 == pages.len() && start == self.end.tail.end();
        pages.truncate(first + 1);
        if !are_all {
            pages.extend(self.index().pages_between(settled, start, self.retry).await?);
            self.end.tail = Tail::default();
        }
        for page in pages.iter().rev() {
            self.end.tail.push(page)?;
        }
        // Before some of them count as settled: the progress may have been read earlier.
        self.take_unsettled();
        self.end.tail.settled_before(settled);
        self.end.tail.settle(self.turn.settled());
        Ok(are_all)
    }

    /// Reads how far the partitions are indexed, and where that costs little, whether the oldest pages are settled.
    async fn read_progress(&mut self) -> Result<(), FeedError> {
        let (mut partitions, oldest) = (self.backlog.undone(), self.end.tail.oldest(CHECKED_MAX));
        partitions.extend(oldest.reached.keys().cloned());
        let found = self.backlog.read_progress(partitions).await?;
        if oldest.behind(&found).next().is_none() {
            self.settled(&oldest);
        }
        Ok(())
    }

    /// Takes over what the pages bring that may not be settled.
    fn take_unsettled(&mut self) {
        for (partition, progress) in self.end.tail.reached() {
            self.backlog.advance(partition, progress, false);
        }
    }

    /// Goes on after a put that was refused. `found`: the page that is there.
    async fn follow(&mut self, found: Option<Page>) -> Result<(), FeedError> {
        let from = found.as_ref().map_or(Ok(self.end.tail.end()), Page::end)?;
        let pages_max = found.as_ref().map_or(1, |page| self.pages_max(page));
        let mut pages = self.index().last_pages(from, pages_max, true, self.retry).await?;
        pages.extend(found);
        if !self.go_on_after(pages).await? {
            self.read_progress().await?;
        }
        Ok(())
    }

    /// How many pages to read after a refused one. Pages of that size cost at most as much as the progress that they
    /// show, not counting the last one, which is read in any case.
    fn pages_max(&self, page: &Page) -> i32 {
        let pages = self.backlog.undone().len() * UNIT_BYTES / item_bytes(&page.item());
        i32::try_from(pages).unwrap_or(PAGES_MAX).clamp(1, PAGES_MAX)
    }

    /// Waits until the next page may be put. If only others have put the pages that may not be settled, the lease says
    /// when the oldest one is. If it does not say so for some time, or this round or that page's did not have it,
    /// checks whether that page is settled, and settles it otherwise.
    async fn make_room(&mut self) -> Result<(), FeedError> {
        while let Some(group) = self.settling.ready() {
            self.settled(&group?);
        }
        let mut looks = self.retry.attempts_max(LOOKS_MAX).wait_max(LOOK_PAUSE_MAX).start();
        while self.end.tail.is_full() {
            if let Some(group) = self.settling.next().await {
                self.settled(&group?);
                continue;
            }
            let first = self.end.tail.first();
            if self.end.tail.is_announced(CHECKED_MAX)
                && self.turn.is_taken()
                && looks.again().await
                && self.turn.look().await
            {
                self.end.tail.settle(self.turn.settled());
                continue;
            }
            let found = self.backlog.read_progress(first.reached.keys().cloned().collect()).await?;
            settle(&self.index().table, first.behind(&found), self.retry).await?;
            self.settled(&first);
        }
        Ok(())
    }

    fn settled(&mut self, group: &Group) {
        self.end.tail.settle(&group.ends);
        self.backlog.stored(&group.reached);
    }

    /// Waits until the pages of this round are settled, and moves the progress of each other partition that lags. Then
    /// all partitions of some pages are known to have come so far: also of a page that an earlier round began to
    /// settle.
    async fn settle(&mut self, had_turn: bool) -> Result<(), FeedError> {
        let pages = self.end.tail.clone();
        let settled = self.settle_all().await;
        let is_stored = |partition: &_, to: &_| self.backlog.is_stored(partition, to);
        let ends = pages.ends_where(CHECKED_MAX, is_stored);
        if had_turn && !ends.is_empty() {
            self.turn.announce(&ends).await;
        }
        settled
    }

    async fn settle_all(&mut self) -> Result<(), FeedError> {
        while let Some(group) = self.settling.next().await {
            self.settled(&group?);
        }
        self.backlog.settled_before(self.end.tail.settled());
        let lagging = self.backlog.lagging();
        settle(&self.index().table, &lagging, self.retry).await?;
        self.backlog.stored(&lagging);
        Ok(())
    }

    /// Puts the next page; false when nothing waits.
    async fn commit(&mut self) -> Result<bool, FeedError> {
        let (Indexer { index, epoch_entries, .. }, retry) = (self.indexer, self.retry);
        let mut attempts = retry.attempts_max(COMMITS_MAX).start();
        loop {
            if self.backlog.queues.values().all(|queue| queue.fresh.is_empty()) {
                return Ok(false);
            }
            self.make_room().await?;
            let room = Room { epoch_entries: epoch_entries.get(), entries_max: self.entries_max };
            let leased = self.turn.is_taken();
            let Some(page) = Page::cut(&self.backlog.queues, &self.end.tail, room, leased) else {
                return Ok(false);
            };
            self.turn.keep().await;
            let put = page.put(index.table.name());
            let Err(gave_up) = retry.run(|| index.table.put(put.clone())).await else {
                let reached = self.done(&page)?;
                self.backlog.indexed(&reached);
                return Ok(true);
            };
            match gave_up.failure {
                Failure::Condition(found) => {
                    let found = found.map(|item| Page::of(page.epoch, item)).transpose()?;
                    if found.as_ref() == Some(&page) {
                        // The page is our own: it was sent before, and the answer was lost.
                        self.done(&page)?;
                        self.take_unsettled();
                        return Ok(true);
                    }
                    if !attempts.again().await {
                        return Err(FeedError::Contention { attempts: attempts.made() });
                    }
                    if item_bytes(&page.item()) > LEASE_BYTES || attempts.made() > REFUSED_MAX {
                        self.end.crowd = CROWD;
                        self.turn.take(&mut self.end).await;
                    }
                    self.follow(found).await?;
                }
                _ if gave_up.failure.is_of_content() => {
                    self.narrow(&page, failed("writing a page")(gave_up))?;
                    return Ok(true);
                }
                _ => return Err(failed("writing a page")(gave_up)),
            }
        }
    }

    /// Goes on after a page of this round, and begins to settle it. Returns what it brings.
    fn done(&mut self, page: &Page) -> Result<Arc<Reached>, FeedError> {
        let reached = self.end.tail.push(page)?;
        let end = self.end.tail.end();
        self.put = Some((end, page.settled));
        self.settling.add(end, &reached);
        self.entries_max = self.entries_max.saturating_mul(2);
        Ok(reached)
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
