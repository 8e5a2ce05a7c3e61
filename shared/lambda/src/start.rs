//! How a function starts, and how long an invocation may take.

use std::{process::ExitCode, time::Duration};

use lambda_runtime::{Context, Error};
use ringfence_dynamo::Clock;

use crate::telemetry::{chain, init_logs};

/// Serves until Lambda ends the process: `fn main() -> ExitCode { ringfence_lambda::main(serve()) }`.
/// What keeps the function from starting is one line of the log.
pub fn main(serve: impl Future<Output = Result<(), Error>>) -> ExitCode {
    until_the_end(None, serve)
}

/// The same for a slice, which the line names.
pub(crate) fn until_the_end(
    slice: Option<&'static str>,
    serve: impl Future<Output = Result<(), Error>>,
) -> ExitCode {
    init_logs();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let served = match runtime {
        Ok(runtime) => runtime.block_on(serve),
        Err(error) => Err(error.into()),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(slice, cause = %chain(&*error), "the function can't start");
            ExitCode::FAILURE
        }
    }
}

/// How long the work of an invocation may take, if `reserve` is left of its deadline for the answer;
/// `None` where the deadline lies behind, as that of emulators of the runtime: it bounds nothing.
pub fn time_left(lambda: &Context, clock: &Clock, reserve: Duration) -> Option<Duration> {
    let left = Duration::from_millis(lambda.deadline.saturating_sub(clock.now_ms()));
    (!left.is_zero()).then(|| left.saturating_sub(reserve))
}

#[test]
fn a_deadline_behind_bounds_nothing_and_one_ahead_leaves_the_reserve() {
    let mut lambda = Context::default();
    let (clock, reserve) = (Clock::fixed(10_000), Duration::from_millis(500));
    for (deadline, left) in [(0, None), (10_000, None), (10_400, Some(0)), (12_000, Some(1_500))] {
        lambda.deadline = deadline;
        let expected = left.map(Duration::from_millis);
        assert_eq!(time_left(&lambda, &clock, reserve), expected, "{deadline}");
    }
}
