//! `cargo proof [factor]`: the full numbers. Each step is a function; a factor above 1 runs longer.

use std::{
    env,
    io::{self, IsTerminal as _, Write as _},
    process::ExitCode,
};

use ringfence_proof::{
    mutants::{MUTANTS, hunt},
    protocol::Protocol,
    runs::full_runs,
};

/// Scenarios between two signs of progress.
const PROGRESS_SCENARIOS: usize = 1_000;
/// The document that states what this program prints.
const DOCUMENT: &str = include_str!("../../../../docs/no-lost-update.md");

fn main() -> ExitCode {
    let factor = match env::args().nth(1).map(|argument| argument.parse()) {
        None => 1,
        Some(Ok(factor)) => factor,
        Some(Err(_)) => {
            eprintln!("usage: cargo proof [factor], a whole number; above 1 runs longer");
            return ExitCode::FAILURE;
        }
    };
    let steps: [fn(u32) -> bool; 2] = [mutants, model];
    let failed = steps.into_iter().filter(|step| !step(factor)).count();
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Every mutant of the protocol is caught.
fn mutants(_factor: u32) -> bool {
    println!("mutants of the protocol, each with the property that catches it:");
    let caught = MUTANTS.iter().filter(|mutant| {
        let caught = hunt(mutant);
        let how = caught.as_ref().map_or("NOT CAUGHT".to_owned(), |caught| {
            let (steps, states) = (caught.trace.len(), caught.states);
            format!("{}, {steps} steps, {states} states explored", mutant.breaks.name())
        });
        println!("  {}: {how}", mutant.name);
        caught.is_some()
    });
    caught.count() == MUTANTS.len()
}

/// The protocol breaks nothing within the bounds, and the document has the same numbers.
fn model(factor: u32) -> bool {
    println!("the protocol, everything that can happen within the bounds:");
    println!("| who | environment | scenarios | states | transitions | broken |");
    println!("|---|---|---|---|---|---|");
    let (mut sum, mut fine) = (0, true);
    let terminal = io::stderr().is_terminal();
    for run in full_runs(factor) {
        let all = run.scenarios.len();
        let totals = run.explore(Protocol::RINGFENCE, &|done| {
            if terminal && done % PROGRESS_SCENARIOS == 0 {
                eprint!("\r{}, {}: {done} of {all} scenarios", run.name, run.environment.name);
                io::stderr().flush().unwrap_or_default();
            }
        });
        if terminal {
            eprint!("\r\x1b[K");
        }
        let (states, transitions, broken) =
            (totals.states, totals.transitions, totals.broken.len());
        let name = run.environment.name;
        let row =
            format!("| {} | {name} | {all} | {states} | {transitions} | {broken} |", run.name);
        println!("{row}");
        if factor == 1 && !DOCUMENT.contains(&row) {
            println!("docs/no-lost-update.md has other numbers: put this row in");
            fine = false;
        }
        for (property, (scenarios, example)) in &totals.broken {
            println!("BROKEN in {scenarios} scenarios: {}\n{example}", property.name());
        }
        sum += states;
        fine &= totals.broken.is_empty();
    }
    println!("{sum} states in all");
    fine
}
