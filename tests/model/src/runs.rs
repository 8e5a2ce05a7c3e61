//! The bounds: which scenarios are explored in which environments.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use crate::{
    catalogue::{followed, reactions, scenarios, sequences, small, whole},
    environment::{Answers, ENVIRONMENTS, Environment, FUSED, SUBSETS, WIDE},
    explore::explore,
    judge::{Model, Scenario},
    property::Property,
    protocol::Protocol,
};

/// Scenarios in an environment.
#[derive(Clone, Debug)]
pub struct Run {
    /// What it is called in reports.
    pub name: &'static str,
    /// What the table, the clocks and the network may do.
    pub environment: Environment,
    /// Who does what.
    pub scenarios: Vec<Scenario>,
}

/// What all scenarios of a run saw.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Distinct states, scenario by scenario.
    pub states: u64,
    /// Steps between them.
    pub transitions: u64,
    /// For each broken property how many scenarios break it, and one of them with its trace.
    pub broken: BTreeMap<Property, (usize, String)>,
}

/// Events that are there from the start: of c1 and s1, of p1 and o1.
const BEFORE: &[u8] = &[3, 8];

fn run(name: &'static str, environment: Environment, scenarios: Vec<Scenario>) -> Run {
    Run { name, environment, scenarios }
}

/// Seconds: every environment, every kind of command.
pub fn small_runs() -> Vec<Run> {
    let commands = small();
    let mut runs: Vec<Run> = ENVIRONMENTS
        .into_iter()
        .map(|e| run("2 writers, 20 commands", e, scenarios(&commands, 2, &[&[], BEFORE])))
        .collect();
    let caused = reactions(&commands);
    runs.push(run("a writer and an effect, 20 commands", ENVIRONMENTS[2], caused));
    for environment in [ENVIRONMENTS[5], SUBSETS] {
        let readers = followed(&commands[..8], 2);
        runs.push(run("a follower and 2 writers, 8 commands", environment, readers));
    }
    runs.push(run("3 writers, 20 commands", FUSED, scenarios(&commands, 3, &[&[]])));
    runs
}

/// Minutes: the whole catalogue. A longer run has a fifth writer.
pub fn full_runs(longer: bool) -> Vec<Run> {
    let (commands, every) = (small(), whole());
    let follower = |e| run("a follower and 2 writers, 20 commands", e, followed(&commands, 2));
    let mut runs = vec![follower(ENVIRONMENTS[5]), follower(SUBSETS)];
    let name = "a follower and 3 writers, 8 commands";
    runs.push(run(name, ENVIRONMENTS[5], followed(&commands[..8], 3)));
    runs.extend(ENVIRONMENTS.map(|e| {
        // Lost answers multiply the states, and events from before add nothing to them.
        let befores: &[&[u8]] = if e.answers == Answers::Arrive { &[&[], BEFORE] } else { &[&[]] };
        run("2 writers, 179 commands", e, scenarios(&every, 2, befores))
    }));
    let retries = Environment { conflicts_max: 3, ..SUBSETS };
    let name = "2 writers, 179 commands, 3 retries";
    runs.push(run(name, retries, scenarios(&every, 2, &[&[]])));
    runs.push(run("a writer and an effect, 179 commands", SUBSETS, reactions(&every)));
    runs.push(run("2 writers of 2 commands, 400 pairs", FUSED, sequences(&commands, 2)));
    for environment in [ENVIRONMENTS[4], ENVIRONMENTS[5], ENVIRONMENTS[7]] {
        let three = scenarios(&commands, 3, &[&[]]);
        runs.push(run("3 writers, 20 commands", environment, three));
    }
    runs.push(run("3 writers, 179 commands", WIDE, scenarios(&every, 3, &[&[]])));
    runs.push(run("4 writers, 20 commands", WIDE, scenarios(&commands, 4, &[&[]])));
    if longer {
        let mixed: Vec<_> = commands.iter().copied().skip(4).step_by(2).collect();
        runs.push(run("5 writers, 8 commands", WIDE, scenarios(&mixed, 5, &[&[]])));
    }
    runs
}

impl Run {
    /// Explores every scenario, on as many threads as there are cores; tells `progress` now and then
    /// how many scenarios are done.
    pub fn explore(&self, protocol: Protocol, progress: &(dyn Fn(usize) + Sync)) -> Totals {
        let taken = AtomicUsize::new(0);
        let totals = Mutex::new(Totals::default());
        let work = || {
            loop {
                let number = taken.fetch_add(1, Ordering::Relaxed);
                let Some(scenario) = self.scenarios.get(number) else { return };
                let explored = explore(&Model::new(scenario, self.environment, protocol));
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
