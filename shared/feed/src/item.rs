//! The items of the index table.
//!
//! | item | `p` | `i` | holds |
//! |---|---|---|---|
//! | page | `$AppendsEpoch-0_<epoch>` | offset of its first entry in the epoch | `n` offset after its last, `e` the [references](Reference); `s` the checkpoint before which all pages are settled; `leased` if its indexer had the lease; `sealed` on the last of an epoch |
//! | progress | `$Progress-0#<partition>` | 0 | `slot` of the last indexed event, its `mark` unless the index has its body, `checkpoint` after it |
//! | lease | `$Lease-0` | 0 | `owner` and `until` while an indexer has it; the `end` of the page that the last one has put, and its `s`; `settled`, the ends of later pages that are settled |
//!
//! The 0 is the tranche: there is one.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::Item;
use ringfence_core::BoundaryId;
use serde_json::Value;

use crate::checkpoint::Checkpoint;
use crate::error::FeedError;
use crate::mark::Mark;
use crate::partition::Partition;
use crate::reference::Reference;

/// Partition key.
pub const P: &str = "p";
/// Sort key.
pub const I: &str = "i";
pub(crate) const CHECKPOINT: &str = "checkpoint";
/// The indexer that has the lease.
pub(crate) const OWNER: &str = "owner";
/// When the lease is over, in milliseconds since 1970.
pub(crate) const UNTIL: &str = "until";
/// Where a page ends.
pub(crate) const END: &str = "end";
/// All pages before it are settled.
pub(crate) const S: &str = "s";
/// The ends of pages that are settled.
pub(crate) const SETTLED: &str = "settled";
/// Offset after the last entry.
const N: &str = "n";
const SLOT: &str = "slot";
const MARK: &str = "mark";
const ENTRIES: &str = "e";
const LEASED: &str = "leased";
const SEALED: &str = "sealed";
const EPOCHS: &str = "$AppendsEpoch-0_";
const PROGRESS: &str = "$Progress-0#";
const LEASE: &str = "$Lease-0";

/// How far a partition is indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The last event.
    pub(crate) slot: u64,
    /// Its mark, unless the index has its body.
    pub(crate) mark: Option<Mark>,
    /// After its entry.
    pub(crate) checkpoint: Checkpoint,
}

/// How far partitions are indexed.
pub(crate) type Reached = BTreeMap<Partition, Progress>;

/// Consecutive entries of an epoch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Page {
    pub(crate) epoch: u64,
    /// Offset of the first entry.
    pub(crate) i: u64,
    pub(crate) entries: Vec<Reference>,
    /// All pages before this place are settled. It is in the same epoch.
    pub(crate) settled: Checkpoint,
    /// Whether its indexer had the lease, so the lease will list it.
    pub(crate) leased: bool,
    /// Whether it is the last of its epoch.
    pub(crate) sealed: bool,
}

pub(crate) fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

pub(crate) fn number(value: impl ToString) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

fn key(p: impl Into<String>, i: u64) -> Item {
    Item::from([(P.to_owned(), text(p)), (I.to_owned(), number(i))])
}

pub(crate) fn epoch_id(epoch: u64) -> String {
    format!("{EPOCHS}{epoch}")
}

/// The place at which a page begins, by its key in the JSON of DynamoDB.
pub(crate) fn place_of_page(key: &Value) -> Option<Checkpoint> {
    let epoch = key[P]["S"].as_str()?.strip_prefix(EPOCHS)?.parse().ok()?;
    Checkpoint::new(epoch, key[I]["N"].as_str()?.parse().ok()?)
}

pub(crate) fn progress_key(partition: &BoundaryId) -> Item {
    key(format!("{PROGRESS}{partition}"), 0)
}

pub(crate) fn lease_key() -> Item {
    key(LEASE, 0)
}

/// What the last holder has left in a lease.
#[derive(Clone, Debug, Default)]
pub(crate) struct Left {
    /// Where its page ended, and before which place that said that all pages are settled.
    pub(crate) page: Option<(Checkpoint, Checkpoint)>,
    /// The ends of later pages that are settled.
    pub(crate) settled: Vec<Checkpoint>,
}

impl Left {
    pub(crate) fn of(lease: &Item) -> Self {
        let page = place(lease, END).zip(place(lease, S));
        let settled = lease.get(SETTLED).and_then(|ends| ends.as_ns().ok());
        let settled = settled.into_iter().flatten().filter_map(|end| end.parse().ok());
        Self { page, settled: settled.collect() }
    }
}

/// A set of checkpoints.
pub(crate) fn numbers(checkpoints: &[Checkpoint]) -> AttributeValue {
    AttributeValue::Ns(checkpoints.iter().map(Checkpoint::to_string).collect())
}

fn place(item: &Item, attribute: &str) -> Option<Checkpoint> {
    item.get(attribute)?.as_n().ok()?.parse().ok()
}

/// The name of an item for a person.
fn name(item: &Item) -> String {
    let p = item.get(P).and_then(|p| p.as_s().ok()).map_or("?", String::as_str);
    let i = item.get(I).and_then(|i| i.as_n().ok()).map_or("?", String::as_str);
    format!("{p} {i}")
}

fn malformed(item: &Item, problem: &'static str) -> FeedError {
    FeedError::Malformed { item: name(item), problem }
}

fn whole(item: &Item, attribute: &'static str) -> Result<u64, FeedError> {
    let value = item.get(attribute).and_then(|value| value.as_n().ok()?.parse().ok());
    value.ok_or_else(|| malformed(item, attribute))
}

/// The checkpoint after `offset` entries of an epoch.
pub(crate) fn checkpoint(epoch: u64, offset: u64) -> Result<Checkpoint, FeedError> {
    let problem = "it has more epochs than checkpoints can count";
    Checkpoint::new(epoch, offset)
        .ok_or_else(|| FeedError::Malformed { item: epoch_id(epoch), problem })
}

impl Progress {
    /// The progress that an item holds, and its partition.
    pub(crate) fn of(item: &Item) -> Result<(Partition, Self), FeedError> {
        let p = item.get(P).and_then(|p| p.as_s().ok()?.strip_prefix(PROGRESS));
        let partition = Partition::from(BoundaryId::stored(p.ok_or_else(|| malformed(item, P))?));
        let checkpoint = place(item, CHECKPOINT).ok_or_else(|| malformed(item, CHECKPOINT))?;
        let mark = item.get(MARK).and_then(Mark::of_attribute);
        let slot = whole(item, SLOT)?;
        Ok((partition, Self { slot, mark, checkpoint }))
    }

    /// The attributes that hold it.
    pub(crate) fn attributes(&self) -> Vec<(&'static str, AttributeValue)> {
        let mark = self.mark.as_ref().map(|mark| (MARK, mark.attribute()));
        let place = [(CHECKPOINT, number(self.checkpoint)), (SLOT, number(self.slot))];
        place.into_iter().chain(mark).collect()
    }
}

impl Page {
    /// Offset after the last entry.
    pub(crate) fn n(&self) -> u64 {
        self.i + self.entries.len() as u64
    }

    /// Where it begins.
    pub(crate) fn start(&self) -> Result<Checkpoint, FeedError> {
        checkpoint(self.epoch, self.i)
    }

    /// Where the next page begins.
    pub(crate) fn end(&self) -> Result<Checkpoint, FeedError> {
        match self.sealed {
            true => checkpoint(self.epoch + 1, 0),
            false => checkpoint(self.epoch, self.n()),
        }
    }

    /// How far its partitions are indexed with it.
    pub(crate) fn progress(&self) -> Result<Reached, FeedError> {
        let mut reached = BTreeMap::new();
        for (entry, n) in self.entries.iter().zip(self.i + 1..) {
            let (slot, mark) = (entry.slot, entry.mark().cloned());
            let checkpoint = checkpoint(self.epoch, n)?;
            reached.insert(entry.partition.clone(), Progress { slot, mark, checkpoint });
        }
        Ok(reached)
    }

    pub(crate) fn of(epoch: u64, mut item: Item) -> Result<Self, FeedError> {
        let (i, n) = (whole(&item, I)?, whole(&item, N)?);
        let [leased, sealed] =
            [LEASED, SEALED].map(|is| item.get(is).is_some_and(|is| is.as_bool() == Ok(&true)));
        let Some(AttributeValue::L(entries)) = item.remove(ENTRIES) else {
            return Err(malformed(&item, ENTRIES));
        };
        let settled = place(&item, S).ok_or_else(|| FeedError::Old { item: name(&item) })?;
        if settled.place().0 != epoch || settled.place().1 > i {
            return Err(malformed(&item, "its `s` is not a place of its epoch before it"));
        }
        let entries = entries.into_iter().map(Reference::of_attribute).collect::<Option<_>>();
        let entries: Vec<_> = entries.ok_or_else(|| malformed(&item, "an entry names no event"))?;
        let page = Self { epoch, i, entries, settled, leased, sealed };
        if page.n() == n && !page.entries.is_empty() {
            Ok(page)
        } else {
            Err(malformed(&item, "its number of entries is not what it says"))
        }
    }

    pub(crate) fn item(&self) -> Item {
        let mut item = key(epoch_id(self.epoch), self.i);
        item.insert(N.to_owned(), number(self.n()));
        item.insert(S.to_owned(), number(self.settled));
        let marks = [(LEASED, self.leased), (SEALED, self.sealed)];
        for (name, _) in marks.into_iter().filter(|(_, is)| *is) {
            item.insert(name.to_owned(), AttributeValue::Bool(true));
        }
        let entries = self.entries.iter().map(Reference::attribute);
        item.insert(ENTRIES.to_owned(), AttributeValue::L(entries.collect()));
        item
    }
}
