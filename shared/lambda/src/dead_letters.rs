//! Dead letters for records of streams that can never be handled. A queue keeps them for a person.

use std::error::Error;

use futures::{FutureExt, future::BoxFuture};
use serde_json::{Value, json};

/// Most bytes of a message that every Region's SQS takes: 256 KB.
pub const MESSAGE_BYTES_MAX: usize = 256 * 1024;
/// The most bytes of a cause, which may quote the record.
const CAUSE_BYTES_MAX: usize = 4 * 1024;

/// A dead letter for a record: the record and a cause. If the record is too large for a message, the dead letter has
/// its key instead, because the table has the events. For a document's Tip these are the last `a` events before event
/// `n`.
pub fn dead_letter(record: &Value, cause: &str) -> Value {
    let cause = &cause[..cause.floor_char_boundary(CAUSE_BYTES_MAX)];
    let dead_letter = json!({ "cause": cause, "record": record });
    if message(&dead_letter).len() <= MESSAGE_BYTES_MAX {
        return dead_letter;
    }
    let change = &record["dynamodb"];
    let mut dead_letter = json!({
        "cause": cause,
        "key": change["Keys"],
        "sequenceNumber": change["SequenceNumber"],
    });
    for name in ["n", "a"] {
        if let Some(value) = change["NewImage"].get(name) {
            dead_letter[name] = value.clone();
        }
    }
    dead_letter
}

/// JSON as a message. SQS refuses a message with U+FFFE or U+FFFF, which JSON texts may have. They are escaped here,
/// like control characters in any JSON.
pub fn message(dead_letter: &Value) -> String {
    dead_letter.to_string().replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff")
}

/// Keeps dead letters about records that can never be handled, for a person.
pub trait DeadLetters: Send + Sync {
    /// Keeps one dead letter: a JSON object with its `cause`.
    fn keep(&self, dead_letter: Value) -> BoxFuture<'_, Result<(), Box<dyn Error + Send + Sync>>>;
}

/// An SQS queue of dead letters.
pub struct DeadLetterQueue {
    client: aws_sdk_sqs::Client,
    url: String,
}

impl DeadLetterQueue {
    /// The queue at this URL.
    pub fn new(client: aws_sdk_sqs::Client, url: String) -> Self {
        Self { client, url }
    }
}

impl DeadLetters for DeadLetterQueue {
    fn keep(&self, dead_letter: Value) -> BoxFuture<'_, Result<(), Box<dyn Error + Send + Sync>>> {
        let send =
            self.client.send_message().queue_url(&self.url).message_body(message(&dead_letter));
        async move { send.send().await.map(drop).map_err(Into::into) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(text: &str) -> Value {
        json!({ "dynamodb": {
            "SequenceNumber": "7",
            "Keys": { "id": { "S": "orderId:o1" }, "position": { "N": "1" } },
            "NewImage": { "n": { "N": "3" }, "text": { "S": text } },
        }})
    }

    #[test]
    fn a_dead_letter_always_fits_a_message() {
        let small = record("x");
        assert_eq!(dead_letter(&small, "refused"), json!({ "cause": "refused", "record": small }));
        // Escaped characters count as they are sent.
        for large in ["x".repeat(MESSAGE_BYTES_MAX), "\u{ffff}".repeat(MESSAGE_BYTES_MAX / 5)] {
            let dead_letter = dead_letter(&record(&large), &large);
            assert!(message(&dead_letter).len() <= MESSAGE_BYTES_MAX);
            assert_eq!(dead_letter["key"], small["dynamodb"]["Keys"]);
            assert_eq!(
                (&dead_letter["sequenceNumber"], &dead_letter["n"]["N"]),
                (&json!("7"), &json!("3"))
            );
            assert!(large.starts_with(dead_letter["cause"].as_str().unwrap()));
        }
    }

    #[test]
    fn a_message_has_only_characters_that_sqs_takes_and_reads_back_as_the_dead_letter() {
        let text: String = ('\0'..=char::MAX).collect();
        let dead_letter = json!({ "cause": text, "\\\u{fffe}": "\\\u{ffff}" });
        let message = message(&dead_letter);
        // https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
        let taken = |c| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
        assert_eq!(message.chars().find(|c| !taken(*c)), None);
        assert_eq!(serde_json::from_str::<Value>(&message).unwrap(), dead_letter);
    }
}
