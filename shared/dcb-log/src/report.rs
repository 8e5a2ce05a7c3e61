//! Options and results of comparing fences with events.

use std::collections::BTreeMap;
use std::time::Duration;

use ringfence_core::BoundaryId;

use crate::compare::Difference;

/// Options of a pass through the table.
pub struct VerifyOptions<'a> {
    /// How long to wait until strong reads show all items of a committed transaction. DynamoDB names no limit; it
    /// takes milliseconds.
    pub settle: Duration,
    /// The number of passes through the table. Each pass handles a part of the boundaries.
    pub passes: u64,
    /// Called after each item, with the number of items done in the stage.
    pub progress: &'a (dyn Fn(VerifyStage, u64) + Send + Sync),
}

impl Default for VerifyOptions<'_> {
    /// Five seconds to settle, one pass, no progress.
    fn default() -> Self {
        Self { settle: Duration::from_secs(5), passes: 1, progress: &|_, _| {} }
    }
}

/// The current stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyStage {
    /// Fences are read.
    Fences,
    /// Events are counted.
    Events,
    /// Events are counted once more, for the fences that seem to differ.
    Confirming,
    /// Fences are mended.
    Mending,
}

/// The findings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DcbReport {
    /// Events that were counted.
    pub events: u64,
    /// Fences that were compared.
    pub fences: u64,
    /// Events that can't be decoded, at most [`DcbReport::BROKEN_MAX`] of them: their ids and the reasons. If the
    /// boundaries of such an event are not known either, no fence's count of its type is compared.
    pub broken: BTreeMap<String, String>,
    /// Partitions that have gaps, each with the first missing slot. Decisions do not see the events after it.
    pub gaps: BTreeMap<BoundaryId, u64>,
    /// Events more than a minute ahead of this check's clock, at most [`DcbReport::BROKEN_MAX`] of them: their ids
    /// and times, in milliseconds since 1970. The clock of their writer was wrong, or this clock is. Later events of
    /// their boundaries must have even later times. There are no other consequences, so these events are in order.
    pub ahead: BTreeMap<String, u64>,
    /// The number of missing entries of each index: attributes of events (`tag_<key>`, `tag_composite`) and index
    /// items (`tag#<key>`, `tag#$type`). Reads by the index miss them.
    pub unindexed: BTreeMap<String, u64>,
    /// Fences that differ.
    pub differences: Vec<Difference>,
    /// The number of entries of each index that were missing and were added.
    pub indexed: BTreeMap<String, u64>,
    /// Fences that differed and are right now.
    pub mended: Vec<Difference>,
}

impl DcbReport {
    /// How many broken items a report names.
    pub const BROKEN_MAX: usize = 100;

    /// Whether nothing is wrong, or everything was mended.
    #[must_use]
    pub fn in_order(&self) -> bool {
        self.differences.is_empty()
            && self.gaps.is_empty()
            && self.unindexed.is_empty()
            && self.broken.is_empty()
    }

    /// Notes an item that can't be decoded.
    pub(crate) fn note_broken(&mut self, item: String, why: impl FnOnce() -> String) {
        if self.broken.len() < Self::BROKEN_MAX {
            self.broken.entry(item).or_insert_with(why);
        }
    }
}
