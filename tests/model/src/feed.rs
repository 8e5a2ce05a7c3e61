//! The way of events into the index: the indexer's rules, explored exhaustively.
//!
//! Appends put events into two partitions. The stream delivers the image of each event, at any time after its commit,
//! to any indexer, and again until a batch with it was acknowledged. A strong read can show the events of one append
//! one by one. A page is put alone, and a separate request moves the progress of each of its partitions. An indexer can
//! crash, or give up and go on in the same process, between any two steps. A request can stay without an answer, arrive
//! later than its indexer's next requests, or never.

mod indexer;
mod machine;
mod pages;
mod rules;
mod state;
mod steps;
mod text;

use std::fmt::Write as _;

use crate::{
    explore::{Explored, States, explore, numbered},
    property::Property,
};
use steps::Model;

pub use rules::{MUTANTS, Rules, Scenario};

/// Explores scenarios. Returns how many states were visited, and the shortest trace that breaks the property, the first
/// of several.
pub fn explore_all(scenarios: &[Scenario], rules: Rules) -> (u64, Option<String>) {
    let mut states = 0;
    let mut shortest: Option<Vec<String>> = None;
    for &scenario in scenarios {
        let (model, enough) = (Model { scenario, rules }, Property::Indexed.when(true));
        // From then on only a shorter one counts.
        let within = shortest.as_ref().map_or(usize::MAX, |found| found.len() - 1);
        let Explored { states: visited, mut broken, .. } =
            explore(&model, enough, within, &mut States::default());
        states += visited;
        shortest = broken.remove(&Property::Indexed).or(shortest);
    }
    (states, shortest.map(|trace| numbered(&trace)))
}

/// All mutants with their shortest traces, as `docs/no-lost-update-traces.txt` has them.
pub fn report() -> String {
    let mut text = String::new();
    for (name, rules) in MUTANTS {
        let trace = explore_all(&Scenario::SMALL, rules).1.unwrap_or("Not caught.\n".to_owned());
        writeln!(text, "# {name}\n\n{trace}").expect("a String takes it");
    }
    text
}
