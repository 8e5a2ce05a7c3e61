//! The decide loop: read, fold, decide, append under the condition of what was read.

mod size;

use std::collections::BTreeSet;

use futures::{Stream, TryStreamExt, future::ready};

use crate::{
    Append, Appended, BoundaryId, Catalog, Change, CommandContext, CommandRecord, Conflict,
    Consistency, Context, Decisions, Envelope, EventError, EventLog, EventRef, LogError, Name,
    NewEvent, Outcome, Plan, PlanError, Rejected, Seen, SequencedEvent, Slice, SliceError, State,
    StoreError, Writes,
    cache::{Model, OutOfOrder, Recalled},
    shapes::plan,
};

pub use self::size::BOUNDARIES_MAX;
use self::size::check_size;

/// How often a command is decided before it gives up with [`StoreError::Contention`].
pub const ATTEMPTS_MAX: u32 = 8;

/// A settled command.
#[derive(Clone, Debug, PartialEq)]
pub struct Handled {
    /// What became of it.
    pub outcome: Outcome,
    /// How often it was decided; 1 without conflicts.
    pub attempts: u32,
    /// Whether it took effect before, under the same key; the events are those of then.
    pub repeated: bool,
    /// The boundaries to which others added something while it was decided, one for each conflict.
    pub conflicts: Vec<BoundaryId>,
    /// The events that it appended; on a log that keeps the state alone, those that led to the state.
    pub written: Vec<NewEvent>,
}

/// Why a command is not settled.
#[derive(Debug, thiserror::Error)]
pub enum HandleError {
    /// The command can't be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The slice does not fit its log, as [`check`](crate::check) says; nothing is written.
    #[error(transparent)]
    Slice(#[from] SliceError),
    /// The slice decided on an event that can't be read back; nothing is written.
    #[error(transparent)]
    Event(#[from] EventError),
    /// With an idempotency key, the slice decided on an event that a repeat would not find; nothing is written.
    #[error(
        "{slice} writes {event_type} to {partition}, which it does not read, so a repeat under an idempotency \
         key would not find it: give the command a tag that names the partition, or read it in `query`"
    )]
    Unread {
        /// The slice.
        slice: &'static str,
        /// The event type.
        event_type: Name,
        /// The partition.
        partition: BoundaryId,
    },
    /// With an idempotency key, a rejection leaves events, and the record of the key is an item, which does not
    /// say that the command was rejected; nothing is written.
    #[error(
        "{slice} leaves events when it rejects a command, so a repeat under an idempotency key has to find them: give \
         the command the tags of every partition that it writes, and read there what it writes"
    )]
    Leaves {
        /// The slice.
        slice: &'static str,
    },
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl From<StoreError> for HandleError {
    fn from(error: StoreError) -> Self {
        Self::Log(error.into())
    }
}

/// Runs `command` through its slice on `log`.
///
/// An answer that appends nothing is given only after a look shows that nothing was added to what was seen
/// (rule 6). With an idempotency key that is also the answer to a repeat: the events of the first run (rule
/// 10). After a conflict the events that were missed are folded and the command is decided again: where they do
/// not concern it, it decides the same, for `decide` is pure.
pub async fn handle<S: Slice, L: EventLog + ?Sized>(
    log: &L,
    catalog: &Catalog,
    decisions: &Decisions<S>,
    command: &S,
    envelope: &Envelope,
) -> Result<Handled, HandleError> {
    let (query, plan) = plan::<S>(command.shape(), command.tags(), catalog)?;
    let key = envelope.idempotency_key.as_deref();
    let record = key.map(|key| CommandRecord::new(S::NAME, key, command));
    let (marks, item) = match record.is_some() && decisions.events_are_record(catalog) {
        true => (record.as_ref(), None),
        // A log of streams has no item for it.
        false if catalog.is_of_streams() && record.is_some() => {
            return Err(SliceError::NoRecord { slice: S::NAME }.into());
        }
        false => (None, record.as_ref()),
    };
    check_size(&plan, item.is_some())?;
    let envelope = &match marks {
        Some(record) => envelope.marked(record),
        None => envelope.written_by(S::NAME),
    };
    let attempt = Attempt { log, catalog, plan: &plan, command, envelope, marks, item };

    let mut model = match decisions.take(&query, marks) {
        Some(model) => model,
        None => attempt.begin().await?,
    };
    let mut behind: Option<Conflict> = None;
    let mut conflicts = Vec::new();
    for attempts in 1..=ATTEMPTS_MAX {
        let decided = match behind.take() {
            // An index that does not show yet what its fence counts would only conflict again.
            Some(conflict) if model.seen.lags(&conflict) => Err((conflict, model)),
            _ => {
                let decided = attempt.decide(model).await?;
                if let Err((conflict, _)) = &decided {
                    conflicts.extend(conflict.boundaries().cloned());
                }
                decided
            }
        };
        let (conflict, stale) = match decided {
            Ok(Decided { outcome, model, repeated, written }) => {
                if let Some(mut model) = model {
                    model.settle();
                    attempt.keep(&mut model);
                    decisions.put(query, model);
                }
                return Ok(Handled { outcome, attempts, repeated, conflicts, written });
            }
            Err(stale) => stale,
        };
        if attempts == ATTEMPTS_MAX || !log.pause(attempts, envelope).await {
            let over = Some(conflict.into());
            return Err(StoreError::Contention { attempts, over }.into());
        }
        model = attempt.catch_up(stale, &conflict).await?;
        behind = Some(conflict);
    }
    unreachable!("the last attempt returns")
}

/// What stays the same over the attempts of one command.
struct Attempt<'a, S, L: ?Sized> {
    log: &'a L,
    catalog: &'a Catalog,
    plan: &'a Plan,
    command: &'a S,
    envelope: &'a Envelope,
    /// With a key: the record, if it is in the events.
    marks: Option<&'a CommandRecord>,
    /// With a key: the record, if it is an item.
    item: Option<&'a CommandRecord>,
}

struct Decided<S: Slice> {
    outcome: Outcome,
    /// What the handler may keep: it holds as of the commit or the answer.
    model: Option<Model<S>>,
    repeated: bool,
    written: Vec<NewEvent>,
}

/// What was added since, and the model that lacks it.
type Stale<S> = (Conflict, Model<S>);

/// Why missed events can't be folded on top of a model.
enum Missed {
    OutOfOrder,
    Log(LogError),
}

impl<S: Slice, L: EventLog + ?Sized> Attempt<'_, S, L> {
    /// Reads. It fails at an event whose type the catalog does not have, of the slice's own context or of one that the
    /// decision reads other events of, since nobody can say what it means for the decision. That is an event of a newer
    /// version of the program, or of a type that was renamed. Events of other contexts in a partition that all use do
    /// not concern it.
    fn read<'a>(
        &'a self,
        plan: &'a Plan,
        consistency: Consistency,
    ) -> impl Stream<Item = Result<SequencedEvent, LogError>> + 'a {
        let events = self.log.read(plan, consistency, self.envelope);
        events.and_then(move |event| ready(self.known(event)))
    }

    fn known(&self, event: SequencedEvent) -> Result<SequencedEvent, LogError> {
        if self.is_known(&event.context, &event.event_type) {
            return Ok(event);
        }
        let (id, SequencedEvent { event_type, context, .. }) = (event.id(), event);
        Err(LogError::UnknownType { event: id, event_type, context })
    }

    fn is_known(&self, context: &str, event_type: &str) -> bool {
        let is_read = || {
            let mut types = self.plan.reads.iter().flat_map(|read| &read.types);
            types.any(|name| self.catalog.context(name) == Some(context))
        };
        self.catalog.schema(event_type).is_some() || (context != S::Context::NAME && !is_read())
    }

    /// The model of a handler that is not warm.
    async fn begin(&self) -> Result<Model<S>, LogError> {
        match self.recall().await? {
            Some(model) => Ok(model),
            None => self.model(S::CONSISTENCY).await,
        }
    }

    /// The model of the last snapshot and of the events after it. `None` if there is no snapshot, or if the last
    /// one can't be used.
    async fn recall(&self) -> Result<Option<Model<S>>, LogError> {
        let Some(snapshots) = S::State::SNAPSHOTS else { return Ok(None) };
        let id = snapshots.id(S::NAME, self.plan, self.catalog);
        let kept = self.log.snapshot(&id, self.envelope).await?;
        let recalled = kept.and_then(|text| Recalled::<S>::of(&snapshots, &text, self.marks));
        // A newer version of the program may have kept it, with events that this one does not know.
        let is_known = |recalled: &Recalled<S>| {
            recalled
                .seen()
                .unasked()
                .all(|(context, event_type)| self.is_known(context, event_type))
        };
        let Some(recalled) = recalled.filter(is_known) else { return Ok(None) };
        let rest = recalled.seen().rest(self.plan);
        let events = self.read(&rest, S::CONSISTENCY).map_err(Missed::Log);
        let read = events.try_fold(recalled, async |recalled, event| {
            let taken =
                recalled.apply(self.plan, self.catalog, self.marks, &event).map_err(Missed::Log)?;
            taken.map_err(|OutOfOrder| Missed::OutOfOrder)
        });
        match read.await {
            Ok(recalled) => Ok(recalled.model()),
            Err(Missed::OutOfOrder) => Ok(None),
            Err(Missed::Log(error)) => Err(error),
        }
    }

    /// Keeps a snapshot of a model that holds as of its commit, or as of its answer, if one is due.
    fn keep(&self, model: &mut Model<S>) {
        if let Some(snapshots) = S::State::SNAPSHOTS
            && let Some(text) = model.snapshot(&snapshots)
        {
            self.log.keep_snapshot(snapshots.id(S::NAME, self.plan, self.catalog), text);
        }
    }

    async fn model(&self, consistency: Consistency) -> Result<Model<S>, LogError> {
        let events = self.read(self.plan, consistency);
        let read = events.try_fold(Model::empty(self.plan), async |model, event| {
            model.apply(self.plan, self.catalog, self.marks, &event)
        });
        let mut model = read.await?;
        model.is_current = self.is_look(consistency, &model.seen);
        Ok(model)
    }

    /// Whether a read of the plan's boundaries showed everything as of one moment (rule 6): it was strong, of one
    /// partition, and not within an append, whose events may become visible one by one.
    fn is_look(&self, consistency: Consistency, seen: &Seen) -> bool {
        let is_strong = consistency == Consistency::Strong || self.log.reads_strongly();
        match &self.plan.reads[..] {
            [read] if is_strong => seen.prefix(&read.boundary).is_some_and(|it| it.rest == 0),
            _ => false,
        }
    }

    /// The model with what it lacks. Where only partitions changed, their tails are read, and the rest of
    /// what was seen stays. A fence does not say which events are new, so after a conflict on a fence
    /// everything is read again. Everything is also read again if a missed event sorts before a folded one.
    async fn catch_up(&self, model: Model<S>, conflict: &Conflict) -> Result<Model<S>, LogError> {
        let partition = |change: &Change| match change {
            Change::Slot { partition, .. } => Some(partition.clone()),
            Change::Count { boundary, .. } => model.seen.prefix(boundary).map(|_| boundary.clone()),
        };
        if let Some(partitions) = conflict.0.iter().map(partition).collect::<Option<BTreeSet<_>>>()
        {
            let tails = model.seen.tails(self.plan, &partitions);
            let missed = self.read(&tails, Consistency::Strong);
            let caught_up = missed.map_err(Missed::Log).try_fold(model, async |model, event| {
                let folded = model.catch_up(self.plan, self.catalog, self.marks, &event);
                let folded = folded.map_err(Missed::Log)?;
                folded.map_err(|OutOfOrder| Missed::OutOfOrder)
            });
            match caught_up.await {
                Ok(mut model) => {
                    model.is_current = self.is_look(Consistency::Strong, &model.seen);
                    return Ok(model);
                }
                Err(Missed::Log(error)) => return Err(error),
                Err(Missed::OutOfOrder) => {}
            }
        }
        self.model(Consistency::Strong).await
    }

    /// What the decision may know. An event that it has read, and whose time a fold can show, is not in its future,
    /// unless it lies so far ahead of the clock that no writer follows it.
    fn context(&self, seen: &Seen) -> CommandContext {
        let context = self.envelope.context.clone();
        CommandContext { now_ms: seen.newest_ms(context.now_ms), ..context }
    }

    async fn decide(&self, model: Model<S>) -> Result<Result<Decided<S>, Stale<S>>, HandleError> {
        let mut before = model.first_run();
        let (rejected, events) = match &before {
            Some(_) => (None, Vec::new()),
            None => self.decision(&model),
        };
        if !events.is_empty() {
            let events = events.iter().map(Writes::to_event);
            let events = events.collect::<Result<_, _>>()?;
            return self.append(model, rejected, events).await;
        }
        // A repeat's answer is complete only if everything was seen.
        if !model.is_current
            && let Some(conflict) = self.log.verify(&model.seen, self.envelope).await?
        {
            return Ok(Err((conflict, model)));
        }
        if let Some(record) = self.item {
            before = self.log.recorded(record, self.envelope).await?.map(Outcome::Accepted);
        }
        let repeated = before.is_some();
        let outcome = before.unwrap_or_else(|| Outcome::of(rejected, Vec::new()));
        Ok(Ok(Decided { outcome, model: Some(model), repeated, written: Vec::new() }))
    }

    /// Why the command is rejected, if it is, and the events that follow.
    fn decision(&self, model: &Model<S>) -> (Option<Rejected>, Vec<S::Writes>) {
        let context = self.context(&model.seen);
        match self.command.decide(&model.state, &context) {
            Ok(events) => (None, events),
            Err(rejection) => {
                let left = self.command.leaves(&rejection, &model.state, &context);
                (Some(Rejected::of(&rejection)), left)
            }
        }
    }

    async fn append(
        &self,
        model: Model<S>,
        rejected: Option<Rejected>,
        events: Vec<NewEvent>,
    ) -> Result<Result<Decided<S>, Stale<S>>, HandleError> {
        if self.marks.is_some() {
            events.iter().try_for_each(|event| self.check_read(event))?;
        } else if self.item.is_some() && rejected.is_some() {
            return Err(HandleError::Leaves { slice: S::NAME });
        }
        let of_rejection = rejected.as_ref().map(|rejected| self.envelope.rejected(rejected));
        let envelope = of_rejection.as_ref().unwrap_or(self.envelope);
        let append = Append { events, seen: Some(&model.seen), record: self.item, envelope };
        match self.log.append(append).await {
            Ok(Appended::Committed(events)) => {
                let outcome = Outcome::of(rejected, events.iter().map(EventRef::from).collect());
                // Committed is committed. A slice that can't fold what it wrote loses its warm model here, and its
                // next read fails. A slice that has folded an event far ahead of its clock also loses it, because
                // its own events sort before that one.
                let follow = |model: Model<S>, event| {
                    model.catch_up(self.plan, self.catalog, None, event).ok()?.ok()
                };
                let model = events.iter().try_fold(model, follow);
                let written = events.into_iter().map(NewEvent::from).collect();
                Ok(Ok(Decided { outcome, model, repeated: false, written }))
            }
            Ok(Appended::Repeated(events)) => {
                let outcome = Outcome::Accepted(events);
                Ok(Ok(Decided { outcome, model: None, repeated: true, written: vec![] }))
            }
            Err(LogError::Conflict(conflict)) => Ok(Err((conflict, model))),
            Err(error) => Err(error.into()),
        }
    }

    /// Refuses an event that is to be a record where no repeat of the command looks.
    fn check_read(&self, event: &NewEvent) -> Result<(), HandleError> {
        let NewEvent { event_type, tags, .. } = event;
        let partition = self.catalog.partition(event_type, tags).map_err(LogError::from)?;
        if self.plan.shows(&partition, event_type) {
            return Ok(());
        }
        let event_type = event_type.clone();
        Err(HandleError::Unread { slice: S::NAME, event_type, partition })
    }
}
