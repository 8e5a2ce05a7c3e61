//! The bus on AWS.

use aws_sdk_eventbridge::{
    error::ProvideErrorMetadata,
    primitives::DateTime,
    types::{PutEventsRequestEntry, PutEventsResultEntry},
};
use futures::{FutureExt, future::BoxFuture};

use crate::topic::{
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

    /// Opens the connection, with credentials and TLS, so that the first batch does not wait for it. A call without
    /// entries is refused, but any answer will do.
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
        Some(code @ ("InternalFailure" | "InternalException")) => Verdict::Later(code.to_owned()),
        // As for a whole call.
        Some(code) if OF_THE_STACK_CODES.contains(&code) => Verdict::Later(code.to_owned()),
        Some(code) => {
            let message = result.error_message().unwrap_or_default();
            Verdict::Never(format!("the bus refuses the entry: {code}: {message}"))
        }
    }
}

/// Answers of 4xx that are not about the entries, but about the role, its credentials, the bus, a clock or a rate. The
/// records wait until that is mended or passes. Some services answer 400 with a code instead.
/// <https://docs.aws.amazon.com/eventbridge/latest/APIReference/CommonErrors.html>
const OF_THE_STACK: [u16; 5] = [401, 403, 404, 408, 429];
const OF_THE_STACK_CODES: [&str; 20] = [
    "AccessDenied",
    "AccessDeniedException",
    "ExpiredToken",
    "ExpiredTokenException",
    "IncompleteSignature",
    "IncompleteSignatureException",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "LimitExceededException",
    "MissingAuthenticationTokenException",
    "NotAuthorized",
    "OperationDisabledException",
    "OptInRequired",
    "RequestExpired",
    "RequestLimitExceeded",
    "ResourceNotFoundException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "UnrecognizedClientException",
];

/// Whether a whole call was refused for good: with 4xx, and any code or no code, as from a proxy.
fn is_refusal(status: Option<u16>, code: Option<&str>) -> bool {
    status.is_some_and(|status| (400..500).contains(&status) && !OF_THE_STACK.contains(&status))
        && !code.is_some_and(|code| OF_THE_STACK_CODES.contains(&code))
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
            let put = put.map_err(|error| {
                let status = error.raw_response().map(|answer| answer.status().as_u16());
                failed(is_refusal(status, error.code()), error.into())
            })?;
            verdicts(entries.len(), put.entries()).map_err(|source| failed(false, source.into()))
        }
        .boxed()
    }
}

/// One verdict for each entry, in their order. An answer with more or fewer results tells nothing about the entries.
fn verdicts(entries: usize, results: &[PutEventsResultEntry]) -> Result<Vec<Verdict>, String> {
    match results.len() == entries {
        true => Ok(results.iter().map(verdict).collect()),
        false => Err(format!("the answer has {} results for {entries} entries", results.len())),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use ringfence_aws::sdk_config_of;

    use super::*;

    fn result(code: Option<&str>) -> PutEventsResultEntry {
        PutEventsResultEntry::builder().set_error_code(code.map(str::to_owned)).build()
    }

    #[test]
    fn each_entry_has_a_verdict_of_its_own() {
        let role = [Some("AccessDeniedException")].map(result);
        let later = Verdict::Later("AccessDeniedException".to_owned());
        assert_eq!(verdicts(1, &role), Ok(vec![later]));
        let results = [None, Some("ThrottlingException"), Some("MalformedDetail")].map(result);
        let refused = Verdict::Never("the bus refuses the entry: MalformedDetail: ".to_owned());
        let later = Verdict::Later("ThrottlingException".to_owned());
        assert_eq!(verdicts(3, &results), Ok(vec![Verdict::Sent, later, refused]));
    }

    #[test]
    fn a_call_is_refused_by_any_4xx_that_is_about_its_entries() {
        for (status, code, refused) in [
            (Some(413), None, true),
            (Some(400), None, true),
            (Some(400), Some("ValidationException"), true),
            (Some(413), Some("RequestEntityTooLargeException"), true),
            (Some(422), Some("NobodyKnowsThis"), true),
            (Some(400), Some("ThrottlingException"), false),
            (Some(400), Some("AccessDeniedException"), false),
            (Some(400), Some("ResourceNotFoundException"), false),
            (Some(403), None, false),
            (Some(429), None, false),
            (Some(503), Some("ValidationException"), false),
            (Some(200), None, false),
            (None, None, false),
        ] {
            assert_eq!(is_refusal(status, code), refused, "{status:?} {code:?}");
        }
    }

    /// The failure of a call that is answered with this status alone.
    fn answered(status: &str) -> Unreachable {
        let server = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", server.local_addr().expect("its address"));
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        // The SDK sends a call again that has failed for now.
        std::thread::spawn(move || {
            for connection in server.incoming() {
                let mut connection = connection.expect("a connection");
                let mut request = Vec::new();
                while !request.ends_with(b"]}") {
                    let mut bytes = [0; 4_096];
                    let read = connection.read(&mut bytes).expect("a request");
                    assert!(read > 0, "a whole request");
                    request.extend(&bytes[..read]);
                }
                connection.write_all(answer.as_bytes()).expect("it is read");
            }
        });
        let variables = [
            ("AWS_ACCESS_KEY_ID", "a"),
            ("AWS_SECRET_ACCESS_KEY", "b"),
            ("AWS_REGION", "eu-central-1"),
            ("AWS_ENDPOINT_URL", &url),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let config = sdk_config_of(variables.into()).expect("no file is named");
        let topic = Topic::new(aws_sdk_eventbridge::Client::new(&config), "bus".to_owned());
        let entry = TopicEntry {
            source: "ordering".to_owned(),
            detail_type: "OrderPlaced".to_owned(),
            detail: "{}".to_owned(),
            id: String::new(),
            time_ms: None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let put = runtime.expect("a runtime").block_on(topic.put(&[&entry]));
        put.expect_err("it has no results")
    }

    #[test]
    fn an_answer_without_a_body_counts_by_its_status() {
        assert!(answered("413 Payload Too Large").refused);
        assert!(!answered("403 Forbidden").refused);
    }

    #[test]
    fn an_answer_with_a_wrong_number_of_results_is_an_error() {
        let results = [result(None), result(None)];
        for entries in [1, 3] {
            assert!(verdicts(entries, &results).is_err(), "{entries}");
        }
    }
}
