//! The bus on AWS.

use aws_sdk_eventbridge::{
    error::ProvideErrorMetadata,
    primitives::DateTime,
    types::{PutEventsRequestEntry, PutEventsResultEntry},
};
use futures::{FutureExt, future::BoxFuture};

use crate::{
    entry::Entry,
    publisher::{Bus, Unreachable, Verdict},
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

    /// Opens the connection, credentials and TLS included, so that the first batch need not wait for
    /// it. A call without entries is refused, and any answer will do.
    pub async fn open(&self) {
        let answer = self.client.put_events().set_entries(Some(Vec::new())).send().await;
        let answered = answer.is_ok_and(|_| true);
        tracing::debug!(answered, "the connection to the bus is open");
    }

    fn request_entry(&self, entry: &Entry) -> PutEventsRequestEntry {
        let ms = |ms| i64::try_from(ms).unwrap_or(i64::MAX);
        PutEventsRequestEntry::builder()
            .event_bus_name(&self.bus)
            .source(&entry.source)
            .detail_type(&entry.detail_type)
            .detail(&entry.detail)
            .set_time(entry.time_ms.map(|time| DateTime::from_millis(ms(time))))
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
