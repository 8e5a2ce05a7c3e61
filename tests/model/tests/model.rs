//! The protocol holds within small bounds, and each of its mutants is caught by its own property.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::{env, fs, path::Path, thread};

use ringfence_proof::{
    catalogue::{few, scenarios},
    copies,
    environment::{Answers, ENVIRONMENTS, FUSED, SUBSETS},
    feed,
    mutants::{self, MUTANTS, Mutant},
    property::Property,
    protocol::Protocol,
    runs::{Run, Totals, small_runs},
};

fn explore(run: &Run, protocol: Protocol) -> Totals {
    run.explore(protocol, &|_| ())
}

#[test]
fn nothing_breaks_within_small_bounds() {
    for run in small_runs() {
        let totals = explore(&run, Protocol::RINGFENCE);
        let name = format!("{}; {}", run.name, run.environment.name);
        println!("{name}: {} states, {} transitions", totals.states, totals.transitions);
        assert!(totals.states > run.scenarios.len() as u64, "{name}: nothing happens");
        if let Some((property, (scenarios, example))) = totals.broken.first_key_value() {
            panic!("{name}: {scenarios} scenarios break {}:\n{example}", property.name());
        }
    }
}

#[test]
fn the_feed_brings_each_event_once_and_in_order() {
    // Scenarios in which every mutant is caught. `cargo proof feed` explores larger ones.
    let (states, broken) = feed::explore_all(&feed::Scenario::SMALL, feed::Rules::FEED);
    println!("{states} states");
    assert_eq!(broken, None, "{}", broken.as_deref().unwrap_or_default());
}

#[test]
fn a_check_of_a_copy_misses_no_event_and_no_copy_stays_wrong() {
    // `cargo proof copies` explores larger scenarios.
    let (states, broken) =
        copies::explore_all(&copies::Scenario::SMALL, copies::Rules::COPIES, &Property::ALL);
    println!("{states} states");
    assert_eq!(broken, None, "{}", broken.as_deref().unwrap_or_default());
}

#[test]
fn mutants_of_order_and_progress_break_no_safety() {
    // The last one has nine tenths of the states. `cargo proof rules` explores it too.
    let environments = &ENVIRONMENTS[..ENVIRONMENTS.len() - 1];
    mutants::break_no_safety(environments).unwrap_or_else(|broken| panic!("{broken}"));
}

#[test]
fn a_lost_answer_that_is_only_sent_again_needs_no_command_item() {
    let protocol = Protocol { command_item: false, ..Protocol::RINGFENCE };
    for environment in ENVIRONMENTS {
        let scenarios = scenarios(&few(), 2, &[&[]]);
        let totals = explore(&Run { name: "", environment, scenarios }, protocol);
        let crashes = environment.answers == Answers::LostOrCrashed;
        let doubled = totals.broken.contains_key(&Property::NoDoubleEffect);
        assert_eq!(doubled, crashes, "{}", environment.name);
    }
}

#[test]
fn fusing_reads_with_the_append_hides_no_lost_update() {
    for mutant in MUTANTS.iter().filter(|mutant| mutant.breaks == Property::NoLostUpdate) {
        let lost = |environment| {
            let scenarios = scenarios(&few(), 2, &[&[]]);
            let totals = explore(&Run { name: "", environment, scenarios }, mutant.protocol);
            totals.broken.get(&Property::NoLostUpdate).map(|(scenarios, _)| *scenarios)
        };
        assert_eq!(lost(SUBSETS), lost(FUSED), "{}", mutant.name);
    }
}

/// `cargo proof rules` hunts each mutant of the append from the most benign environment on.
#[test]
fn the_file_of_traces_has_the_shortest_one_of_every_mutant() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/no-lost-update-traces.txt");
    let file = fs::read_to_string(&path).unwrap_or_default();
    let updates = env::var_os("UPDATE").is_some();
    let first = |mutant: &Mutant| match updates {
        true => 0,
        false => mutants::documented(mutant, &file).unwrap_or(0),
    };
    let (of_append, of_copies, of_feed) = thread::scope(|scope| {
        let others = scope.spawn(|| (copies::report(), feed::report()));
        let of_append = mutants::report(first);
        let (of_copies, of_feed) = others.join().unwrap();
        (of_append, of_copies, of_feed)
    });
    let head = "The shortest trace of each mutant. no-lost-update.md explains the words.\n\
                `UPDATE=1 cargo test --test model` writes this file.";
    let report = format!(
        "{head}\n\n== The append\n\n{of_append}== Copies of a fence\n\n{of_copies}== The feed\n\n{of_feed}"
    );
    let report = format!("{}\n", report.trim_end());
    assert!(!report.contains("Not caught"), "{report}");
    if updates {
        fs::write(&path, report).unwrap();
    } else {
        assert_eq!(file, report, "write it with `UPDATE=1 cargo test --test model`");
    }
}
