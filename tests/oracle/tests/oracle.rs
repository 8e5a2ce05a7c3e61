//! The oracle agrees with the log, and with no log that is wrong.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::thread;

use ringfence_oracle::contention::{Ends, Load, simulate};
use ringfence_oracle::{Mutant, Schedule, each, import, names, queries, run};

/// As many as `cargo test` has time for; the proof runs more.
const SCHEDULES: u64 = 500;
const QUERIES: u64 = 1_000;
const NAMES: u64 = 50_000;
/// Within so many schedules each mistake shows.
const MUTANT_SCHEDULES: u64 = 1_000;
/// The seed of the first schedule that notices each mistake. It is tried before all others, which saves most of the time.
const NOTICED: [u64; Mutant::ALL.len()] = [1, 30, 12, 0, 0, 3, 13, 1, 410, 12, 7];

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
    for (mutant, noticed) in Mutant::ALL.into_iter().zip(NOTICED) {
        let first =
            |schedules, seed| run(schedules, seed, Schedule::new, Some(mutant), &|_| ()).err();
        let difference = first(1, noticed).or_else(|| first(MUTANT_SCHEDULES, 0));
        let difference = difference.expect("it is wrong");
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

/// One boundary, to which every command appends.
fn one_boundary(a_second: u64) -> Ends {
    let [_, appends] = simulate(Load { orders: 0, appends: a_second, fenced: false }, 20, 1);
    appends
}

#[test]
fn at_twenty_commands_a_second_on_one_boundary_fewer_than_one_in_a_thousand_gives_up() {
    let ends = one_boundary(20);
    println!(
        "{} commands, {} at once, {} gave up",
        ends.commands(),
        ends.at_once(),
        ends.gave_up()
    );
    assert!(ends.gave_up() * 1_000 < ends.commands(), "{}", ends.gave_up());
    // Else there was nothing to contend for.
    assert!(ends.at_once() * 20 < ends.commands() * 19, "{}", ends.at_once());
}

#[test]
fn at_forty_other_events_a_second_on_a_product_few_orders_give_up_and_none_if_it_is_fenced() {
    let load = |fenced| Load { orders: 10, appends: 40, fenced };
    let fenced = thread::spawn(move || simulate(load(true), 10, 1));
    let [orders, _] = simulate(load(false), 20, 1);
    println!("by slot: {} of {} gave up", orders.gave_up(), orders.commands());
    assert!(orders.gave_up() * 100 < orders.commands(), "{}", orders.gave_up());
    assert!(orders.at_once() * 10 < orders.commands() * 9, "{}", orders.at_once());
    let [orders, _] = fenced.join().expect("the simulation does not panic");
    assert_eq!((orders.gave_up(), orders.at_once()), (0, orders.commands()));
}
