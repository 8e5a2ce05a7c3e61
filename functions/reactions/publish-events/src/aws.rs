//! The bus and the queue on AWS.

use aws_sdk_eventbridge::{
    error::ProvideErrorMetadata,
    primitives::DateTime,
    types::{PutEventsRequestEntry, PutEventsResultEntry},
};
use futures::{FutureExt, future::BoxFuture};
use serde_json::json;

use crate::{
    entry::Entry,
    publisher::{Bus, DeadLetter, DeadLetters, Unreachable, Verdict},
};

/// Most bytes of a message that every Region's SQS takes: 256 KB.
const MESSAGE_BYTES_MAX: usize = 256 * 1024;

/// An EventBridge bus.
pub struct Topic {
    client: aws_sdk_eventbridge::Client,
    bus: String,
}

impl Topic {
    /// The bus of this name.
    pub fn new(client: aws_sdk_eventbridge::Client, bus: String) -> Self {
        Self { client, bus }
    }

    /// Opens the connection, credentials and TLS included, so that the first batch need not wait for
    /// it. A call without entries is refused, and any answer will do.
    pub async fn open(&self) {
        let answer = self.client.put_events().set_entries(Some(Vec::new())).send().await;
        let answered = answer.is_ok_and(|_| true);
        tracing::debug!(answered, "the connection to the bus is open");
    }

    fn request_entry(&self, entry: &Entry) -> PutEventsRequestEntry {
        let ms = i64::try_from(entry.position.ms()).unwrap_or(i64::MAX);
        PutEventsRequestEntry::builder()
            .event_bus_name(&self.bus)
            .source(&entry.source)
            .detail_type(&entry.detail_type)
            .detail(&entry.detail)
            .time(DateTime::from_millis(ms))
            .build()
    }
}

/// PutEvents answers 200 also when it refuses entries; each says so for itself. Codes that time
/// can mend, from <https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEventsResultEntry.html>.
fn verdict(result: &PutEventsResultEntry) -> Verdict {
    match result.error_code() {
        None => Verdict::Sent,
        Some(code @ ("ThrottlingException" | "InternalFailure" | "InternalException")) => {
            Verdict::Later(code.to_owned())
        }
        Some(code) => {
            let message = result.error_message().unwrap_or_default();
            Verdict::Never(format!("the bus refuses the entry: {code}: {message}"))
        }
    }
}

/// Errors of a whole call that no repetition mends. A missing permission is none: it is mended at the
/// role, and the records wait for it.
fn is_refusal(code: Option<&str>) -> bool {
    matches!(code, Some("ValidationException" | "RequestEntityTooLargeException"))
}

impl Bus for Topic {
    fn put<'a>(
        &'a self,
        entries: &'a [&'a Entry],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, Unreachable>> {
        let requests = entries.iter().map(|entry| self.request_entry(entry)).collect();
        async move {
            let put = self.client.put_events().set_entries(Some(requests)).send().await;
            let failed = |refused, source| Unreachable { operation: "PutEvents", refused, source };
            let put = put.map_err(|error| failed(is_refusal(error.code()), error.into()))?;
            if put.entries().len() != entries.len() {
                return Err(failed(false, "the answer has not one result an entry".into()));
            }
            Ok(put.entries().iter().map(verdict).collect())
        }
        .boxed()
    }
}

/// An SQS queue.
pub struct Queue {
    client: aws_sdk_sqs::Client,
    url: String,
}

impl Queue {
    /// The queue at this URL.
    pub fn new(client: aws_sdk_sqs::Client, url: String) -> Self {
        Self { client, url }
    }
}

/// The record and its cause; of a record that no message holds, its key: the table has the event.
fn message(letter: &DeadLetter) -> String {
    let body = json!({ "cause": letter.cause, "record": letter.record }).to_string();
    if body.len() <= MESSAGE_BYTES_MAX {
        return body;
    }
    let change = &letter.record["dynamodb"];
    let (id, position) = (&change["NewImage"]["id"], &change["NewImage"]["position"]);
    json!({
        "cause": letter.cause,
        "key": { "id": id, "position": position },
        "sequenceNumber": change["SequenceNumber"],
    })
    .to_string()
}

impl DeadLetters for Queue {
    fn keep<'a>(&'a self, letter: &'a DeadLetter) -> BoxFuture<'a, Result<(), Unreachable>> {
        let body = message(letter);
        async move {
            let sent =
                self.client.send_message().queue_url(&self.url).message_body(body).send().await;
            sent.map(|_| ()).map_err(|error| Unreachable {
                operation: "SendMessage",
                refused: false,
                source: error.into(),
            })
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_always_fits_a_message() {
        let letter = |text: &str| DeadLetter {
            record: json!({ "dynamodb": {
                "SequenceNumber": "7",
                "NewImage": { "id": { "S": "a:1" }, "position": { "S": "p" }, "data": { "S": text } },
            }}),
            cause: "too large".to_owned(),
        };
        assert!(message(&letter("small")).contains("small"));
        let message = message(&letter(&"x".repeat(MESSAGE_BYTES_MAX)));
        assert!(message.len() <= MESSAGE_BYTES_MAX);
        let message: serde_json::Value = serde_json::from_str(&message).unwrap();
        assert_eq!(message["key"], json!({ "id": { "S": "a:1" }, "position": { "S": "p" } }));
    }
}
