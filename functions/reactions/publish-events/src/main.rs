//! Starts publish-events as a Lambda on the table's stream.

use std::time::Duration;

use aws_config::{BehaviorVersion, timeout::TimeoutConfig};
use aws_lambda_events::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use publish_events::{Publisher, Queue, Topic};
use ringfence_dynamo::Clock;
use ringfence_lambda::{Variables, chain, init_logs};
use serde_json::Value;

/// Left of the deadline for reporting what is not sent.
const REPORT_TIME: Duration = Duration::from_secs(2);
/// The time for a batch where the runtime sets no deadline that lies ahead.
const TIME_DEFAULT: Duration = Duration::from_secs(20);
/// One call, the SDK's own retries included.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    init_logs();
    serve().await.inspect_err(|error| {
        tracing::error!(cause = %chain(&**error), "the function can't start");
    })
}

async fn serve() -> Result<(), Error> {
    let mut variables = Variables::from_env();
    let bus = variables.required("EVENT_BUS");
    let queue = variables.required("DEAD_LETTER_QUEUE_URL");
    let (bus, queue) = variables.finish((bus, queue))?;
    let timeouts = TimeoutConfig::builder().operation_timeout(CALL_TIMEOUT).build();
    let config = aws_config::defaults(BehaviorVersion::latest()).timeout_config(timeouts);
    let config = config.load().await;
    let topic = Topic::new(aws_sdk_eventbridge::Client::new(&config), bus);
    topic.open().await;
    let publisher = &Publisher {
        bus: topic,
        dead_letters: Queue::new(aws_sdk_sqs::Client::new(&config), queue),
    };
    let clock = &Clock::system();
    lambda_runtime::run(service_fn(move |mut event: LambdaEvent<Value>| async move {
        let records = match event.payload["Records"].take() {
            Value::Array(records) => records,
            _ => return Err("the payload has no Records; it is no batch of a stream"),
        };
        let left = Duration::from_millis(event.context.deadline.saturating_sub(clock.now_ms()));
        let time = if left.is_zero() { TIME_DEFAULT } else { left.saturating_sub(REPORT_TIME) };
        let report = publisher.publish(&records, time).await;
        tracing::info!(
            function_request_id = event.context.request_id,
            records = records.len(),
            published = report.published,
            dead_letters = report.dead_letters,
            failed_from = report.failed_from,
            cause = report.cause,
            "batch",
        );
        let mut response = DynamoDbEventResponse::default();
        if let Some(sequence_number) = report.failed_from {
            let mut failure = DynamoDbBatchItemFailure::default();
            failure.item_identifier = Some(sequence_number);
            response.batch_item_failures.push(failure);
        }
        Ok(response)
    }))
    .await
}
