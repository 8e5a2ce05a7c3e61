//! The items of the index table.
//!
//! | item | `p` | `i` | holds |
//! |---|---|---|---|
//! | page | `$AppendsEpoch-0_<epoch>` | offset of its first entry in the epoch | `n` offset after its last, `e` the events as their logs have them, without `tag_*`; `sealed` on the last of an epoch |
//! | tip | `$AppendsIndex-0` | 0 | `epoch` and `n`, where the next page begins |
//! | progress | `$Progress-0#<partition>` | 0 | `position` of the last indexed event, `cnt#<type>` how many are indexed, `checkpoint` after the last |
//!
//! The 0 is the tranche: there is one.

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence::{BoundaryId, Place, Sequence};
use ringfence_dcb_log::Counts;
use ringfence_dynamo::Item;

use crate::checkpoint::Checkpoint;
use crate::error::FeedError;

/// Partition key.
pub(crate) const P: &str = "p";
/// Sort key.
pub(crate) const I: &str = "i";
/// Offset after the last entry.
pub(crate) const N: &str = "n";
pub(crate) const EPOCH: &str = "epoch";
pub(crate) const POSITION: &str = "position";
pub(crate) const CHECKPOINT: &str = "checkpoint";
const ENTRIES: &str = "e";
const SEALED: &str = "sealed";
const COUNT: &str = "cnt#";
const EPOCHS: &str = "$AppendsEpoch-0_";
const TIP: &str = "$AppendsIndex-0";
const PROGRESS: &str = "$Progress-0#";

/// Where the next page begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tip {
    pub(crate) epoch: u64,
    pub(crate) n: u64,
}

/// How far a partition is indexed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The last event; `None` before the first.
    pub(crate) position: Option<Sequence>,
    /// The events up to there, by type.
    pub(crate) counts: Counts,
}

impl Progress {
    /// The same for the DCB log, which has positions.
    pub(crate) fn in_dcb_log(&self) -> ringfence_dcb_log::Progress {
        let position = self.position.as_ref().and_then(Sequence::position).cloned();
        ringfence_dcb_log::Progress { position, counts: self.counts.clone() }
    }

    /// The version of the last event of a stream.
    pub(crate) fn version(&self) -> Option<u64> {
        self.position.as_ref().and_then(Place::version)
    }
}

/// What is indexed of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Indexed {
    pub(crate) progress: Progress,
    /// The checkpoint after the partition's last entry.
    pub(crate) checkpoint: Option<Checkpoint>,
}

/// Consecutive entries of an epoch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Page {
    pub(crate) epoch: u64,
    /// Offset of the first entry.
    pub(crate) i: u64,
    pub(crate) entries: Vec<AttributeValue>,
    /// Whether it is the last of its epoch.
    pub(crate) sealed: bool,
}

pub(crate) fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

pub(crate) fn number(value: impl ToString) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// A position is a text, a version a number.
pub(crate) fn sequence(sequence: &Sequence) -> AttributeValue {
    match sequence {
        Sequence::Position(position) => text(position.as_str()),
        Sequence::Version(version) => number(version),
    }
}

fn sequence_of(value: &AttributeValue) -> Option<Sequence> {
    match value {
        AttributeValue::S(text) => Some(Sequence::Position(text.clone().try_into().ok()?)),
        AttributeValue::N(number) => Some(Sequence::Version(number.parse().ok()?)),
        _ => None,
    }
}

fn key(p: impl Into<String>, i: u64) -> Item {
    Item::from([(P.to_owned(), text(p)), (I.to_owned(), number(i))])
}

pub(crate) fn epoch_id(epoch: u64) -> String {
    format!("{EPOCHS}{epoch}")
}

pub(crate) fn tip_key() -> Item {
    key(TIP, 0)
}

pub(crate) fn progress_key(partition: &BoundaryId) -> Item {
    key(format!("{PROGRESS}{partition}"), 0)
}

/// The partition whose progress an item is; `None` for another item.
pub(crate) fn progress_of(item: &Item) -> Option<BoundaryId> {
    Some(BoundaryId::stored(item.get(P)?.as_s().ok()?.strip_prefix(PROGRESS)?))
}

pub(crate) fn is_tip(item: &Item) -> bool {
    item.get(P).and_then(|p| p.as_s().ok()).is_some_and(|p| p == TIP)
}

pub(crate) fn count_name(event_type: &str) -> String {
    format!("{COUNT}{event_type}")
}

/// The name of an item for a person.
pub(crate) fn name(item: &Item) -> String {
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

impl Tip {
    pub(crate) fn of(item: &Item) -> Result<Self, FeedError> {
        Ok(Self { epoch: whole(item, EPOCH)?, n: whole(item, N)? })
    }

    pub(crate) fn checkpoint(self) -> Result<Checkpoint, FeedError> {
        checkpoint(self.epoch, self.n)
    }
}

/// The checkpoint after `offset` entries of an epoch.
pub(crate) fn checkpoint(epoch: u64, offset: u64) -> Result<Checkpoint, FeedError> {
    let problem = "it has more epochs than checkpoints can count";
    Checkpoint::new(epoch, offset)
        .ok_or_else(|| FeedError::Malformed { item: epoch_id(epoch), problem })
}

impl Indexed {
    pub(crate) fn of(item: &Item) -> Result<Self, FeedError> {
        let position = item.get(POSITION).and_then(sequence_of);
        let position = Some(position.ok_or_else(|| malformed(item, POSITION))?);
        let types = item.keys().filter_map(|name| name.strip_prefix(COUNT));
        let count = |name: &str| item[&count_name(name)].as_n().ok()?.parse().ok();
        let counts = types.map(|name| count(name).map(|count| (name.to_owned(), count)));
        let counts = counts.collect::<Option<_>>().ok_or_else(|| malformed(item, COUNT))?;
        let checkpoint = item.get(CHECKPOINT).and_then(|value| value.as_n().ok()?.parse().ok());
        let checkpoint = Some(checkpoint.ok_or_else(|| malformed(item, CHECKPOINT))?);
        Ok(Self { progress: Progress { position, counts }, checkpoint })
    }
}

impl Page {
    /// Offset after the last entry.
    pub(crate) fn n(&self) -> u64 {
        self.i + self.entries.len() as u64
    }

    pub(crate) fn of(epoch: u64, mut item: Item) -> Result<Self, FeedError> {
        let (i, n) = (whole(&item, I)?, whole(&item, N)?);
        let sealed = item.get(SEALED).is_some_and(|sealed| sealed.as_bool() == Ok(&true));
        let Some(AttributeValue::L(entries)) = item.remove(ENTRIES) else {
            return Err(malformed(&item, ENTRIES));
        };
        let page = Self { epoch, i, entries, sealed };
        if page.n() == n && !page.entries.is_empty() {
            Ok(page)
        } else {
            Err(malformed(&item, "its number of entries is not what it says"))
        }
    }

    pub(crate) fn item(self) -> Item {
        let mut item = key(epoch_id(self.epoch), self.i);
        item.insert(N.to_owned(), number(self.n()));
        if self.sealed {
            item.insert(SEALED.to_owned(), AttributeValue::Bool(true));
        }
        item.insert(ENTRIES.to_owned(), AttributeValue::L(self.entries));
        item
    }
}
