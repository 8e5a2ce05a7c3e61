//! How to compare fences with events, and what came of it.

use std::collections::BTreeMap;
use std::time::Duration;

use ringfence_core::BoundaryId;

use crate::compare::Difference;

/// How to go through the table.
pub struct VerifyOptions<'a> {
    /// How long after a transaction took effect all of its items are in strong reads. DynamoDB
    /// names no bound; it is a matter of milliseconds.
    pub settle: Duration,
    /// How many times the table is gone through, each time for a part of the boundaries.
    pub passes: u64,
    /// Is called after each item, with the number of items that are done in the stage.
    pub progress: &'a (dyn Fn(VerifyStage, u64) + Send + Sync),
}

impl Default for VerifyOptions<'_> {
    /// Five seconds to settle, one pass, no progress.
    fn default() -> Self {
        Self { settle: Duration::from_secs(5), passes: 1, progress: &|_, _| {} }
    }
}

/// What is being done.
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

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DcbReport {
    /// Events that were counted.
    pub events: u64,
    /// Fences that were compared.
    pub fences: u64,
    /// Events that can't be understood, at most [`DcbReport::BROKEN_MAX`] of them: their ids, and why. If the
    /// boundaries of one are not known either, its type is not compared in any fence.
    pub broken: BTreeMap<String, String>,
    /// Partitions that have gaps: the first slot that is missing of each. Decisions see nothing of what comes
    /// after it.
    pub gaps: BTreeMap<BoundaryId, u64>,
    /// Events that lie more than a minute ahead of the clock of this check, at most [`DcbReport::BROKEN_MAX`] of them: their
    /// ids and times, in milliseconds since 1970. The clock of their writer was wrong, or this one is. Later events of
    /// their boundaries have to be later still; nothing else follows them, so they are in order.
    pub ahead: BTreeMap<String, u64>,
    /// By index, how many of its entries are lacking: attributes of events (`tag_<key>`,
    /// `tag_composite`) and index items (`tag#<key>`, `tag#$type`). Reads by the index miss them.
    pub unindexed: BTreeMap<String, u64>,
    /// Fences that differ.
    pub differences: Vec<Difference>,
    /// By index, how many entries were lacking and are there now.
    pub indexed: BTreeMap<String, u64>,
    /// Fences that differed and are right now.
    pub mended: Vec<Difference>,
}

impl DcbReport {
    /// How many broken items a report names.
    pub const BROKEN_MAX: usize = 100;

    /// Whether nothing is wrong any more.
    #[must_use]
    pub fn in_order(&self) -> bool {
        self.differences.is_empty()
            && self.gaps.is_empty()
            && self.unindexed.is_empty()
            && self.broken.is_empty()
    }

    /// Notes an item that can't be understood.
    pub(crate) fn note_broken(&mut self, item: String, why: impl FnOnce() -> String) {
        if self.broken.len() < Self::BROKEN_MAX {
            self.broken.entry(item).or_insert_with(why);
        }
    }
}
