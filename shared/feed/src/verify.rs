//! Compares the logs' tables with the index: finds events that an outage has left out, and damage.
//!
//! The index is read first, and has the events of each partition up to some slot. Then a strong scan of the tables must
//! find exactly the same events up to that slot, whatever is appended meanwhile. Later events are not indexed yet.
//! Events count as equal if their numbers and the sums of their hashes are equal, which takes some hundred bytes for
//! each partition. A hash is of an event's slot and mark. If the sums of a partition differ, the bodies of its events
//! are fetched, as readers do, and those that no reader finds are named.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::ops::Range;

use futures::{StreamExt, TryStreamExt};
use ringfence_aws::{Item, Retry};
use ringfence_core::chain;
use ringfence_log::news::StreamError;
use ringfence_log::{EntryError, Source, StoredEvents};

use crate::checkpoint::Checkpoint;
use crate::entry::{Entry, FeedStep};
use crate::error::{BodyError, FeedError};
use crate::index::Until;
use crate::indexer::{Indexed, Indexer};
use crate::mark::Mark;
use crate::page::GROUP_PARTITIONS_MAX;
use crate::partition::Partition;
use crate::reference::Reference;

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
    /// An indexed event is not in its table.
    #[error("{partition}: event {slot} is gone")]
    Gone {
        /// The partition.
        partition: Partition,
        /// The slot.
        slot: u64,
    },
    /// An indexed event is not the one that the table has in its slot.
    #[error(
        "{partition}: event {slot} is not the one that was indexed: somebody overwrote it, or its slot was taken again \
         after a restore"
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
    /// An event that the index keeps can't be decoded.
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
    /// Adds an event. One that the index keeps has no mark.
    fn add(&mut self, slot: u64, mark: Option<&Mark>) {
        let mut hasher = DefaultHasher::new();
        (slot, mark).hash(&mut hasher);
        self.count += 1;
        self.hash = self.hash.wrapping_add(hasher.finish());
    }
}

#[derive(Default)]
struct Known {
    last: Option<u64>,
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
        known.retain(|_, Known { indexed, stored, .. }| {
            (indexed.count, indexed.hash) != (stored.count, stored.hash)
        });
        let unread = self.unread(known.keys().cloned().collect()).await?;
        for (partition, Known { indexed, stored, .. }) in known {
            let (indexed, stored) = (indexed.count, stored.count);
            let named = unread.get(&partition).map_or(&[][..], Vec::as_slice);
            let gone = named.iter().filter(|it| matches!(it, IndexDefect::Gone { .. })).count();
            if named.is_empty() || indexed != stored + gone as u64 {
                report.wrong.push(IndexDefect::Differs { partition, indexed, stored });
            }
        }
        report.wrong.extend(unread.into_values().flatten());
        Ok(report)
    }

    /// The indexed events of partitions that no reader finds.
    async fn unread(
        &self,
        partitions: HashSet<Partition>,
    ) -> Result<BTreeMap<Partition, Vec<IndexDefect>>, FeedError> {
        let mut unread: BTreeMap<_, Vec<_>> = BTreeMap::new();
        if partitions.is_empty() {
            return Ok(unread);
        }
        let is_of = move |it: &Reference| partitions.contains(&it.partition);
        let mut steps = self.index.read_where(Checkpoint::START, Until::Present, is_of);
        while let Some(step) = steps.next().await {
            let Err(FeedError::Undecodable { known, source, .. }) = step else {
                step?;
                continue;
            };
            let (partition, slot) = (Partition::of(&known.event), known.event.slot);
            let defect = match source.downcast_ref() {
                Some(BodyError::Gone) => IndexDefect::Gone { partition: partition.clone(), slot },
                Some(BodyError::Another) => {
                    IndexDefect::Replaced { partition: partition.clone(), slot }
                }
                None => continue,
            };
            unread.entry(partition).or_default().push(defect);
        }
        Ok(unread)
    }

    /// The entries of each partition, for the logs that are compared.
    async fn entries(
        &self,
        report: &mut IndexReport,
        progress: OnProgress<'_>,
    ) -> Result<HashMap<Partition, Known>, VerifyError> {
        let mut partitions: HashMap<_, Known> = HashMap::new();
        // No body is fetched. Those that the index has are decoded.
        let is_here = |it: &Reference| it.mark().is_none();
        let mut steps = self.index.read_where(Checkpoint::START, Until::Present, is_here);
        while let Some(step) = steps.next().await {
            report.entries += 1;
            progress(CompareStage::Entries, report.entries);
            let (checkpoint, partition, slot, mark) = match step {
                Err(FeedError::Undecodable { known, .. })
                    if self.log(Partition::of(&known.event).log).is_err() =>
                {
                    report.skipped += 1;
                    continue;
                }
                Err(FeedError::Undecodable { before, source, .. }) => {
                    report.wrong.push(IndexDefect::Entry { before, cause: chain(&*source) });
                    continue;
                }
                Err(error) => return Err(error.into()),
                Ok(FeedStep::Event(Entry { checkpoint, event })) => {
                    (checkpoint, Partition::of(&event), event.slot, None)
                }
                Ok(FeedStep::Passed(checkpoint, it)) => {
                    let mark = it.mark().cloned();
                    (checkpoint, it.partition, it.slot, mark)
                }
            };
            if self.log(partition.log).is_err() {
                report.skipped += 1;
                continue;
            }
            let known = partitions.entry(partition.clone()).or_default();
            known.indexed.add(slot, mark.as_ref());
            if known.last >= Some(slot) {
                report.wrong.push(IndexDefect::Order { partition, checkpoint });
            }
            known.last = known.last.max(Some(slot));
        }
        Ok(partitions)
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
    /// Takes in an item that is an event. The place of an event follows from its key, so an event that can't be decoded
    /// is compared too.
    fn item(
        &mut self,
        source: &dyn Source,
        known: &mut HashMap<Partition, Known>,
        item: Item,
        progress: OnProgress<'_>,
    ) {
        if let Some((id, slot)) = source.place(&item) {
            let partition = Partition { log: source.facts().kind, id };
            self.stored(known, partition, (slot, &Mark::of(source, &item)), progress);
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
        (slot, mark): (u64, &Mark),
        progress: OnProgress<'_>,
    ) {
        let known = known.entry(partition.clone()).or_default();
        if Some(slot) <= known.last {
            known.stored.add(slot, Some(mark));
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
            known.stored.add(index, None);
        }
        if indexed < left.end {
            self.behind.insert(partition, left.end - indexed);
        }
        self.events += left.end - left.start;
        progress(CompareStage::Events, self.events);
    }
}
