//! The comparison with a serial run: the commands one after the other, in the order of their effects in the store.
//!
//! A serial decision folds only the events of the effects before it, in the order in which the log folds them: by time.
//! Between boundaries that may differ from the order of the effects. Then the decision is made in both orders, and must
//! be the same: no decision of the examples depends on the order of facts of different boundaries.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::TryStreamExt;
use ringfence_aws::Clock;
use ringfence_core::{
    BoundaryId, EventRef, HandleError, LogError, Outcome, SequencedEvent, StoreError, Tag,
};
use serde_json::Value;

use crate::commands::Decision;
use crate::history::History;
use crate::jobs::Job;
use crate::world::{End, World};
use crate::{claims, recount};

/// The compared data.
struct Run<'a> {
    world: &'a World,
    history: &'a History,
    /// Every event of the table, by id.
    events: BTreeMap<String, SequencedEvent>,
    /// Decisions whose facts have another order by time than by commit.
    reordered: AtomicU64,
}

/// Compares the history and the answers with a serial run. It counts the decisions whose facts have another order by
/// time than by commit.
///
/// # Errors
/// The first difference.
pub(crate) async fn check(world: &World, history: &History, ends: &[End]) -> Result<u64, String> {
    let log = world.log(&Clock::fixed(0));
    let events: Vec<_> = log.scan().try_collect().await.map_err(|e| format!("{e:?}"))?;
    let events = events.into_iter().map(|event| (event.id(), event)).collect();
    let run = Run { world, history, events, reordered: AtomicU64::new(0) };
    run.table_is_history()?;
    run.order()?;
    recount::check(&world.engine, &world.catalog, &run.events)?;
    run.one_effect_each()?;
    claims::check(&run.events)?;
    for (n, commit) in history.commits.iter().enumerate() {
        let job = run.job(&commit.command)?;
        let decided = run.events_of(n);
        let serial = run.serial(job, n)?;
        if decided != serial.events {
            return Err(format!(
                "effect {n}, {:?}: a serial run decides {serial:?}, the log holds {decided:?}",
                job.command
            ));
        }
    }
    for end in ends {
        run.cause(end)?;
        // Timers count whole milliseconds.
        if end.late_ms > 1 {
            return Err(format!("command {}.{}: {} ms late", end.job, end.copy, end.late_ms));
        }
        run.answer(end, ends)?;
    }
    Ok(run.reordered.into_inner())
}

impl Run<'_> {
    fn job(&self, id: &str) -> Result<&Job, String> {
        let job = self.world.jobs.iter().find(|job| job.id() == id);
        job.ok_or_else(|| format!("an effect of {id:?}, which nobody sent"))
    }

    fn events_of(&self, commit: usize) -> Vec<(String, Vec<Tag>, Value)> {
        let events = self.history.commits[commit].events.iter();
        let events = events.filter_map(|id| self.events.get(id));
        events.map(|e| (e.event_type.clone(), e.tags.clone(), e.data.clone())).collect()
    }

    fn table_is_history(&self) -> Result<(), String> {
        let mut known: Vec<&String> =
            self.history.commits.iter().flat_map(|commit| &commit.events).collect();
        known.sort();
        let found: Vec<&String> = self.events.keys().collect();
        if known == found { Ok(()) } else { Err(format!("effects {known:?}, table {found:?}")) }
    }

    /// In each partition the order of effects is the order of slots, which have no gaps. There and under each fence it
    /// is the order of times.
    fn order(&self) -> Result<(), String> {
        let mut slots: BTreeMap<&BoundaryId, u64> = BTreeMap::new();
        let mut heads: BTreeMap<String, u64> = BTreeMap::new();
        for id in self.history.commits.iter().flat_map(|commit| &commit.events) {
            let event = &self.events[id];
            let last = slots.insert(&event.partition, event.slot).unwrap_or(0);
            if event.slot != last + 1 {
                return Err(format!("{id} took effect after slot {last}"));
            }
            let fences = recount::fences_of(&self.world.catalog, event).into_iter();
            for boundary in fences.chain([event.partition.to_string()]) {
                match heads.insert(boundary.clone(), event.at) {
                    Some(head) if head >= event.at => {
                        let at = event.at;
                        return Err(format!("{boundary}: {id} at {at} took effect after {head}"));
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

    /// An effect is later than its cause. If a command has copies, it is not known which one took effect.
    fn cause(&self, end: &End) -> Result<(), String> {
        let sole = self.world.jobs.iter().any(|j| j.number == end.job && j.copies.len() == 1);
        if let (true, Some(cause_ms), Some(effect)) = (sole, end.cause_ms, self.effect(end.job)) {
            let events = &self.history.commits[effect].events;
            if events.iter().any(|id| self.events[id].at <= cause_ms) {
                return Err(format!("{events:?} was caused by an event at {cause_ms}"));
            }
        }
        Ok(())
    }

    fn answer(&self, end: &End, ends: &[End]) -> Result<(), String> {
        let wrong = |what: String| Err(format!("command {}.{}: {what}", end.job, end.copy));
        let effect = self.effect(end.job);
        let handled = match &end.result {
            // A writer that crashed has promised nothing.
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
        let job = self.world.jobs.iter().find(|job| job.number == end.job).expect("it was sent");
        let (rejection, events) = match &handled.outcome {
            Outcome::Accepted(events) => (None, events),
            Outcome::Rejected { rejected, events } => (Some(rejected.rejection.clone()), events),
        };
        if !events.is_empty() {
            let id = |event: &EventRef| format!("{}/{}", event.partition, event.slot);
            let answered: Vec<_> = events.iter().map(id).collect();
            let Some(effect) = effect.filter(|n| self.history.commits[*n].events == answered)
            else {
                return wrong(format!("answered {answered:?}, took effect as {effect:?}"));
            };
            let serial = self.serial(job, effect)?.rejection;
            return match rejection == serial {
                true => Ok(()),
                false => wrong(format!("answered {rejection:?}, a serial run {serial:?}")),
            };
        }
        let nothing = Decision { rejection, events: Vec::new() };
        if handled.repeated {
            return wrong(format!("{nothing:?} is answered as a repeat"));
        }
        // It is the serial decision as of the command's last look.
        let Some(look) = self.history.looks.get(&(end.job, end.copy)).cloned() else {
            return wrong(format!("answered {nothing:?} without a look at what it rests on"));
        };
        // Another copy may take effect later.
        if effect.is_some_and(|effect| effect < *look.start()) {
            return wrong(format!("answered {nothing:?}, and yet effect {effect:?}"));
        }
        for commits in look.clone() {
            if self.serial(job, commits)? == nothing {
                return Ok(());
            }
        }
        let serial = self.serial(job, *look.end())?;
        wrong(format!(
            "{:?}: answered {nothing:?}; after {look:?} effects a serial run decides {serial:?}",
            job.command
        ))
    }

    /// The result of the command after the first `commits` effects.
    fn serial(&self, job: &Job, commits: usize) -> Result<Decision, String> {
        let ids = self.history.commits[..commits].iter().flat_map(|commit| &commit.events);
        let committed: Vec<_> = ids.filter_map(|id| self.events.get(id)).collect();
        let mut folded = committed.clone();
        folded.sort_by_key(|event| event.place());
        let decide = |events: &[_]| job.command.decide(&self.world.catalog, events, job.now_ms);
        let decision = decide(&folded);
        let facts = |events: &[_]| job.command.facts(&self.world.catalog, events);
        if facts(&folded) != facts(&committed) {
            self.reordered.fetch_add(1, Ordering::Relaxed);
            let other = decide(&committed);
            if other != decision {
                return Err(format!(
                    "{:?} depends on the order of facts of different boundaries: by time it comes to \
                     {decision:?}, by commit to {other:?}",
                    job.command
                ));
            }
        }
        Ok(decision)
    }
}

/// Whether the error promises that nothing was written; `None` for an error that no fault explains.
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
