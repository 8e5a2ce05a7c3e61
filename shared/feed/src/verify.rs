//! The table against the index: what an outage has left out, and whether anything is wrong.
//!
//! The index is read first. An index holds of each partition the events up to some position, so a
//! strong scan of the table afterwards has to find, up to that position, exactly the same events,
//! whatever is appended meanwhile; what it finds behind is not indexed yet. Equal are they when
//! there are as many of them and the sums of their hashes are the same: about 100 bytes of memory
//! a partition, however many events it has.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};

use futures::TryStreamExt;
use ringfence::{BoundaryId, LogError, Sequence};
use ringfence_dynamo::Retry;

use crate::{Checkpoint, FeedError, Index, Indexer, Outcome, Until};

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The index is read.
    Entries,
    /// The table is scanned.
    Events,
    /// What is not in the index is indexed; partitions are counted.
    Indexing,
}

/// Is told how many items of a stage are done.
pub type OnProgress<'a> = &'a (dyn Fn(Stage, u64) + Send + Sync);

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Entries of the index.
    pub entries: u64,
    /// Events of the table.
    pub events: u64,
    /// By partition, how many of its events are not indexed yet, behind those that are.
    pub behind: BTreeMap<BoundaryId, u64>,
    /// What no indexing mends.
    pub wrong: Vec<Wrong>,
}

/// How an index differs from its table for good: begin a new index in another table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// Up to the last indexed event the table has other events than the index.
    #[error("{partition}: the index has {indexed} events, the table {stored} up to the same one")]
    Differs {
        /// The partition.
        partition: BoundaryId,
        /// Its events in the index.
        indexed: u64,
        /// Its events in the table, up to the last one of the index.
        stored: u64,
    },
    /// An entry is not behind the entry of its partition before it.
    #[error("{partition}: the entry before checkpoint {checkpoint} is out of order")]
    Order {
        /// The partition.
        partition: BoundaryId,
        /// The checkpoint behind the entry.
        checkpoint: Checkpoint,
    },
}

/// Why the two can't be compared.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The index can't be read, or has a hole.
    #[error("the index can't be read")]
    Index(#[from] FeedError),
    /// The table can't be read.
    #[error("the table can't be read")]
    Table(#[from] LogError),
}

/// What was seen of one partition.
#[derive(Default)]
struct Sum {
    count: u64,
    /// Of the hashes of the events' ids, in any order.
    hash: u64,
}

impl Sum {
    fn add(&mut self, position: &Sequence) {
        let mut hasher = DefaultHasher::new();
        position.hash(&mut hasher);
        self.count += 1;
        self.hash = self.hash.wrapping_add(hasher.finish());
    }
}

#[derive(Default)]
struct Partition {
    last: Option<Sequence>,
    indexed: Sum,
    stored: Sum,
}

impl Indexer {
    /// Compares the index with the table. Reads both whole.
    ///
    /// # Errors
    /// Either can't be read.
    pub async fn verify(&self, progress: OnProgress<'_>) -> Result<Report, VerifyError> {
        let mut report = Report::default();
        let mut partitions: HashMap<BoundaryId, Partition> = HashMap::new();
        let index = Index::new(self.client.clone(), &self.table);
        let mut entries = index.read(Checkpoint::START, Until::Present);
        while let Some(entry) = entries.try_next().await? {
            let partition = entry.event.partition;
            let known = partitions.entry(partition.clone()).or_default();
            known.indexed.add(&entry.event.position);
            if known.last.as_ref() >= Some(&entry.event.position) {
                report.wrong.push(Wrong::Order { partition, checkpoint: entry.checkpoint });
            }
            known.last = known.last.take().max(Some(entry.event.position));
            report.entries += 1;
            progress(Stage::Entries, report.entries);
        }
        let mut events = self.log.scan_strong();
        while let Some(event) = events.try_next().await? {
            let known = partitions.entry(event.partition.clone()).or_default();
            let position = event.position.into();
            if Some(&position) <= known.last.as_ref() {
                known.stored.add(&position);
            } else {
                *report.behind.entry(event.partition).or_default() += 1;
            }
            report.events += 1;
            progress(Stage::Events, report.events);
        }
        for (partition, Partition { indexed, stored, .. }) in partitions {
            if (indexed.count, indexed.hash) != (stored.count, stored.hash) {
                let (indexed, stored) = (indexed.count, stored.count);
                report.wrong.push(Wrong::Differs { partition, indexed, stored });
            }
        }
        Ok(report)
    }

    /// The same, and indexes what is behind. It may be broken off and begun again, and run beside
    /// the function.
    ///
    /// # Errors
    /// As [`Indexer::verify`]; a partition that can't be indexed is in the outcomes.
    pub async fn repair(
        &self,
        progress: OnProgress<'_>,
    ) -> Result<(Report, BTreeMap<BoundaryId, Outcome>), VerifyError> {
        let report = self.verify(progress).await?;
        let behind: Vec<_> = report.behind.keys().cloned().collect();
        let mut outcomes = BTreeMap::new();
        for chunk in behind.chunks(crate::GROUP_PARTITIONS_MAX) {
            outcomes.extend(self.index(chunk.iter().cloned(), Retry::default()).await);
            progress(Stage::Indexing, outcomes.len() as u64);
        }
        Ok((report, outcomes))
    }
}
