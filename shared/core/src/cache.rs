//! Decisions that a warm handler keeps.

use std::{num::NonZeroUsize, sync::Mutex};

use lru::LruCache;

use crate::{DcbSlice, LogError, Plan, Query, Reads, Seen, SequencedEvent};

/// A folded state and what its reads saw of the log: enough to append without reading. A wrong entry costs a
/// conflict and never causes a wrong write, because the append compares the counts.
pub(crate) struct Model<S: DcbSlice> {
    pub(crate) state: S::State,
    pub(crate) seen: Seen,
}

impl<S: DcbSlice> Model<S> {
    pub(crate) fn empty(plan: &Plan) -> Self {
        Self { state: S::State::default(), seen: Seen::nothing(plan) }
    }

    /// Counts `event` and, if the query asks for it, folds it.
    pub(crate) fn apply(mut self, plan: &Plan, event: &SequencedEvent) -> Result<Self, LogError> {
        self.seen.observe(plan, event);
        if plan.matches(event) {
            let read = S::Reads::decode(event).map_err(|source| LogError::Undecodable {
                partition: event.partition.to_string(),
                position: event.position.clone(),
                source: source.into(),
            })?;
            self.state = S::evolve(self.state, read);
        }
        Ok(self)
    }
}

/// The models of a slice's latest queries, a limited number. The least recently used goes first. An entry is
/// taken out while a command uses it, so a conflict or an unknown outcome drops it.
pub struct Decisions<S: DcbSlice>(Option<Mutex<LruCache<Query, Model<S>>>>);

impl<S: DcbSlice> Decisions<S> {
    /// Keeps at most `entries` models; 0 keeps none.
    pub fn new(entries: usize) -> Self {
        Self(NonZeroUsize::new(entries).map(|entries| Mutex::new(LruCache::new(entries))))
    }

    pub(crate) fn take(&self, query: &Query) -> Option<Model<S>> {
        self.0.as_ref()?.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop(query)
    }

    pub(crate) fn put(&self, query: Query, model: Model<S>) {
        if let Some(models) = &self.0 {
            models.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).put(query, model);
        }
    }
}
