//! The faults of each request, and the order in which the store works.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringfence_aws::wire::{Director, Edit, Fault};
use ringfence_aws::{Clock, Random};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::history::{Commit, History, commit, event_of};
use crate::{Mutant, Schedule};

/// A request or an answer takes at most this long, in milliseconds.
pub(crate) const LATENCY_MAX_MS: u64 = 8;
/// A stray request takes effect at most this long after its caller gave it up, in milliseconds.
pub(crate) const STRAY_MAX_MS: u64 = 3_000;

tokio::task_local! {
    /// The command of a request, and its copy.
    pub(crate) static CALLER: (usize, usize);
}

/// The put of a snapshot takes at most this long, in milliseconds: long enough for an older one to replace a newer one.
const SNAPSHOT_MAX_MS: u64 = 50;
/// A transaction's items become visible one by one for this long, in milliseconds.
const TORN_MAX_MS: u64 = 10;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A replica or an index shows some of the items, in any combination.
    Stale,
    /// A strong read shows only some items of a recent transaction.
    Torn,
    /// Pages end early, and time passes between them.
    Page,
    /// Some keys of a batch come back unprocessed.
    Unprocessed,
    /// The request is throttled.
    Throttled,
    /// Another transaction holds an item.
    Conflict,
    /// The store reports a failure; nothing took effect.
    Failed,
    /// The store reports a failure; the request took effect.
    FailedAfter,
    /// The store reports that the same transaction is under way.
    InProgress,
    /// Nothing arrives; the caller sees a time-out.
    LostBefore,
    /// The answer does not arrive.
    LostAfter,
    /// The caller sees a time-out, and the request takes effect later.
    Stray,
    /// The store has forgotten the transaction's token.
    TokenForgotten,
    /// Requests and answers take time, so commands overlap.
    Latency,
    /// The writer crashes in the middle of a command.
    Crash,
    /// A request or its answer takes seconds.
    Slow,
    /// Commands have deadlines.
    Deadline,
    /// Clocks differ, and go back.
    Skew,
    /// Writers keep their decisions warm.
    Warm,
    /// Writers keep snapshots, some of which get lost.
    Snapshots,
    /// Indexes project keys only.
    KeysOnly,
    /// An effect outside fails, or nobody knows whether it has happened.
    Effect,
    /// A table is down for seconds.
    Outage,
}

impl Kind {
    /// Every one.
    pub const ALL: [Self; 23] = [
        Self::Stale,
        Self::Torn,
        Self::Page,
        Self::Unprocessed,
        Self::Throttled,
        Self::Conflict,
        Self::Failed,
        Self::FailedAfter,
        Self::InProgress,
        Self::LostBefore,
        Self::LostAfter,
        Self::Stray,
        Self::TokenForgotten,
        Self::Latency,
        Self::Crash,
        Self::Slow,
        Self::Deadline,
        Self::Skew,
        Self::Warm,
        Self::Snapshots,
        Self::KeysOnly,
        Self::Effect,
        Self::Outage,
    ];

    /// Those that can happen to one request of `operation`, in place of an answer.
    pub(crate) fn of(operation: &str) -> &'static [Self] {
        const ALL: [Kind; 9] = [
            Kind::Throttled,
            Kind::Failed,
            Kind::LostBefore,
            Kind::LostAfter,
            Kind::Slow,
            Kind::Conflict,
            Kind::Stray,
            Kind::FailedAfter,
            Kind::InProgress,
        ];
        match operation {
            "TransactWriteItems" => &ALL,
            "PutItem" | "UpdateItem" | "DeleteItem" => &ALL[..8],
            "TransactGetItems" => &ALL[..6],
            _ => &ALL[..5],
        }
    }
}

#[derive(Default)]
struct State {
    history: History,
    /// The number of requests of each caller.
    requests: BTreeMap<(usize, usize), u64>,
    /// When each event took effect.
    effects: Vec<(Instant, String)>,
    /// By caller, how many commits its present query shows as a whole. It hides parts of the later ones.
    torn: BTreeMap<(usize, usize), usize>,
    /// The number of snapshots that were sent.
    snapshots: u64,
}

/// The weather of one schedule, which records the history.
pub(crate) struct Weather {
    seed: u64,
    kinds: BTreeSet<Kind>,
    mutant: Option<Mutant>,
    /// This many requests out of a hundred have a fault.
    faults_percent: u64,
    /// This many reads out of a hundred are stale.
    stale_percent: u64,
    /// The store's clock.
    clock: Clock,
    state: Mutex<State>,
}

impl Weather {
    pub(crate) fn new(schedule: &Schedule, mutant: Option<Mutant>, clock: Clock) -> Self {
        let mut random = Random::new(&[schedule.seed, 2]);
        let faults_percent = [0, 5, 15, 30][usize::try_from(random.below(4)).unwrap_or(0)];
        let stale_percent = [0, 20, 50, 80][usize::try_from(random.below(4)).unwrap_or(0)];
        let (seed, kinds, state) = (schedule.seed, schedule.kinds.clone(), Mutex::default());
        Self { seed, kinds, mutant, faults_percent, stale_percent, clock, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take(&self) -> History {
        std::mem::take(&mut self.state().history)
    }

    /// The time of the newest event, by the order of effects, in milliseconds since 1970.
    pub(crate) fn newest(&self) -> Option<u64> {
        Some(self.state().history.commits.last()?.at)
    }

    /// Counts a command that began with a snapshot.
    pub(crate) fn recalled(&self) {
        self.state().history.tally.recalled += 1;
    }

    /// The faults of the put of a snapshot. No command waits for its end.
    fn of_snapshot(&self) -> Vec<Fault> {
        let mut state = self.state();
        state.snapshots += 1;
        let mut random = Random::new(&[self.seed, 7, state.snapshots]);
        if random.chance(20) {
            return vec![Fault::LostBefore];
        }
        vec![Fault::Delay(Duration::from_millis(random.below(SNAPSHOT_MAX_MS)))]
    }

    pub(crate) fn note(&self, line: String) {
        self.state().history.trace.push(line);
    }

    /// The faults of one request. Each number is drawn whether it is used or not, so leaving out one kind does not
    /// change the others.
    fn wrong(
        &self,
        operation: &str,
        request: &Value,
        random: &mut Random,
        state: &State,
    ) -> Vec<(Kind, Fault)> {
        let mut wrong = Vec::new();
        let reads = matches!(operation, "Query" | "BatchGetItem");
        let strong = request["ConsistentRead"] == true
            || request["RequestItems"]["events"]["ConsistentRead"] == true;
        let (seed, limit) = (random.next(), 1 + random.below(3));
        if random.chance(40) && operation == "Query" {
            wrong.push((Kind::Page, Fault::page(limit)));
        }
        if random.chance(self.stale_percent) && reads && !strong {
            wrong.push((Kind::Stale, Fault::stale(seed)));
        }
        let (seed, chance) = (random.next(), random.chance(50));
        if chance && reads && strong {
            wrong.push((Kind::Torn, state.torn(seed)));
        }
        if random.chance(20) && operation == "BatchGetItem" {
            wrong.push((Kind::Unprocessed, Fault::unprocessed(seed)));
        }
        if random.chance(20) && operation == "TransactWriteItems" {
            wrong.push((Kind::TokenForgotten, Fault::without_token()));
        }
        let kinds = Kind::of(operation);
        let kind = kinds[usize::try_from(random.below(kinds.len() as u64)).unwrap_or(0)];
        let later = Duration::from_millis(random.below(STRAY_MAX_MS));
        if random.chance(self.faults_percent) {
            wrong.push((kind, fault(kind, operation, request, later)));
        }
        wrong.retain(|(kind, _)| self.kinds.contains(kind));
        wrong
    }
}

impl State {
    /// The events that took effect a moment ago.
    fn recent(&self) -> BTreeSet<String> {
        let shown = Duration::from_millis(TORN_MAX_MS);
        let recent = self.effects.iter().filter(|(at, _)| at.elapsed() < shown);
        recent.map(|(_, event)| event.clone()).collect()
    }

    /// Hides some events that took effect a moment ago.
    fn torn(&self, seed: u64) -> Fault {
        let recent = self.recent();
        Fault::Reply(Edit::new(move |answer| {
            let mut random = Random::new(&[seed]);
            let mut hide = |items: &mut Value| {
                let Some(items) = items.as_array_mut() else { return };
                items.retain(|item| {
                    let event = event_of(item);
                    !(event.is_some_and(|event| recent.contains(&event)) && random.chance(50))
                });
            };
            match answer.get_mut("Responses").and_then(Value::as_object_mut) {
                Some(tables) => tables.values_mut().for_each(hide),
                None => hide(&mut answer["Items"]),
            }
        }))
    }
}

pub(crate) fn fault(kind: Kind, operation: &str, request: &Value, later: Duration) -> Fault {
    let failed = || json!({ "__type": "InternalServerError", "message": "injected" });
    match kind {
        Kind::Throttled => Fault::error("ThrottlingException"),
        Kind::Conflict if !operation.starts_with("Transact") => {
            Fault::error("TransactionConflictException")
        }
        Kind::Conflict => {
            let actions = request["TransactItems"].as_array().map_or(1, Vec::len);
            let mut codes = vec!["None"; actions];
            codes[actions - 1] = "TransactionConflict";
            Fault::cancelled(&codes)
        }
        Kind::Failed => Fault::Answer(500, failed()),
        Kind::FailedAfter => Fault::AnswerAfter(500, failed()),
        Kind::InProgress => Fault::error("TransactionInProgressException"),
        Kind::LostAfter => Fault::LostAfter,
        Kind::Stray => Fault::Stray(later),
        Kind::Slow if later.as_millis().is_multiple_of(2) => Fault::Delay(later),
        Kind::Slow => Fault::Late(later),
        _ => Fault::LostBefore,
    }
}

impl Director for Weather {
    fn faults(&self, operation: &str, request: &Value) -> Vec<Fault> {
        let edit = self.mutant.and_then(Mutant::fault);
        let edit = edit.filter(|_| operation == "TransactWriteItems");
        if operation == "PutItem" && request["Item"].get("snapshot").is_some() {
            return self.of_snapshot();
        }
        // Without a caller the request comes from the oracle.
        let Ok(caller) = CALLER.try_get() else { return edit.into_iter().collect() };
        let mut state = self.state();
        let count = state.requests.entry(caller).or_default();
        *count += 1;
        let parts = [self.seed, 3, caller.0 as u64, caller.1 as u64, *count];
        let mut random = Random::new(&parts);
        let mut wait = || Duration::from_millis(random.below(LATENCY_MAX_MS));
        let (there, back) = (wait(), wait());
        let wrong = self.wrong(operation, request, &mut random, &state);
        let kinds: Vec<Kind> = wrong.iter().map(|(kind, _)| *kind).collect();
        state.torn.remove(&caller);
        if kinds.contains(&Kind::Torn) {
            let recent = state.recent();
            let is_whole =
                |commit: &&Commit| !commit.events.iter().any(|event| recent.contains(event));
            let whole = state.history.commits.iter().take_while(is_whole).count();
            state.torn.insert(caller, whole);
        }
        state.history.tally.requests += 1;
        state.history.tally.faults += u64::from(!kinds.is_empty());
        state.history.trace.push(format!("  {caller:?} {operation} {kinds:?}"));
        let mut faults: Vec<Fault> = edit.into_iter().collect();
        if self.kinds.contains(&Kind::Latency) {
            faults.push(Fault::Delay(there));
        }
        faults.extend(wrong.into_iter().map(|(_, fault)| fault));
        if self.kinds.contains(&Kind::Latency) {
            // Before the fault that loses the answer: it is lost on its way.
            faults.insert(0, Fault::Late(back));
        }
        faults
    }

    fn carried_out(&self, operation: &str, request: &Value, status: u16) {
        if status != 200 {
            return;
        }
        let state = &mut *self.state();
        let history = &mut state.history;
        match operation {
            // The items of commands and snapshots are not what a decision depends on.
            "GetItem" if request["Key"]["id"]["S"].as_str().is_some_and(is_beside) => {}
            // The check of answers finds out which commands may depend only on a strong query.
            "Query" if request["ConsistentRead"] != true => {}
            "GetItem" | "TransactGetItems" | "Query" => {
                let Ok(caller) = CALLER.try_get() else { return };
                let last = history.commits.len();
                let mut whole = state.torn.remove(&caller).unwrap_or(last);
                // The next page of the same read.
                if request.get("ExclusiveStartKey").is_some()
                    && let Some(look) = history.looks.get(&caller)
                {
                    whole = whole.min(*look.start());
                }
                history.looks.insert(caller, whole..=last);
            }
            "PutItem" | "TransactWriteItems" => {
                let Some(commit) = commit(request, self.clock.now_ms()) else { return };
                // The store answers a known token as it did before.
                if history.commits.iter().all(|known| known.events != commit.events) {
                    let line = format!("  effect {}: {:?}", history.commits.len(), commit);
                    history.trace.push(line);
                    let events = commit.events.iter().cloned();
                    state.effects.extend(events.map(|event| (Instant::now(), event)));
                    history.commits.push(commit);
                }
            }
            _ => {}
        }
    }
}

fn is_beside(id: &str) -> bool {
    id.starts_with("command#") || id.starts_with("snapshot#")
}
