//! The comparison with a serial run: the commands one after the other, in the order in which the
//! store made their effects, on the log in memory.

use std::collections::BTreeMap;

use futures::TryStreamExt;
use ringfence::{
    Append, Envelope, EventLog, HandleError, Handled, LogError, MemoryLog, NewEvent, Outcome,
    SequencedEvent, StoreError, Tag,
};
use ringfence_dynamo::Clock;
use serde_json::Value;

use crate::commands::{Caches, Job};
use crate::recount;
use crate::weather::History;
use crate::world::{End, World};

/// What a decision comes to.
#[derive(Debug, PartialEq)]
enum Decision {
    /// Events: type, tags, payload.
    Events(Vec<(String, Vec<Tag>, Value)>),
    Nothing,
    Rejected(Value),
}

/// Everything that is compared.
struct Run<'a> {
    world: &'a World,
    history: &'a History,
    /// Every event of the table, by position.
    events: BTreeMap<String, SequencedEvent>,
}

/// Compares the history and the answers with a serial run.
///
/// # Errors
/// The first difference.
pub(crate) async fn check(world: &World, history: &History, ends: &[End]) -> Result<(), String> {
    let log = world.log(&Clock::fixed(0));
    let events: Vec<_> = log.scan().try_collect().await.map_err(|e| format!("{e:?}"))?;
    let events = events.into_iter().map(|event| (event.position.to_string(), event)).collect();
    let run = Run { world, history, events };
    run.table_is_history()?;
    run.order()?;
    recount::check(&world.engine, &world.catalog, &run.events)?;
    run.one_effect_each()?;
    for (n, commit) in history.commits.iter().enumerate() {
        let job = run.job(&commit.command)?;
        let decided = Decision::Events(run.events_of(n));
        let serial = run.serial(job, n).await?;
        if decided != serial {
            return Err(format!(
                "effect {n}, {:?}: a serial run decides {serial:?}, the log holds {decided:?}",
                job.command
            ));
        }
    }
    for end in ends {
        run.cause(end)?;
        // Timers go in whole milliseconds.
        if end.late_ms > 1 {
            return Err(format!("command {}.{}: {} ms late", end.job, end.copy, end.late_ms));
        }
        run.answer(end, ends).await?;
    }
    Ok(())
}

impl Run<'_> {
    fn job(&self, id: &str) -> Result<&Job, String> {
        let job = self.world.jobs.iter().find(|job| job.id() == id);
        job.ok_or_else(|| format!("an effect of {id:?}, which nobody sent"))
    }

    fn events_of(&self, commit: usize) -> Vec<(String, Vec<Tag>, Value)> {
        let positions = self.history.commits[commit].positions.iter();
        let events = positions.filter_map(|position| self.events.get(position));
        events.map(|e| (e.event_type.clone(), e.tags.clone(), e.data.clone())).collect()
    }

    fn table_is_history(&self) -> Result<(), String> {
        let mut known: Vec<&String> =
            self.history.commits.iter().flat_map(|commit| &commit.positions).collect();
        known.sort();
        let found: Vec<&String> = self.events.keys().collect();
        if known == found { Ok(()) } else { Err(format!("effects {known:?}, table {found:?}")) }
    }

    /// Under each fence the order of effects is the order of positions.
    fn order(&self) -> Result<(), String> {
        let mut heads: BTreeMap<String, &str> = BTreeMap::new();
        let positions = self.history.commits.iter().flat_map(|commit| &commit.positions);
        for position in positions {
            for boundary in recount::fences_of(&self.world.catalog, &self.events[position]) {
                match heads.insert(boundary.clone(), position) {
                    Some(head) if head >= position.as_str() => {
                        return Err(format!("{boundary}: {position} took effect after {head}"));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// No command has two effects, however often it was sent.
    fn one_effect_each(&self) -> Result<(), String> {
        let mut effects: BTreeMap<&str, usize> = BTreeMap::new();
        for (n, commit) in self.history.commits.iter().enumerate() {
            if let Some(first) = effects.insert(&commit.command, n) {
                return Err(format!("{} took effect twice, as {first} and {n}", commit.command));
            }
        }
        Ok(())
    }

    fn effect(&self, job: usize) -> Option<usize> {
        let id = self.world.jobs.iter().find(|j| j.number == job)?.id();
        self.history.commits.iter().position(|commit| commit.command == id)
    }

    /// An effect follows its cause. Of the copies of a command only a sole one is known to be the
    /// one that took effect.
    fn cause(&self, end: &End) -> Result<(), String> {
        let sole = self.world.jobs.iter().any(|j| j.number == end.job && j.copies.len() == 1);
        if let (true, Some(cause), Some(effect)) = (sole, &end.cause, self.effect(end.job)) {
            let positions = &self.history.commits[effect].positions;
            if positions.iter().any(|position| position.as_str() <= cause.as_str()) {
                return Err(format!("{positions:?} was caused by {cause}"));
            }
        }
        Ok(())
    }

    async fn answer(&self, end: &End, ends: &[End]) -> Result<(), String> {
        let wrong = |what: String| Err(format!("command {}.{}: {what}", end.job, end.copy));
        let effect = self.effect(end.job);
        let handled = match &end.result {
            // Whoever crashed has promised nothing.
            None => return Ok(()),
            Some(Ok(handled)) => handled,
            Some(Err(error)) => {
                let sole = ends.iter().filter(|other| other.job == end.job).count() == 1;
                return match nothing_was_written(error) {
                    Some(true) if sole && effect.is_some() => {
                        wrong(format!("{error:?}, and yet effect {effect:?}"))
                    }
                    None => wrong(format!("an error that nothing here causes: {error:?}")),
                    _ => Ok(()),
                };
            }
        };
        let refused = match &handled.outcome {
            Outcome::Accepted(events) if !events.is_empty() => {
                let answered: Vec<_> = events.iter().map(|e| e.position.to_string()).collect();
                let positions = effect.map(|n| &self.history.commits[n].positions);
                if positions != Some(&answered) {
                    return wrong(format!("answered {answered:?}, took effect at {positions:?}"));
                }
                return Ok(());
            }
            Outcome::Accepted(_) => Decision::Nothing,
            Outcome::Rejected { rejection, .. } => Decision::Rejected(rejection.clone()),
        };
        if effect.is_some() {
            return wrong(format!("answered {refused:?}, and yet effect {effect:?}"));
        }
        self.refusal(end, handled, refused).await
    }

    /// A refusal is the serial decision at the snapshot of the fences that it was checked with; a
    /// repeated one at the snapshot of one of its copies.
    async fn refusal(&self, end: &End, handled: &Handled, refused: Decision) -> Result<(), String> {
        let snapshots =
            self.history.snapshots.iter().filter(|((job, copy), _)| {
                *job == end.job && (handled.repeated || *copy == end.copy)
            });
        let job = self.world.jobs.iter().find(|job| job.number == end.job).expect("it was sent");
        let mut serial = Vec::new();
        for (_, snapshot) in snapshots {
            let decision = self.serial(job, *snapshot).await?;
            if decision == refused {
                return Ok(());
            }
            serial.push((*snapshot, decision));
        }
        Err(format!(
            "command {}.{}, {:?}: answered {refused:?}; a serial run decides, after so many \
             effects: {serial:?}",
            end.job, end.copy, job.command
        ))
    }

    /// What the command comes to after the first `commits` effects.
    async fn serial(&self, job: &Job, commits: usize) -> Result<Decision, String> {
        let memory = MemoryLog::new(self.world.catalog.clone());
        let envelope = Envelope::default();
        for commit in &self.history.commits[..commits] {
            let events = commit.positions.iter().filter_map(|p| self.events.get(p)).map(|event| {
                let schema = self.world.catalog.schema(&event.event_type);
                let event_type = schema.expect("a declared type").name.clone();
                NewEvent { event_type, tags: event.tags.clone(), data: event.data.clone() }
            });
            let append =
                Append { events: events.collect(), seen: None, record: None, envelope: &envelope };
            memory.append(append).await.map_err(|e| format!("{e:?}"))?;
        }
        let before = memory.events().len();
        let caches = Caches::new(0);
        let handled = job.command.handle(&memory, &self.world.catalog, &caches, &envelope).await;
        Ok(match handled.map_err(|e| format!("{e:?}"))?.outcome {
            Outcome::Rejected { rejection, .. } => Decision::Rejected(rejection),
            Outcome::Accepted(events) if events.is_empty() => Decision::Nothing,
            Outcome::Accepted(_) => {
                let events = memory.events().split_off(before).into_iter();
                Decision::Events(events.map(|e| (e.event_type, e.tags, e.data)).collect())
            }
        })
    }
}

/// Whether the error promises that nothing was written; `None` for one that no fault explains.
fn nothing_was_written(error: &HandleError) -> Option<bool> {
    match error {
        HandleError::Log(LogError::Store(error)) => match error {
            StoreError::OutcomeUnknown { .. } => Some(false),
            StoreError::Contention { .. }
            | StoreError::Throttled { .. }
            | StoreError::Unavailable { .. } => Some(true),
            StoreError::Failed { .. } => None,
        },
        _ => None,
    }
}
