//! A function that is not a slice.

use std::{process::ExitCode, time::Duration};

use lambda_runtime::{Diagnostic, Error, LambdaEvent, service_fn};
use ringfence_aws::Clock;
use serde_json::Value;

use crate::batch::stream_lag_ms;
use crate::bounded::bounded;
use crate::config::{VariableNames, Variables};
use crate::logs::LOGGED_BYTES_MAX;
use crate::start::start;

/// A function that is not a slice: it reads streams, serves views, or runs at certain times.
pub trait Service: Sized {
    /// Its name in kebab case, and the name of its binary.
    const NAME: &'static str;
    /// The time before the deadline that is reserved for the answer.
    const ANSWER_TIME: Duration;
    /// Whether its failures have the alarm FunctionsFail.
    const HAS_ALARM: bool = true;
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
    start(None, failed::<S>(), Box::pin(serve::<S>(of)))
}

/// The service's name for a log line about a failure. The alarm counts lines that have it.
fn failed<S: Service>() -> Option<&'static str> {
    S::HAS_ALARM.then_some(S::NAME)
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
        answer(service, call(event, clock, S::ANSWER_TIME, S::TIME_DEFAULT), clock.now_ms()).await
    }))
    .await
}

/// The answer to an invocation, and the lines that the alarms StreamsBehind and FunctionsFail count.
async fn answer<S: Service>(service: &S, call: Call, now_ms: u64) -> Result<Value, Diagnostic> {
    if let Some(stream_lag_ms) = stream_lag_ms(&call.payload, now_ms) {
        tracing::warn!(stream_lag_ms, function = S::NAME, "records have waited long in the stream");
    }
    let answer = service.answer(call).await;
    if let Err(Diagnostic { error_type, error_message }) = &answer {
        let cause = bounded(error_message, LOGGED_BYTES_MAX);
        tracing::error!(
            failed_function = failed::<S>(),
            error_type,
            cause,
            "the invocation failed"
        );
    }
    answer
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::logs::tests::Sink;

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

    struct Reader;

    impl Service for Reader {
        const NAME: &'static str = "read-records";
        const ANSWER_TIME: Duration = Duration::ZERO;
        const TIME_DEFAULT: Duration = Duration::ZERO;
        type Of = ();
        type Config = ();

        fn config((): &(), _: &mut Variables) {}

        async fn open((): (), (): ()) -> Result<Self, Error> {
            Ok(Self)
        }

        /// Fails on a record that says so.
        async fn answer(&self, call: Call) -> Result<Value, Diagnostic> {
            match call.payload["Records"][0]["fails"].as_str() {
                None => Ok(Value::Null),
                Some(why) => Err(Diagnostic {
                    error_type: "broken".to_owned(),
                    error_message: why.to_owned(),
                }),
            }
        }
    }

    #[tokio::test]
    async fn the_log_says_when_an_invocation_fails_and_when_records_have_waited_for_an_hour() {
        let sink = Sink::default();
        let shown = tracing::subscriber::set_default(sink.logs());
        let now_ms = 1_700_000_000_000;
        for (ago, fails) in
            [(3_600.0, None), (3_600.5, None), (0.0, Some("no \u{1}".repeat(9_000)))]
        {
            let at = 1_700_000_000.0 - ago;
            let record =
                json!({ "dynamodb": { "ApproximateCreationDateTime": at }, "fails": fails });
            let payload = json!({ "Records": [record] });
            let (request_id, function) = (String::new(), String::new());
            let call = Call { payload, request_id, function, time: Duration::ZERO };
            assert_eq!(answer(&Reader, call, now_ms).await.is_err(), fails.is_some());
        }
        drop(shown);
        let lines = sink.lines();
        assert_eq!(lines.len(), 2, "{lines:?}");
        let expected = [json!("WARN"), json!(3_600_500), json!("read-records"), json!(null)];
        let members = ["level", "stream_lag_ms", "function", "failed_function"];
        assert_eq!(members.map(|name| lines[0][name].clone()), expected);
        let expected = [json!("ERROR"), json!("broken"), json!(null), json!("read-records")];
        let members = ["level", "error_type", "stream_lag_ms", "failed_function"];
        assert_eq!(members.map(|name| lines[1][name].clone()), expected);
        assert!(lines[1]["cause"].to_string().len() <= LOGGED_BYTES_MAX + 2);
    }
}
