//! A DynamoDB in this process that is asked once and then repeats itself, so only the client's work is measured.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use ringfence_aws::seed_thread;
use ringfence_local::engine::Engine;
use serde_json::{Value, json};

/// The event log.
pub(crate) const EVENTS: &str = "events";
/// Its index.
pub(crate) const INDEX: &str = "index";
/// The rows of views.
pub(crate) const VIEWS: &str = "views";
/// The seed of the ids of items that exist before the measured work, which has another seed.
const SEED: u64 = 0;

/// Requests and units of one call of the work.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    /// Operation and body of each request, in the order of sending.
    pub(crate) requests: Vec<(String, Value)>,
    /// Read units.
    pub(crate) read: f64,
    /// Write units.
    pub(crate) write: f64,
}

/// Clones share the tables.
#[derive(Clone)]
pub(crate) struct Store(Arc<Mutex<State>>);

struct State {
    engine: Engine,
    /// The exchanges since the last [`Store::record`].
    exchanges: Vec<(String, Value, Vec<u8>)>,
    /// The answers by operation, once they are repeated.
    canned: Option<HashMap<String, Canned>>,
}

/// The answers to one operation, in the order in which they were first given.
#[derive(Default)]
struct Canned {
    bodies: Vec<SdkBody>,
    next: usize,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Store")
    }
}

impl Store {
    /// Empty tables without secondary indexes: no measured event has an indexed tag.
    pub(crate) fn new() -> Self {
        seed_thread(SEED);
        let engine = Engine::memory().expect("a database in memory");
        for (table, hash, range, kind) in
            [(EVENTS, "id", "position", "N"), (INDEX, "p", "i", "N"), (VIEWS, "view", "id", "S")]
        {
            engine.create_table(&definition(hash, range, kind), table).expect("a table");
        }
        Self(Arc::new(Mutex::new(State { engine, exchanges: Vec::new(), canned: None })))
    }

    /// A client of the store that signs requests, but needs no socket.
    pub(crate) fn client(&self) -> Client {
        let connector = SharedHttpConnector::new(self.clone());
        self.client_at("http://store.invalid", http_client_fn(move |_, _| connector.clone()))
    }

    /// A client that finds the store at this URL.
    pub(crate) fn client_at(&self, url: &str, http: SharedHttpClient) -> Client {
        let config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("eu-west-1"))
            .credentials_provider(Credentials::new("local", "local", None, None, "local"))
            .retry_config(RetryConfig::disabled())
            .endpoint_url(url)
            .http_client(http)
            .build();
        Client::from_conf(config)
    }

    /// Forgets the requests so far.
    pub(crate) fn record(&self) {
        self.with(|state| state.exchanges.clear());
    }

    /// From now on repeats the recorded answers. Returns the units of their requests.
    pub(crate) fn can(&self) -> Usage {
        self.with(|state| {
            let mut usage = Usage::default();
            let mut canned: HashMap<String, Canned> = HashMap::new();
            for (operation, request, answer) in std::mem::take(&mut state.exchanges) {
                let units = units(&answer);
                match operation.as_str() {
                    "TransactWriteItems" | "PutItem" | "UpdateItem" => usage.write += units,
                    _ => usage.read += units,
                }
                canned.entry(operation.clone()).or_default().bodies.push(SdkBody::from(answer));
                usage.requests.push((operation, request));
            }
            state.canned = Some(canned);
            usage
        })
    }

    /// The next request of each operation gets its first answer again.
    pub(crate) fn rewind(&self) {
        self.with(|state| {
            state.canned.iter_mut().flatten().for_each(|(_, canned)| canned.next = 0)
        });
    }

    /// Its answer to a request.
    pub(crate) fn answer(&self, operation: &str, body: &[u8]) -> SdkBody {
        self.with(|state| match &mut state.canned {
            Some(canned) => canned.get_mut(operation).expect("it was asked before").next(),
            None => {
                let (status, answer) = state.engine.call(operation, body);
                let text = String::from_utf8_lossy(&answer);
                assert_eq!(status, 200, "{operation} is refused: {text}");
                let body = serde_json::from_slice(body).expect("a request is JSON");
                state.exchanges.push((operation.to_owned(), body, answer.clone()));
                SdkBody::from(answer)
            }
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl HttpConnector for Store {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default();
        let body = self.answer(operation, request.body().bytes().unwrap_or_default());
        let status = StatusCode::try_from(200).expect("200 is a status");
        HttpConnectorFuture::ready(Ok(HttpResponse::new(status, body)))
    }
}

impl Canned {
    fn next(&mut self) -> SdkBody {
        // Work that asks more often than the first time would get answers that do not follow each other, and might
        // never end.
        let body = self.bodies.get(self.next).expect("the work asks as often as the first time");
        self.next += 1;
        body.try_clone().expect("it is in memory")
    }
}

/// Units of an answer, of the table and its indexes.
fn units(answer: &[u8]) -> f64 {
    let answer: Value = serde_json::from_slice(answer).expect("an answer is JSON");
    let of = |consumed: &Value| consumed["CapacityUnits"].as_f64().unwrap_or_default();
    match &answer["ConsumedCapacity"] {
        Value::Array(tables) => tables.iter().map(of).sum(),
        table => of(table),
    }
}

fn definition(hash: &str, range: &str, kind: &str) -> Value {
    json!({
        "KeySchema": [
            { "AttributeName": hash, "KeyType": "HASH" },
            { "AttributeName": range, "KeyType": "RANGE" },
        ],
        "AttributeDefinitions": [
            { "AttributeName": hash, "AttributeType": "S" },
            { "AttributeName": range, "AttributeType": kind },
        ],
    })
}
