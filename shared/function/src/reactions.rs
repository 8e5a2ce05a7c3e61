//! The code that the readers of the logs' streams share.

use std::{error::Error, time::Duration};

use aws_lambda_events::streams::{DynamoDbBatchItemFailure, DynamoDbEventResponse};
use futures::{FutureExt, future::BoxFuture};
use lambda_runtime::LambdaEvent;
use ringfence_dynamo::Clock;
use serde_json::{Value, json};

use crate::time_left;

/// The time before the deadline that is left for reporting what is not done.
const REPORT_TIME: Duration = Duration::from_secs(2);
/// The time for a batch if the runtime sets no deadline or one in the past.
const TIME_DEFAULT: Duration = Duration::from_secs(20);

/// Most bytes of a message that every Region's SQS takes: 256 KB.
const MESSAGE_BYTES_MAX: usize = 256 * 1024;
/// Most bytes of a cause, which may quote what it is about.
const CAUSE_BYTES_MAX: usize = 4 * 1024;

/// The records of a batch, or an error if the payload is not a batch.
pub fn records(event: &mut LambdaEvent<Value>) -> Result<Vec<Value>, &'static str> {
    match event.payload.get_mut("Records").map(Value::take) {
        Some(Value::Array(records)) => Ok(records),
        _ => Err("the payload has no Records, so it is not a batch of a stream"),
    }
}

/// How long a batch may take.
pub fn time_for(event: &LambdaEvent<Value>, clock: &Clock) -> Duration {
    time_left(&event.context, clock, REPORT_TIME).unwrap_or(TIME_DEFAULT)
}

/// The place of a record in its stream. For a record without a number it is empty, which makes Lambda
/// deliver the whole batch again.
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

/// A letter about a record: the record and a cause. If the record is too large for a message, the letter
/// has its key instead, because the table has the events. Those of a document's Tip are the last `a` events
/// before event `n`.
pub fn letter(record: &Value, cause: &str) -> Value {
    let cause = &cause[..cause.floor_char_boundary(CAUSE_BYTES_MAX)];
    let letter = json!({ "cause": cause, "record": record });
    if message(&letter).len() <= MESSAGE_BYTES_MAX {
        return letter;
    }
    let change = &record["dynamodb"];
    let mut letter = json!({
        "cause": cause,
        "key": change["Keys"],
        "sequenceNumber": change["SequenceNumber"],
    });
    for name in ["n", "a"] {
        if let Some(value) = change["NewImage"].get(name) {
            letter[name] = value.clone();
        }
    }
    letter
}

/// A letter as a message. SQS refuses a message with U+FFFE or U+FFFF, which JSON texts may have. They are
/// escaped here, as control characters are in any JSON.
fn message(letter: &Value) -> String {
    letter.to_string().replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff")
}

/// Keeps letters about records that can never be handled, for a person.
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
        let send = self.client.send_message().queue_url(&self.url).message_body(message(&letter));
        async move { send.send().await.map(drop).map_err(Into::into) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use lambda_runtime::Context;

    use super::*;

    fn record(text: &str) -> Value {
        json!({ "dynamodb": {
            "SequenceNumber": "7",
            "Keys": { "id": { "S": "orderId:o1" }, "position": { "N": "1" } },
            "NewImage": { "n": { "N": "3" }, "text": { "S": text } },
        }})
    }

    #[test]
    fn a_payload_that_is_no_batch_is_refused() {
        let of = |payload| records(&mut LambdaEvent::new(payload, Context::default()));
        assert_eq!(of(json!({ "Records": [1] })), Ok(vec![json!(1)]));
        for payload in [json!({}), json!({ "Records": 1 }), json!([]), json!("x"), json!(null)] {
            assert!(of(payload).is_err());
        }
    }

    #[test]
    fn what_failed_is_reported_by_its_number_and_without_one_the_whole_batch_fails() {
        let reported = |failed_from| serde_json::to_value(answer(failed_from)).unwrap();
        assert_eq!(reported(None), json!({ "batchItemFailures": [] }));
        let from_7 = json!({ "batchItemFailures": [{ "itemIdentifier": "7" }] });
        assert_eq!(reported(Some(sequence_number(&record("x")))), from_7);
        assert_eq!(sequence_number(&json!({})), "");
    }

    #[test]
    fn a_letter_always_fits_a_message() {
        let small = record("x");
        assert_eq!(letter(&small, "refused"), json!({ "cause": "refused", "record": small }));
        // Escaped characters count as they are sent.
        for large in ["x".repeat(MESSAGE_BYTES_MAX), "\u{ffff}".repeat(MESSAGE_BYTES_MAX / 5)] {
            let letter = letter(&record(&large), &large);
            assert!(message(&letter).len() <= MESSAGE_BYTES_MAX);
            assert_eq!(letter["key"], small["dynamodb"]["Keys"]);
            assert_eq!((&letter["sequenceNumber"], &letter["n"]["N"]), (&json!("7"), &json!("3")));
            assert!(large.starts_with(letter["cause"].as_str().unwrap()));
        }
    }

    #[test]
    fn a_message_has_only_characters_that_sqs_takes_and_reads_back_as_the_letter() {
        let text: String = ('\0'..=char::MAX).collect();
        let letter = json!({ "cause": text, "\\\u{fffe}": "\\\u{ffff}" });
        let message = message(&letter);
        // https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
        let taken = |c| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
        assert_eq!(message.chars().find(|c| !taken(*c)), None);
        assert_eq!(serde_json::from_str::<Value>(&message).unwrap(), letter);
    }
}
