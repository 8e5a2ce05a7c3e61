//! Compares the logs' tables with the index: finds events that an outage has left out, and damage.
//!
//! The index is read first, and has the events of each partition up to some slot. Then a strong scan of the tables must
//! find exactly the same events up to that slot, whatever is appended meanwhile. Later events are not indexed yet.
//! Events count as equal if their numbers and the sums of their hashes are equal, which takes some hundred bytes for
//! each partition. In a table that was restored to an earlier time, another event may have the slot of an indexed one.
//! So the times of the DCB log's events are hashed too, and the last event of a partition must be of the append that
//! the progress names.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::ops::Range;

use futures::{StreamExt, TryStreamExt};
use ringfence_aws::{BATCH_KEYS_MAX, Item, Retry};
use ringfence_core::chain;
use ringfence_log::news::StreamError;
use ringfence_log::{EntryError, Source, StoredEvents};

use crate::checkpoint::Checkpoint;
use crate::entry::Entry;
use crate::error::{FeedError, failed};
use crate::index::Until;
use crate::indexer::{Indexed, Indexer};
use crate::item::{Progress, progress_key};
use crate::page::GROUP_PARTITIONS_MAX;
use crate::partition::Partition;

/// A stage of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareStage {
    /// The index is read.
    Entries,
    /// The table is scanned.
    Events,
    /// Missing events are indexed; partitions are counted.
    Indexing,
}

/// Is called with the number of items of a stage that are done.
pub type OnProgress<'a> = &'a (dyn Fn(CompareStage, u64) + Send + Sync);

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexReport {
    /// Entries of the index.
    pub entries: u64,
    /// Events of the tables.
    pub events: u64,
    /// Entries of logs that were not compared.
    pub skipped: u64,
    /// By partition, how many of its last events are not indexed yet.
    pub behind: BTreeMap<Partition, u64>,
    /// Differences that indexing does not mend.
    pub wrong: Vec<IndexDefect>,
}

/// A difference between index and table that stays: begin a new index in another table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexDefect {
    /// Up to the last indexed event the table has other events than the index.
    #[error(
        "{partition}: the index has {indexed} events, the table {stored} up to the same event{}",
        if indexed == stored { ", not the same ones" } else { "" }
    )]
    Differs {
        /// The partition.
        partition: Partition,
        /// Its events in the index.
        indexed: u64,
        /// Its events in the table, up to the last one of the index.
        stored: u64,
    },
    /// The last indexed event is not the one that the table has in its slot.
    #[error(
        "{partition}: event {slot} is not the one that was indexed: the table was restored to an \
         earlier time, or the event was deleted, and the slot was taken again"
    )]
    Replaced {
        /// The partition.
        partition: Partition,
        /// The slot.
        slot: u64,
    },
    /// An item of a table is not an event, or not of a stream; the text names it and the reason.
    #[error("{0}")]
    Item(String),
    /// An entry of the index can't be decoded.
    #[error("the entry after checkpoint {before} can't be decoded: {cause}")]
    Entry {
        /// The checkpoint before it.
        before: Checkpoint,
        /// Why.
        cause: String,
    },
    /// An entry does not come after the previous entry of its partition.
    #[error("{partition}: the entry before checkpoint {checkpoint} is out of order")]
    Order {
        /// The partition.
        partition: Partition,
        /// The checkpoint after the entry.
        checkpoint: Checkpoint,
    },
}

/// Why the two can't be compared.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The index can't be read, or has a hole.
    #[error("the index can't be read")]
    Index(#[from] FeedError),
    /// The table of a log can't be read.
    #[error(transparent)]
    Log(#[from] StreamError),
}

/// What was seen of one partition.
#[derive(Default)]
struct Sum {
    count: u64,
    /// The sum of the hashes of the events.
    hash: u64,
}

impl Sum {
    /// Adds an event. Events of streams can be written again with another time, so `at` is 0 for them.
    fn add(&mut self, slot: u64, at: u64) {
        let mut hasher = DefaultHasher::new();
        (slot, at).hash(&mut hasher);
        self.count += 1;
        self.hash = self.hash.wrapping_add(hasher.finish());
    }
}

#[derive(Default)]
struct Known {
    last: Option<u64>,
    /// Slot and append of the last event, as the progress has them.
    append: Option<(u64, String)>,
    indexed: Sum,
    stored: Sum,
}

impl Indexer {
    /// Compares the index with the tables. Reads the whole of each.
    ///
    /// # Errors
    /// One of them can't be read.
    pub async fn verify(&self, progress: OnProgress<'_>) -> Result<IndexReport, VerifyError> {
        let mut report = IndexReport::default();
        let mut known = self.entries(&mut report, progress).await?;
        self.appends(&mut known).await?;
        for log in self.logs() {
            let mut stored = log.table.stored();
            while let Some(stored) = stored.try_next().await? {
                match stored {
                    StoredEvents::Event(item) => {
                        report.item(log.source, &mut known, item, progress)
                    }
                    StoredEvents::Stream { partition, first, end } => {
                        if !log.source.is_internal(&partition) {
                            let partition =
                                Partition { log: log.source.facts().kind, id: partition };
                            report.stream(&mut known, partition, first..end, progress);
                        }
                    }
                    StoredEvents::Wrong(item) => report.wrong.push(IndexDefect::Item(item)),
                }
            }
        }
        for (partition, Known { indexed, stored, .. }) in known {
            let is_named = |wrong: &IndexDefect| matches!(wrong, IndexDefect::Replaced { partition: named, .. } if *named == partition);
            if (indexed.count, indexed.hash) != (stored.count, stored.hash)
                && !(indexed.count == stored.count && report.wrong.iter().any(is_named))
            {
                let (indexed, stored) = (indexed.count, stored.count);
                report.wrong.push(IndexDefect::Differs { partition, indexed, stored });
            }
        }
        Ok(report)
    }

    /// The entries of each partition, for the logs that are compared.
    async fn entries(
        &self,
        report: &mut IndexReport,
        progress: OnProgress<'_>,
    ) -> Result<HashMap<Partition, Known>, VerifyError> {
        let mut partitions: HashMap<_, Known> = HashMap::new();
        let mut entries = self.index.read(Checkpoint::START, Until::Present);
        while let Some(entry) = entries.next().await {
            report.entries += 1;
            progress(CompareStage::Entries, report.entries);
            let Entry { checkpoint, event } = match entry {
                Err(FeedError::Undecodable { before, source, .. }) => {
                    report.wrong.push(IndexDefect::Entry { before, cause: chain(&*source) });
                    continue;
                }
                entry => entry?,
            };
            let partition = Partition::of(&event);
            let Ok(log) = self.log(partition.log) else {
                report.skipped += 1;
                continue;
            };
            let known = partitions.entry(partition.clone()).or_default();
            known.indexed.add(event.slot, if log.source.keeps_times() { event.at } else { 0 });
            if known.last >= Some(event.slot) {
                report.wrong.push(IndexDefect::Order { partition, checkpoint });
            }
            known.last = known.last.max(Some(event.slot));
        }
        Ok(partitions)
    }

    /// Reads which append put the last indexed event of each partition.
    async fn appends(&self, known: &mut HashMap<Partition, Known>) -> Result<(), FeedError> {
        let names = |partition: &&Partition| {
            self.log(partition.log).is_ok_and(|log| log.source.keeps_times())
        };
        let keys: Vec<_> =
            known.keys().filter(names).map(|partition| progress_key(&partition.id)).collect();
        for keys in keys.chunks(BATCH_KEYS_MAX) {
            let items = self.index.table.get_all(Retry::default(), keys.to_vec(), true).await;
            for item in items.map_err(failed("reading what is indexed"))? {
                let (partition, Progress { slot, append_id, .. }) = Progress::of(&item)?;
                let known = known.entry(partition).or_default();
                known.append = append_id.map(|append_id| (slot, append_id));
            }
        }
        Ok(())
    }

    /// The same, and indexes missing events. It can be interrupted, repeated, and run beside the function.
    ///
    /// # Errors
    /// As [`Indexer::verify`]. If a partition can't be indexed, the outcomes say so.
    pub async fn repair(
        &self,
        progress: OnProgress<'_>,
    ) -> Result<(IndexReport, BTreeMap<Partition, Indexed>), VerifyError> {
        let report = self.verify(progress).await?;
        let behind: Vec<_> = report.behind.keys().cloned().collect();
        let mut outcomes = BTreeMap::new();
        for chunk in behind.chunks(GROUP_PARTITIONS_MAX) {
            outcomes.extend(self.index(chunk.iter().cloned(), Retry::default()).await);
            progress(CompareStage::Indexing, outcomes.len() as u64);
        }
        Ok((report, outcomes))
    }
}

impl IndexReport {
    /// Takes in an item that is an event. The place of an event follows from its key, so an event that can't be decoded is
    /// compared too.
    fn item(
        &mut self,
        source: &dyn Source,
        known: &mut HashMap<Partition, Known>,
        item: Item,
        progress: OnProgress<'_>,
    ) {
        if let Some((id, slot)) = source.place(&item) {
            let partition = Partition { log: source.facts().kind, id };
            let indexed = known.get(&partition).and_then(|known| known.append.as_ref());
            if indexed.is_some_and(|(last, append)| {
                *last == slot && source.append_id(&item) != Some(append)
            }) {
                self.wrong.push(IndexDefect::Replaced { partition: partition.clone(), slot });
            }
            let at = source.time(&item).unwrap_or_default();
            self.stored(known, partition, (slot, at), progress);
        }
        let name = source.name(&item);
        if let Err(error) = source.event(item) {
            let cause = chain(&EntryError::from(error));
            self.wrong.push(IndexDefect::Item(format!("{name} is not an event: {cause}")));
        }
    }

    /// Takes in an event of a table.
    fn stored(
        &mut self,
        known: &mut HashMap<Partition, Known>,
        partition: Partition,
        (slot, at): (u64, u64),
        progress: OnProgress<'_>,
    ) {
        let known = known.entry(partition.clone()).or_default();
        if Some(slot) <= known.last {
            known.stored.add(slot, at);
        } else {
            *self.behind.entry(partition).or_default() += 1;
        }
        self.events += 1;
        progress(CompareStage::Events, self.events);
    }

    /// Takes in a stream with the events that are left. The index has all pruned events, or none of them if they were
    /// pruned before it was begun.
    fn stream(
        &mut self,
        known: &mut HashMap<Partition, Known>,
        partition: Partition,
        left: Range<u64>,
        progress: OnProgress<'_>,
    ) {
        let known = known.entry(partition.clone()).or_default();
        let indexed = known.last.map_or(left.start, |last| last + 1);
        for index in indexed.saturating_sub(known.indexed.count)..indexed.min(left.end) {
            known.stored.add(index, 0);
        }
        if indexed < left.end {
            self.behind.insert(partition, left.end - indexed);
        }
        self.events += left.end - left.start;
        progress(CompareStage::Events, self.events);
    }
}
