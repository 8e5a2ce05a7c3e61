//! publish-events as a Lambda on the streams of the logs' tables.

use std::process::ExitCode;
use std::time::Duration;

use aws_sdk_sqs::config::timeout::TimeoutConfig;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use ringfence::Catalog;
use ringfence_dynamo::{Clock, sdk_config};
use ringfence_function::{
    VariableNames, Variables,
    reactions::{LetterQueue, answer, records, time_for},
};
use serde_json::Value;

use crate::{Publisher, Topic};

/// One call, the SDK's own retries included.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs publish-events until Lambda ends the process.
pub fn run(catalog: Catalog) -> ExitCode {
    ringfence_function::main(serve(catalog))
}

/// The variables that it reads.
pub fn variables() -> VariableNames {
    Variables::names(config)
}

/// The name of the bus and the URL of the queue.
fn config(variables: &mut Variables) -> (String, String) {
    (variables.required("EVENT_BUS"), variables.required("DEAD_LETTER_QUEUE_URL"))
}

async fn serve(catalog: Catalog) -> Result<(), Error> {
    let (bus, queue) = Variables::from_env(config)?;
    let timeouts = TimeoutConfig::builder().operation_timeout(CALL_TIMEOUT).build();
    let config = sdk_config()?.into_builder().timeout_config(timeouts).build();
    let topic = Topic::new(aws_sdk_eventbridge::Client::new(&config), bus);
    topic.open().await;
    let publisher = &Publisher {
        bus: topic,
        letters: LetterQueue::new(aws_sdk_sqs::Client::new(&config), queue),
        catalog,
    };
    let clock = &Clock::system();
    lambda_runtime::run(service_fn(move |mut event: LambdaEvent<Value>| async move {
        let records = records(&mut event)?;
        let report = publisher.publish(&records, time_for(&event, clock)).await;
        tracing::info!(
            function_request_id = event.context.request_id,
            records = records.len(),
            published = report.published,
            dead_letters = report.dead_letters,
            failed_from = report.failed_from.as_deref(),
            cause = report.cause,
            "batch",
        );
        Ok::<_, &'static str>(answer(report.failed_from))
    }))
    .await
}
