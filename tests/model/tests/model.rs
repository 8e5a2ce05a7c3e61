//! The protocol holds within small bounds, and each of its mutants is caught by its own property.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::{env, fs, path::Path};

use ringfence_proof::{
    catalogue::{followed, scenarios, small},
    environment::{Answers, ENVIRONMENTS, FUSED, SUBSETS},
    mutants::{MUTANTS, Mutant, report},
    property::Property,
    protocol::{Guard, PageCheck, Protocol},
    runs::{Run, Totals, small_runs},
};

const TRACES_BEGIN: &str = "<!-- traces:";
const TRACES_END: &str = "<!-- end of traces -->";

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
fn mutants_of_order_and_progress_break_no_safety() {
    let neither = Protocol { guard: Guard::None, hybrid_clock: false, ..Protocol::RINGFENCE };
    let name = "neither guard nor hybrid clock";
    let neither = Mutant { name, protocol: neither, breaks: Property::Order };
    for mutant in MUTANTS.iter().chain([&neither]).filter(|mutant| !mutant.breaks.is_safety()) {
        for environment in ENVIRONMENTS {
            let scenarios = scenarios(&small(), 2, &[&[]]);
            let totals = explore(&Run { name: "", environment, scenarios }, mutant.protocol);
            for (property, (_, example)) in totals.broken {
                let name = property.name();
                assert!(!property.is_safety(), "{} breaks {name}:\n{example}", mutant.name);
            }
        }
    }
}

#[test]
fn a_lost_answer_that_is_only_sent_again_needs_no_command_item() {
    let protocol = Protocol { command_item: false, ..Protocol::RINGFENCE };
    for environment in ENVIRONMENTS {
        let scenarios = scenarios(&small(), 2, &[&[]]);
        let totals = explore(&Run { name: "", environment, scenarios }, protocol);
        let restarted = environment.answers == Answers::LostThenRestarted;
        let doubled = totals.broken.contains_key(&Property::NoDoubleEffect);
        assert_eq!(doubled, restarted, "{}", environment.name);
    }
}

#[test]
fn a_page_is_cut_or_its_fence_is_read_in_a_transaction() {
    for (page_check, fence_in_transaction, skips) in [
        (PageCheck::Cut, true, false),
        (PageCheck::Cut, false, false),
        (PageCheck::FenceAfter, true, false),
        (PageCheck::FenceAfter, false, true),
    ] {
        let protocol = Protocol { page_check, fence_in_transaction, ..Protocol::RINGFENCE };
        for environment in [ENVIRONMENTS[5], SUBSETS] {
            let scenarios = followed(&small()[..8], 2);
            let totals = explore(&Run { name: "", environment, scenarios }, protocol);
            let skipped = totals.broken.get(&Property::NoSkippedEvent);
            assert_eq!(skipped.is_some(), skips, "{protocol:?}: {skipped:?}");
        }
    }
}

#[test]
fn fusing_reads_with_the_append_hides_no_lost_update() {
    for mutant in MUTANTS.iter().filter(|mutant| mutant.breaks == Property::NoLostUpdate) {
        let lost = |environment| {
            let scenarios = scenarios(&small(), 2, &[&[]]);
            let totals = explore(&Run { name: "", environment, scenarios }, mutant.protocol);
            totals.broken.get(&Property::NoLostUpdate).map(|(scenarios, _)| *scenarios)
        };
        let apart = lost(SUBSETS);
        assert!(apart.is_some(), "{} is caught", mutant.name);
        assert_eq!(apart, lost(FUSED), "{}", mutant.name);
    }
}

#[test]
fn the_document_has_the_shortest_trace_of_every_mutant() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/no-lost-update.md");
    let document = fs::read_to_string(&path).unwrap();
    let begin = document.find(TRACES_BEGIN).expect("the document has traces");
    let begin = begin + document[begin..].find('\n').unwrap() + 1;
    let end = begin + document[begin..].find(TRACES_END).expect("the traces end");
    let report = report();
    assert!(!report.contains("Not caught"), "{report}");
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, format!("{}\n{report}{}", &document[..begin], &document[end..])).unwrap();
    } else {
        let write = "write it with `UPDATE=1 cargo test --test model`";
        assert_eq!(document[begin..end].trim(), report.trim(), "{write}");
    }
}
