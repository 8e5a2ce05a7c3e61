//! The events that wait to be indexed, by partition, and how far each partition is indexed.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::try_join_all;
use futures::stream::{StreamExt, iter};
use ringfence_aws::{BATCH_KEYS_MAX, Item, Retry};
use ringfence_core::BOUNDARY_BYTES_MAX;
use ringfence_log::news::dense;

use crate::checkpoint::Checkpoint;
use crate::error::{FeedError, IndexError, failed};
use crate::indexer::{Indexed, Indexer};
use crate::item::{Progress, Reached, progress_key};
use crate::mark::Mark;
use crate::news::News;
use crate::page::Queue;
use crate::partition::Partition;

/// Partitions that are read at once.
const READS_AT_ONCE: usize = 8;
/// The bytes of events that are held before they are written; reads under way may add to them.
const HELD_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// Events that a partition is known to have, by slot.
pub(crate) type Known = BTreeMap<u64, Item>;

/// Partitions of one round.
pub(crate) struct Backlog<'a> {
    indexer: &'a Indexer,
    retry: Retry,
    pub(crate) queues: BTreeMap<Partition, Queue>,
    /// Partitions that may have more events than their queue, and the events that are known.
    open: BTreeMap<Partition, Known>,
    outcomes: BTreeMap<Partition, Indexed>,
}

impl<'a> Backlog<'a> {
    pub(crate) fn new(
        indexer: &'a Indexer,
        retry: Retry,
        notifications: BTreeMap<Partition, Known>,
    ) -> Self {
        let (queues, open, outcomes) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut backlog = Self { indexer, retry, queues, open, outcomes };
        for (partition, known) in notifications {
            let bytes = partition.id.as_str().len();
            let log = indexer.log(partition.log);
            if log.is_ok_and(|log| log.source.is_internal(&partition.id)) {
                backlog.outcomes.insert(partition, Ok(0));
            } else if bytes > BOUNDARY_BYTES_MAX {
                backlog.fail(partition.clone(), IndexError::Name { partition, bytes });
            } else {
                backlog.outcomes.insert(partition.clone(), Ok(0));
                backlog.queues.insert(partition.clone(), Queue::default());
                backlog.open.insert(partition, known);
            }
        }
        backlog
    }

    /// Whether partitions may have more events than their queues.
    pub(crate) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The outcomes of all partitions. If the index took nothing any more, each one has failed whose events or progress
    /// are not there.
    pub(crate) fn outcomes(
        mut self,
        written: Result<(), FeedError>,
    ) -> BTreeMap<Partition, Indexed> {
        let Err(error) = written else { return self.outcomes };
        let error = IndexError::Feed(Arc::new(error));
        let lagging = self.lagging();
        for partition in self.undone().into_iter().chain(lagging.into_keys()) {
            if let Some(outcome) = self.outcomes.get_mut(&partition)
                && outcome.is_ok()
            {
                *outcome = Err(error.clone());
            }
        }
        self.outcomes
    }

    /// Takes over how far a page of this indexer has brought its partitions, and counts its events.
    pub(crate) fn indexed(&mut self, reached: &Reached) {
        for (partition, progress) in reached {
            let indexed = self.advance(partition, progress, false) as u64;
            if let Some(Ok(total)) = self.outcomes.get_mut(partition) {
                *total += indexed;
            }
        }
    }

    /// Notes how far the stored progress of partitions has come.
    pub(crate) fn stored(&mut self, reached: &Reached) {
        for (partition, progress) in reached {
            self.advance(partition, progress, true);
        }
    }

    /// Notes that all pages before a place are settled.
    pub(crate) fn settled_before(&mut self, place: Checkpoint) {
        for Queue { progress, lags, .. } in self.queues.values_mut() {
            *lags &= progress.as_ref().is_some_and(|progress| progress.checkpoint > place);
        }
    }

    /// Whether the stored progress of a partition is known to have come so far.
    pub(crate) fn is_stored(&self, partition: &Partition, to: &Progress) -> bool {
        self.queues.get(partition).is_some_and(|queue| {
            let known = queue.progress.as_ref().filter(|_| !queue.lags);
            known.is_some_and(|known| known.checkpoint >= to.checkpoint)
        })
    }

    /// Partitions whose stored progress may lag, and how far they are indexed.
    pub(crate) fn lagging(&self) -> Reached {
        let lags = |(partition, queue): (&Partition, &Queue)| {
            let progress = queue.progress.clone().filter(|_| queue.lags)?;
            Some((partition.clone(), progress))
        };
        self.queues.iter().filter_map(lags).collect()
    }

    /// Partitions that have more, or whose events are not all in the index.
    pub(crate) fn undone(&self) -> Vec<Partition> {
        let undone = |(partition, queue): &(&Partition, &Queue)| {
            !queue.fresh.is_empty() || self.open.contains_key(*partition)
        };
        self.queues.iter().filter(undone).map(|(partition, _)| partition.clone()).collect()
    }

    pub(crate) fn fail(&mut self, partition: Partition, error: IndexError) {
        self.open.remove(&partition);
        self.outcomes.insert(partition, Err(error));
    }

    /// Reads the progress of partitions.
    pub(crate) async fn read_progress(
        &mut self,
        mut partitions: Vec<Partition>,
    ) -> Result<Reached, FeedError> {
        partitions.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        // An item has no log in its key.
        partitions.dedup_by(|one, other| one.id == other.id);
        let keys = |some: &[Partition]| some.iter().map(|it| progress_key(&it.id)).collect();
        let table = &self.indexer.index.table;
        let batches = partitions.chunks(BATCH_KEYS_MAX);
        let batches = batches.map(|some| table.get_all(self.retry, keys(some), true));
        let items = try_join_all(batches).await.map_err(failed("reading what is indexed"))?;
        let found = items.iter().flatten().map(Progress::of);
        let found = found.collect::<Result<_, _>>()?;
        self.stored(&found);
        Ok(found)
    }

    /// Takes over how far a partition is indexed. Returns how many of the waiting events are indexed by now. The others
    /// follow on this progress. An exception is a stream whose first events were pruned: if another indexer had these
    /// as images, the events here are dropped, and the partition is read again.
    pub(crate) fn advance(
        &mut self,
        partition: &Partition,
        progress: &Progress,
        is_stored: bool,
    ) -> usize {
        let Some(queue) = self.queues.get_mut(partition) else { return 0 };
        let known = queue.progress.as_ref().map(|known| known.checkpoint);
        if known <= Some(progress.checkpoint) {
            queue.lags = !is_stored && (queue.lags || known < Some(progress.checkpoint));
        }
        if known >= Some(progress.checkpoint) {
            return 0;
        }
        let waiting = queue.fresh.len();
        queue.fresh.retain(|fresh| fresh.entry.slot > progress.slot);
        let done = waiting - queue.fresh.len();
        let follows = partition.log.slot_after(Some(progress.slot));
        if queue.fresh.front().is_some_and(|fresh| fresh.entry.slot != follows) {
            queue.fresh.clear();
            self.open.entry(partition.clone()).or_default();
        }
        queue.progress = Some(progress.clone());
        done
    }

    /// Takes the known events that continue the progress. A partition is still to be read if it has other events, or if
    /// no event of it is known.
    pub(crate) fn take_known(&mut self) {
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
            if let Some(Progress { slot, mark: Some(indexed), .. }) = progress
                && known.get(slot).is_some_and(|item| Mark::of(source, item) != *indexed)
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
    pub(crate) async fn fill(&mut self) {
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
}
