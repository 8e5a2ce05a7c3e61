//! What a decision has seen: the condition of its append.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{Access, BoundaryId, Change, Conflict, Name, Plan, Read, SequencedEvent, is_followed};

/// The number of events of each type.
pub type Counts = BTreeMap<Name, u64>;

/// What a decision has seen of each boundary that it depends on (rule 2). Events are never deleted. The events of a
/// partition are numbered without gaps. So a decision that has seen slots 1 to m has seen the whole partition if the
/// next slot is free. The transaction that puts an event also counts it in its fences. So a decision that has seen as
/// many events as a fence counts has seen all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    boundaries: BTreeMap<BoundaryId, Extent>,
    /// By context, the types of seen events that the query does not ask for.
    unasked: BTreeMap<String, BTreeSet<String>>,
}

/// What was seen of one boundary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Extent {
    /// Of a partition.
    Prefix(Prefix),
    /// Of any other boundary: the number of events of each type that the decision depends on.
    Fence {
        /// The counts.
        counts: Counts,
        /// The largest slot that was seen of the partition of the same name. A writer tries the next one first. It is
        /// not a condition.
        slot: u64,
        /// The time of the last event that is in none of the read partitions, in milliseconds since 1970; 0 before the
        /// first.
        at: u64,
    },
}

/// The first events of a partition, without gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prefix {
    /// The last slot; 0 before the first event.
    pub slot: u64,
    /// The time of the last event, in milliseconds since 1970; 0 before the first.
    pub at: u64,
    /// How many events follow in the append of the last one. A read in the middle of the append does not show them.
    pub rest: u64,
    /// If the decision reads only types of the partition that are declared `fenced`, the number of each.
    pub fenced: Option<Counts>,
}

impl Seen {
    /// Nothing seen yet. The condition is that every boundary of the plan is empty.
    #[must_use]
    pub fn nothing(plan: &Plan) -> Self {
        let boundaries = plan.reads.iter().map(|read| {
            let counts = || read.types.iter().map(|event_type| (event_type.clone(), 0)).collect();
            let extent = match read.access {
                Access::Partition => {
                    Extent::Prefix(Prefix { fenced: read.fenced.then(counts), ..Prefix::default() })
                }
                _ => Extent::Fence { counts: counts(), slot: 0, at: 0 },
            };
            (read.boundary.clone(), extent)
        });
        Self { boundaries: boundaries.collect(), unasked: BTreeMap::new() }
    }

    /// Adds one event of the merged, deduplicated read to each boundary that has it. Returns false if the event is
    /// after a gap of its partition, or was seen before. Then it must not be folded, and does not count.
    pub fn observe(&mut self, plan: &Plan, event: &SequencedEvent) -> bool {
        let mut is_elsewhere = true;
        if let Some(Extent::Prefix(prefix)) = self.boundaries.get_mut(&event.partition) {
            is_elsewhere = false;
            if event.slot != prefix.slot + 1 {
                return false;
            }
            (prefix.slot, prefix.at, prefix.rest) = (event.slot, event.at, event.rest);
            if let Some(counts) = &mut prefix.fenced {
                count(counts, event);
            }
        }
        if !plan.reads_type(&event.event_type) {
            let types = self.unasked.get(&event.context);
            if !types.is_some_and(|types| types.contains(&event.event_type)) {
                let types = self.unasked.entry(event.context.clone()).or_default();
                types.insert(event.event_type.clone());
            }
        }
        for read in plan.reads.iter().filter(|read| read.access != Access::Partition) {
            if let Some(Extent::Fence { counts, slot, at }) =
                self.boundaries.get_mut(&read.boundary)
                && read.holds(event)
            {
                count(counts, event);
                if is_elsewhere {
                    *at = event.at.max(*at);
                }
                if event.partition == read.boundary {
                    *slot = event.slot.max(*slot);
                }
            }
        }
        true
    }

    /// Whether the event was seen, by its place.
    pub(crate) fn holds(&self, plan: &Plan, event: &SequencedEvent) -> bool {
        match self.prefix(&event.partition) {
            Some(prefix) => event.slot <= prefix.slot,
            None => plan.reads.iter().filter(|read| read.holds(event)).any(|read| {
                matches!(self.of(&read.boundary), Some(Extent::Fence { at, .. }) if event.at <= *at)
            }),
        }
    }

    /// The boundaries with seen events, each with the time of its last event.
    pub(crate) fn lasts(&self) -> BTreeMap<&BoundaryId, u64> {
        let last = |(id, extent): (_, &Extent)| match extent {
            Extent::Prefix(Prefix { at, .. }) | Extent::Fence { at, .. } => (id, *at),
        };
        self.iter().map(last).filter(|(_, at)| *at > 0).collect()
    }

    /// The contexts and types of seen events that the query does not ask for.
    pub(crate) fn unasked(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.unasked.iter();
        all.flat_map(|(context, types)| types.iter().map(move |name| (&**context, &**name)))
    }

    /// What was seen of each boundary.
    pub fn iter(&self) -> impl Iterator<Item = (&BoundaryId, &Extent)> {
        self.boundaries.iter()
    }

    /// What was seen of a boundary; `None` if the decision does not depend on it.
    #[must_use]
    pub fn of(&self, boundary: &BoundaryId) -> Option<&Extent> {
        self.boundaries.get(boundary)
    }

    /// What was seen of a partition; `None` if the decision does not read it as one.
    #[must_use]
    pub fn prefix(&self, partition: &BoundaryId) -> Option<&Prefix> {
        match self.of(partition)? {
            Extent::Prefix(prefix) => Some(prefix),
            Extent::Fence { .. } => None,
        }
    }

    /// For the partitions among `boundaries` that a plan reads: reads of their tails, each after the last slot seen.
    pub(crate) fn tails(&self, plan: &Plan, boundaries: &BTreeSet<BoundaryId>) -> Plan {
        let changed = plan.reads.iter().filter(|read| boundaries.contains(&read.boundary));
        let tail = |read: &Read| {
            let after = self.prefix(&read.boundary).map_or(0, |prefix| prefix.slot);
            Read { after, ..read.clone() }
        };
        Plan { clauses: plan.clauses.clone(), reads: changed.map(tail).collect() }
    }

    /// The reads of a plan, each from the last event seen on, so a read shows whether that event still exists.
    pub(crate) fn rest(&self, plan: &Plan) -> Plan {
        let rest = |read: &Read| {
            let last = match self.of(&read.boundary) {
                Some(Extent::Prefix(prefix)) => prefix.slot,
                Some(Extent::Fence { at, .. }) => *at,
                None => 0,
            };
            Read { after: last.saturating_sub(1), ..read.clone() }
        };
        Plan { clauses: plan.clauses.clone(), reads: plan.reads.iter().map(rest).collect() }
    }

    /// The time of the newest event seen that a writer with the clock `now_ms` follows ([`is_followed`]); `now_ms` if
    /// there is no later one. In milliseconds since 1970.
    #[must_use]
    pub fn newest_ms(&self, now_ms: u64) -> u64 {
        let lasts = self.lasts().into_values();
        lasts.filter(|at| is_followed(*at, now_ms)).fold(now_ms, u64::max)
    }

    /// Whether less was seen than a fence is known to count.
    pub(crate) fn lags(&self, conflict: &Conflict) -> bool {
        conflict.0.iter().any(|change| match change {
            Change::Slot { .. } => false,
            Change::Count { boundary, event_type, found, .. } => {
                let counts = match self.of(boundary) {
                    Some(Extent::Fence { counts, .. }) => Some(counts),
                    Some(Extent::Prefix(prefix)) => prefix.fenced.as_ref(),
                    None => None,
                };
                counts.and_then(|counts| counts.get(event_type)).is_some_and(|seen| seen < found)
            }
        })
    }
}

fn count(counts: &mut Counts, event: &SequencedEvent) {
    if let Some(count) = counts.get_mut(event.event_type.as_str()) {
        *count += 1;
    }
}
