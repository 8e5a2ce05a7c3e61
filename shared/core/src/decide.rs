//! The decide loop: read, fold, decide, append under the condition of what was read.

use std::collections::BTreeMap;

use futures::TryStreamExt;
use serde_json::Value;

use crate::{
    Append, Appended, Catalog, CommandContext, CommandRecord, Conflict, Consistency, DcbSlice,
    Decisions, Envelope, EventError, EventLog, EventRef, LimitExceeded, LimitKind, LogError,
    NewEvent, Outcome, Plan, PlanError, Position, Seen, Settled, StoreError, Writes, cache::Model,
    dcb::plan,
};

/// How often a command is decided before it gives up with [`StoreError::Contention`].
pub const ATTEMPTS_MAX: u32 = 8;

/// How many boundaries a decision may depend on: each is an action of the append's transaction, which
/// has 100 on DynamoDB, and one of them puts an event, another an idempotency key's record.
pub const BOUNDARIES_MAX: usize = 99;

/// A settled command.
#[derive(Clone, Debug, PartialEq)]
pub struct Handled<P = Position> {
    /// What became of it.
    pub outcome: Outcome<P>,
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
/// A refusal is answered only after a snapshot of the fences shows the counts seen (rule 6); with
/// an idempotency key no answer leaves before it is recorded (rule 10).
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

    let mut warm = decisions.take(&query);
    let mut behind: Option<Conflict> = None;
    for attempts in 1..=ATTEMPTS_MAX {
        let model = match warm.take() {
            Some(model) => model,
            None if behind.is_none() => attempt.model(S::CONSISTENCY).await?,
            None => attempt.model(Consistency::Strong).await?,
        };
        let result = match &behind {
            // An index that does not show yet what its fence counts would only conflict again.
            Some(conflict) if lags(conflict, &model) => Err(conflict.clone()),
            _ => attempt.decide(model).await?,
        };
        match result {
            Ok(Decided { outcome, model, repeated }) => {
                if let Some(model) = model {
                    decisions.put(query, model);
                }
                return Ok(Handled { outcome, attempts, repeated });
            }
            Err(conflict) => behind = Some(conflict),
        }
        if attempts == ATTEMPTS_MAX || !log.pause(attempts, envelope).await {
            let over = behind.map(Into::into);
            return Err(StoreError::Contention { attempts, over }.into());
        }
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

fn lags<S: DcbSlice>(conflict: &Conflict, model: &Model<S>) -> bool {
    model.seen.count(&conflict.boundary, &conflict.event_type) < conflict.found
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

impl<S: DcbSlice, L: EventLog + ?Sized> Attempt<'_, S, L> {
    async fn model(&self, consistency: Consistency) -> Result<Model<S>, LogError> {
        self.log
            .read(self.plan, consistency, self.envelope)
            .try_fold(Model::empty(self.plan), async |model, event| model.apply(self.plan, &event))
            .await
    }

    /// What the decision may know: an event that it has read, and whose time a fold can show, is not
    /// in its future, whichever writer's clock is ahead.
    fn context(&self, seen: &Seen) -> CommandContext {
        let context = self.envelope.context.clone();
        let newest = seen.newest().map_or(0, Position::ms);
        CommandContext { now_ms: context.now_ms.max(newest), ..context }
    }

    async fn decide(&self, model: Model<S>) -> Result<Result<Decided<S>, Conflict>, HandleError> {
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
            return Ok(Err(conflict));
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
    ) -> Result<Result<Decided<S>, Conflict>, LogError> {
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
            Err(LogError::Conflict(conflict)) => Ok(Err(conflict)),
            Err(error) => Err(error),
        }
    }
}
