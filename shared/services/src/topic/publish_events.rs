//! publish-events as a Lambda on the streams of the logs' tables.

use std::time::Duration;

use aws_sdk_sqs::config::timeout::TimeoutConfig;
use lambda_runtime::{Diagnostic, Error};
use ringfence_aws::sdk_config;
use ringfence_core::Catalog;
use ringfence_lambda::{Call, DeadLetterQueue, Service, Variables, delivered, records};
use ringfence_log::Sources;
use serde_json::Value;

use crate::topic::aws::Topic;
use crate::topic::publisher::Publisher;

/// One call, the SDK's own retries included.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The function. It serves the logs of the stack.
pub struct PublishEvents(Publisher<Topic, DeadLetterQueue>);

impl Service for PublishEvents {
    const NAME: &'static str = "publish-events";
    const ANSWER_TIME: Duration = Duration::from_secs(2);
    const TIME_DEFAULT: Duration = Duration::from_secs(20);
    type Of = (Sources, Catalog);
    /// The name of the bus and the URL of the queue.
    type Config = (String, String);

    fn config(_: &Self::Of, variables: &mut Variables) -> (String, String) {
        (variables.required("EVENT_BUS"), variables.required("DEAD_LETTER_QUEUE_URL"))
    }

    async fn open(
        (sources, catalog): Self::Of,
        (bus, queue): (String, String),
    ) -> Result<Self, Error> {
        let timeouts = TimeoutConfig::builder().operation_timeout(CALL_TIMEOUT).build();
        let config = sdk_config()?.into_builder().timeout_config(timeouts).build();
        let bus = Topic::new(aws_sdk_eventbridge::Client::new(&config), bus);
        bus.open().await;
        let dead_letters = DeadLetterQueue::new(aws_sdk_sqs::Client::new(&config), queue);
        Ok(Self(Publisher { bus, dead_letters, sources, catalog }))
    }

    async fn answer(&self, mut call: Call) -> Result<Value, Diagnostic> {
        let records = records(&mut call.payload)?;
        let report = self.0.publish(&records, call.time).await;
        if report.dead_letters > 0 || report.failed_from.is_some() {
            tracing::info!(
                function_request_id = call.request_id,
                records = records.len(),
                published = report.published,
                dead_letters = report.dead_letters,
                failed_from = report.failed_from.as_deref(),
                cause = report.cause,
                "batch",
            );
        }
        Ok(delivered(report.failed_from))
    }
}
