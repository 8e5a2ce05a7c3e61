//! The oracle agrees with the log, and with no log that is wrong.

use crate::{Mutant, Schedule, run};

/// As many as `cargo test` has time for; the proof runs more.
const SCHEDULES: u64 = 500;
/// Within so many schedules each mistake shows.
const MUTANT_SCHEDULES: u64 = 300;

#[test]
fn every_answer_is_the_one_of_a_serial_run() {
    let tally = run(SCHEDULES, 0, None).unwrap_or_else(|difference| panic!("{difference}"));
    println!("{tally:?}");
    let tried = [tally.accepted, tally.refused, tally.repeated, tally.unanswered];
    assert!(tried.iter().all(|number| *number > SCHEDULES / 5), "{tally:?}");
    assert!(tally.faults > SCHEDULES && tally.decided_again > SCHEDULES / 5, "{tally:?}");
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
        let difference = run(MUTANT_SCHEDULES, 0, Some(mutant)).expect_err("it is wrong");
        let schedule = &difference.schedule;
        println!("{mutant:?}: {difference}");
        assert!(schedule.jobs.len() <= 6, "{mutant:?}: {difference}");
        let again = schedule.run(Some(mutant)).expect_err("it still is");
        assert_eq!(again, difference.report);
        assert_eq!(schedule.run(None).err(), None, "the log without the mistake agrees");
    }
}
