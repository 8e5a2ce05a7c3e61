//! The oracle: runs many commands at once through the log on DynamoDB, with the worst network and store, and then
//! checks that each answer is the one of a serial run.
//!
//! A schedule follows only from its seed: the commands, their times, their writers with their clocks, and the faults of
//! each request. Time is paused and the store is a function call, so no wait costs anything and a failing schedule
//! fails again. It is then shrunk: commands and kinds of faults are left out as long as it still fails.
//!
//! Architecture invariant: the oracle trusts the store's order of effects, the plan of a command and the pure functions
//! of its slice, but nothing that the log under test reports.

extern crate ringfence_core as ringfence; // the derive macros use this name

mod broken;
mod check;
pub mod claims;
mod commands;
pub mod contention;
mod gates;
mod history;
pub mod import;
mod jobs;
mod market;
mod mutant;
pub mod names;
pub mod overload;
pub mod picture;
pub mod queries;
mod reacting;
mod recount;
mod seeds;
pub mod soak;
mod specification;
mod table;
pub mod throughput;
mod trial;
mod weather;
mod world;
mod wrong;

use std::collections::BTreeSet;
use std::fmt;

pub use mutant::Mutant;
pub use seeds::each;
pub use weather::Kind;

use crate::jobs::JOBS_MAX;

/// The subject of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Commands on the DCB log.
    Commands,
    /// The same, from machines with wrong clocks, on a store whose answers have its time.
    Clocks,
    /// Events that a reactor or an ordered automation handles lane by lane.
    Lanes,
    /// Commands in the queue.
    Queue,
    /// Commands that are sent when they are due.
    Dues,
}

/// A trial. All of it follows from the seed, and shrinking leaves parts out.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Its subject.
    pub subject: Subject,
    /// Determines commands, times, writers and faults.
    pub seed: u64,
    /// The commands or steps, by number.
    pub jobs: BTreeSet<usize>,
    /// The possible faults.
    pub kinds: BTreeSet<Kind>,
}

impl Schedule {
    /// Everything that follows from the seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::about(Subject::Commands, seed)
    }

    /// A schedule of wrong clocks.
    #[must_use]
    pub fn of_clocks(seed: u64) -> Self {
        Self::about(Subject::Clocks, seed)
    }

    /// A schedule of lanes.
    #[must_use]
    pub fn of_lanes(seed: u64) -> Self {
        Self::about(Subject::Lanes, seed)
    }

    /// A schedule of the queue.
    #[must_use]
    pub fn of_queue(seed: u64) -> Self {
        Self::about(Subject::Queue, seed)
    }

    /// A schedule of dues.
    #[must_use]
    pub fn of_dues(seed: u64) -> Self {
        Self::about(Subject::Dues, seed)
    }

    /// Everything about a subject that follows from the seed.
    #[must_use]
    pub fn about(subject: Subject, seed: u64) -> Self {
        let jobs = match subject {
            Subject::Commands | Subject::Clocks => JOBS_MAX,
            Subject::Lanes => reacting::LANES_STEPS,
            Subject::Queue => reacting::QUEUE_STEPS,
            Subject::Dues => reacting::DUES_STEPS,
        };
        Self { subject, seed, jobs: (0..jobs).collect(), kinds: Kind::ALL.into() }
    }

    /// The `n`th schedule of claims on the work of a project.
    ///
    /// # Panics
    /// No seed of a thousand has this theme.
    #[must_use]
    pub fn of_claims(n: u64) -> Self {
        let mut seeds = n * 1_000..(n + 1) * 1_000;
        let seed = seeds.find(|seed| jobs::theme(*seed) == jobs::CLAIMS);
        Self::new(seed.expect("a fifth of them are about claims"))
    }

    /// Runs it and compares it with a serial run.
    ///
    /// # Errors
    /// The first difference, with the events before it.
    pub fn run(&self, mutant: Option<Mutant>) -> Result<Tally, String> {
        let (tally, trace) = trial::run(self, mutant);
        tally.map_err(|difference| format!("{difference}\n{}", trace.join("\n")))
    }
}

/// The content of the schedules, which shows that they try something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Schedules.
    pub schedules: u64,
    /// Requests that the store carried out or lost.
    pub requests: u64,
    /// Requests with a fault other than a delay.
    pub faults: u64,
    /// Commands that appended events.
    pub accepted: u64,
    /// Answers that appended nothing: rejections and no-ops.
    pub without_events: u64,
    /// Answers that a record gave.
    pub repeated: u64,
    /// Commands, runs and sweeps that ended without an answer: crashed, contended, unknown.
    pub unanswered: u64,
    /// Commands that began with a snapshot.
    pub recalled: u64,
    /// Decisions made again.
    pub decided_again: u64,
    /// Decisions whose facts have another order by time than by commit.
    pub reordered: u64,
    /// Effects outside.
    pub effects: u64,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.schedules += other.schedules;
        self.requests += other.requests;
        self.faults += other.faults;
        self.accepted += other.accepted;
        self.without_events += other.without_events;
        self.repeated += other.repeated;
        self.unanswered += other.unanswered;
        self.recalled += other.recalled;
        self.decided_again += other.decided_again;
        self.reordered += other.reordered;
        self.effects += other.effects;
    }
}

/// The smallest schedule that was found in which the log and the serial run differ.
#[derive(Debug)]
pub struct Difference {
    /// Run it again with [`Schedule::run`].
    pub schedule: Schedule,
    /// The difference, and the events before it.
    pub report: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Schedule { subject, seed, jobs, kinds } = &self.schedule;
        writeln!(f, "{subject:?} of seed {seed} differ from a serial run; still with {jobs:?}")?;
        writeln!(f, "and faults {kinds:?}:")?;
        f.write_str(&self.report)
    }
}

impl std::error::Error for Difference {}

/// Runs so many schedules from `first` on, on as many threads as there are processors.
///
/// # Errors
/// The first schedule that differs from a serial run, shrunk.
pub fn run(
    schedules: u64,
    first: u64,
    of: fn(u64) -> Schedule,
    mutant: Option<Mutant>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Tally, Box<Difference>> {
    let tallies = each(schedules, first, |n| of(n).run(mutant), progress);
    let tallies = tallies.map_err(|(n, _)| Box::new(shrink(of(n), mutant)))?;
    let mut tally = Tally::default();
    tallies.iter().for_each(|one| tally.add(one));
    Ok(tally)
}

/// Leaves out parts, as long as the schedule still fails.
fn shrink(schedule: Schedule, mutant: Option<Mutant>) -> Difference {
    let report = schedule.run(mutant).err();
    let report = report.unwrap_or_else(|| "it failed once and did not again".to_owned());
    let mut found = Difference { schedule, report };
    loop {
        let Schedule { jobs, kinds, .. } = found.schedule.clone();
        let mut smaller = false;
        let mut attempt = |leave_out: &dyn Fn(&mut Schedule)| {
            let mut schedule = found.schedule.clone();
            leave_out(&mut schedule);
            if let Err(report) = schedule.run(mutant) {
                found = Difference { schedule, report };
                smaller = true;
            }
        };
        for job in &jobs {
            attempt(&|schedule| schedule.jobs.retain(|other| other != job));
        }
        for kind in &kinds {
            attempt(&|schedule| schedule.kinds.retain(|other| other != kind));
        }
        if !smaller {
            return found;
        }
    }
}
