//! Compares the logs' tables with the index: finds events that an outage has left out, and damage.
//!
//! The index is read first, and has the events of each partition up to some slot. Then a strong scan of the tables must
//! find exactly the same events up to that slot, whatever is appended meanwhile. Later events are not indexed yet.
//! Events count as equal if their numbers and the sums of their hashes are equal. A hash is of an event's slot and
//! mark. That takes some 80 bytes for each partition, because its name is kept as a hash. If the sums of partitions
//! differ, the index is read again: it has their names, and the bodies of their events are fetched, as readers do. The
//! events that no reader finds are named.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::ops::Range;

use futures::{StreamExt, TryStreamExt};
use ringfence_aws::{Item, Retry};
use ringfence_core::chain;
use ringfence_log::news::StreamError;
use ringfence_log::{EntryError, Source, StoredEvents};
use sha2::{Digest, Sha256};

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

/// The sums of each partition that has entries. A tree takes less memory than a hash table, which is half empty after
/// it has grown.
type Sums = BTreeMap<Name, Sum>;

/// A hash of a partition's name. Two of a hundred million partitions have the same one with a probability of 10^-23.
type Name = u128;

fn name(partition: &Partition) -> Name {
    let digest: [u8; 32] = Sha256::digest(partition.id.as_str()).into();
    digest.iter().take(size_of::<Name>()).fold(0, |name, byte| name << 8 | Name::from(*byte))
}

/// What was seen of a partition that has entries.
#[derive(Default)]
struct Sum {
    /// The last entry.
    last: u64,
    indexed: u64,
    /// Events of the table, up to the last entry.
    stored: u64,
    /// The hashes of the entries are added, and the hashes of the events are subtracted.
    hash: u64,
}

impl Sum {
    fn index(&mut self, slot: u64, mark: Option<&Mark>) {
        self.last = self.last.max(slot);
        self.indexed += 1;
        self.hash = self.hash.wrapping_add(hash(slot, mark));
    }

    fn store(&mut self, slot: u64, mark: Option<&Mark>) {
        self.stored += 1;
        self.hash = self.hash.wrapping_sub(hash(slot, mark));
    }
}

/// The hash of an event. One that the index keeps has no mark.
fn hash(slot: u64, mark: Option<&Mark>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (slot, mark).hash(&mut hasher);
    hasher.finish()
}

impl Indexer {
    /// Compares the index with the tables. Reads the whole of each.
    ///
    /// # Errors
    /// One of them can't be read.
    pub async fn verify(&self, progress: OnProgress<'_>) -> Result<IndexReport, VerifyError> {
        let mut report = IndexReport::default();
        let mut sums = self.entries(&mut report, progress).await?;
        for log in self.logs() {
            let mut stored = log.table.stored();
            while let Some(stored) = stored.try_next().await? {
                match stored {
                    StoredEvents::Event(item) => report.item(log.source, &mut sums, item, progress),
                    StoredEvents::Stream { partition, first, end } => {
                        if !log.source.is_internal(&partition) {
                            let partition =
                                Partition { log: log.source.facts().kind, id: partition };
                            report.stream(&mut sums, partition, first..end, progress);
                        }
                    }
                    StoredEvents::Wrong(item) => report.wrong.push(IndexDefect::Item(item)),
                }
            }
        }
        sums.retain(|_, sum| sum.indexed != sum.stored || sum.hash != 0);
        for (partition, defects) in self.unread(&sums).await? {
            let Sum { indexed, stored, .. } = sums[&name(&partition)];
            let gone = defects.iter().filter(|it| matches!(it, IndexDefect::Gone { .. })).count();
            if defects.is_empty() || indexed != stored + gone as u64 {
                report.wrong.push(IndexDefect::Differs { partition, indexed, stored });
            }
            report.wrong.extend(defects);
        }
        Ok(report)
    }

    /// The partitions that differ, and the events of each that no reader finds.
    async fn unread(
        &self,
        differ: &Sums,
    ) -> Result<BTreeMap<Partition, Vec<IndexDefect>>, FeedError> {
        let mut unread: BTreeMap<_, Vec<_>> = BTreeMap::new();
        if differ.is_empty() {
            return Ok(unread);
        }
        let names: BTreeSet<_> = differ.keys().copied().collect();
        let is_of = move |it: &Reference| names.contains(&name(&it.partition));
        let mut steps = self.index.read_where(Checkpoint::START, Until::Present, is_of);
        while let Some(step) = steps.next().await {
            let (event, why) = match step {
                Ok(FeedStep::Passed(..)) => continue,
                Ok(FeedStep::Event(entry)) => (entry.event, None),
                Err(FeedError::Undecodable { known, source, .. }) => (known.event, Some(source)),
                Err(error) => return Err(error),
            };
            let partition = Partition::of(&event);
            let defects = unread.entry(partition.clone()).or_default();
            match why.as_ref().and_then(|why| why.downcast_ref()) {
                Some(BodyError::Gone) => {
                    defects.push(IndexDefect::Gone { partition, slot: event.slot });
                }
                Some(BodyError::Another) => {
                    defects.push(IndexDefect::Replaced { partition, slot: event.slot });
                }
                None => {}
            }
        }
        Ok(unread)
    }

    /// The entries of each partition, for the logs that are compared.
    async fn entries(
        &self,
        report: &mut IndexReport,
        progress: OnProgress<'_>,
    ) -> Result<Sums, VerifyError> {
        let mut sums = Sums::new();
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
            let sum = sums.entry(name(&partition)).or_default();
            if sum.indexed > 0 && sum.last >= slot {
                report.wrong.push(IndexDefect::Order { partition, checkpoint });
            }
            sum.index(slot, mark.as_ref());
        }
        Ok(sums)
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
    fn item(&mut self, source: &dyn Source, sums: &mut Sums, item: Item, progress: OnProgress<'_>) {
        if let Some((id, slot)) = source.place(&item) {
            let partition = Partition { log: source.facts().kind, id };
            self.stored(sums, partition, (slot, &Mark::of(source, &item)), progress);
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
        sums: &mut Sums,
        partition: Partition,
        (slot, mark): (u64, &Mark),
        progress: OnProgress<'_>,
    ) {
        match sums.get_mut(&name(&partition)) {
            Some(sum) if slot <= sum.last => sum.store(slot, Some(mark)),
            _ => *self.behind.entry(partition).or_default() += 1,
        }
        self.events += 1;
        progress(CompareStage::Events, self.events);
    }

    /// Takes in a stream with the events that are left. The index has all pruned events, or none of them if they were
    /// pruned before it was begun.
    fn stream(
        &mut self,
        sums: &mut Sums,
        partition: Partition,
        left: Range<u64>,
        progress: OnProgress<'_>,
    ) {
        let mut indexed = left.start;
        if let Some(sum) = sums.get_mut(&name(&partition)) {
            indexed = sum.last + 1;
            for slot in indexed.saturating_sub(sum.indexed)..indexed.min(left.end) {
                sum.store(slot, None);
            }
        }
        if indexed < left.end {
            self.behind.insert(partition, left.end - indexed);
        }
        self.events += left.end - left.start;
        progress(CompareStage::Events, self.events);
    }
}

#[cfg(test)]
mod tests {
    use ringfence_core::BoundaryId;

    use super::*;

    #[test]
    fn a_million_partitions_take_less_than_a_tenth_of_a_gigabyte() {
        const PARTITIONS: u64 = 100_000;
        let mut sums = Sums::new();
        let taken = allocation_counter::measure(|| {
            for n in 0..PARTITIONS {
                let partition =
                    BoundaryId::tag("orderId", &format!("a-name-that-is-as-long-as-an-id-{n}"));
                sums.entry(name(&partition.into())).or_default().index(1, None);
            }
        });
        assert_eq!(sums.len() as u64, PARTITIONS);
        let each = taken.bytes_max / PARTITIONS;
        println!("{each} bytes each");
        assert!(each <= 100, "{each} bytes each");
    }
}
