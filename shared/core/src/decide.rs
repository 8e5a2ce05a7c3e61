//! The decide loop: read, fold, decide, append under the condition of what was read.

use std::collections::{BTreeMap, BTreeSet};

use futures::TryStreamExt;
use serde_json::Value;

use crate::{
    Append, Appended, Catalog, Change, CommandContext, CommandRecord, Conflict, Consistency,
    DcbSlice, Decisions, Envelope, EventError, EventLog, EventRef, Extent, LimitExceeded,
    LimitKind, LogError, NewEvent, Outcome, Plan, PlanError, Seen, Settled, StoreError, Writes,
    cache::{Model, OutOfOrder},
    dcb::plan,
    limits::ACTIONS_MAX,
};

/// How often a command is decided before it gives up with [`StoreError::Contention`].
pub const ATTEMPTS_MAX: u32 = 8;

/// How many boundaries a decision may depend on: each is an action of the append, and at least one more
/// puts an event, unless that is in one of them.
pub const BOUNDARIES_MAX: usize = ACTIONS_MAX;

/// A settled command.
#[derive(Clone, Debug, PartialEq)]
pub struct Handled {
    /// What became of it.
    pub outcome: Outcome,
    /// How often it was decided; 1 without conflicts.
    pub attempts: u32,
    /// Whether the outcome was recorded before, by an earlier command with the same key.
    pub repeated: bool,
}

/// Why a command is not settled.
#[derive(Debug, thiserror::Error)]
pub enum HandleError {
    /// The command can't be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The slice decided on an event that can't be read back; nothing is written.
    #[error(transparent)]
    Event(#[from] EventError),
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
/// A refusal is answered only after a snapshot shows that nothing was added to what was seen (rule 6);
/// with an idempotency key no answer leaves before it is recorded (rule 10). After a conflict the events
/// that were missed are folded and the command is decided again: where they do not concern it, it
/// decides the same, for `decide` is pure.
pub async fn handle<S: DcbSlice, L: EventLog + ?Sized>(
    log: &L,
    catalog: &Catalog,
    decisions: &Decisions<S>,
    command: &S,
    envelope: &Envelope,
) -> Result<Handled, HandleError> {
    let (query, plan) = plan::<S>(command.shape(), command.tags(), catalog)?;
    let key = envelope.idempotency_key.as_deref();
    check_size(&plan, key.is_some())?;
    let record = key.map(|key| CommandRecord::new(S::NAME, key, command));
    let attempt = Attempt { log, plan: &plan, command, envelope, record: record.as_ref() };

    let mut model = match decisions.take(&query) {
        Some(model) => model,
        None => attempt.model(S::CONSISTENCY).await?,
    };
    let mut behind: Option<Conflict> = None;
    for attempts in 1..=ATTEMPTS_MAX {
        let decided = match behind.take() {
            // An index that does not show yet what its fence counts would only conflict again.
            Some(conflict) if lags(&conflict, &model.seen) => Err((conflict, model)),
            _ => attempt.decide(model).await?,
        };
        let (conflict, stale) = match decided {
            Ok(Decided { outcome, model, repeated }) => {
                if let Some(model) = model {
                    decisions.put(query, model);
                }
                return Ok(Handled { outcome, attempts, repeated });
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

/// Refuses, before any read, a command whose append no log could take: it names the tag that most of
/// its boundaries are of.
fn check_size(plan: &Plan, recorded: bool) -> Result<(), HandleError> {
    let found = plan.reads.len();
    let limit = BOUNDARIES_MAX - usize::from(recorded);
    if found <= limit {
        return Ok(());
    }
    let mut keys: BTreeMap<&str, usize> = BTreeMap::new();
    for tag in plan.clauses.iter().flat_map(|clause| &clause.tags) {
        *keys.entry(&tag.key).or_default() += 1;
    }
    let most = keys.into_iter().max_by_key(|(_, count)| *count);
    let subject = most.map_or_else(String::new, |(key, count)| format!("{count} values of {key}"));
    let unit = "boundaries of one decision";
    let advice = "split the command; its transaction has 100 actions";
    let checked = LimitExceeded::check(LimitKind::Boundaries, subject, unit, found, limit, advice);
    checked.map_err(|exceeded| LogError::from(exceeded).into())
}

/// Whether less was seen than a fence is known to count.
fn lags(conflict: &Conflict, seen: &Seen) -> bool {
    conflict.0.iter().any(|change| match change {
        Change::Slot { .. } => false,
        Change::Count { boundary, event_type, found, .. } => {
            let counts = match seen.of(boundary) {
                Some(Extent::Fence { counts, .. }) => Some(counts),
                Some(Extent::Prefix(prefix)) => prefix.fenced.as_ref(),
                None => None,
            };
            counts.and_then(|counts| counts.get(event_type)).is_some_and(|seen| seen < found)
        }
    })
}

/// What stays the same over the attempts of one command.
struct Attempt<'a, S, L: ?Sized> {
    log: &'a L,
    plan: &'a Plan,
    command: &'a S,
    envelope: &'a Envelope,
    record: Option<&'a CommandRecord>,
}

struct Decided<S: DcbSlice> {
    outcome: Outcome,
    /// What the handler may keep: it holds as of the commit or the snapshot.
    model: Option<Model<S>>,
    repeated: bool,
}

/// What was added since, and the model that lacks it.
type Stale<S> = (Conflict, Model<S>);

/// Why missed events can't be folded on top of a model.
enum Missed {
    OutOfOrder,
    Log(LogError),
}

impl<S: DcbSlice, L: EventLog + ?Sized> Attempt<'_, S, L> {
    async fn model(&self, consistency: Consistency) -> Result<Model<S>, LogError> {
        self.log
            .read(self.plan, consistency, self.envelope)
            .try_fold(Model::empty(self.plan), async |model, event| model.apply(self.plan, &event))
            .await
    }

    /// The model with what it lacks. Where only partitions changed, their tails are read, and the rest of
    /// what was seen stays. A fence does not say which events are new, so then all is read again. So it is
    /// if a missed event belongs before one that was folded.
    async fn catch_up(&self, model: Model<S>, conflict: &Conflict) -> Result<Model<S>, LogError> {
        let partition = |change: &Change| match change {
            Change::Slot { partition, .. } => Some(partition.clone()),
            Change::Count { boundary, .. } => model.seen.prefix(boundary).map(|_| boundary.clone()),
        };
        if let Some(partitions) = conflict.0.iter().map(partition).collect::<Option<BTreeSet<_>>>()
        {
            let tails = self.plan.tails(&model.seen, &partitions);
            let missed = self.log.read(&tails, Consistency::Strong, self.envelope);
            let caught_up = missed.map_err(Missed::Log).try_fold(model, async |model, event| {
                let folded = model.catch_up(self.plan, &event).map_err(Missed::Log)?;
                folded.map_err(|OutOfOrder| Missed::OutOfOrder)
            });
            match caught_up.await {
                Ok(model) => return Ok(model),
                Err(Missed::Log(error)) => return Err(error),
                Err(Missed::OutOfOrder) => {}
            }
        }
        self.model(Consistency::Strong).await
    }

    /// What the decision may know: an event that it has read, and whose time a fold can show, is not
    /// in its future, whichever writer's clock is ahead.
    fn context(&self, seen: &Seen) -> CommandContext {
        let context = self.envelope.context.clone();
        CommandContext { now_ms: context.now_ms.max(seen.newest_ms()), ..context }
    }

    async fn decide(&self, model: Model<S>) -> Result<Result<Decided<S>, Stale<S>>, HandleError> {
        let context = self.context(&model.seen);
        let outcome = match self.command.decide(&model.state, &context) {
            Ok(events) if !events.is_empty() => {
                let events = events.iter().map(Writes::to_event);
                let events = events.collect::<Result<_, _>>()?;
                return Ok(self.append(model, events).await?);
            }
            Ok(_) => Outcome::Accepted(Vec::new()),
            Err(rejection) => Outcome::Rejected {
                message: rejection.to_string(),
                rejection: serde_json::to_value(&rejection).unwrap_or(Value::Null),
            },
        };
        if let Some(conflict) = self.log.verify(&model.seen, self.envelope).await? {
            return Ok(Err((conflict, model)));
        }
        let settled = match self.record.filter(|_| !self.envelope.records_effects_only) {
            None => Settled::Now,
            Some(record) => self.log.settle(record, &outcome, self.envelope).await?,
        };
        Ok(Ok(match settled {
            Settled::Now => Decided { outcome, model: Some(model), repeated: false },
            Settled::Repeated(outcome) => Decided { outcome, model: Some(model), repeated: true },
        }))
    }

    async fn append(
        &self,
        model: Model<S>,
        events: Vec<NewEvent>,
    ) -> Result<Result<Decided<S>, Stale<S>>, LogError> {
        let append = Append {
            events,
            seen: Some(&model.seen),
            record: self.record,
            envelope: self.envelope,
        };
        match self.log.append(append).await {
            Ok(Appended::Committed(events)) => {
                let outcome = Outcome::Accepted(events.iter().map(EventRef::from).collect());
                // Committed is committed: a slice that can't fold what it wrote loses its warm
                // model here, and hears of it at its next read.
                let model = events.iter().try_fold(model, |model, e| model.apply(self.plan, e));
                Ok(Ok(Decided { outcome, model: model.ok(), repeated: false }))
            }
            Ok(Appended::Repeated(outcome)) => {
                Ok(Ok(Decided { outcome, model: None, repeated: true }))
            }
            Err(LogError::Conflict(conflict)) => Ok(Err((conflict, model))),
            Err(error) => Err(error),
        }
    }
}
