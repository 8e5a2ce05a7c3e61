//! One transaction of the index: a page, the tip, and the progress of each partition.

use std::collections::{BTreeMap, HashMap, VecDeque};

use aws_sdk_dynamodb::types::{
    Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use ringfence::Sequence;
use ringfence_dcb_log::Counts;
use ringfence_dynamo::Item;
use uuid::Uuid;

use crate::checkpoint::Checkpoint;
use crate::error::FeedError;
use crate::item::{
    CHECKPOINT, EPOCH, Indexed, N, P, POSITION, Page, Tip, checkpoint, count_name, number,
    progress_key, sequence, tip_key,
};
use crate::news::Fresh;
use crate::partition::Partition;

/// The most partitions of one page: their progress, the page and the tip stay below the 100 actions of a
/// transaction.
pub const GROUP_PARTITIONS_MAX: usize = 97;
/// The most bytes of one page's entries together. An entry alone may have more, up to the 400 KB of an item.
pub const PAGE_BYTES_MAX: usize = 350 * 1_024;

/// A partition with events to index.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) indexed: Indexed,
    pub(crate) fresh: VecDeque<Fresh>,
}

/// How many entries a page may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Entries of an epoch.
    pub(crate) epoch_entries: u64,
    /// Entries of this page.
    pub(crate) entries_max: usize,
}

/// The next page, ready to be written.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) token: Uuid,
    pub(crate) actions: Vec<TransactWriteItem>,
    /// The tip afterwards.
    pub(crate) tip: Tip,
    /// For each partition, what is indexed afterwards and how many of its events are new, in the order of
    /// the actions after the first two.
    pub(crate) partitions: Vec<(Partition, Indexed, usize)>,
}

impl Group {
    /// The page after the tip: the oldest events of all queues, as many as fit the page and its epoch.
    /// `None` if there are no events.
    pub(crate) fn cut(
        table: &str,
        queues: &BTreeMap<Partition, Queue>,
        found: Option<Tip>,
        room: Room,
        token: Uuid,
    ) -> Result<Option<Self>, FeedError> {
        let tip = found.unwrap_or_default();
        // If the limit was lowered below the size of the epoch, the next entry seals it.
        let left = room.epoch_entries.saturating_sub(tip.n).max(1);
        let mut taken: BTreeMap<&Partition, Taken> = BTreeMap::new();
        let mut entries = Vec::new();
        let mut bytes = 0;
        while let Some((partition, fresh)) = next(queues, &taken)
            && (bytes == 0 || bytes + fresh.bytes <= PAGE_BYTES_MAX)
            && (entries.len() as u64) < left
            && entries.len() < room.entries_max
        {
            bytes += fresh.bytes;
            entries.push(fresh.entry.clone());
            let behind = checkpoint(tip.epoch, tip.n + entries.len() as u64)?;
            taken.entry(partition).or_default().add(fresh, behind);
        }
        if entries.is_empty() {
            return Ok(None);
        }
        let sealed = entries.len() as u64 == left;
        let page = Page { epoch: tip.epoch, i: tip.n, entries, sealed };
        let next = match sealed {
            true => Tip { epoch: tip.epoch + 1, n: 0 },
            false => Tip { epoch: tip.epoch, n: page.n() },
        };
        let mut actions = vec![put(table, page), move_tip(table, found, next)];
        let mut partitions = Vec::with_capacity(taken.len());
        for (partition, taken) in taken {
            let before = &queues[partition].indexed;
            let count = taken.count;
            let indexed = taken.behind(before);
            actions.push(move_progress(table, partition, before, &indexed));
            partitions.push((partition.clone(), indexed, count));
        }
        Ok(Some(Self { token, actions, tip: next, partitions }))
    }

    /// How many events the page has.
    pub(crate) fn entries(&self) -> usize {
        self.partitions.iter().map(|(_, _, count)| count).sum()
    }
}

/// The events that a page takes from one queue.
#[derive(Default)]
struct Taken {
    count: usize,
    counts: Counts,
    position: Option<Sequence>,
    checkpoint: Option<Checkpoint>,
}

impl Taken {
    fn add(&mut self, fresh: &Fresh, behind: Checkpoint) {
        self.count += 1;
        *self.counts.entry(fresh.event_type.clone()).or_default() += 1;
        self.position = Some(fresh.position.clone());
        self.checkpoint = Some(behind);
    }

    fn behind(self, before: &Indexed) -> Indexed {
        let mut indexed = before.clone();
        indexed.progress.position = self.position;
        indexed.checkpoint = self.checkpoint;
        for (event_type, count) in self.counts {
            *indexed.progress.counts.entry(event_type).or_default() += count;
        }
        indexed
    }
}

/// The oldest event that is not taken yet.
fn next<'a>(
    queues: &'a BTreeMap<Partition, Queue>,
    taken: &BTreeMap<&Partition, Taken>,
) -> Option<(&'a Partition, &'a Fresh)> {
    let fronts = queues.iter().filter_map(|(partition, queue)| {
        let taken = taken.get(partition).map_or(0, |taken| taken.count);
        Some((partition, queue.fresh.get(taken)?))
    });
    fronts.min_by_key(|(_, fresh)| (fresh.ms, &fresh.position))
}

const ALL_OLD: ReturnValuesOnConditionCheckFailure = ReturnValuesOnConditionCheckFailure::AllOld;

fn put(table: &str, page: Page) -> TransactWriteItem {
    let put = Put::builder()
        .table_name(table)
        .set_item(Some(page.item()))
        .condition_expression("attribute_not_exists(#p)")
        .expression_attribute_names("#p", P)
        .build()
        .expect("table and item are set");
    TransactWriteItem::builder().put(put).build()
}

fn move_tip(table: &str, found: Option<Tip>, next: Tip) -> TransactWriteItem {
    let mut values =
        Item::from([(":epoch".to_owned(), number(next.epoch)), (":n".to_owned(), number(next.n))]);
    let condition = match found {
        None => "attribute_not_exists(#epoch)",
        Some(found) => {
            values.insert(":inEpoch".to_owned(), number(found.epoch));
            values.insert(":at".to_owned(), number(found.n));
            "#epoch = :inEpoch AND #n = :at"
        }
    };
    let update = Update::builder()
        .table_name(table)
        .set_key(Some(tip_key()))
        .update_expression("SET #epoch = :epoch, #n = :n")
        .condition_expression(condition)
        .expression_attribute_names("#epoch", EPOCH)
        .expression_attribute_names("#n", N)
        .set_expression_attribute_values(Some(values))
        .return_values_on_condition_check_failure(ALL_OLD)
        .build()
        .expect("table, key and expression are set");
    TransactWriteItem::builder().update(update).build()
}

fn move_progress(
    table: &str,
    partition: &Partition,
    before: &Indexed,
    behind: &Indexed,
) -> TransactWriteItem {
    let Indexed { progress, checkpoint } = behind;
    let mut names = HashMap::new();
    let mut values = Item::new();
    let mut sets = Vec::new();
    let position = progress.position.as_ref().map(sequence);
    let counts = progress.counts.iter();
    let counts = counts.filter(|(name, count)| before.progress.counts.get(*name) != Some(count));
    let attributes =
        [(POSITION.to_owned(), position), (CHECKPOINT.to_owned(), checkpoint.map(number))]
            .into_iter()
            .chain(counts.map(|(name, count)| (count_name(name), Some(number(count)))));
    for (n, (name, value)) in attributes.enumerate() {
        names.insert(format!("#n{n}"), name);
        values.extend(value.map(|value| (format!(":v{n}"), value)));
        sets.push(format!("#n{n} = :v{n}"));
    }
    // The first attribute is the position.
    let condition = match &before.progress.position {
        None => "attribute_not_exists(#n0)",
        Some(position) => {
            values.insert(":was".to_owned(), sequence(position));
            "#n0 = :was"
        }
    };
    let update = Update::builder()
        .table_name(table)
        .set_key(Some(progress_key(&partition.id)))
        .update_expression(format!("SET {}", sets.join(", ")))
        .condition_expression(condition)
        .set_expression_attribute_names(Some(names))
        .set_expression_attribute_values(Some(values))
        .return_values_on_condition_check_failure(ALL_OLD)
        .build()
        .expect("table, key and expression are set");
    TransactWriteItem::builder().update(update).build()
}
