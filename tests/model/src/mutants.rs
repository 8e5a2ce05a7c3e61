//! The protocols with one switch turned, each caught by the property that it breaks.

use std::fmt::Write as _;

use crate::{
    catalogue::{followed, reactions, scenarios, sequences, small},
    environment::{ENVIRONMENTS, Environment},
    explore::explore,
    judge::{Model, Scenario},
    property::Property,
    protocol::{Condition, Guard, PageCheck, Protocol},
};

/// A protocol that is wrong in one place.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    /// What is wrong.
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

/// All mutants. Those that break [`Property::Order`] or [`Property::CauseFirst`] break no safety.
pub const MUTANTS: [Mutant; 18] = [
    mutant(
        "the documented predicate, pos#T <= :after",
        Property::NoLostUpdate,
        Protocol { condition: Condition::NotAfter, ..RIGHT },
    ),
    mutant(
        "equality of pos#T in place of counts",
        Property::NoLostUpdate,
        Protocol { condition: Condition::NewestSeen, ..RIGHT },
    ),
    mutant(
        "no condition where nothing was seen",
        Property::NoLostUpdate,
        Protocol { check_empty: false, ..RIGHT },
    ),
    mutant(
        "no condition for cross-partition clauses that the events do not carry",
        Property::NoLostUpdate,
        Protocol { check_read_only: false, ..RIGHT },
    ),
    mutant(
        "imports that do not file",
        Property::NoLostUpdate,
        Protocol { imports_file: false, ..RIGHT },
    ),
    mutant(
        "refusals without a check of the fences",
        Property::NoStaleRefusal,
        Protocol { validate_refusals: false, ..RIGHT },
    ),
    mutant("no command item", Property::NoDoubleEffect, Protocol { command_item: false, ..RIGHT }),
    mutant("no head guard", Property::Order, Protocol { guard: Guard::None, ..RIGHT }),
    mutant(
        "a guard for each type in place of head",
        Property::Order,
        Protocol { guard: Guard::PerType, ..RIGHT },
    ),
    mutant("no hybrid clock", Property::CauseFirst, Protocol { hybrid_clock: false, ..RIGHT }),
    mutant(
        "pages accepted without a check of the fence",
        Property::NoSkippedEvent,
        Protocol { page_check: PageCheck::None, ..RIGHT },
    ),
    mutant(
        "the fence read before the page",
        Property::NoSkippedEvent,
        Protocol { page_check: PageCheck::FenceBefore, ..RIGHT },
    ),
    mutant(
        "a page that is read again and not cut at the head of the fence",
        Property::NoSkippedEvent,
        Protocol { page_check: PageCheck::Whole, ..RIGHT },
    ),
    mutant(
        "a page that is not cut, and its fence read without a transaction",
        Property::NoSkippedEvent,
        Protocol { page_check: PageCheck::FenceAfter, fence_in_transaction: false, ..RIGHT },
    ),
    mutant(
        "pages compared with the counts of types that are stored elsewhere",
        Property::NoPermanentConflict,
        Protocol { compare_stored: false, ..RIGHT },
    ),
    mutant(
        "fences of the documented scope",
        Property::NoPermanentConflict,
        Protocol { exact_filing: false, ..RIGHT },
    ),
    mutant(
        "a first-write gate on produced types",
        Property::NoPermanentConflict,
        Protocol { gate_produced: true, ..RIGHT },
    ),
    mutant(
        "counts of each clause in place of the merged reads",
        Property::NoFalseConflict,
        Protocol { count_merged: false, ..RIGHT },
    ),
];

/// What catching a mutant took.
#[derive(Clone, Debug)]
pub struct Caught {
    /// The most benign environment that it fails in.
    pub environment: Environment,
    /// The scenario with the shortest trace there.
    pub scenario: Scenario,
    /// The trace.
    pub trace: Vec<String>,
    /// States explored, all environments up to that one.
    pub states: u64,
}

/// The scenarios that mutants are hunted in.
fn hunting_ground(property: Property) -> Vec<Scenario> {
    let commands = small();
    let mut all = scenarios(&commands, 2, &[&[]]);
    match property {
        Property::NoSkippedEvent => all = followed(&commands, 2),
        Property::CauseFirst => all.extend(reactions(&commands)),
        Property::NoPermanentConflict => {
            all = sequences(&commands, 1);
            all.extend(followed(&commands, 1));
        }
        _ => {}
    }
    all
}

/// Hunts `mutant`: in the most benign environment in which it breaks its property at all, the
/// shortest trace, the first of several.
pub fn hunt(mutant: &Mutant) -> Option<Caught> {
    let ground = hunting_ground(mutant.breaks);
    let mut states = 0;
    for environment in ENVIRONMENTS {
        let mut shortest: Option<(Scenario, Vec<String>)> = None;
        for scenario in &ground {
            let explored = explore(&Model::new(scenario, environment, mutant.protocol));
            states += explored.states;
            let Some(trace) = explored.broken.get(&mutant.breaks) else { continue };
            if shortest.as_ref().is_none_or(|(_, found)| trace.len() < found.len()) {
                shortest = Some((scenario.clone(), trace.clone()));
            }
        }
        if let Some((scenario, trace)) = shortest {
            return Some(Caught { environment, scenario, trace, states });
        }
    }
    None
}

/// All mutants with their shortest traces, as `docs/no-lost-update.md` has them.
pub fn report() -> String {
    let mut text = String::new();
    for mutant in &MUTANTS {
        let caught = hunt(mutant);
        write!(text, "{}", section(mutant, caught.as_ref())).expect("a String takes it");
    }
    text
}

/// One mutant.
fn section(mutant: &Mutant, caught: Option<&Caught>) -> String {
    let (name, property) = (mutant.name, mutant.breaks.name());
    let Some(Caught { environment, scenario, trace, .. }) = caught else {
        return format!("### {name}\n\nNot caught.\n\n");
    };
    let steps = trace.iter().enumerate().map(|(n, line)| format!("{:>3}. {line}\n", n + 1));
    let steps: String = steps.collect();
    let ever = if mutant.breaks == Property::NoPermanentConflict {
        "     from here on nothing of it is accepted, alone and with fresh reads\n"
    } else {
        ""
    };
    let environment = environment.name;
    format!(
        "### {name}\n\nBreaks: {property}. Environment: {environment}.\n\n\
         ```\n{scenario}{steps}{ever}```\n\n"
    )
}
