//! The oracle agrees with the log, and with no log that is wrong.

use crate::{Mutant, Schedule, each, import, names, queries, run};

/// As many as `cargo test` has time for; the proof runs more.
const SCHEDULES: u64 = 500;
const QUERIES: u64 = 1_000;
const NAMES: u64 = 50_000;
/// Within so many schedules each mistake shows.
const MUTANT_SCHEDULES: u64 = 1_000;

#[test]
fn every_answer_is_the_one_of_a_serial_run() {
    let tally = run(SCHEDULES, 0, Schedule::new, None, &|_| ())
        .unwrap_or_else(|difference| panic!("{difference}"));
    println!("{tally:?}");
    let tried = [tally.accepted, tally.refused, tally.repeated, tally.unanswered];
    assert!(tried.iter().all(|number| *number > SCHEDULES / 5), "{tally:?}");
    assert!(tally.faults > SCHEDULES && tally.decided_again > SCHEDULES / 5, "{tally:?}");
    // Of most schedules of the gates, a fifth of all, the commands keep snapshots.
    assert!(tally.recalled > SCHEDULES / 10, "{tally:?}");
    // Order between boundaries is by the writers' clocks, and is tried.
    assert!(tally.reordered > SCHEDULES / 5, "{tally:?}");
}

#[test]
fn a_schedule_runs_again_as_it_was() {
    for seed in 0..5 {
        assert_eq!(Schedule::new(seed).run(None), Schedule::new(seed).run(None), "seed {seed}");
    }
}

#[test]
fn every_mistake_is_noticed_and_its_schedule_is_small() {
    for mutant in Mutant::ALL {
        let difference = run(MUTANT_SCHEDULES, 0, Schedule::new, Some(mutant), &|_| ())
            .expect_err("it is wrong");
        let schedule = &difference.schedule;
        println!("{mutant:?}: {difference}");
        assert!(schedule.jobs.len() <= 9, "{mutant:?}: {difference}");
        let again = schedule.run(Some(mutant)).expect_err("it still is");
        assert_eq!(again, difference.report);
        assert_eq!(schedule.run(None).err(), None, "the log without the mistake agrees");
    }
}

#[test]
fn reads_and_conditions_are_those_of_the_specification() {
    let checked = each(QUERIES / queries::SEED_QUERIES, 1, queries::check, &|_| ());
    checked.unwrap_or_else(|(seed, difference)| panic!("seed {seed}: {difference}"));
}

#[test]
fn every_id_decodes_to_its_boundary_and_to_no_other() {
    let checked = each(NAMES / names::SEED_SETS, 1, names::check, &|_| ());
    checked.unwrap_or_else(|(seed, difference)| panic!("seed {seed}: {difference}"));
}

#[test]
fn an_import_of_two_thousand_events_has_each_once_and_in_order() {
    import::check(2_000).unwrap_or_else(|difference| panic!("{difference}"));
}
