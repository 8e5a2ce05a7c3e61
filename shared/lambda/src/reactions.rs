//! What the readers of the logs' streams share.

use std::{error::Error, time::Duration};

use aws_lambda_events::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};
use futures::{FutureExt, future::BoxFuture};
use lambda_runtime::LambdaEvent;
use ringfence_dynamo::Clock;
use serde_json::Value;

use crate::time_left;

/// Left of the deadline for reporting what is not done.
const REPORT_TIME: Duration = Duration::from_secs(2);
/// The time for a batch where the runtime sets no deadline that lies ahead.
const TIME_DEFAULT: Duration = Duration::from_secs(20);

/// The records of a batch; an error says that the payload is none.
pub fn records(event: &mut LambdaEvent<Value>) -> Result<Vec<Value>, &'static str> {
    match event.payload["Records"].take() {
        Value::Array(records) => Ok(records),
        _ => Err("the payload has no Records; it is no batch of a stream"),
    }
}

/// How long a batch may take.
pub fn time_for(event: &LambdaEvent<Value>, clock: &Clock) -> Duration {
    time_left(&event.context, clock, REPORT_TIME).unwrap_or(TIME_DEFAULT)
}

/// Where a record is in its stream. An empty text makes Lambda deliver the whole batch again,
/// which is right for a record without a number.
pub fn sequence_number(record: &Value) -> String {
    record["dynamodb"]["SequenceNumber"].as_str().unwrap_or_default().to_owned()
}

/// The answer that has Lambda deliver again from a sequence number on, if there is one.
pub fn answer(failed_from: Option<String>) -> DynamoDbEventResponse {
    let mut response = DynamoDbEventResponse::default();
    if let Some(sequence_number) = failed_from {
        let mut failure = DynamoDbBatchItemFailure::default();
        failure.item_identifier = Some(sequence_number);
        response.batch_item_failures.push(failure);
    }
    response
}

/// Keeps what can never be done, for a person.
pub trait Letters: Send + Sync {
    /// Keeps one letter: a JSON object with its `cause`.
    fn keep(&self, letter: Value) -> BoxFuture<'_, Result<(), Box<dyn Error + Send + Sync>>>;
}

/// An SQS queue of letters.
pub struct LetterQueue {
    client: aws_sdk_sqs::Client,
    url: String,
}

impl LetterQueue {
    /// The queue at this URL.
    pub fn new(client: aws_sdk_sqs::Client, url: String) -> Self {
        Self { client, url }
    }
}

impl Letters for LetterQueue {
    fn keep(&self, letter: Value) -> BoxFuture<'_, Result<(), Box<dyn Error + Send + Sync>>> {
        let send = self.client.send_message().queue_url(&self.url).message_body(letter.to_string());
        async move { send.send().await.map(drop).map_err(Into::into) }.boxed()
    }
}
