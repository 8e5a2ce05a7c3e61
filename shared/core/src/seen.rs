//! What a reader saw: the optimistic-concurrency token.

use std::collections::BTreeMap;

use crate::{BoundaryId, Name, Plan, Position, SequencedEvent};

/// For each (boundary, event type) of a decision, how many events it has read. Events are never
/// deleted and each adds one to its fence in its own transaction, so equal counts mean that the
/// decision has read exactly what is committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    counts: BTreeMap<BoundaryId, BTreeMap<Name, u64>>,
    newest: Option<Position>,
}

impl Seen {
    /// Nothing seen yet: every (boundary, type) of the plan is conditioned on, at 0.
    pub fn nothing(plan: &Plan) -> Self {
        let counts = plan.reads.iter().map(|read| {
            (
                read.boundary.clone(),
                read.types.iter().map(|event_type| (event_type.clone(), 0)).collect(),
            )
        });
        Self { counts: counts.collect(), newest: None }
    }

    /// Counts one event of the merged, deduplicated read, in each boundary that holds it.
    pub fn observe(&mut self, plan: &Plan, event: &SequencedEvent) {
        for read in plan.reads.iter().filter(|read| read.holds(event)) {
            if let Some(types) = self.counts.get_mut(&read.boundary)
                && let Some(count) = types.get_mut(event.event_type.as_str())
            {
                *count += 1;
            }
        }
        if self.newest.as_ref().is_none_or(|newest| *newest < event.position) {
            self.newest = Some(event.position.clone());
        }
    }

    /// The counts by boundary and type.
    pub fn iter(&self) -> impl Iterator<Item = (&BoundaryId, &BTreeMap<Name, u64>)> {
        self.counts.iter()
    }

    /// The counts of one boundary; `None` when the decision does not depend on it.
    pub fn boundary(&self, boundary: &BoundaryId) -> Option<&BTreeMap<Name, u64>> {
        self.counts.get(boundary)
    }

    /// How many events of `event_type` were seen in `boundary`.
    pub fn count(&self, boundary: &BoundaryId, event_type: &str) -> u64 {
        self.counts.get(boundary).and_then(|types| types.get(event_type)).copied().unwrap_or(0)
    }

    /// The newest position seen; an effect follows it.
    pub fn newest(&self) -> Option<&Position> {
        self.newest.as_ref()
    }
}
