//! The bounds: the scenarios for each environment.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use crate::{
    catalogue::{Scenario, every, few, keyed, reactions, scenarios, sequences, small, warm, whole},
    environment::{
        Answers, CRASHED_SNAPSHOTS, CRASHED_SUBSETS, ENVIRONMENTS, Environment, FUSED, LOST,
        LOST_SUBSETS, PER_ITEM, SKEWED, SNAPSHOTS, SUBSETS, WIDE, WRONG,
    },
    explore::{States, explore},
    judge::Model,
    property::Property,
    protocol::Protocol,
};

/// Scenarios in an environment.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its name in reports.
    pub name: &'static str,
    /// The behaviour of the table, the clocks and the network.
    pub environment: Environment,
    /// The work of each writer.
    pub scenarios: Vec<Scenario>,
}

/// The results of all scenarios of a run.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Distinct states, scenario by scenario.
    pub states: u64,
    /// Steps between them.
    pub transitions: u64,
    /// For each broken property, how many scenarios break it, and one of them with its trace.
    pub broken: BTreeMap<Property, (usize, String)>,
}

/// Events that exist at the start: of c1 and s1, of c2 and fenced.
pub(crate) const BEFORE: &[u8] = &[3, 5];
/// An event of c2 alone.
pub(crate) const FAR: &[u8] = &[2];

fn run(name: &'static str, environment: Environment, scenarios: Vec<Scenario>) -> Run {
    Run { name, environment, scenarios }
}

/// Takes seconds: every environment, every kind of command.
pub fn small_runs() -> Vec<Run> {
    let (commands, few) = (small(), few());
    let mut runs: Vec<Run> = ENVIRONMENTS
        .into_iter()
        .map(|e| match e.answers {
            // Lost answers multiply the states.
            Answers::Arrive => {
                run("2 writers, 25 commands", e, scenarios(&commands, 2, &[&[], BEFORE]))
            }
            _ => run("2 writers, 13 commands", e, scenarios(&few, 2, &[&[]])),
        })
        .collect();
    runs.push(run("2 writers, 6 commands", CRASHED_SNAPSHOTS, scenarios(&keyed(), 2, &[&[]])));
    runs.push(run("a writer and an effect, 25 commands", SKEWED, reactions(&commands)));
    runs.push(run("a writer of 2 commands and a writer, 6 commands", SNAPSHOTS, warm(&few[..6])));
    runs.push(run("3 writers, 13 commands", FUSED, scenarios(&few, 3, &[&[]])));
    runs.push(run("2 writers, 13 commands", WRONG, scenarios(&few, 2, &[FAR, BEFORE])));
    runs
}

/// The extent of the exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// Without the two runs that have half of all states.
    Half,
    /// Takes minutes.
    Full,
    /// With a fifth writer.
    Longer,
}

/// The whole catalogue.
pub fn full_runs(extent: Extent) -> Vec<Run> {
    let (whole, small, few) = (whole(), small(), few());
    let twenty = &small[..20];
    let mut runs: Vec<Run> = ENVIRONMENTS
        .into_iter()
        .map(|e| match e.answers {
            Answers::Arrive => {
                run("2 writers, 223 commands", e, scenarios(&whole, 2, &[&[], BEFORE]))
            }
            Answers::Lost => run("2 writers, 223 commands", e, scenarios(&whole, 2, &[&[]])),
            Answers::LostOrCrashed => {
                run("2 writers, 112 commands", e, scenarios(&every(2), 2, &[&[]]))
            }
        })
        .collect();
    runs.push(run("2 writers, 112 commands", LOST_SUBSETS, scenarios(&every(2), 2, &[&[]])));
    for environment in [CRASHED_SUBSETS, CRASHED_SNAPSHOTS] {
        runs.push(run("2 writers, 13 commands", environment, scenarios(&few, 2, &[&[]])));
        runs.push(run("2 writers, 6 commands", environment, scenarios(&keyed(), 2, &[&[]])));
    }
    runs.push(run("2 writers, 112 commands", WRONG, scenarios(&every(2), 2, &[FAR, BEFORE])));
    let retries = Environment { conflicts_max: 3, ..SUBSETS };
    let name = "2 writers, 223 commands, 3 retries";
    runs.push(run(name, retries, scenarios(&whole, 2, &[&[]])));
    runs.push(run("a writer and an effect, 223 commands", SUBSETS, reactions(&whole)));
    runs.push(run("2 writers of 2 commands, 400 pairs", WIDE, sequences(twenty, 2)));
    let name = "a writer of 2 commands and a writer, 25 commands";
    runs.push(run(name, SNAPSHOTS, warm(&small)));
    runs.push(run("3 writers, 13 commands", PER_ITEM, scenarios(&few, 3, &[&[]])));
    runs.push(run("3 writers, 25 commands", FUSED, scenarios(&small, 3, &[&[]])));
    runs.push(run("4 writers, 20 commands", WIDE, scenarios(twenty, 4, &[&[]])));
    if extent >= Extent::Full {
        runs.push(run("3 writers, 20 commands", LOST, scenarios(twenty, 3, &[&[]])));
        runs.push(run("3 writers, 112 commands", WIDE, scenarios(&every(2), 3, &[&[]])));
    }
    if extent == Extent::Longer {
        runs.push(run("5 writers, 6 commands", WIDE, scenarios(&few[4..10], 5, &[&[]])));
    }
    runs
}

impl Run {
    /// Explores every scenario, on as many threads as there are cores. Now and then it tells `progress` how many
    /// scenarios are done.
    pub fn explore(&self, protocol: Protocol, progress: &(dyn Fn(usize) + Sync)) -> Totals {
        let taken = AtomicUsize::new(0);
        let totals = Mutex::new(Totals::default());
        let work = || {
            let mut states = States::default();
            loop {
                let number = taken.fetch_add(1, Ordering::Relaxed);
                let Some(scenario) = self.scenarios.get(number) else { return };
                let explored = explore(
                    &Model::new(scenario, self.environment, protocol),
                    0,
                    usize::MAX,
                    &mut states,
                );
                let mut totals = totals.lock().expect("no thread panics while it adds up");
                totals.states += explored.states;
                totals.transitions += explored.transitions;
                for (property, trace) in explored.broken {
                    let example = || (0, format!("{scenario}{}", trace.join("\n")));
                    totals.broken.entry(property).or_insert_with(example).0 += 1;
                }
                drop(totals);
                progress(number + 1);
            }
        };
        let threads = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        totals.into_inner().expect("no thread panics while it adds up")
    }
}
