//! A function that is not a slice.

use std::{process::ExitCode, time::Duration};

use lambda_runtime::{Context, Diagnostic, Error, LambdaEvent, service_fn};
use ringfence_dynamo::Clock;
use serde_json::Value;

use crate::config::{VariableNames, Variables};
use crate::start::start;

/// A function that is not a slice: it reads streams, answers from views, or runs at times of its own.
pub trait Service: Sized {
    /// Its name in kebab case, which is that of its binary.
    const NAME: &'static str;
    /// The time before the deadline that is left for the answer.
    const ANSWER_TIME: Duration;
    /// The time for an invocation if the runtime sets no deadline or one in the past.
    const TIME_DEFAULT: Duration;
    /// What it serves of the stack, such as all views.
    type Of;
    /// What its variables say, such as the names of its tables.
    type Config;

    /// Reads its variables.
    fn config(variables: &mut Variables) -> Self::Config;

    /// Opens it, once for all invocations of the process.
    fn open(of: Self::Of, config: Self::Config) -> impl Future<Output = Result<Self, Error>>;

    /// Answers an invocation.
    fn answer(&self, call: Call) -> impl Future<Output = Result<Value, Diagnostic>>;
}

/// An invocation of a service.
pub struct Call {
    /// What it is invoked with.
    pub payload: Value,
    /// Names the invocation in logs.
    pub request_id: String,
    /// The name of the function on AWS.
    pub function: String,
    /// How long the work may take.
    pub time: Duration,
}

/// Runs the service until Lambda ends the process. If it can't start, one line of the log says why.
pub fn run<S: Service>(of: S::Of) -> ExitCode {
    start(None, Box::pin(serve::<S>(of)))
}

/// The variables that the service reads.
pub fn variables<S: Service>() -> VariableNames {
    Variables::names(S::config)
}

async fn serve<S: Service>(of: S::Of) -> Result<(), Error> {
    let service = &S::open(of, Variables::from_env(S::config)?).await?;
    let clock = &Clock::system();
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Value>| async move {
        let (payload, context) = event.into_parts();
        let time = time_left(&context, clock, S::ANSWER_TIME).unwrap_or(S::TIME_DEFAULT);
        let function = context.env_config.function_name.clone();
        let call = Call { payload, request_id: context.request_id, function, time };
        service.answer(call).await
    }))
    .await
}

/// How long the work of an invocation may take if `reserve` is left before the deadline for the answer.
/// `None` for a deadline in the past, as emulators of the runtime send: it does not count.
fn time_left(lambda: &Context, clock: &Clock, reserve: Duration) -> Option<Duration> {
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
