//! Decisions that a warm handler keeps.

use std::{num::NonZeroUsize, sync::Mutex};

use lru::LruCache;

use crate::{DcbSlice, LogError, Place, Plan, Query, Reads, Seen, SequencedEvent};

/// A folded state with what was seen of the log: enough to append without reading. A wrong entry costs a
/// conflict, never a wrong write, because the append is under the condition of what was seen.
pub(crate) struct Model<S: DcbSlice> {
    pub(crate) state: S::State,
    pub(crate) seen: Seen,
    /// The last event that was folded, in fold order.
    last: Option<Place>,
}

/// An event that has to be folded before another one that was folded already.
pub(crate) struct OutOfOrder;

impl<S: DcbSlice> Model<S> {
    pub(crate) fn empty(plan: &Plan) -> Self {
        Self { state: S::State::default(), seen: Seen::nothing(plan), last: None }
    }

    /// Takes in the next event of a read, in fold order: counts it, and folds it if the query asks for it.
    pub(crate) fn apply(mut self, plan: &Plan, event: &SequencedEvent) -> Result<Self, LogError> {
        if self.seen.observe(plan, event) && plan.matches(event) {
            let read = S::Reads::decode(event).map_err(|source| LogError::Undecodable {
                event: event.id(),
                source: source.into(),
            })?;
            self.state = S::evolve(self.state, read);
            self.last = Some(event.place());
        }
        Ok(self)
    }

    /// Takes in an event that was missed. Only one that follows on everything folded can be folded now.
    pub(crate) fn catch_up(
        self,
        plan: &Plan,
        event: &SequencedEvent,
    ) -> Result<Result<Self, OutOfOrder>, LogError> {
        let late = self.last.as_ref().is_some_and(|last| event.place() < *last);
        if late && plan.matches(event) {
            return Ok(Err(OutOfOrder));
        }
        self.apply(plan, event).map(Ok)
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
