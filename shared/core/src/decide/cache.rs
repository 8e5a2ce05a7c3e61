//! The decisions that a warm handler keeps.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Mutex, OnceLock};

use lru::LruCache;

use crate::{
    BoundaryId, Catalog, CommandRecord, EventRef, LogError, Outcome, Place, Plan, Query, Rejected,
    Seen, SequencedEvent, Slice,
    boundary::keys::Keys,
    decide::decision::Decision,
    decide::once::is_record,
    decide::shapes::Declared,
    is_open_too_long,
    personal::{Form, MARKED, has},
};

/// The command under way.
#[derive(Clone, Copy)]
pub(crate) struct UnderWay<'a> {
    pub(crate) slice: &'static str,
    pub(crate) catalog: &'a Catalog,
    pub(crate) plan: &'a Plan,
    /// With a key: the record, if it is in the events.
    pub(crate) marks: Option<&'a CommandRecord>,
    /// The time of the handler's clock, in milliseconds since 1970.
    pub(crate) now_ms: u64,
}

/// What was seen of the log. Together with the state that a [`Decision`] has folded, it is enough to append without a
/// read. A wrong one costs a conflict, never a wrong write, because what was seen is the condition of the append.
pub(crate) struct Model {
    pub(crate) seen: Seen,
    /// The last event that was folded, in fold order.
    last: Option<Place>,
    /// The keys of the slice's commands whose events were seen.
    keys: Keys,
    /// The events that an earlier run of the present command has appended, in fold order.
    first_run: BTreeMap<Place, EventRef>,
    /// Why that run was rejected, if it was.
    rejected: Option<Rejected>,
    /// The number of events since the last snapshot.
    taken: u64,
    /// When the state first had an opened personal value, in milliseconds since 1970.
    opened_ms: Option<u64>,
    /// Whether what was seen was everything at a moment since the present command began.
    pub(crate) is_current: bool,
}

/// An event that belongs before one that was already folded.
pub(crate) struct OutOfOrder;

impl Model {
    /// The model of an empty log.
    pub(crate) fn empty(plan: &Plan) -> Self {
        Self::of(Seen::nothing(plan), None, Keys::default())
    }

    fn of(seen: Seen, last: Option<Place>, keys: Keys) -> Self {
        Self {
            seen,
            last,
            keys,
            first_run: BTreeMap::new(),
            rejected: None,
            taken: 0,
            opened_ms: None,
            is_current: false,
        }
    }

    /// Adds the next event of a read, in fold order: counts it, notes its command, and folds it if the query asks for
    /// it.
    ///
    /// # Errors
    /// The event can't be decoded, or belongs to another command under the same key.
    pub(crate) fn apply(
        &mut self,
        decision: &mut dyn Decision,
        UnderWay { slice, catalog, plan, marks, now_ms }: UnderWay<'_>,
        event: &SequencedEvent,
    ) -> Result<(), LogError> {
        if !self.seen.observe(plan, event) {
            return Ok(());
        }
        self.taken += 1;
        // An index may lack the metadata, so events of other partitions can't be a record.
        if self.seen.prefix(&event.partition).is_some() {
            self.keys.note(slice, event);
            if let Some(record) = marks
                && record.wrote(|mark| event.metadata.text(mark))?
            {
                self.first_run.insert(event.place(), event.into());
                self.rejected = rejection_of(event)?;
            }
        }
        if plan.matches(event) {
            let folded = decision.fold(&catalog.current(event)?);
            folded.map_err(|source| LogError::Undecodable {
                event: event.id(),
                source: source.into(),
            })?;
            self.last = Some(event.place());
            if self.opened_ms.is_none() && has(&event.data, Form::Marked) {
                self.opened_ms = Some(now_ms);
            }
        }
        Ok(())
    }

    /// The text of the next snapshot, if it is due.
    pub(crate) fn snapshot(&mut self, decision: &dyn Decision) -> Option<String> {
        let Self { seen, last, keys, taken, .. } = self;
        let text = decision.snapshot(*taken, seen, last.as_ref(), keys)?;
        *taken = 0;
        Some(text)
    }

    /// Adds an event that was missed. Only one that is later than all folded events can be folded now.
    pub(crate) fn catch_up(
        &mut self,
        decision: &mut dyn Decision,
        command: UnderWay<'_>,
        event: &SequencedEvent,
    ) -> Result<Result<(), OutOfOrder>, LogError> {
        let late = self.last.as_ref().is_some_and(|last| event.place() < *last);
        if late && command.plan.matches(event) {
            return Ok(Err(OutOfOrder));
        }
        self.apply(decision, command, event).map(Ok)
    }

    /// Whether it may contain events of the command with this key.
    fn may_have(&self, record: Option<&CommandRecord>, cause_ms: Option<u64>) -> bool {
        record.is_some_and(|record| self.keys.may_have(record, cause_ms))
    }

    /// Forgets the present command.
    pub(crate) fn settle(&mut self) {
        self.first_run.clear();
        self.rejected = None;
        self.is_current = false;
    }

    /// The outcome of an earlier run of the present command, if it appended events.
    pub(crate) fn first_run(&self) -> Option<Outcome> {
        let events: Vec<_> = self.first_run.values().cloned().collect();
        (!events.is_empty()).then(|| Outcome::of(self.rejected.clone(), events))
    }
}

/// Why the event's command was rejected, if a rejection left the event.
fn rejection_of(event: &SequencedEvent) -> Result<Option<Rejected>, LogError> {
    let rejected = event.metadata.text(CommandRecord::REJECTION).map(serde_json::from_str);
    let rejected = rejected.transpose();
    rejected.map_err(|source| LogError::Undecodable { event: event.id(), source: source.into() })
}

/// A model from a snapshot, while the events after it are read.
pub(crate) struct Recalled {
    model: Model,
    /// The boundaries whose last event in the snapshot was not read yet, each with its time.
    missing: BTreeMap<BoundaryId, u64>,
}

impl Recalled {
    /// The snapshot in `text`, if this version of the slice can read it, and it contains no event of the command with
    /// this key.
    pub(crate) fn of(
        decision: &mut dyn Decision,
        text: &str,
        UnderWay { marks, now_ms, .. }: UnderWay<'_>,
        cause_ms: Option<u64>,
    ) -> Option<Self> {
        let (seen, last, keys) = decision.recall(text)?;
        let missing = seen.lasts().into_iter().map(|(id, at)| (id.clone(), at)).collect();
        let opened_ms = text.contains(MARKED).then_some(now_ms);
        let model = Model { opened_ms, ..Model::of(seen, last, keys) };
        (!model.may_have(marks, cause_ms)).then_some(Self { model, missing })
    }

    /// What the snapshot has seen.
    pub(crate) fn seen(&self) -> &Seen {
        &self.model.seen
    }

    /// Adds the next event of [`Seen::rest`].
    pub(crate) fn apply(
        &mut self,
        decision: &mut dyn Decision,
        command: UnderWay<'_>,
        event: &SequencedEvent,
    ) -> Result<Result<(), OutOfOrder>, LogError> {
        let plan = command.plan;
        let holds = |boundary: &BoundaryId| {
            plan.reads.iter().any(|read| read.boundary == *boundary && read.holds(event))
        };
        self.missing.retain(|boundary, at| *at != event.at || !holds(boundary));
        if self.model.seen.holds(plan, event) {
            return Ok(Ok(()));
        }
        self.model.catch_up(decision, command, event)
    }

    /// The model, unless the log lacks an event of the snapshot. Then the read may be stale, or the table was restored.
    pub(crate) fn model(self) -> Option<Model> {
        self.missing.is_empty().then_some(self.model)
    }
}

/// A state, and what was seen of the log.
type Kept<S> = (<S as Slice>::State, Model);

/// A handler's cache for a slice: the states of its latest queries with their models. When it is full, the least
/// recently used entry is dropped. An entry is taken out while a command uses it, so a conflict or an unknown outcome
/// drops it.
pub struct Decisions<S: Slice> {
    models: Option<Mutex<LruCache<Query, Kept<S>>>>,
    events_are_record: OnceLock<bool>,
}

impl<S: Slice> Decisions<S> {
    /// Keeps at most `entries` models; 0 keeps none.
    pub fn new(entries: usize) -> Self {
        let models = NonZeroUsize::new(entries).map(|entries| Mutex::new(LruCache::new(entries)));
        Self { models, events_are_record: OnceLock::new() }
    }

    /// Whether events are records, as [`events_are_record`](crate::events_are_record) says. A handler has one catalog.
    pub(crate) fn events_are_record(&self, catalog: &Catalog) -> bool {
        *self.events_are_record.get_or_init(|| is_record(Declared::of::<S>(), catalog))
    }

    /// The state and the model of a query, unless the model contains events of the command with this key. Those are the
    /// answer, so they must be read.
    pub(crate) fn take(
        &self,
        query: &Query,
        record: Option<&CommandRecord>,
        cause_ms: Option<u64>,
        now_ms: u64,
    ) -> Option<Kept<S>> {
        let models = self.models.as_ref()?;
        let kept = models.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop(query)?;
        // Otherwise a warm handler would know a forgotten subject for hours.
        let is_old = kept.1.opened_ms.is_some_and(|at| is_open_too_long(at, now_ms));
        (!is_old && !kept.1.may_have(record, cause_ms)).then_some(kept)
    }

    pub(crate) fn put(&self, query: Query, state: S::State, model: Model) {
        if let Some(models) = &self.models {
            let kept = (state, model);
            models.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).put(query, kept);
        }
    }
}
