//! The decide loop: read, fold, decide, append under the condition of what was read.

mod error;
mod size;

use std::collections::BTreeSet;

use futures::{FutureExt, Stream, TryStreamExt, future::ready};

use crate::{
    Append, Appended, BoundaryId, Catalog, Change, CommandContext, CommandRecord, Conflict,
    Consistency, Context, Decisions, Envelope, EventLog, EventRef, LogError, NewEvent, Outcome,
    Plan, Rejected, Seen, SequencedEvent, Slice, SliceError, StoreError, VaultError,
    decide::cache::{Model, Recalled, UnderWay},
    decide::decision::{Decision, DecisionOf},
    decide::record::{record_of, refuses, spared},
    decide::shapes::{Declared, plan},
    log::vault::{blind, blind_events},
    personal::{Form, forget, has},
};

pub use self::error::HandleError;
pub use self::size::BOUNDARIES_MAX;
use self::size::check_size;

/// A command is decided at most this often. Then it gives up with [`StoreError::Contention`].
pub const ATTEMPTS_MAX: u32 = 8;

/// A settled command.
#[derive(Clone, Debug, PartialEq)]
pub struct Handled {
    /// Its outcome.
    pub outcome: Outcome,
    /// How often it was decided; 1 without conflicts.
    pub attempts: u32,
    /// Whether it took effect before, under the same key. The events are those of the first run.
    pub repeated: bool,
    /// The boundary of each conflict, to which another command added something.
    pub conflicts: Vec<BoundaryId>,
    /// The events that it appended, in the newest versions of their types. On a log that stores only the state, the
    /// events that led to the state.
    pub written: Vec<NewEvent>,
}

/// Runs `command` through its slice on `log`.
///
/// Before an answer that appends nothing, a look must show that nothing was added to what was seen (rule 6). With an
/// idempotency key the same holds for the answer to a repeat: the events of the first run (rule 10). After a conflict
/// the missed events are folded and the command is decided again. If they do not concern it, it decides the same,
/// because `decide` is pure.
pub async fn handle<S: Slice>(
    log: &dyn EventLog,
    catalog: &Catalog,
    decisions: &Decisions<S>,
    command: &S,
    envelope: &Envelope,
) -> Result<Handled, HandleError> {
    let declared = Declared::of::<S>();
    let tags = blind(log, command.shape(), command.tags()).await?;
    let (query, plan) = plan(declared, command.shape(), tags, catalog)?;
    let record = match envelope.idempotency_key.as_deref() {
        Some(key) => {
            let fingerprint = |subject: String, text: String| {
                let refuses = refuses(command, &envelope.context, &subject);
                async move { Ok(spared(log.fingerprint(&subject, &text).await, refuses)?) }.boxed()
            };
            Some(record_of::<_, HandleError>(S::NAME, key, command, fingerprint).await?)
        }
        None => None,
    };
    let (marks, item) = match record.is_some() && decisions.events_are_record(catalog) {
        true => (record.as_ref(), None),
        // A log of streams has no item for it.
        false if catalog.is_of_streams() && record.is_some() => {
            return Err(SliceError::NoRecord { slice: S::NAME }.into());
        }
        false => (None, record.as_ref()),
    };
    check_size(&plan, item.is_some())?;
    let envelope = &match (marks, item) {
        (Some(record), _) => envelope.marked(record),
        (None, Some(record)) => envelope.itemized(record),
        (None, None) => envelope.written_by(S::NAME),
    };
    let now_ms = envelope.context.now_ms;
    let (state, model) = decisions.take(&query, marks, envelope.cause_ms, now_ms).unzip();
    let mut decision = DecisionOf { command, state: state.unwrap_or_default() };
    let command = UnderWay { slice: S::NAME, catalog, plan: &plan, marks, now_ms };
    let (context, consistency) = (S::Context::NAME, S::CONSISTENCY);
    let attempts = Attempts { log, context, consistency, command, envelope, item };
    let (handled, model) = attempts.handle(&mut decision, model).await?;
    if let Some(model) = model {
        decisions.put(query, decision.state, model);
    }
    Ok(handled)
}

/// The parts that stay the same over the attempts of one command. It has no type parameter, so the loop is compiled
/// once, and not for each slice and log.
struct Attempts<'a> {
    log: &'a dyn EventLog,
    /// The slice's context.
    context: &'static str,
    /// The consistency of the first read.
    consistency: Consistency,
    command: UnderWay<'a>,
    envelope: &'a Envelope,
    /// With a key: the record, if it is an item.
    item: Option<&'a CommandRecord>,
}

struct Decided {
    outcome: Outcome,
    /// The model for the handler's cache, as of the commit or the answer.
    model: Option<Model>,
    repeated: bool,
    written: Vec<NewEvent>,
}

/// The events that were added since, and the model that lacks them.
type Stale = (Conflict, Model);

impl Attempts<'_> {
    /// Carries out the command, on the model of a warm handler if there is one. Also returns the model for the cache.
    async fn handle(
        &self,
        decision: &mut dyn Decision,
        warm: Option<Model>,
    ) -> Result<(Handled, Option<Model>), HandleError> {
        let (log, envelope) = (self.log, self.envelope);
        let mut model = match warm {
            Some(model) => model,
            None => self.begin(decision).await?,
        };
        let mut behind: Option<Conflict> = None;
        let mut conflicts = Vec::new();
        for attempts in 1..=ATTEMPTS_MAX {
            let decided = match behind.take() {
                // If an index lags behind its fence, an append would only conflict again.
                Some(conflict) if model.seen.lags(&conflict) => Err((conflict, model)),
                _ => {
                    let decided = self.decide(decision, model).await?;
                    if let Err((conflict, _)) = &decided {
                        conflicts.extend(conflict.boundaries().cloned());
                    }
                    decided
                }
            };
            let (conflict, stale) = match decided {
                Ok(Decided { outcome, mut model, repeated, written }) => {
                    if let Some(model) = &mut model {
                        model.settle();
                        self.keep(decision, model);
                    }
                    let handled = Handled { outcome, attempts, repeated, conflicts, written };
                    return Ok((handled, model));
                }
                Err(stale) => stale,
            };
            if attempts == ATTEMPTS_MAX || !log.pause(attempts, envelope).await {
                let over = Some(conflict.into());
                return Err(StoreError::Contention { attempts, over }.into());
            }
            model = self.catch_up(decision, stale, &conflict).await?;
            behind = Some(conflict);
        }
        unreachable!("the last attempt returns")
    }

    /// Reads the events. It fails at an event of an unknown type, if the event belongs to the slice's context or to one
    /// from which the decision reads other events, since nobody can say what it means for the decision. A newer version
    /// of the program wrote it, or its type was renamed. Events of other contexts in a shared partition do not concern
    /// the decision.
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
        let UnderWay { catalog, plan, .. } = self.command;
        let is_read = || {
            let mut types = plan.reads.iter().flat_map(|read| &read.types);
            types.any(|name| catalog.context(name) == Some(context))
        };
        catalog.schema(event_type).is_some() || (context != self.context && !is_read())
    }

    /// The model for a handler that is not warm.
    async fn begin(&self, decision: &mut dyn Decision) -> Result<Model, LogError> {
        match self.recall(decision).await? {
            Some(model) => Ok(model),
            None => self.model(decision, self.consistency).await,
        }
    }

    /// The model of the last snapshot and of the events after it; `None` if there is no snapshot, or if the last one
    /// can't be used.
    async fn recall(&self, decision: &mut dyn Decision) -> Result<Option<Model>, LogError> {
        let UnderWay { catalog, plan, .. } = self.command;
        let Some(id) = decision.snapshot_id(plan, catalog) else { return Ok(None) };
        let kept = self.log.snapshot(&id, self.envelope).await?;
        let cause_ms = self.envelope.cause_ms;
        let recalled = kept.and_then(|text| Recalled::of(decision, &text, self.command, cause_ms));
        // A newer version of the program may have stored it, with events that this one does not know.
        let is_known = |recalled: &Recalled| {
            recalled
                .seen()
                .unasked()
                .all(|(context, event_type)| self.is_known(context, event_type))
        };
        let Some(mut recalled) = recalled.filter(is_known) else { return Ok(None) };
        let rest = recalled.seen().rest(plan);
        let mut events = self.read(&rest, self.consistency);
        while let Some(event) = events.try_next().await? {
            if recalled.apply(decision, self.command, &event)?.is_err() {
                return Ok(None);
            }
        }
        Ok(recalled.model())
    }

    /// Stores a snapshot of a model as of its commit or its answer, if one is due.
    fn keep(&self, decision: &dyn Decision, model: &mut Model) {
        let UnderWay { catalog, plan, .. } = self.command;
        if let Some(text) = model.snapshot(decision)
            && let Some(id) = decision.snapshot_id(plan, catalog)
        {
            self.log.keep_snapshot(id, text);
        }
    }

    async fn model(
        &self,
        decision: &mut dyn Decision,
        consistency: Consistency,
    ) -> Result<Model, LogError> {
        decision.begin();
        let mut model = Model::empty(self.command.plan);
        let mut events = self.read(self.command.plan, consistency);
        while let Some(event) = events.try_next().await? {
            model.apply(decision, self.command, &event)?;
        }
        model.is_current = self.is_look(consistency, &model.seen);
        Ok(model)
    }

    /// Whether a read of the plan's boundaries showed everything as of one moment (rule 6): it was strong, of one
    /// partition, and not within an append, whose events may become visible one by one.
    fn is_look(&self, consistency: Consistency, seen: &Seen) -> bool {
        let is_strong = consistency == Consistency::Strong || self.log.reads_strongly();
        match &self.command.plan.reads[..] {
            [read] if is_strong => seen.prefix(&read.boundary).is_some_and(|it| it.rest == 0),
            _ => false,
        }
    }

    /// Adds the missed events to the model. If only partitions changed, their tails are read, and the rest of what was
    /// seen stays. A fence does not say which events are new, so after a conflict on a fence everything is read again.
    /// Everything is also read again if a missed event belongs before a folded one.
    async fn catch_up(
        &self,
        decision: &mut dyn Decision,
        mut model: Model,
        conflict: &Conflict,
    ) -> Result<Model, LogError> {
        let partition = |change: &Change| match change {
            Change::Slot { partition, .. } => Some(partition.clone()),
            Change::Count { boundary, .. } => model.seen.prefix(boundary).map(|_| boundary.clone()),
        };
        let partitions = conflict.0.iter().map(partition).collect::<Option<BTreeSet<_>>>();
        if let Some(partitions) = partitions {
            let tails = model.seen.tails(self.command.plan, &partitions);
            let mut missed = self.read(&tails, Consistency::Strong);
            let in_order = loop {
                let Some(event) = missed.try_next().await? else { break true };
                if model.catch_up(decision, self.command, &event)?.is_err() {
                    break false;
                }
            };
            if in_order {
                model.is_current = self.is_look(Consistency::Strong, &model.seen);
                return Ok(model);
            }
        }
        self.model(decision, Consistency::Strong).await
    }

    /// The context of the decision. An event that it has read must not be in its future, if a fold can show the event's
    /// time, unless the time is so far ahead of the clock that no writer follows it.
    fn context(&self, seen: &Seen) -> CommandContext {
        let context = self.envelope.context.clone();
        CommandContext { now_ms: seen.newest_ms(context.now_ms), ..context }
    }

    async fn decide(
        &self,
        decision: &mut dyn Decision,
        model: Model,
    ) -> Result<Result<Decided, Stale>, HandleError> {
        let mut before = model.first_run();
        let (rejected, mut events) = match &before {
            Some(_) => (None, Vec::new()),
            None => decision.decide(&self.context(&model.seen))?,
        };
        blind_events(self.log, self.command.catalog, &mut events).await?;
        if !events.is_empty() {
            return self.append(decision, model, rejected, events).await;
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

    async fn append(
        &self,
        decision: &mut dyn Decision,
        mut model: Model,
        rejected: Option<Rejected>,
        events: Vec<NewEvent>,
    ) -> Result<Result<Decided, Stale>, HandleError> {
        if self.command.marks.is_some() {
            events.iter().try_for_each(|event| self.check_read(event))?;
        } else if self.item.is_some() && rejected.is_some() {
            return Err(HandleError::Leaves { slice: self.command.slice });
        }
        let of_rejection = rejected.as_ref().map(|rejected| self.envelope.rejected(rejected));
        let envelope = of_rejection.as_ref().unwrap_or(self.envelope);
        let append =
            |events| Append { events, seen: Some(&model.seen), record: self.item, envelope };
        let personal = events.iter().any(|event| has(&event.data, Form::Marked));
        let mut kept = if personal { events.clone() } else { Vec::new() };
        let mut appended = self.log.append(append(events)).await;
        // A value that the decision has read is forgotten by now.
        while let Err(LogError::Vault(VaultError::Forgotten(of))) = &appended
            && !decision.refuses(&envelope.context, of)
        {
            kept.iter_mut().for_each(|event| forget(&mut event.data, of));
            appended = self.log.append(append(kept.clone())).await;
        }
        match appended {
            Ok(Appended::Committed(events)) => {
                let outcome = Outcome::of(rejected, events.iter().map(EventRef::from).collect());
                // The commit stands in any case. If a slice can't fold what it wrote, it loses its warm model here, and
                // its next read fails. A slice that has folded an event far ahead of its clock also loses it, because
                // its own events belong before that one.
                let of_all = UnderWay { marks: None, ..self.command };
                let mut follow =
                    |event| matches!(model.catch_up(decision, of_all, event), Ok(Ok(())));
                let is_whole = events.iter().all(&mut follow);
                // The log has read them back.
                let catalog = self.command.catalog;
                let written = events.into_iter().filter_map(|event| catalog.current(event).ok());
                let written = written.map(NewEvent::from).collect();
                let model = is_whole.then_some(model);
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

    /// Refuses an event that would be a record in a place that repeats of the command do not read.
    fn check_read(&self, event: &NewEvent) -> Result<(), HandleError> {
        let UnderWay { slice, catalog, plan, .. } = self.command;
        let NewEvent { event_type, tags, .. } = event;
        let partition = catalog.partition(event_type, tags).map_err(LogError::from)?;
        if plan.shows(&partition, event_type) {
            return Ok(());
        }
        let event_type = event_type.clone();
        Err(HandleError::Unread { slice, event_type, partition })
    }
}
