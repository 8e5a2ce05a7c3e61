//! Indexes as many partitions as one transaction can move.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::stream::{StreamExt, iter};
use ringfence::BOUNDARY_BYTES_MAX;
use ringfence_dcb_log::NewsError;
use ringfence_dynamo::{Failure, Reason, Retry};

use crate::error::{FeedError, IndexError, failed};
use crate::group::{GROUP_PARTITIONS_MAX, Group, Queue, Room};
use crate::indexer::{Indexer, Outcome};
use crate::item::{self, Indexed, Tip};
use crate::news::{Fresh, Mark, News};
use crate::partition::{Doorbell, Partition};

/// How often a page is tried when others move the index at the same time.
const COMMITS_MAX: u32 = 16;
/// Partitions that are read at once.
const READS_AT_ONCE: usize = 8;
/// The bytes of events that are held before they are written; reads under way may add to them.
const HELD_BYTES_MAX: usize = 8 * 1_024 * 1_024;

impl Indexer {
    /// Indexes the new events of each of the partitions, within the deadline of `retry`. Each partition
    /// succeeds or fails on its own. It needs the memory of a few pages of queries, however much is new.
    pub async fn index(
        &self,
        doorbells: impl IntoIterator<Item = impl Into<Doorbell>>,
        retry: Retry,
    ) -> BTreeMap<Partition, Outcome> {
        let mut partitions = BTreeMap::new();
        for Doorbell { partition, event } in doorbells.into_iter().map(Into::into) {
            let known: &mut Option<_> = partitions.entry(partition).or_default();
            *known = known.take().max(event);
        }
        let doorbells: Vec<_> = partitions
            .into_iter()
            .map(|(partition, event)| Doorbell { partition, event })
            .collect();
        let mut outcomes = BTreeMap::new();
        for chunk in doorbells.chunks(GROUP_PARTITIONS_MAX) {
            outcomes.extend(Round::new(self, retry).run(chunk).await);
        }
        outcomes
    }
}

/// One run over some partitions.
pub(crate) struct Round<'a> {
    indexer: &'a Indexer,
    retry: Retry,
    /// `None` before the first page.
    tip: Option<Tip>,
    queues: BTreeMap<Partition, Queue>,
    /// Partitions that may have more than their queue holds.
    marks: BTreeMap<Partition, Mark>,
    outcomes: BTreeMap<Partition, Outcome>,
    /// The most entries of the next page. There are fewer after a page was refused for its content, until
    /// the event that is the cause stands alone.
    entries_max: usize,
}

impl<'a> Round<'a> {
    pub(crate) fn new(indexer: &'a Indexer, retry: Retry) -> Self {
        let (tip, queues, marks) = (None, BTreeMap::new(), BTreeMap::new());
        let (outcomes, entries_max) = (BTreeMap::new(), usize::MAX);
        Self { indexer, retry, tip, queues, marks, outcomes, entries_max }
    }

    pub(crate) async fn run(mut self, doorbells: &[Doorbell]) -> BTreeMap<Partition, Outcome> {
        let (internal, doorbells): (Vec<_>, Vec<_>) =
            doorbells.iter().cloned().partition(|bell| bell.partition.is_internal());
        self.outcomes.extend(internal.into_iter().map(|bell| (bell.partition, Ok(0))));
        let (doorbells, unnamed): (Vec<_>, Vec<_>) = doorbells
            .into_iter()
            .partition(|bell| bell.partition.id.as_str().len() <= BOUNDARY_BYTES_MAX);
        for Doorbell { partition, .. } in unnamed {
            let bytes = partition.id.as_str().len();
            self.fail(partition.clone(), IndexError::Name { partition, bytes });
        }
        if let Err(error) = self.begin(&doorbells).await {
            let failed = doorbells.into_iter().map(|bell| (bell.partition, Err(error.clone())));
            self.outcomes.extend(failed);
            return self.outcomes;
        }
        let Err(error) = self.write().await else { return self.outcomes };
        // The index takes nothing now, so every partition that is not done yet has failed.
        let error = IndexError::Feed(Arc::new(error));
        for (partition, queue) in &self.queues {
            let done = queue.fresh.is_empty() && !self.marks.contains_key(partition);
            if let Some(outcome) = self.outcomes.get_mut(partition)
                && outcome.is_ok()
                && !done
            {
                *outcome = Err(error.clone());
            }
        }
        self.outcomes
    }

    /// Reads what is indexed, and then the fences. In the other order, a fence could count fewer events than
    /// others have indexed meanwhile.
    async fn begin(&mut self, doorbells: &[Doorbell]) -> Result<(), IndexError> {
        let indexed = self.read_indexed(doorbells).await;
        indexed.map_err(|error| IndexError::Feed(Arc::new(error)))?;
        let marks = self.indexer.logs.marks(doorbells, self.retry).await;
        for (partition, mark) in marks.map_err(NewsError::from)? {
            match mark {
                Ok(mark) => {
                    self.outcomes.insert(partition.clone(), Ok(0));
                    self.marks.insert(partition, mark);
                }
                Err(error) => self.fail(partition, error),
            }
        }
        Ok(())
    }

    async fn write(&mut self) -> Result<(), FeedError> {
        while !self.marks.is_empty() {
            self.fill().await;
            while self.commit().await? {}
        }
        Ok(())
    }

    fn fail(&mut self, partition: Partition, error: IndexError) {
        self.marks.remove(&partition);
        self.outcomes.insert(partition, Err(error));
    }

    /// Reads the tip and what is indexed of each partition.
    async fn read_indexed(&mut self, doorbells: &[Doorbell]) -> Result<(), FeedError> {
        let partitions = doorbells.iter().map(|bell| &bell.partition);
        let keys = partitions.clone().map(|partition| item::progress_key(&partition.id));
        let keys = keys.chain([item::tip_key()]);
        self.queues = partitions.map(|p| (p.clone(), Queue::default())).collect();
        let items = self.indexer.table.get_all(self.retry, keys.collect(), true).await;
        for item in items.map_err(failed("reading what is indexed"))? {
            if item::is_tip(&item) {
                self.tip = Some(Tip::of(&item)?);
            } else if let Some(id) = item::progress_of(&item) {
                let indexed = Indexed::of(&item)?;
                let queues = self.queues.iter_mut().filter(|(partition, _)| partition.id == id);
                queues.for_each(|(_, queue)| queue.indexed = indexed.clone());
            }
        }
        Ok(())
    }

    /// Reads the new events of partitions whose queue is empty, until enough is held.
    async fn fill(&mut self) {
        let Self { indexer, retry, queues, marks, .. } = &*self;
        let read = |(partition, mark): (&Partition, &Mark)| {
            let (partition, mark) = (partition.clone(), mark.clone());
            let after = queues[&partition].indexed.progress.clone();
            async move {
                let news = indexer.logs.news(&partition, &after, &mark, *retry).await;
                (partition, news)
            }
        };
        let reads: Vec<_> = marks.iter().map(read).collect();
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
        match news.more {
            Some(mark) => drop(self.marks.insert(partition.clone(), mark)),
            None => drop(self.marks.remove(&partition)),
        }
        self.queues.entry(partition.clone()).or_default().fresh.extend(news.fresh);
        if let Some(error) = news.failed {
            self.fail(partition, error);
        }
    }

    /// Writes one page from the queues, and goes on from what others have done meanwhile. Returns false if
    /// nothing is left.
    async fn commit(&mut self) -> Result<bool, FeedError> {
        let mut attempts = self.retry.attempts_max(COMMITS_MAX).start();
        while let Some(group) = self.group()? {
            let table = &self.indexer.table;
            let send = || table.transact(group.actions.clone(), group.token.to_string());
            let Err(gave_up) = attempts.run(send).await else {
                self.done(group);
                return Ok(true);
            };
            if self.moved(&group, &gave_up.failure)? {
                if !attempts.again().await {
                    return Err(FeedError::Contention { attempts: attempts.made() });
                }
                continue;
            }
            let refused = !gave_up.failure.is_transient() && gave_up.failure.is_of_content();
            let error = failed("writing a page")(gave_up);
            if !refused {
                return Err(error);
            }
            self.narrow(&group, error);
            return Ok(true);
        }
        Ok(false)
    }

    /// After a page that is refused for its content: halves the next one, and gives up the partition whose
    /// event no page can hold even alone. Events after it wait, to keep the order of the partition.
    fn narrow(&mut self, refused: &Group, error: FeedError) {
        let entries = refused.entries();
        self.entries_max = (entries / 2).max(1);
        if entries == 1
            && let Some((partition, ..)) = refused.partitions.first()
            && let Some(queue) = self.queues.get_mut(partition)
            && let Some(Fresh { position, .. }) =
                std::mem::take(&mut queue.fresh).into_iter().next()
        {
            let (partition, source) = (partition.clone(), Arc::new(error));
            self.fail(partition.clone(), IndexError::Unwritable { partition, position, source });
        }
    }

    fn group(&self) -> Result<Option<Group>, FeedError> {
        let Indexer { table, epoch_entries, logs, .. } = self.indexer;
        let room = Room { epoch_entries: epoch_entries.get(), entries_max: self.entries_max };
        Group::cut(table.name(), &self.queues, self.tip, room, logs.clock().uuid())
    }

    fn done(&mut self, group: Group) {
        self.entries_max = self.entries_max.saturating_mul(2);
        self.tip = Some(group.tip);
        for (partition, indexed, count) in group.partitions {
            if let Some(Ok(total)) = self.outcomes.get_mut(&partition) {
                *total += count as u64;
            }
            let queue = self.queues.entry(partition).or_default();
            queue.indexed = indexed;
            queue.fresh.drain(..count.min(queue.fresh.len()));
        }
    }

    /// Goes on from what others, or an earlier send of this group, have done, as the failed conditions show.
    /// Returns false if no condition has failed. The queues stay right: they have all events after the
    /// progress that was read, so after a later progress the rest of them is left.
    fn moved(&mut self, group: &Group, failure: &Failure) -> Result<bool, FeedError> {
        let Failure::Cancelled(reasons) = failure else { return Ok(false) };
        let item = |reason: &Reason| match reason {
            Reason::Condition(item) => Some(item.clone()),
            _ => None,
        };
        let tip = reasons.get(1).and_then(item);
        let partitions = reasons.iter().skip(2).zip(&group.partitions);
        let partitions: Vec<_> =
            partitions.filter_map(|(reason, (p, ..))| Some((p, item(reason)?))).collect();
        if tip.is_none() && partitions.is_empty() {
            return match reasons.first().and_then(item) {
                None => Ok(false),
                Some(_) => Err(gone("there is a page after the tip")),
            };
        }
        if let Some(tip) = tip {
            self.tip = Some(Tip::of(&tip.ok_or_else(|| gone("the tip is gone"))?)?);
        }
        for (partition, found) in partitions {
            let found = found.ok_or_else(|| gone("a partition's progress is gone"))?;
            let queue = self.queues.entry(partition.clone()).or_default();
            queue.indexed = Indexed::of(&found)?;
            let position = queue.indexed.progress.position.clone();
            queue.fresh.retain(|fresh| Some(&fresh.position) > position.as_ref());
        }
        Ok(true)
    }
}

fn gone(problem: &'static str) -> FeedError {
    FeedError::Malformed { item: item::name(&item::tip_key()), problem }
}
