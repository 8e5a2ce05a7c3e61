//! For tests: an HTTP client under the SDK that records every request and can make one fail, as
//! no emulator does.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
use aws_smithy_http_client::Builder;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use serde_json::Value;
use tokio::sync::Barrier;

/// One request and its answer, as they were on the wire.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The operation, as `TransactWriteItems`.
    pub operation: String,
    /// The body that was sent.
    pub request: Value,
    /// The body that came back; null while the request is under way or when it was lost.
    pub answer: Value,
}

/// What happens to a request instead of the usual.
#[derive(Clone, Debug)]
pub enum Fault {
    /// This status and body are the answer; nothing is sent.
    Answer(u16, Value),
    /// It is lost on the way there: nothing is sent, the caller sees a time-out.
    LostBefore,
    /// It takes effect, and the answer is lost: the caller sees a time-out.
    LostAfter,
    /// It is sent only after this long.
    Delay(Duration),
    /// It is sent only when as many requests as the barrier counts have arrived at it, which
    /// requests that wait for each other's answers never do.
    Meet(Arc<Barrier>),
}

impl Fault {
    /// The error `code` with status 400 (500 for `InternalServerError`).
    #[must_use]
    pub fn error(code: &str) -> Self {
        let status = if code == "InternalServerError" { 500 } else { 400 };
        Self::Answer(status, serde_json::json!({ "__type": code, "message": "injected" }))
    }

    /// A cancelled transaction with these reasons, one for each action.
    #[must_use]
    pub fn cancelled(codes: &[&str]) -> Self {
        let reasons: Vec<_> =
            codes.iter().map(|code| serde_json::json!({ "Code": code })).collect();
        Self::Answer(
            400,
            serde_json::json!({
                "__type": "TransactionCanceledException",
                "message": "injected",
                "CancellationReasons": reasons,
            }),
        )
    }
}

#[derive(Debug, Default)]
struct State {
    exchanges: Vec<Exchange>,
    /// Operation, how many of its requests pass first, what happens to the next one.
    faults: Vec<(String, usize, Fault)>,
}

/// The recorder; clones share one record.
#[derive(Clone, Debug, Default)]
pub struct Wire(Arc<Mutex<State>>);

impl Wire {
    /// A client of the DynamoDB at `endpoint`, with made-up credentials and without retries.
    #[must_use]
    pub fn client(&self, endpoint: &str) -> Client {
        let config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("eu-west-1"))
            .credentials_provider(Credentials::new("local", "local", None, None, "local"))
            .retry_config(RetryConfig::disabled())
            .endpoint_url(endpoint)
            .http_client(self.http_client())
            .build();
        Client::from_conf(config)
    }

    /// The HTTP client to give to the SDK's configuration; plain HTTP, for loopback only.
    #[must_use]
    pub fn http_client(&self) -> SharedHttpClient {
        let inner = Builder::new().build_http();
        SharedHttpClient::new(WireClient { inner, wire: self.clone() })
    }

    /// Lets `pass` further requests of `operation` through and then does `fault` to one.
    pub fn inject(&self, operation: &str, pass: usize, fault: Fault) {
        self.with(|state| state.faults.push((operation.to_owned(), pass, fault)));
    }

    /// Everything recorded since the start or the last call, in the order of sending.
    #[must_use]
    pub fn take(&self) -> Vec<Exchange> {
        self.with(|state| std::mem::take(&mut state.exchanges))
    }

    /// Whether every injected fault has happened.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.with(|state| state.faults.is_empty())
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records the request and picks its fault, each fault once.
    fn begin(&self, operation: &str, request: Value) -> (usize, Option<Fault>) {
        self.with(|state| {
            let operation = operation.to_owned();
            state.exchanges.push(Exchange {
                operation: operation.clone(),
                request,
                answer: Value::Null,
            });
            let mut due = None;
            for (index, (of, pass, _)) in state.faults.iter_mut().enumerate() {
                match (*of == operation, *pass) {
                    (true, 0) if due.is_none() => due = Some(index),
                    (true, 1..) => *pass -= 1,
                    _ => {}
                }
            }
            (state.exchanges.len() - 1, due.map(|index| state.faults.remove(index).2))
        })
    }

    fn end(&self, index: usize, answer: &Value) {
        self.with(|state| {
            // The record may have been taken meanwhile.
            if let Some(exchange) = state.exchanges.get_mut(index) {
                exchange.answer = answer.clone();
            }
        });
    }
}

#[derive(Debug)]
struct WireClient {
    inner: SharedHttpClient,
    wire: Wire,
}

impl HttpClient for WireClient {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(WireConnector { inner, wire: self.wire.clone() })
    }
}

#[derive(Clone, Debug)]
struct WireConnector {
    inner: SharedHttpConnector,
    wire: Wire,
}

impl HttpConnector for WireConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let this = self.clone();
        HttpConnectorFuture::new(async move { this.exchange(request).await })
    }
}

impl WireConnector {
    async fn exchange(self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let (index, fault) = self.wire.begin(&operation, json(request.body().bytes()));
        match &fault {
            Some(Fault::Answer(status, body)) => {
                self.wire.end(index, body);
                return Ok(respond(*status, SdkBody::from(body.to_string())));
            }
            Some(Fault::LostBefore) => return Err(lost()),
            Some(Fault::Delay(delay)) => tokio::time::sleep(*delay).await,
            Some(Fault::Meet(barrier)) => {
                barrier.wait().await;
            }
            Some(Fault::LostAfter) | None => {}
        }
        let mut response = self.inner.call(request).await?;
        let body = std::mem::replace(response.body_mut(), SdkBody::taken());
        let bytes = ByteStream::new(body).collect().await;
        let bytes = bytes.map_err(|error| ConnectorError::io(error.into()))?.into_bytes();
        self.wire.end(index, &json(Some(&bytes)));
        if matches!(fault, Some(Fault::LostAfter)) {
            return Err(lost());
        }
        *response.body_mut() = SdkBody::from(bytes);
        Ok(response)
    }
}

fn lost() -> ConnectorError {
    ConnectorError::timeout("the answer was lost".into())
}

fn json(bytes: Option<&[u8]>) -> Value {
    bytes.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default()
}

fn respond(status: u16, body: SdkBody) -> HttpResponse {
    let status =
        StatusCode::try_from(status).unwrap_or(StatusCode::try_from(500).expect("500 is a status"));
    HttpResponse::new(status, body)
}
