//! The protocols with one switch turned, each caught by the property that it breaks.

use crate::{
    catalogue::{Scenario, few, keyed, reactions, scenarios, sequences, small, warm},
    environment::{CRASHED_SNAPSHOTS, CRASHED_SUBSETS, ENVIRONMENTS, Environment, WRONG},
    explore::{States, explore, numbered},
    judge::Model,
    property::Property,
    protocol::{
        Condition, Follow, Guard, InEvents, Learn, Prefix, Protocol, Searched, Snapshot, Validation,
    },
    runs::{FAR, Run},
};

/// A protocol with one mistake.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    /// The mistake.
    pub name: &'static str,
    /// The protocol with the switch turned.
    pub protocol: Protocol,
    /// The property that this breaks.
    pub breaks: Property,
}

const RIGHT: Protocol = Protocol::RINGFENCE;

const fn mutant(name: &'static str, breaks: Property, protocol: Protocol) -> Mutant {
    Mutant { name, protocol, breaks }
}

/// All mutants. Those that break a property of order or progress break no safety.
pub const MUTANTS: [Mutant; 41] = [
    mutant(
        "the largest slot taken for what was seen",
        Property::NoLostUpdate,
        Protocol { prefix: Prefix::Largest, ..RIGHT },
    ),
    mutant(
        "the number of returned events taken for what was seen",
        Property::NoLostUpdate,
        Protocol { prefix: Prefix::Returned, ..RIGHT },
    ),
    mutant(
        "a filter by type on the server, and the number of what it returns",
        Property::NoLostUpdate,
        Protocol { prefix: Prefix::Filtered, ..RIGHT },
    ),
    mutant(
        "a filter by type on the server, for a writer alone",
        Property::NoPermanentConflict,
        Protocol { prefix: Prefix::Filtered, ..RIGHT },
    ),
    mutant(
        "no check of a partition that is only read",
        Property::NoLostUpdate,
        Protocol { check_read_partitions: false, ..RIGHT },
    ),
    mutant(
        "the next slot, whatever the tail holds",
        Property::NoLostUpdate,
        Protocol { learn: Learn::Nothing, ..RIGHT },
    ),
    mutant(
        "of a tail, only the partition's own clause is looked at",
        Property::NoLostUpdate,
        Protocol { learn: Learn::OneClause, ..RIGHT },
    ),
    mutant(
        "a tail that begins at the slot that is seen, and is counted",
        Property::NoLostUpdate,
        Protocol { tail_after: false, ..RIGHT },
    ),
    mutant(
        "a torn snapshot",
        Property::NoLostUpdate,
        Protocol { snapshot: Snapshot::Torn, ..RIGHT },
    ),
    mutant(
        "the slot of an own put into an unread partition taken for what was seen",
        Property::NoLostUpdate,
        Protocol { snapshot: Snapshot::OwnLast, ..RIGHT },
    ),
    mutant(
        "`fenced` types that no fence counts",
        Property::NoLostUpdate,
        Protocol { count_fenced: false, ..RIGHT },
    ),
    mutant(
        "the fence in place of the slot although another type is consumed",
        Property::NoLostUpdate,
        Protocol { all_fenced: false, ..RIGHT },
    ),
    mutant(
        "the newest event under a fence in place of counts",
        Property::NoLostUpdate,
        Protocol { condition: Condition::NewestSeen, ..RIGHT },
    ),
    mutant(
        "no condition on a fence under which nothing was seen",
        Property::NoLostUpdate,
        Protocol { check_empty: false, ..RIGHT },
    ),
    mutant(
        "no condition on a fence that the new events are not filed under",
        Property::NoLostUpdate,
        Protocol { check_read_fences: false, ..RIGHT },
    ),
    mutant(
        "imports that do not file",
        Property::NoLostUpdate,
        Protocol { imports_file: false, ..RIGHT },
    ),
    mutant(
        "a rejection that is not validated",
        Property::NoStaleRejection,
        Protocol { validation: Validation::None, ..RIGHT },
    ),
    mutant(
        "a rejection validated by GetItem although its prefix ends within an append",
        Property::NoStaleRejection,
        Protocol { validation: Validation::OneGetItem, ..RIGHT },
    ),
    mutant(
        "a rejection validated by separate reads that are kept over a new decision",
        Property::NoStaleRejection,
        Protocol { validation: Validation::Kept, ..RIGHT },
    ),
    mutant(
        "deciding again on an unknown outcome",
        Property::NoDoubleEffect,
        Protocol { resend_unknown: false, ..RIGHT },
    ),
    mutant(
        "TransactionConflict taken for a judgement",
        Property::NoDoubleEffect,
        Protocol { transaction_conflict_judges: true, ..RIGHT },
    ),
    mutant(
        "another condition judged before the own put",
        Property::NoDoubleEffect,
        Protocol { own_put_first: false, ..RIGHT },
    ),
    mutant("no command item", Property::NoDoubleEffect, Protocol { command_item: false, ..RIGHT }),
    mutant(
        "a key that is not looked for in what a warm handler has read before",
        Property::NoDoubleEffect,
        Protocol { searched: Searched::NotRecalled, ..RIGHT },
    ),
    mutant(
        "a key that is not looked for in a tail",
        Property::NoDoubleEffect,
        Protocol { searched: Searched::NotTails, ..RIGHT },
    ),
    mutant(
        "events taken for the record although their partition is not read",
        Property::NoDoubleEffect,
        Protocol { in_events: InEvents::Written, ..RIGHT },
    ),
    mutant(
        "events taken for the record although the fence in place of their slot does not count them",
        Property::OneAnswer,
        Protocol { in_events: InEvents::Read, ..RIGHT },
    ),
    mutant(
        "a repeat answered with the events that its reads show, without validation",
        Property::OneAnswer,
        Protocol { validates_repeats: false, ..RIGHT },
    ),
    mutant(
        "a repeat rejected without a look at the command item",
        Property::OneAnswer,
        Protocol { item_before_rejection: false, ..RIGHT },
    ),
    mutant("no head guard", Property::Order, Protocol { guard: Guard::None, ..RIGHT }),
    mutant(
        "no head guard on the fence of a partition",
        Property::Order,
        Protocol { guard: Guard::NotPartitions, ..RIGHT },
    ),
    mutant(
        "a guard for each type in place of head",
        Property::Order,
        Protocol { guard: Guard::PerType, ..RIGHT },
    ),
    mutant(
        "the last slot found without its `at`",
        Property::Order,
        Protocol { predecessor: false, ..RIGHT },
    ),
    mutant(
        "a claim that order holds across boundaries",
        Property::OrderAcross,
        Protocol { claims_order_across: true, ..RIGHT },
    ),
    mutant("no hybrid clock", Property::CauseFirst, Protocol { hybrid_clock: false, ..RIGHT }),
    mutant(
        "every time followed that was read, however far ahead",
        Property::NotCarried,
        Protocol { follow: Follow::All, ..RIGHT },
    ),
    mutant(
        "times far ahead not followed in the boundary that is written",
        Property::Order,
        Protocol { follow: Follow::Near, ..RIGHT },
    ),
    mutant(
        "a learned event folded on top out of order",
        Property::FoldOrder,
        Protocol { fold_in_order: false, ..RIGHT },
    ),
    mutant(
        "the tail after a snapshot folded on top out of order",
        Property::FoldOrder,
        Protocol { snapshot_in_order: false, ..RIGHT },
    ),
    mutant(
        "a composite's fence that counts the events of other composites",
        Property::NoPermanentConflict,
        Protocol { exact_filing: false, ..RIGHT },
    ),
    mutant(
        "counts of each clause in place of the merged reads",
        Property::NoFalseConflict,
        Protocol { count_merged: false, ..RIGHT },
    ),
];

/// Explores the mutants that break a property of order or progress, in each of these environments.
///
/// # Errors
/// A mutant breaks a property of safety too.
pub fn break_no_safety(environments: &[Environment]) -> Result<(), String> {
    let neither = Protocol { guard: Guard::None, hybrid_clock: false, ..RIGHT };
    let neither = mutant("neither guard nor hybrid clock", Property::Order, neither);
    let is_safe = |mutant: &&Mutant| {
        let mut same = MUTANTS.iter().filter(|it| it.protocol == mutant.protocol);
        same.all(|it| !it.breaks.is_safety())
    };
    for mutant in MUTANTS.iter().chain([&neither]).filter(is_safe) {
        for &environment in environments {
            let run = Run { name: "", environment, scenarios: scenarios(&few(), 2, &[&[]]) };
            let broken = run.explore(mutant.protocol, &|_| ()).broken;
            if let Some((property, (_, how))) = broken.iter().find(|it| it.0.is_safety()) {
                return Err(format!("{} breaks {}:\n{how}", mutant.name, property.name()));
            }
        }
    }
    Ok(())
}

/// The catch of a mutant.
#[derive(Clone, Debug)]
pub struct Caught {
    /// The most benign environment in which it fails.
    pub environment: Environment,
    /// The scenario with the shortest trace there.
    pub scenario: Scenario,
    /// The trace.
    pub trace: Vec<String>,
    /// States explored in all environments up to that one.
    pub states: u64,
}

/// The scenarios in which a mutant is hunted.
fn hunting_ground(mutant: &Mutant) -> Vec<Scenario> {
    let commands = small();
    match (mutant.breaks, mutant.protocol.snapshot) {
        (Property::CauseFirst, _) => reactions(&commands),
        (Property::NoDoubleEffect | Property::OneAnswer, _) => {
            scenarios(&[few(), keyed()].concat(), 2, &[&[]])
        }
        (Property::NoPermanentConflict, _) => sequences(&commands, 1),
        (_, Snapshot::OwnLast) => warm(&[commands[0], commands[7]]),
        _ if !mutant.protocol.snapshot_in_order => {
            scenarios(&[commands[0], commands[10], commands[12]], 3, &[&[]])
        }
        _ if mutant.protocol.follow != RIGHT.follow => scenarios(&commands, 1, &[FAR]),
        _ if mutant.protocol.guard == Guard::NotPartitions => scenarios(&commands[..7], 3, &[&[]]),
        _ => scenarios(&commands, 2, &[&[]]),
    }
}

/// Hunts `mutant` in the environments from `first` on. Returns the shortest trace, the first of several, in the most
/// benign environment in which it breaks its property.
pub fn hunt(mutant: &Mutant, first: usize) -> Option<Caught> {
    let ground = hunting_ground(mutant);
    let enough = mutant.breaks.when(true);
    let (mut states, mut visited) = (0, States::default());
    for environment in environments().skip(first) {
        let mut shortest: Option<(Scenario, Vec<String>)> = None;
        for scenario in &ground {
            // From then on only a shorter trace counts.
            let within = shortest.as_ref().map_or(usize::MAX, |(_, found)| found.len() - 1);
            let model = Model::new(scenario, environment, mutant.protocol);
            let mut explored = explore(&model, enough, within, &mut visited);
            states += explored.states;
            if let Some(trace) = explored.broken.remove(&mutant.breaks) {
                shortest = Some((scenario.clone(), trace));
            }
        }
        if let Some((scenario, trace)) = shortest {
            return Some(Caught { environment, scenario, trace, states });
        }
    }
    None
}

/// The environments in which mutants are hunted, from the most benign to the most hostile.
fn environments() -> impl Iterator<Item = Environment> {
    ENVIRONMENTS.into_iter().chain([CRASHED_SNAPSHOTS, CRASHED_SUBSETS, WRONG])
}

/// The number of the environment that the file of traces names for `mutant`.
pub fn documented(mutant: &Mutant, traces: &str) -> Option<usize> {
    let (_, section) = traces.split_once(&format!("# {}\n", mutant.name))?;
    let (_, environment) = section.split_once("Environment: ")?;
    environments().position(|it| environment.starts_with(&format!("{}.\n", it.name)))
}

/// All mutants with their shortest traces, for `docs/no-lost-update-traces.txt`. Each is hunted from the environment of
/// this number on.
pub fn report(first: impl Fn(&Mutant) -> usize) -> String {
    MUTANTS.iter().map(|mutant| section(mutant, hunt(mutant, first(mutant)).as_ref())).collect()
}

/// One mutant, for the file of traces.
pub fn section(mutant: &Mutant, caught: Option<&Caught>) -> String {
    let (name, property) = (mutant.name, mutant.breaks.name());
    let Some(Caught { environment, scenario, trace, .. }) = caught else {
        return format!("# {name}\n\nNot caught.\n\n");
    };
    let steps = numbered(trace);
    let ever = if mutant.breaks == Property::NoPermanentConflict {
        "     from here on nothing of it is accepted, alone and with fresh reads\n"
    } else {
        ""
    };
    let environment = environment.name;
    format!(
        "# {name}\n\nBreaks: {property}. Environment: {environment}.\n\n\
         {scenario}{steps}{ever}\n"
    )
}
