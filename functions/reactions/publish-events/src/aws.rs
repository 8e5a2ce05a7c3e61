//! The bus and the queue on AWS.

use aws_sdk_eventbridge::{
    primitives::DateTime,
    types::{PutEventsRequestEntry, PutEventsResultEntry},
};
use futures::{FutureExt, future::BoxFuture};
use serde_json::json;

use crate::{
    entry::Entry,
    publisher::{Bus, DeadLetter, DeadLetters, Unreachable, Verdict},
};

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

impl Bus for Topic {
    fn put<'a>(
        &'a self,
        entries: &'a [&'a Entry],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, Unreachable>> {
        let requests = entries.iter().map(|entry| self.request_entry(entry)).collect();
        async move {
            let put = self.client.put_events().set_entries(Some(requests)).send().await;
            let put =
                put.map_err(|error| Unreachable { operation: "PutEvents", source: error.into() })?;
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

impl DeadLetters for Queue {
    fn keep<'a>(&'a self, letter: &'a DeadLetter) -> BoxFuture<'a, Result<(), Unreachable>> {
        let body = json!({ "cause": letter.cause, "record": letter.record }).to_string();
        async move {
            let sent =
                self.client.send_message().queue_url(&self.url).message_body(body).send().await;
            sent.map(|_| ())
                .map_err(|error| Unreachable { operation: "SendMessage", source: error.into() })
        }
        .boxed()
    }
}
