//! Copies of a fence: writers that announce their appends, decisions that check a copy, and changes of how many copies
//! there are, explored exhaustively.
//!
//! Each fence has one type of event. An append adds one event, and updates the fence's own count in the same
//! transaction. A check reads any part of the events, and appends elsewhere if a copy, or the fence itself, counts as
//! many. Anybody may take over an announcement at any time, so nothing depends on clocks. A writer can crash between
//! any two steps. A request can stay without an answer, and arrive at any later time or never. Its sender sends it
//! again.

mod machine;
mod rules;
mod steps;
mod text;

use std::fmt::Write as _;

use crate::{
    explore::{Explored, States, explore, numbered},
    property::Property,
};
use steps::Model;

pub use rules::{Actor, Alone, Damage, MUTANTS, Rules, Scenario};

/// Explores scenarios. Returns how many states were visited, and the shortest trace that breaks one of `properties`,
/// the first of several.
pub fn explore_all(
    scenarios: &[Scenario],
    rules: Rules,
    properties: &[Property],
) -> (u64, Option<String>) {
    let (mut states, mut visited) = (0, States::default());
    let mut shortest: Option<Vec<String>> = None;
    for &scenario in scenarios {
        let within = shortest.as_ref().map_or(usize::MAX, |found| found.len() - 1);
        let enough = match properties {
            [one] => one.when(true),
            _ => 0,
        };
        let Explored { states: number, mut broken, .. } =
            explore(&Model { scenario, rules }, enough, within, &mut visited);
        states += number;
        let found = properties.iter().filter_map(|property| broken.remove(property));
        shortest = found.min_by_key(Vec::len).or(shortest);
    }
    (states, shortest.map(|trace| numbered(&trace)))
}

/// All mutants with their shortest traces, as `docs/no-lost-update-traces.txt` has them.
pub fn report() -> String {
    let mut text = String::new();
    for (name, breaks, rules) in MUTANTS {
        let trace = explore_all(&Scenario::SMALL, rules, &[breaks]).1;
        let trace = trace.unwrap_or("Not caught.\n".to_owned());
        writeln!(text, "# {name}\n\nBreaks: {}.\n\n{trace}", breaks.name())
            .expect("a String takes it");
    }
    text
}
