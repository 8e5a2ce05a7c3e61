//! How a function starts, and how long an invocation may take.

use std::{process::ExitCode, time::Duration};

use futures::future::LocalBoxFuture;
use lambda_runtime::{Context, Error};
use ringfence_dynamo::Clock;

use crate::logs::{chain, init_logs};

/// Serves until Lambda ends the process: `fn main() -> ExitCode { ringfence_function::main(serve()) }`.
/// If the function can't start, one line of the log says why.
pub fn main(serve: impl Future<Output = Result<(), Error>>) -> ExitCode {
    until_the_end(None, Box::pin(serve))
}

/// The same for a slice, which the line names.
pub fn until_the_end(
    slice: Option<&'static str>,
    serve: LocalBoxFuture<'_, Result<(), Error>>,
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

/// How long the work of an invocation may take if `reserve` is left before the deadline for the answer.
/// `None` for a deadline in the past, as emulators of the runtime send: it does not count.
pub fn time_left(lambda: &Context, clock: &Clock, reserve: Duration) -> Option<Duration> {
    let left = Duration::from_millis(lambda.deadline.saturating_sub(clock.now_ms()));
    (!left.is_zero()).then(|| left.saturating_sub(reserve))
}

#[test]
fn a_past_deadline_does_not_count_and_a_future_one_leaves_the_reserve() {
    let mut lambda = Context::default();
    let (clock, reserve) = (Clock::fixed(10_000), Duration::from_millis(500));
    for (deadline, left) in [(0, None), (10_000, None), (10_400, Some(0)), (12_000, Some(1_500))] {
        lambda.deadline = deadline;
        let expected = left.map(Duration::from_millis);
        assert_eq!(time_left(&lambda, &clock, reserve), expected, "{deadline}");
    }
}
