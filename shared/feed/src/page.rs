//! The next page, cut from what waits to be indexed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use aws_sdk_dynamodb::types::{Put, ReturnValuesOnConditionCheckFailure};

use crate::item::{P, Page, Progress};
use crate::news::Fresh;
use crate::partition::Partition;
use crate::tail::Tail;

/// Partitions that are indexed together.
pub const GROUP_PARTITIONS_MAX: usize = 1_000;
/// Entries of one page together, in bytes; an entry alone may have more, up to the 400 KB of an item.
pub const PAGE_BYTES_MAX: usize = 350 * 1_024;

/// A partition with events that are to be indexed.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// `None` before its first event.
    pub(crate) progress: Option<Progress>,
    /// Whether the stored progress may not have come as far.
    pub(crate) lags: bool,
    /// The events that follow it without a gap.
    pub(crate) fresh: VecDeque<Fresh>,
}

impl Queue {
    /// The last event that is indexed or waits here.
    pub(crate) fn last(&self) -> Option<u64> {
        let waiting = self.fresh.back().map(|fresh| fresh.entry.slot);
        waiting.or_else(|| Some(self.progress.as_ref()?.slot))
    }
}

/// How many entries a page may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Entries of an epoch.
    pub(crate) epoch_entries: u64,
    /// Entries of this page.
    pub(crate) entries_max: usize,
}

impl Page {
    /// The page that begins at the end of `tail`: the oldest events of all queues, as many as fit the page and its
    /// epoch. `None` if no event waits.
    pub(crate) fn cut(
        queues: &BTreeMap<Partition, Queue>,
        tail: &Tail,
        room: Room,
        leased: bool,
    ) -> Option<Self> {
        let ((epoch, i), settled) = (tail.end().place(), tail.settled());
        // An epoch that is over the limit, because that was lowered, is sealed by the next entry.
        let left = room.epoch_entries.saturating_sub(i).max(1);
        // Of each partition the next event, the oldest first.
        let next = |partition, n: usize| {
            let fresh = queues.get(partition)?.fresh.get(n)?;
            Some(Reverse((fresh.entry.at, partition, n)))
        };
        let mut fronts: BinaryHeap<_> = queues.keys().filter_map(|it| next(it, 0)).collect();
        let mut entries = Vec::new();
        let mut bytes = 0;
        while let Some(Reverse((_, partition, n))) = fronts.pop()
            && let fresh = &queues[partition].fresh[n]
            && (bytes == 0 || bytes + fresh.bytes <= PAGE_BYTES_MAX)
            && (entries.len() as u64) < left
            && entries.len() < room.entries_max
        {
            bytes += fresh.bytes;
            entries.push(fresh.entry.clone());
            fronts.extend(next(partition, n + 1));
        }
        let sealed = entries.len() as u64 == left;
        (!entries.is_empty()).then_some(Self { epoch, i, entries, settled, leased, sealed })
    }

    /// Puts it, unless a page is there. A refusal returns that page, which costs no read.
    pub(crate) fn put(&self, table: &str) -> Put {
        Put::builder()
            .table_name(table)
            .set_item(Some(self.item()))
            .condition_expression("attribute_not_exists(#p)")
            .expression_attribute_names("#p", P)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .expect("table and item are set")
    }
}
