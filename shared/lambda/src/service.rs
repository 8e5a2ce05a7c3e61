//! A function that is not a slice.

use std::{process::ExitCode, time::Duration};

use lambda_runtime::{Diagnostic, Error, LambdaEvent, service_fn};
use ringfence_aws::Clock;
use serde_json::Value;

use crate::config::{VariableNames, Variables};
use crate::start::start;

/// A function that is not a slice: it reads streams, serves views, or runs at certain times.
pub trait Service: Sized {
    /// Its name in kebab case, and the name of its binary.
    const NAME: &'static str;
    /// The time before the deadline that is reserved for the answer.
    const ANSWER_TIME: Duration;
    /// The time of an invocation if the runtime sets no deadline or one in the past.
    const TIME_DEFAULT: Duration;
    /// The part of the stack that it serves, such as all views.
    type Of;
    /// Its configuration, such as the names of its tables.
    type Config;

    /// Reads its variables.
    fn config(of: &Self::Of, variables: &mut Variables) -> Self::Config;

    /// Opens it, once for all invocations of the process.
    fn open(of: Self::Of, config: Self::Config) -> impl Future<Output = Result<Self, Error>>;

    /// Answers an invocation.
    fn answer(&self, call: Call) -> impl Future<Output = Result<Value, Diagnostic>>;
}

/// An invocation of a service.
pub struct Call {
    /// Its payload.
    pub payload: Value,
    /// The id of the invocation in logs.
    pub request_id: String,
    /// The name of the function on AWS.
    pub function: String,
    /// The time for the work.
    pub time: Duration,
}

/// Runs the service until Lambda ends the process. If it can't start, one line of the log says why.
pub fn run<S: Service>(of: S::Of) -> ExitCode {
    start(None, Box::pin(serve::<S>(of)))
}

/// The variables that the service reads.
pub fn variables<S: Service>(of: &S::Of) -> VariableNames {
    Variables::names(|variables| S::config(of, variables))
}

async fn serve<S: Service>(of: S::Of) -> Result<(), Error> {
    let config = Variables::from_env(|variables| S::config(&of, variables))?;
    let service = &S::open(of, config).await?;
    let clock = &Clock::system();
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Value>| async move {
        service.answer(call(event, clock, S::ANSWER_TIME, S::TIME_DEFAULT)).await
    }))
    .await
}

/// An invocation. Its work has to leave `reserve` before the deadline for the answer. Emulators of the runtime send
/// deadlines in the past, which do not count: then the work may take the time `default`.
fn call(event: LambdaEvent<Value>, clock: &Clock, reserve: Duration, default: Duration) -> Call {
    let (payload, context) = event.into_parts();
    let left = Duration::from_millis(context.deadline.saturating_sub(clock.machine_ms()));
    let time = if left.is_zero() { default } else { left.saturating_sub(reserve) };
    let function = context.env_config.function_name.clone();
    Call { payload, request_id: context.request_id, function, time }
}

#[test]
fn a_past_deadline_does_not_count_and_a_future_one_leaves_the_reserve() {
    let [reserve, default] = [500, 20_000].map(Duration::from_millis);
    for (deadline, left) in [(0, 20_000), (10_000, 20_000), (10_400, 0), (12_000, 1_500)] {
        let mut lambda = lambda_runtime::Context::default();
        lambda.deadline = deadline;
        let event = LambdaEvent::new(Value::Null, lambda);
        let call = call(event, &Clock::fixed(10_000), reserve, default);
        assert_eq!(call.time, Duration::from_millis(left), "{deadline}");
    }
}
