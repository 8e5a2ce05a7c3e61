//! The oracle agrees with the log, and with no broken log.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

mod claims;
mod overload;

use ringfence_harness::bound;
use ringfence_oracle::{
    Difference, Kind, Mutant, Schedule, Subject, contention, each, import, names, queries, run,
};

/// `cargo test` has time for this many. The proof runs more.
const SCHEDULES: u64 = 60;
/// For wrong clocks, lanes, the queue and dues.
const CLOCKS: u64 = 40;
const LANES: u64 = 14;
const QUEUES: u64 = 16;
const DUES: u64 = 8;
const QUERIES: u64 = 200;
const NAMES: u64 = 20_000;
const IMPORTED: u64 = 300;
/// Products for the meetings of commands, and the seconds for each.
const PRODUCTS: u64 = 1;
const SECONDS: u64 = 3;
/// Each mistake shows within this many schedules.
const MUTANT_SCHEDULES: u64 = 1_000;
/// The smallest part of the first schedule that notices each mistake: its seed, commands and faults. If it no longer
/// notices the mistake, the test searches for another one and fails with it; write that one here.
const NOTICED: [(u64, &[usize], &[Kind]); Mutant::ALL.len()] = [
    (1, &[11], &[Kind::Stale]),
    (30, &[11, 12], &[Kind::Stale]),
    (10, &[0, 1, 7, 10, 11], &[Kind::Latency]),
    (0, &[1, 6], &[Kind::Stale]),
    (0, &[1], &[Kind::FailedAfter, Kind::Latency]),
    (3, &[12], &[]),
    (13, &[10], &[]),
    (1, &[11], &[]),
    (
        410,
        &[0, 1, 4, 7, 12],
        &[Kind::Stale, Kind::LostAfter, Kind::Latency, Kind::Crash, Kind::Skew],
    ),
    (12, &[0, 1, 11, 13], &[]),
    (7, &[0, 1, 3, 9], &[]),
    (1, &[16], &[]),
    (123, &[4, 5, 11, 20], &[Kind::Latency]),
    (217, &[2, 3, 7, 21], &[Kind::Latency, Kind::Skew]),
    (60, &[5, 16, 21, 23], &[Kind::Stray, Kind::Effect]),
    (0, &[8, 10, 18], &[]),
    (0, &[0], &[]),
];

#[test]
fn every_answer_is_the_one_of_a_serial_run() {
    let tally = run(SCHEDULES, 0, Schedule::new, None, &|_| ())
        .unwrap_or_else(|difference| panic!("{difference}"));
    println!("{tally:?}");
    let tried = [tally.accepted, tally.without_events, tally.repeated, tally.unanswered];
    assert!(tried.iter().all(|number| *number > SCHEDULES / 5), "{tally:?}");
    assert!(tally.faults > SCHEDULES && tally.decided_again > SCHEDULES / 5, "{tally:?}");
    // In most schedules of the gates, a fifth of all, the commands store snapshots.
    assert!(tally.recalled > SCHEDULES / 10, "{tally:?}");
    // The order between boundaries follows from the writers' clocks. The schedules must try that.
    assert!(tally.reordered > SCHEDULES / 5, "{tally:?}");
}

#[test]
fn machines_with_wrong_clocks_give_events_the_times_of_the_store() {
    let schedules = bound(CLOCKS, 10 * CLOCKS);
    let tally = run(schedules, 0, Schedule::of_clocks, None, &|_| ())
        .unwrap_or_else(|difference| panic!("{difference}"));
    println!("{tally:?}");
    assert!(tally.accepted > 2 * schedules && tally.faults > schedules, "{tally:?}");
}

#[test]
fn each_effect_of_a_lane_happens_once_and_in_order_or_a_person_skips_it() {
    let schedules = bound(LANES, 10 * LANES);
    let tally = run(schedules, 0, Schedule::of_lanes, None, &|_| ())
        .unwrap_or_else(|difference| panic!("{difference}"));
    println!("{tally:?}");
    assert!(tally.effects > 10 * schedules && tally.unanswered > schedules / 2, "{tally:?}");
    assert!(tally.faults > 10 * schedules, "{tally:?}");
}

#[test]
fn a_queued_command_takes_effect_once_in_its_order_and_its_answer_stays() {
    let schedules = bound(QUEUES, 10 * QUEUES);
    let tally = run(schedules, 0, Schedule::of_queue, None, &|_| ())
        .unwrap_or_else(|difference| panic!("{difference}"));
    println!("{tally:?}");
    assert!(tally.accepted > 2 * schedules && tally.without_events > schedules, "{tally:?}");
    assert!(tally.faults > 10 * schedules && tally.unanswered > schedules / 10, "{tally:?}");
}

#[test]
fn a_due_takes_effect_once_and_in_time_and_none_is_lost() {
    let schedules = bound(DUES, 10 * DUES);
    let tally = run(schedules, 0, Schedule::of_dues, None, &|_| ())
        .unwrap_or_else(|difference| panic!("{difference}"));
    println!("{tally:?}");
    assert!(tally.effects > 3 * schedules && tally.unanswered > schedules / 5, "{tally:?}");
    assert!(tally.faults > 10 * schedules, "{tally:?}");
}

/// An overtaken run went on with the receipt of a run that repeats all effects, and so left one of those effects out.
#[test]
fn a_schedule_that_has_found_a_mistake_finds_none() {
    let kinds = [Kind::Latency, Kind::Slow, Kind::Deadline].into();
    let schedule = Schedule {
        jobs: [3, 4, 7, 12, 20, 23].into(),
        kinds,
        ..Schedule::about(Subject::Lanes, 110)
    };
    assert_eq!(schedule.run(None).err(), None);
}

#[test]
fn a_schedule_runs_again_as_it_was() {
    let reacting = [Schedule::of_lanes, Schedule::of_queue, Schedule::of_dues];
    let of = [Schedule::new, Schedule::of_clocks].into_iter().chain(reacting);
    for (of, seeds) in of.zip([5, 2, 1, 1, 1]) {
        for seed in 0..seeds {
            assert_eq!(of(seed).run(None), of(seed).run(None), "seed {seed}");
        }
    }
}

/// The first schedule that notices the mistake, shrunk.
fn noticed(schedules: u64, first: u64, mutant: Mutant) -> Difference {
    let of = match mutant.subject() {
        Subject::Commands => Schedule::new,
        Subject::Clocks => Schedule::of_clocks,
        Subject::Lanes => Schedule::of_lanes,
        Subject::Queue => Schedule::of_queue,
        Subject::Dues => Schedule::of_dues,
    };
    *run(schedules, first, of, Some(mutant), &|_| ()).expect_err("it is wrong")
}

#[test]
fn every_mistake_is_noticed_and_its_schedule_is_small() {
    for (mutant, (seed, jobs, kinds)) in Mutant::ALL.into_iter().zip(NOTICED) {
        let (jobs, kinds) = (jobs.iter().copied().collect(), kinds.iter().copied().collect());
        let schedule = Schedule { subject: mutant.subject(), seed, jobs, kinds };
        let report = schedule.run(Some(mutant)).err().unwrap_or_else(|| {
            panic!(
                "NOTICED needs another one of {mutant:?}: {}",
                noticed(MUTANT_SCHEDULES, 0, mutant)
            )
        });
        assert!(schedule.jobs.len() <= 9, "{mutant:?}: {schedule:?}");
        assert_eq!(schedule.run(Some(mutant)), Err(report), "it is as wrong again");
        assert_eq!(schedule.run(None).err(), None, "the log without the mistake agrees");
    }
}

#[test]
fn a_schedule_that_differs_is_shrunk() {
    let (seed, jobs, kinds) = NOTICED[0];
    let small = noticed(1, seed, Mutant::ALL[0]).schedule;
    assert!(small.jobs.into_iter().eq(jobs.iter().copied()));
    assert!(small.kinds.into_iter().eq(kinds.iter().copied()));
}

#[test]
fn reads_and_conditions_fit_the_specification() {
    let checked = each(QUERIES / queries::SEED_QUERIES, 1, queries::check, &|_| ());
    checked.unwrap_or_else(|(seed, difference)| panic!("seed {seed}: {difference}"));
}

#[test]
fn every_id_decodes_to_its_boundary_and_to_no_other() {
    let checked = each(NAMES / names::SEED_SETS, 1, names::check, &|_| ());
    checked.unwrap_or_else(|(seed, difference)| panic!("seed {seed}: {difference}"));
}

#[test]
fn an_import_has_each_event_once_and_in_order() {
    import::check(IMPORTED).unwrap_or_else(|difference| panic!("{difference}"));
}

#[test]
fn few_commands_give_up_where_many_meet() {
    let ends =
        contention::check(PRODUCTS, SECONDS).unwrap_or_else(|difference| panic!("{difference}"));
    println!("{ends}");
}
