//! `ringfence-oracle [schedules] [seed]`: as many schedules as one likes.

use std::process::ExitCode;

/// Without an argument.
const SCHEDULES: u64 = 10_000;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let (schedules, seed) = match (numbers.next(), numbers.next()) {
        (None, _) => (SCHEDULES, 0),
        (Some(Ok(schedules)), None) => (schedules, 0),
        (Some(Ok(schedules)), Some(Ok(seed))) => (schedules, seed),
        _ => {
            eprintln!("usage: ringfence-oracle [schedules] [first seed]");
            return ExitCode::FAILURE;
        }
    };
    match ringfence_oracle::run(schedules, seed, None) {
        Ok(tally) => {
            println!("{tally:#?}");
            ExitCode::SUCCESS
        }
        Err(difference) => {
            eprintln!("{difference}");
            ExitCode::FAILURE
        }
    }
}
