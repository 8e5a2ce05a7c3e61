//! For tests: an HTTP client under the SDK that records every request and causes faults that no emulator causes, and a
//! store with limits.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::DateTime;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use aws_smithy_types::date_time::Format;
use serde_json::Value;

use crate::connector::{http_client, no_proxy};
use crate::{Clock, Trust};

mod backend;
mod capacity;
mod fault;

pub use backend::Backend;
use backend::json;
pub use capacity::{Capacity, Limits};
pub use fault::{Edit, Fault};

/// One request and its answer, as they were on the wire.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The operation, such as `TransactWriteItems`.
    pub operation: String,
    /// The body that was sent.
    pub request: Value,
    /// The body that came back; null while the request is under way or when it was lost.
    pub answer: Value,
}

/// Sees every request of a wire, and chooses its faults.
pub trait Director: Send + Sync {
    /// The faults of the request, in this order.
    fn faults(&self, operation: &str, request: &Value) -> Vec<Fault>;

    /// The store has carried out the request and answers with this status. Called in the order of the effects, whatever
    /// happens to the answer.
    fn carried_out(&self, operation: &str, request: &Value, status: u16);
}

/// A recorded exchange. Few are read, so the bodies are parsed only then.
struct Recorded {
    operation: String,
    request: Vec<u8>,
    answer: Vec<u8>,
}

#[derive(Default)]
struct State {
    exchanges: Vec<Recorded>,
    /// The operation, how many of its requests pass first, and the fault of the next one.
    faults: Vec<(String, usize, Fault)>,
    director: Option<Arc<dyn Director>>,
    /// The store's clock, if answers have its time.
    clock: Option<Clock>,
}

/// The recorder; clones share one record.
#[derive(Clone, Default)]
pub struct Wire(Arc<Mutex<State>>);

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wire")
    }
}

impl Wire {
    /// A client of the DynamoDB at `endpoint`, with made-up credentials and without retries.
    #[must_use]
    pub fn client(&self, endpoint: &str) -> Client {
        self.client_with(endpoint, self.http_client())
    }

    /// A client of a DynamoDB in this process. It needs no socket, so a runtime's time may be paused.
    #[must_use]
    pub fn client_of(&self, engine: Backend) -> Client {
        let store = Store::Engine(engine);
        let http = SharedHttpClient::new(WireClient { store, wire: self.clone() });
        self.client_with("http://engine.invalid", http)
    }

    fn client_with(&self, endpoint: &str, http: SharedHttpClient) -> Client {
        let config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("eu-west-1"))
            .credentials_provider(Credentials::new("local", "local", None, None, "local"))
            .retry_config(RetryConfig::disabled())
            .endpoint_url(endpoint)
            .http_client(http)
            .build();
        Client::from_conf(config)
    }

    /// The HTTP client for the SDK's configuration: plain HTTP, only for loopback.
    #[must_use]
    pub fn http_client(&self) -> SharedHttpClient {
        let store = Store::Http(http_client(Trust::of_machine(), no_proxy()));
        SharedHttpClient::new(WireClient { store, wire: self.clone() })
    }

    /// From now on `director` chooses the faults of each request, after the injected ones.
    pub fn direct(&self, director: Arc<dyn Director>) {
        self.with(|state| state.director = Some(director));
    }

    /// From now on the store's answers have the time of this clock.
    pub fn tell_time(&self, clock: Clock) {
        self.with(|state| state.clock = Some(clock));
    }

    /// Lets `pass` further requests of `operation` through and then does `fault` to one.
    pub fn inject(&self, operation: &str, pass: usize, fault: Fault) {
        self.with(|state| state.faults.push((operation.to_owned(), pass, fault)));
    }

    /// Everything recorded since the start or the last call, in the order of sending.
    #[must_use]
    pub fn take(&self) -> Vec<Exchange> {
        let exchange = |Recorded { operation, request, answer }| Exchange {
            operation,
            request: json(&request),
            answer: json(&answer),
        };
        self.with(|state| std::mem::take(&mut state.exchanges)).into_iter().map(exchange).collect()
    }

    /// Forgets what was recorded.
    pub fn forget(&self) {
        self.with(|state| state.exchanges.clear());
    }

    /// Whether every injected fault has happened.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.with(|state| state.faults.is_empty())
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records the request and chooses its faults, each injected one once. `body` parses it.
    fn begin<'b>(
        &self,
        operation: &str,
        text: &[u8],
        body: impl FnOnce() -> &'b Value,
    ) -> (usize, Vec<Fault>) {
        let (index, injected, director) = self.with(|state| {
            state.exchanges.push(Recorded {
                operation: operation.to_owned(),
                request: text.to_vec(),
                answer: Vec::new(),
            });
            let mut due = None;
            for (index, (of, pass, _)) in state.faults.iter_mut().enumerate() {
                match (*of == operation, *pass) {
                    (true, 0) if due.is_none() => due = Some(index),
                    (true, 1..) => *pass -= 1,
                    _ => {}
                }
            }
            let injected = due.map(|index| state.faults.remove(index).2);
            (state.exchanges.len() - 1, injected, state.director.clone())
        });
        let directed = director.map(|director| director.faults(operation, body()));
        (index, injected.into_iter().chain(directed.into_iter().flatten()).collect())
    }

    fn end(&self, index: usize, answer: &[u8]) {
        self.with(|state| {
            // The record may have been taken meanwhile.
            if let Some(exchange) = state.exchanges.get_mut(index) {
                exchange.answer = answer.to_vec();
            }
        });
    }
}

/// The store of the requests.
#[derive(Clone)]
enum Store<H> {
    Http(H),
    Engine(Backend),
}

struct WireClient {
    store: Store<SharedHttpClient>,
    wire: Wire,
}

impl std::fmt::Debug for WireClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WireClient")
    }
}

impl HttpClient for WireClient {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let store = match &self.store {
            Store::Http(client) => Store::Http(client.http_connector(settings, components)),
            Store::Engine(engine) => Store::Engine(engine.clone()),
        };
        SharedHttpConnector::new(WireConnector { store, wire: self.wire.clone() })
    }
}

#[derive(Clone)]
struct WireConnector {
    store: Store<SharedHttpConnector>,
    wire: Wire,
}

impl std::fmt::Debug for WireConnector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WireConnector")
    }
}

impl HttpConnector for WireConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let this = self.clone();
        HttpConnectorFuture::new(async move { this.exchange(request).await })
    }
}

impl WireConnector {
    async fn exchange(self, mut request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let text = request.body().bytes().unwrap_or_default();
        // Most bodies are never read.
        let mut body = OnceLock::new();
        let (index, faults) = self.wire.begin(&operation, text, || body.get_or_init(|| json(text)));
        for fault in &faults {
            match fault {
                Fault::Answer(status, answer) => {
                    let answer = answer.to_string();
                    self.wire.end(index, answer.as_bytes());
                    return Ok(respond(*status, SdkBody::from(answer)));
                }
                Fault::LostBefore => return Err(lost()),
                Fault::Delay(delay) => tokio::time::sleep(*delay).await,
                Fault::Meet(barrier) => {
                    barrier.wait().await;
                }
                Fault::Request(edit) => {
                    let text = request.body().bytes().unwrap_or_default();
                    let mut edited = body.take().unwrap_or_else(|| json(text));
                    edit.apply(&mut edited);
                    let text = edited.to_string();
                    body = edited.into();
                    request.headers_mut().insert("content-length", text.len().to_string());
                    *request.body_mut() = SdkBody::from(text);
                }
                Fault::Stray(delay) => {
                    let delay = *delay;
                    tokio::spawn(async move {
                        tokio::time::sleep(delay).await;
                        self.carry_out(index, &operation, &body, request).await
                    });
                    return Err(lost());
                }
                Fault::LostAfter | Fault::AnswerAfter(..) | Fault::Late(_) | Fault::Reply(_) => {}
            }
        }
        let (mut status, mut answer) = self.carry_out(index, &operation, &body, request).await?;
        let told_ms = self.wire.with(|state| state.clock.as_ref().map(Clock::now_ms));
        for fault in &faults {
            match fault {
                Fault::LostAfter => return Err(lost()),
                Fault::Late(delay) => tokio::time::sleep(*delay).await,
                Fault::AnswerAfter(other, body) => {
                    (status, answer) = (*other, body.to_string().into_bytes());
                }
                Fault::Reply(edit) if status == 200 => {
                    let mut body = json(&answer);
                    edit.apply(&mut body);
                    answer = body.to_string().into_bytes();
                }
                _ => {}
            }
        }
        let mut response = respond(status, SdkBody::from(answer));
        if let Some(ms) = told_ms.and_then(|ms| i64::try_from(ms).ok()) {
            let date = DateTime::from_millis(ms).fmt(Format::HttpDate).expect("a date");
            response.headers_mut().insert("date", date);
        }
        Ok(response)
    }

    /// Lets the store carry it out, and records the answer.
    async fn carry_out(
        &self,
        index: usize,
        operation: &str,
        body: &OnceLock<Value>,
        request: HttpRequest,
    ) -> Result<(u16, Vec<u8>), ConnectorError> {
        let director = self.wire.with(|state| state.director.clone());
        let text = request.body().bytes().unwrap_or_default();
        let body = director.as_ref().map(|_| body.get_or_init(|| json(text)));
        let (status, answer) = match &self.store {
            Store::Engine(engine) => engine(operation, text),
            Store::Http(connector) => {
                let mut response = connector.call(request).await?;
                let body = std::mem::replace(response.body_mut(), SdkBody::taken());
                let bytes = ByteStream::new(body).collect().await;
                let bytes = bytes.map_err(|error| ConnectorError::io(error.into()))?.to_vec();
                (response.status().as_u16(), bytes)
            }
        };
        self.wire.end(index, &answer);
        if let (Some(director), Some(body)) = (director, body) {
            director.carried_out(operation, body, status);
        }
        Ok((status, answer))
    }
}

fn lost() -> ConnectorError {
    ConnectorError::timeout("the answer was lost".into())
}

fn respond(status: u16, body: SdkBody) -> HttpResponse {
    let status =
        StatusCode::try_from(status).unwrap_or(StatusCode::try_from(500).expect("500 is a status"));
    HttpResponse::new(status, body)
}
