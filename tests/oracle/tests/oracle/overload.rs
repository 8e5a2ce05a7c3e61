//! What a store refuses harms nobody else, and is neither lost nor doubled.

use ringfence_oracle::overload::{Load, Mistake, RANGE_UNITS, simulate};

const SECONDS: u64 = 3;

#[test]
fn at_twice_the_limit_most_of_the_limit_is_used_and_few_requests_are_sent_again() {
    let twice = Load { hot: 2 * RANGE_UNITS, cold: 2 * RANGE_UNITS };
    let found = simulate(twice, SECONDS, 1, None).unwrap_or_else(|wrong| panic!("{wrong}"));
    println!("{:?} {}", found.goodput, found.sends);
    let refused: usize = found.ends.iter().map(|ends| ends.gave_up()).sum();
    assert!(refused > 0);
    assert!(found.goodput >= 0.7, "{}", found.goodput);
    assert!(found.sends <= 2.0, "{}", found.sends);
    for mistake in [Mistake::NeverRefuses, Mistake::WritesRefused] {
        let wrong = simulate(twice, SECONDS, 1, Some(mistake));
        println!("{mistake:?}: {}", wrong.expect_err("it is wrong"));
    }
}

#[test]
fn a_hot_key_range_harms_no_command_of_another_range() {
    let [calm, hot] = [0, 10 * RANGE_UNITS].map(|hot| {
        let load = Load { hot, cold: RANGE_UNITS / 2 };
        simulate(load, SECONDS, 2, None).unwrap_or_else(|wrong| panic!("{wrong}"))
    });
    let [_, calm] = calm.ends;
    let [refused, cold] = hot.ends;
    println!("{} of {} {} {}", refused.gave_up(), refused.commands(), calm.p99_ms(), cold.p99_ms());
    assert!(refused.gave_up() > refused.commands() / 2);
    assert_eq!(cold.gave_up(), 0);
    assert!(cold.p99_ms() <= 2 * calm.p99_ms(), "{} {}", cold.p99_ms(), calm.p99_ms());
}
