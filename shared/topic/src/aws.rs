//! The bus on AWS.

use aws_sdk_eventbridge::{
    error::ProvideErrorMetadata,
    primitives::DateTime,
    types::{PutEventsRequestEntry, PutEventsResultEntry},
};
use futures::{FutureExt, future::BoxFuture};

use crate::{
    entry::TopicEntry,
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

    fn request_entry(&self, entry: &TopicEntry) -> PutEventsRequestEntry {
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

/// PutEvents answers 200 even when it refuses entries; each entry's result has a code. The codes of
/// failures that pass with time are from
/// <https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEventsResultEntry.html>.
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

/// Whether a whole call failed in a way that sending it again can't change. A missing permission does not
/// count: it is added to the role, and the records wait for it.
fn is_refusal(code: Option<&str>) -> bool {
    matches!(code, Some("ValidationException" | "RequestEntityTooLargeException"))
}

impl Bus for Topic {
    fn put<'a>(
        &'a self,
        entries: &'a [&'a TopicEntry],
    ) -> BoxFuture<'a, Result<Vec<Verdict>, Unreachable>> {
        let requests = entries.iter().map(|entry| self.request_entry(entry)).collect();
        async move {
            let put = self.client.put_events().set_entries(Some(requests)).send().await;
            let failed = |refused, source| Unreachable { operation: "PutEvents", refused, source };
            let put = put.map_err(|error| failed(is_refusal(error.code()), error.into()))?;
            verdicts(entries.len(), put.entries()).map_err(|source| failed(false, source.into()))
        }
        .boxed()
    }
}

/// One verdict for each entry, in their order. An answer with more or fewer results says nothing
/// about any entry.
fn verdicts(entries: usize, results: &[PutEventsResultEntry]) -> Result<Vec<Verdict>, String> {
    match results.len() == entries {
        true => Ok(results.iter().map(verdict).collect()),
        false => Err(format!("the answer has {} results for {entries} entries", results.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(code: Option<&str>) -> PutEventsResultEntry {
        PutEventsResultEntry::builder().set_error_code(code.map(str::to_owned)).build()
    }

    #[test]
    fn each_entry_has_a_verdict_of_its_own() {
        let results = [None, Some("ThrottlingException"), Some("MalformedDetail")].map(result);
        let refused = Verdict::Never("the bus refuses the entry: MalformedDetail: ".to_owned());
        let later = Verdict::Later("ThrottlingException".to_owned());
        assert_eq!(verdicts(3, &results), Ok(vec![Verdict::Sent, later, refused]));
    }

    #[test]
    fn an_answer_with_a_wrong_number_of_results_is_an_error() {
        let results = [result(None), result(None)];
        for entries in [1, 3] {
            assert!(verdicts(entries, &results).is_err(), "{entries}");
        }
    }
}
