//! Decisions that a warm handler keeps.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Mutex, OnceLock};

use lru::LruCache;

use crate::{
    BoundaryId, Catalog, CommandRecord, EventRef, LogError, Outcome, Place, Plan, Query, Reads,
    ReadsOf, Rejected, Seen, SequencedEvent, Slice, Snapshots, State, keys::Keys,
    once::events_are_record,
};

/// A folded state with what was seen of the log: enough to append without reading. A wrong entry costs a
/// conflict, never a wrong write, because the append is under the condition of what was seen.
pub(crate) struct Model<S: Slice> {
    pub(crate) state: S::State,
    pub(crate) seen: Seen,
    /// The last event that was folded, in fold order.
    last: Option<Place>,
    /// Of the slice's commands, those whose events were seen.
    keys: Keys,
    /// The events that an earlier run of the command under way has appended, in fold order.
    first_run: BTreeMap<Place, EventRef>,
    /// Why that run was rejected, if it was.
    rejected: Option<Rejected>,
    /// How many events were taken in since the last snapshot.
    taken: u64,
    /// Whether what was seen was everything at a moment since the command under way began.
    pub(crate) is_current: bool,
}

/// An event that has to be folded before another one that was folded already.
pub(crate) struct OutOfOrder;

impl<S: Slice> Model<S> {
    pub(crate) fn empty(plan: &Plan) -> Self {
        Self::of(S::State::default(), Seen::nothing(plan), None, Keys::default())
    }

    fn of(state: S::State, seen: Seen, last: Option<Place>, keys: Keys) -> Self {
        let (first_run, rejected, taken, is_current) = (BTreeMap::new(), None, 0, false);
        Self { state, seen, last, keys, first_run, rejected, taken, is_current }
    }

    /// Takes in the next event of a read, in fold order: counts it, notes whose it is, and folds it if the
    /// query asks for it. `record` is that of the command under way.
    ///
    /// # Errors
    /// The event can't be decoded, or is of another command under the same key.
    pub(crate) fn apply(
        mut self,
        plan: &Plan,
        catalog: &Catalog,
        record: Option<&CommandRecord>,
        event: &SequencedEvent,
    ) -> Result<Self, LogError> {
        if !self.seen.observe(plan, event) {
            return Ok(self);
        }
        self.taken += 1;
        // An index may lack the metadata, so the events of other partitions are not a record.
        if self.seen.prefix(&event.partition).is_some() {
            self.keys.note(S::NAME, event);
            if let Some(record) = record
                && record.wrote(|mark| event.metadata.text(mark))?
            {
                self.first_run.insert(event.place(), event.into());
                self.rejected = rejection_of(event)?;
            }
        }
        if plan.matches(event) {
            let read = ReadsOf::<S>::decode(&catalog.current(event)?);
            let read = read.map_err(|source| LogError::Undecodable {
                event: event.id(),
                source: source.into(),
            })?;
            self.state = self.state.evolve(read);
            self.last = Some(event.place());
        }
        Ok(self)
    }

    /// The text of the next snapshot, if it is due.
    pub(crate) fn snapshot(&mut self, snapshots: &Snapshots<S::State>) -> Option<String> {
        if !snapshots.is_due(self.taken) {
            return None;
        }
        self.taken = 0;
        let Self { state, seen, last, keys, .. } = self;
        snapshots.text(state, seen, last.as_ref(), keys)
    }

    /// Takes in an event that was missed. Only one that follows on everything folded can be folded now.
    pub(crate) fn catch_up(
        self,
        plan: &Plan,
        catalog: &Catalog,
        record: Option<&CommandRecord>,
        event: &SequencedEvent,
    ) -> Result<Result<Self, OutOfOrder>, LogError> {
        let late = self.last.as_ref().is_some_and(|last| event.place() < *last);
        if late && plan.matches(event) {
            return Ok(Err(OutOfOrder));
        }
        self.apply(plan, catalog, record, event).map(Ok)
    }

    /// Whether it may have taken in events of the command with this key.
    fn may_have(&self, record: Option<&CommandRecord>) -> bool {
        record.is_some_and(|record| self.keys.may_have(&record.key))
    }

    /// Forgets the command under way.
    pub(crate) fn settle(&mut self) {
        self.first_run.clear();
        self.rejected = None;
        self.is_current = false;
    }

    /// The outcome of an earlier run of the command under way, if one has appended events.
    pub(crate) fn first_run(&self) -> Option<Outcome> {
        let events: Vec<_> = self.first_run.values().cloned().collect();
        (!events.is_empty()).then(|| Outcome::of(self.rejected.clone(), events))
    }
}

/// If the event was left by a rejection: why its command was rejected.
fn rejection_of(event: &SequencedEvent) -> Result<Option<Rejected>, LogError> {
    let rejected = event.metadata.text(CommandRecord::REJECTION).map(serde_json::from_str);
    let rejected = rejected.transpose();
    rejected.map_err(|source| LogError::Undecodable { event: event.id(), source: source.into() })
}

/// A model from a snapshot, while the events after it are read.
pub(crate) struct Recalled<S: Slice> {
    model: Model<S>,
    /// The boundaries whose last event of the snapshot was not read yet, each with its time.
    missing: BTreeMap<BoundaryId, u64>,
}

impl<S: Slice> Recalled<S> {
    /// The snapshot in `text`, if this version of the slice can read it, and no event of the command with this
    /// key is in it.
    pub(crate) fn of(
        snapshots: &Snapshots<S::State>,
        text: &str,
        record: Option<&CommandRecord>,
    ) -> Option<Self> {
        let (state, seen, last, keys) = snapshots.read(text)?;
        let missing = seen.lasts().into_iter().map(|(id, at)| (id.clone(), at)).collect();
        let model = Model::of(state, seen, last, keys);
        (!model.may_have(record)).then_some(Self { model, missing })
    }

    /// What the snapshot has seen.
    pub(crate) fn seen(&self) -> &Seen {
        &self.model.seen
    }

    /// Takes in the next event of [`Seen::rest`].
    pub(crate) fn apply(
        mut self,
        plan: &Plan,
        catalog: &Catalog,
        record: Option<&CommandRecord>,
        event: &SequencedEvent,
    ) -> Result<Result<Self, OutOfOrder>, LogError> {
        let holds = |boundary: &BoundaryId| {
            plan.reads.iter().any(|read| read.boundary == *boundary && read.holds(event))
        };
        self.missing.retain(|boundary, at| *at != event.at || !holds(boundary));
        if self.model.seen.holds(plan, event) {
            return Ok(Ok(self));
        }
        let Self { model, missing } = self;
        Ok(model.catch_up(plan, catalog, record, event)?.map(|model| Self { model, missing }))
    }

    /// The model, unless the log lacks an event of the snapshot: the read may be stale, or the table restored.
    pub(crate) fn model(self) -> Option<Model<S>> {
        self.missing.is_empty().then_some(self.model)
    }
}

/// What a handler of a slice keeps: the models of its latest queries, a limited number. The least recently used
/// goes first. An entry is taken out while a command uses it, so a conflict or an unknown outcome drops it.
pub struct Decisions<S: Slice> {
    models: Option<Mutex<LruCache<Query, Model<S>>>>,
    events_are_record: OnceLock<bool>,
}

impl<S: Slice> Decisions<S> {
    /// Keeps at most `entries` models; 0 keeps none.
    pub fn new(entries: usize) -> Self {
        let models = NonZeroUsize::new(entries).map(|entries| Mutex::new(LruCache::new(entries)));
        Self { models, events_are_record: OnceLock::new() }
    }

    /// As [`events_are_record`]; a handler has one catalog.
    pub(crate) fn events_are_record(&self, catalog: &Catalog) -> bool {
        *self.events_are_record.get_or_init(|| events_are_record::<S>(catalog))
    }

    /// The model of a query, unless it has read events of the command with this key: they are the answer, and
    /// have to be read.
    pub(crate) fn take(&self, query: &Query, record: Option<&CommandRecord>) -> Option<Model<S>> {
        let models = self.models.as_ref()?;
        let model = models.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop(query)?;
        (!model.may_have(record)).then_some(model)
    }

    pub(crate) fn put(&self, query: Query, model: Model<S>) {
        if let Some(models) = &self.models {
            models.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).put(query, model);
        }
    }
}
