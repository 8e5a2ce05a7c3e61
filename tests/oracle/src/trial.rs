//! One schedule, from its seed to its end.

use std::time::Duration;

use futures::future::join_all;
use ringfence_aws::seed_thread;
use ringfence_core::Outcome;
use tokio::time::sleep;

use crate::check::check;
use crate::weather::STRAY_MAX_MS;
use crate::world::{End, World};
use crate::{Mutant, Schedule, Subject, Tally, reacting, wrong};

/// Runs the schedule. Returns its counts, or its difference from a serial run; and the events.
pub(crate) fn run(
    schedule: &Schedule,
    mutant: Option<Mutant>,
) -> (Result<Tally, String>, Vec<String>) {
    seed_thread(schedule.seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without input and output");
    runtime.block_on(async {
        match schedule.subject {
            Subject::Commands | Subject::Clocks => commands(schedule, mutant).await,
            Subject::Lanes => reacting::lanes(schedule, mutant).await,
            Subject::Queue => reacting::queue(schedule, mutant).await,
            Subject::Dues => reacting::dues(schedule, mutant).await,
        }
    })
}

async fn commands(
    schedule: &Schedule,
    mutant: Option<Mutant>,
) -> (Result<Tally, String>, Vec<String>) {
    let mut world = World::new(schedule.clone(), mutant);
    let ends = join_all(world.jobs.iter().flat_map(|job| {
        let world = &world;
        let copies = job.copies.iter().enumerate();
        copies.map(move |(copy, delivery)| world.deliver(job, copy, *delivery))
    }));
    let ends = ends.await;
    // Everything that is still on its way arrives.
    sleep(Duration::from_millis(2 * STRAY_MAX_MS)).await;
    let history = world.weather.take();
    let mut tally = history.tally;
    count(&mut tally, &ends);
    let mut checked = check(&world, &history, &ends).await;
    if schedule.subject == Subject::Clocks {
        checked = wrong::check(schedule, &history).and(checked);
    }
    let checked = match checked {
        Ok(reordered) => {
            tally.reordered = reordered;
            match world.repeats(&history).await {
                Ok(()) => world.lone_writer().await,
                doubled => doubled,
            }
        }
        Err(difference) => Err(difference),
    };
    (checked.map(|()| tally), history.trace)
}

fn count(tally: &mut Tally, ends: &[End]) {
    tally.schedules = 1;
    for end in ends {
        match &end.result {
            Some(Ok(handled)) => {
                tally.decided_again += u64::from(handled.attempts - 1);
                match &handled.outcome {
                    _ if handled.repeated => tally.repeated += 1,
                    Outcome::Accepted(events) if !events.is_empty() => tally.accepted += 1,
                    _ => tally.without_events += 1,
                }
            }
            None | Some(Err(_)) => tally.unanswered += 1,
        }
    }
}
