//! The faults of requests in schedules of lanes, queue and dues, until the storm is over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use ringfence_aws::wire::{Backend, Director, Fault, Wire};
use ringfence_aws::{Clock, Random};
use ringfence_core::LogKind;
use ringfence_local::engine::Engine;
use ringfence_log::StackLogs;
use serde_json::Value;

use crate::table::{NOW_MS, TABLE};
use crate::weather::{CALLER, LATENCY_MAX_MS, STRAY_MAX_MS, fault};
use crate::{Kind, Mutant, Schedule, Tally};

/// Stands for a step if a request has none: a task that reads ahead for a run has sent it.
const AHEAD: (usize, usize) = (usize::MAX, 0);
/// Clocks differ by at most this, either way.
const SKEW_MAX_MS: u64 = 300_000;
/// The steps of a schedule begin within one of these: at once, or with a lease or a pause between them.
const SPANS_MS: [u64; 4] = [500, 5_000, 20_000, 3_600_000];
/// A stray request takes effect at most this long after its caller gave it up, in milliseconds.
pub(crate) const LATE_MAX_MS: u64 = 20_000;
/// A table is down for at most this long.
const OUTAGE_MAX_MS: u64 = 60_000;

/// The storm of one schedule.
pub(crate) struct Storm {
    pub(crate) seed: u64,
    kinds: BTreeSet<Kind>,
    mutant: Option<Mutant>,
    /// This many requests out of a hundred have a fault.
    percent: u64,
    /// Most faults are of this kind.
    favored: u64,
    /// The steps begin within so many milliseconds.
    span_ms: u64,
    /// A table that is down, with its beginning and end, in milliseconds since 1970.
    outage: Option<(&'static str, u64, u64)>,
    clock: Clock,
    is_over: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    requests: BTreeMap<(usize, usize), u64>,
    first_write: Option<u64>,
    tally: Tally,
    trace: Vec<String>,
}

impl Storm {
    pub(crate) fn new(schedule: &Schedule, mutant: Option<Mutant>) -> Arc<Self> {
        let mut random = Random::new(&[schedule.seed, 20]);
        let percent = [0, 10, 20, 40][usize::try_from(random.below(4)).unwrap_or(0)];
        let span_ms = SPANS_MS[usize::try_from(random.below(4)).unwrap_or(0)];
        let table = ["\"events\"", "\"views\""][usize::try_from(random.below(2)).unwrap_or(0)];
        let (is_down, from_ms) = (random.chance(75), NOW_MS + random.below(span_ms));
        let outage = (table, from_ms, from_ms + random.below(OUTAGE_MAX_MS));
        let favored = random.next();
        let state = State { tally: Tally { schedules: 1, ..Tally::default() }, ..State::default() };
        Arc::new(Self {
            seed: schedule.seed,
            kinds: schedule.kinds.clone(),
            mutant,
            percent,
            favored,
            span_ms,
            outage: is_down.then_some(outage),
            clock: Clock::running(NOW_MS),
            is_over: AtomicBool::new(false),
            state: Mutex::new(state),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client whose requests meet the storm, and one whose requests do not.
    pub(crate) fn clients(self: &Arc<Self>, engine: &Engine) -> (Client, Client) {
        let (wire, calm, engine) = (Wire::default(), Wire::default(), engine.clone());
        wire.direct(self.clone());
        let store: Backend = Arc::new(move |operation, body| engine.call(operation, body));
        (wire.client_of(store.clone()), calm.client_of(store))
    }

    /// Ends the storm: from now on the store and everything else outside of the tested code work.
    pub(crate) fn ends(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind) && !self.is_over()
    }

    pub(crate) fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// The random numbers of a step, independent of other steps.
    pub(crate) fn random(&self, step: usize) -> Random {
        Random::new(&[self.seed, 21, step as u64])
    }

    /// A step begins after this time.
    pub(crate) fn delay(&self, random: &mut Random) -> Duration {
        Duration::from_millis(random.below(self.span_ms))
    }

    /// The time at which the process of a step crashes, if it does.
    pub(crate) fn crash(&self, random: &mut Random) -> Option<Duration> {
        let (crashes, ms) = (random.chance(30), random.below(400));
        (crashes && self.has(Kind::Crash)).then(|| Duration::from_millis(ms))
    }

    /// The true time, in milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// A clock, which may be minutes off.
    pub(crate) fn clock(&self, random: &mut Random) -> Clock {
        let (is_off, off) = (random.chance(50), random.below(2 * SKEW_MAX_MS));
        let off = if is_off && self.has(Kind::Skew) { off } else { SKEW_MAX_MS };
        Clock::running(self.now_ms() - SKEW_MAX_MS + off)
    }

    /// The DCB log, with a writer whose clock may be minutes off.
    pub(crate) fn logs(&self, client: Client, random: &mut Random) -> StackLogs {
        let tables = [(LogKind::Dcb, TABLE.to_owned())].into();
        StackLogs { client, clock: self.clock(random), tables, vault: None }
    }

    pub(crate) fn note(&self, line: impl FnOnce() -> String) {
        let line = line();
        let at = self.now_ms() - NOW_MS;
        self.state().trace.push(format!("{at} ms {line}"));
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut Tally)) {
        count(&mut self.state().tally);
    }

    /// When the first write that met the storm took effect, in milliseconds since 1970.
    pub(crate) fn first_write(&self) -> Option<u64> {
        self.state().first_write
    }

    pub(crate) fn take(&self) -> (Tally, Vec<String>) {
        let state = &mut *self.state();
        (state.tally, std::mem::take(&mut state.trace))
    }

    /// The fault of one request. Each number is drawn whether it is used or not, so leaving out one kind does not
    /// change the others.
    fn wrong(&self, operation: &str, request: &Value, random: &mut Random) -> Vec<(Kind, Fault)> {
        let mut wrong = Vec::new();
        let is_weak = operation == "Query" && request["ConsistentRead"] != true;
        let (limit, seed) = (1 + random.below(3), random.next());
        if random.chance(self.percent) && operation == "Query" {
            wrong.push((Kind::Page, Fault::page(limit)));
        }
        if random.chance(3 * self.percent) && is_weak {
            wrong.push((Kind::Stale, Fault::stale(seed)));
        }
        if random.chance(20) && operation == "TransactWriteItems" {
            wrong.push((Kind::TokenForgotten, Fault::without_token()));
        }
        let kinds = Kind::of(operation);
        let (any, is_favored) = (random.next(), random.chance(80));
        let which = if is_favored { self.favored } else { any } % kinds.len() as u64;
        let kind = kinds[usize::try_from(which).unwrap_or(0)];
        let later = if kind == Kind::Stray { LATE_MAX_MS } else { STRAY_MAX_MS };
        let later = Duration::from_millis(random.below(later));
        if random.chance(self.percent) {
            wrong.push((kind, fault(kind, operation, request, later)));
        }
        if let Some((table, from_ms, until_ms)) = self.outage
            && (from_ms..until_ms).contains(&self.now_ms())
            && request.to_string().contains(table)
        {
            wrong.push((Kind::Outage, Fault::error("ThrottlingException")));
        }
        wrong.retain(|(kind, _)| self.has(*kind));
        wrong
    }
}

impl Director for Storm {
    fn faults(&self, operation: &str, request: &Value) -> Vec<Fault> {
        let mut faults: Vec<_> =
            self.mutant.and_then(|mutant| mutant.edit(request)).into_iter().collect();
        if self.is_over() {
            return faults;
        }
        let caller = CALLER.try_with(|caller| *caller).unwrap_or(AHEAD);
        let mut state = self.state();
        let count = state.requests.entry(caller).or_default();
        *count += 1;
        let parts = [self.seed, 22, caller.0 as u64, caller.1 as u64, *count];
        let mut random = Random::new(&parts);
        let mut wait = || Duration::from_millis(random.below(LATENCY_MAX_MS));
        let (there, back) = (wait(), wait());
        let wrong = self.wrong(operation, request, &mut random);
        state.tally.requests += 1;
        state.tally.faults += u64::from(!wrong.is_empty());
        drop(state);
        self.note(|| {
            let kinds: Vec<_> = wrong.iter().map(|(kind, _)| *kind).collect();
            format!("  {caller:?} {operation} {kinds:?} {}", key(request))
        });
        if self.has(Kind::Latency) {
            faults.extend([Fault::Late(back), Fault::Delay(there)]);
        }
        faults.extend(wrong.into_iter().map(|(_, fault)| fault));
        faults
    }

    fn carried_out(&self, operation: &str, request: &Value, status: u16) {
        let is_write = matches!(operation, "PutItem" | "UpdateItem" | "TransactWriteItems");
        if is_write && status == 200 {
            let now_ms = self.now_ms();
            self.state().first_write.get_or_insert(now_ms);
        }
        if is_write {
            self.note(|| format!("  effect {operation} {status} {}", key(request)));
        }
    }
}

/// The item of a request, and its change, for the report of a difference.
fn key(request: &Value) -> String {
    let is_there = |name: &&str| request.get(name).is_some();
    let parts = ["Key", "UpdateExpression", "Item", "TransactItems"].into_iter().filter(is_there);
    let parts: Vec<_> = parts.map(|name| request[name].to_string()).collect();
    parts.join(" ").chars().filter(|c| *c != '"').take(300).collect()
}
