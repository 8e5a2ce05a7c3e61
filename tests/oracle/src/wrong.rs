//! Machines with wrong clocks. The store's answers have its time, so events get right times anyway.

use std::sync::atomic::{AtomicUsize, Ordering};

use ringfence_aws::{Clock, Random};

use crate::history::History;
use crate::table::NOW_MS;
use crate::weather::{LATENCY_MAX_MS, STRAY_MAX_MS};
use crate::{Kind, Schedule};

const DAY_MS: u64 = 86_400_000;
const HOUR_MS: u64 = 3_600_000;
/// In half of the schedules commands begin within minutes instead of moments, so clocks have time to drift.
const SLOWLY: u64 = 500;
/// A drifting clock is faster than the store's by one part in this many.
const DRIFT: u64 = 20;
/// A `Date` is cut to a second.
const DATE_MS: u64 = 1_000;
/// A request is sent again for at most this long.
const SENT_MAX_MS: u64 = 20_000;

/// A mistake of a machine's clock.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    Ahead(u64),
    Behind(u64),
    /// It begins ten minutes ahead, and is too fast.
    Drifts,
    /// Somebody sets it again and again, to any time within a day.
    Steps,
}

/// The mistakes of the five machines of a schedule.
const MACHINES: [Wrong; 5] = [
    Wrong::Ahead(DAY_MS),
    Wrong::Behind(DAY_MS),
    Wrong::Ahead(HOUR_MS),
    Wrong::Drifts,
    Wrong::Steps,
];

/// A machine with a wrong clock.
pub(crate) struct Machine {
    wrong: Wrong,
    pub(crate) clock: Clock,
    /// Its commands that are under way.
    busy: AtomicUsize,
}

/// A command that is under way on a machine.
pub(crate) struct UnderWay<'a>(&'a Machine);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Machine {
    /// All machines. `hears`: whether they hear the store's time.
    pub(crate) fn all(hears: bool) -> impl Iterator<Item = Self> {
        MACHINES.into_iter().map(move |wrong| {
            let off_ms = match wrong {
                Wrong::Ahead(ms) => NOW_MS + ms,
                Wrong::Behind(ms) => NOW_MS - ms,
                Wrong::Drifts => NOW_MS + 600_000,
                Wrong::Steps => NOW_MS,
            };
            let clock = Clock::running(off_ms);
            let clock = if hears { clock.of_machine() } else { clock };
            Self { wrong, clock, busy: AtomicUsize::new(0) }
        })
    }

    /// Whether a decision can be kept for the next command. If the clock was set since the last answer, an append
    /// without a read before it has a wrong time.
    pub(crate) fn keeps_decisions(&self) -> bool {
        matches!(self.wrong, Wrong::Ahead(_) | Wrong::Behind(_))
    }

    /// Begins a command. If no other one is under way, the clock may have moved.
    pub(crate) fn begin(&self, now_ms: u64, random: &mut Random) -> UnderWay<'_> {
        if self.busy.fetch_add(1, Ordering::SeqCst) == 0 {
            match self.wrong {
                Wrong::Ahead(_) | Wrong::Behind(_) => {}
                Wrong::Drifts => self.clock.set(now_ms + 600_000 + (now_ms - NOW_MS) / DRIFT),
                Wrong::Steps => self.clock.set(now_ms - DAY_MS + random.below(2 * DAY_MS)),
            }
        }
        UnderWay(self)
    }
}

/// The factor of the times at which commands begin.
pub(crate) fn pace(seed: u64) -> u64 {
    if Random::new(&[seed, 9]).chance(50) { SLOWLY } else { 1 }
}

/// The times of events differ from the store's by at most what its answers leave open.
pub(crate) fn check(schedule: &Schedule, history: &History) -> Result<(), String> {
    let slow_ms = if schedule.kinds.contains(&Kind::Slow) { STRAY_MAX_MS } else { 0 };
    let ahead_max_ms = DATE_MS + 2 * LATENCY_MAX_MS + slow_ms;
    for commit in &history.commits {
        let (at, effect_ms) = (commit.at, commit.effect_ms);
        if at > effect_ms + ahead_max_ms {
            return Err(format!("{commit:?} is {} ms ahead of the store", at - effect_ms));
        }
        if at + ahead_max_ms + SENT_MAX_MS < effect_ms {
            return Err(format!("{commit:?} is {} ms behind the store", effect_ms - at));
        }
    }
    Ok(())
}
