//! A repair that ends in order has made the fence right, whatever happens beside it. All of its three rules are needed.
#![allow(missing_docs, reason = "tests")]

use ringfence_proof::repair::{Rules, Scenario, explore_all};

#[test]
fn a_repair_beside_writers_ends_with_a_right_fence() {
    for (appends, repairs) in [(0, 1), (1, 1), (2, 1), (1, 2)] {
        let (states, broken) = explore_all(&Scenario::all(appends, repairs), Rules::REPAIR);
        println!("{appends} appends, {repairs} repairs: {states} states");
        assert_eq!(broken, None, "{}", broken.as_deref().unwrap_or_default());
    }
}

#[test]
fn verify_finds_every_wrong_fence_and_doubts_no_right_one() {
    for appends in 0..=2 {
        let (states, broken) = explore_all(&Scenario::all(appends, 1), Rules::VERIFY);
        println!("{appends} appends: {states} states");
        assert_eq!(broken, None, "{}", broken.as_deref().unwrap_or_default());
    }
}

#[test]
fn a_survey_that_does_not_wait_is_caught() {
    let rules = Rules { survey_settles: false, ..Rules::REPAIR };
    let trace = explore_all(&Scenario::all(0, 1), rules).1.expect("it overlooks an event");
    println!("{trace}");
}

#[test]
fn an_examination_that_clears_a_suspect_too_early_is_caught() {
    let rules = Rules { keeps_suspects: false, ..Rules::REPAIR };
    assert_eq!(explore_all(&Scenario::all(0, 1), rules).1, None, "at rest it is right");
    let trace = explore_all(&Scenario::all(1, 1), rules).1.expect("it overlooks an event");
    println!("{trace}");
}

#[test]
fn a_fence_without_a_head_guard_is_repaired_wrongly() {
    let rules = Rules { head_guard: false, ..Rules::REPAIR };
    assert_eq!(explore_all(&Scenario::all(0, 1), rules).1, None, "at rest it is right");
    let trace = explore_all(&Scenario::all(1, 1), rules).1.expect("a head is used twice");
    println!("{trace}");
}
