//! The port of a stack's data. It forwards requests to the embedded DynamoDB, which can't be put under the guard,
//! because it makes its routes itself. The answers have the time of the stack's clock. With limits, it carries out the
//! requests for items itself, or refuses them.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{
        HeaderValue, StatusCode, Version,
        header::{CONTENT_TYPE, DATE},
        uri::PathAndQuery,
    },
    response::{IntoResponse, Response},
    routing::post,
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};

use ringfence_aws::wire::{Capacity, Limits};
use tokio::task::spawn_blocking;

use crate::{embedded::Embedded, functions::Functions};

/// A request to this path lets time pass: the milliseconds in its body.
const PASS_TIME: &str = "/ringfence/pass-time";

/// The longest request that DynamoDB takes, in bytes.
const REQUEST_BYTES_MAX: usize = 16 * 1_024 * 1_024;

#[derive(Clone)]
struct Server {
    client: Client<HttpConnector, Body>,
    /// Without a path.
    url: String,
    /// They have the clock.
    functions: Arc<Functions>,
    capacity: Option<Capacity>,
}

impl Server {
    fn new(dynamo: &Embedded, limits: Option<Limits>, functions: &Arc<Functions>) -> Self {
        let engine = dynamo.engine();
        let engine = move |operation: &str, body: &[u8]| engine.call(operation, body);
        Self {
            client: Client::builder(TokioExecutor::new()).build_http(),
            url: dynamo.endpoint().to_owned(),
            functions: functions.clone(),
            capacity: limits.map(|limits| Capacity::new(Arc::new(engine), limits)),
        }
    }
}

/// Routes that forward each request.
pub(crate) fn to(dynamo: &Embedded, limits: Option<Limits>, functions: &Arc<Functions>) -> Router {
    let server = Server::new(dynamo, limits, functions);
    Router::new().route(PASS_TIME, post(pass_time)).fallback(pass_on).with_state(server)
}

async fn pass_time(State(server): State<Server>, body: String) -> Response {
    let passed = match body.parse() {
        Ok(ms) => server.functions.pass_time(ms).await.map_err(|error| error.to_string()),
        Err(_) => Err("the body is not a number of milliseconds".to_owned()),
    };
    match passed {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(why) => (StatusCode::UNPROCESSABLE_ENTITY, why).into_response(),
    }
}

async fn pass_on(State(server): State<Server>, request: Request) -> Response {
    let operation = request.headers().get("x-amz-target").and_then(|target| target.to_str().ok());
    let operation = operation.and_then(|target| target.rsplit('.').next()).unwrap_or_default();
    let operation = operation.to_owned();
    let capacity = server.capacity.clone().filter(|_| Capacity::is_limited(&operation));
    let mut answer = match capacity {
        None => forwarded(&server, request).await,
        Some(capacity) => carried_out(capacity, operation, request).await,
    };
    let date = server.functions.clock().now().format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let date = HeaderValue::try_from(date).expect("a date is a header");
    answer.headers_mut().insert(DATE, date);
    answer
}

async fn forwarded(Server { client, url, .. }: &Server, mut request: Request) -> Response {
    let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    let Ok(uri) = format!("{url}{path}").parse() else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    *request.uri_mut() = uri;
    *request.version_mut() = Version::HTTP_11;
    match client.request(request).await {
        Ok(answer) => answer.into_response(),
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

/// The engine computes, so it does not run on the caller's thread.
async fn carried_out(capacity: Capacity, operation: String, request: Request) -> Response {
    let Ok(body) = to_bytes(request.into_body(), REQUEST_BYTES_MAX).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let answer = spawn_blocking(move || capacity.call(&operation, &body)).await;
    let (status, body) = answer.unwrap_or((500, Vec::new()));
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    (status, [(CONTENT_TYPE, "application/x-amz-json-1.0")], body).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;
    use crate::{embedded::tests::table, stack_clock::StackClock};

    #[tokio::test]
    async fn a_table_with_limits_refuses_a_write_and_takes_it_later() {
        let dynamo = Embedded::start().await.unwrap();
        dynamo.create_table(&table(), "events").unwrap();
        let (logs, programs) = (tempfile::tempdir().unwrap(), BTreeMap::new());
        let (common, clock) = (BTreeMap::new(), StackClock::default());
        let functions = Functions::start(&[], &programs, &common, logs.path(), clock);
        let limits = Limits { ranges: 1, write: 20.0, read: 20.0 };
        let server = Server::new(&dynamo, Some(limits), &Arc::new(functions.await.unwrap()));
        let put = async |id: usize| {
            let item = json!({ "id": { "S": id.to_string() }, "position": { "S": "1" } });
            let body = json!({ "TableName": "events", "Item": item }).to_string();
            let request = Request::post("/").header("x-amz-target", "DynamoDB_20120810.PutItem");
            let request = request.body(Body::from(body)).unwrap();
            let answer = pass_on(State(server.clone()), request).await;
            let body = to_bytes(answer.into_body(), REQUEST_BYTES_MAX).await.unwrap();
            serde_json::from_slice::<Value>(&body).unwrap()
        };
        let (mut written, mut refused) = (0, 0);
        while written < 10 {
            match put(written).await["__type"].as_str() {
                None => written += 1,
                Some(kind) => {
                    assert!(kind.ends_with("#ThrottlingException"), "{kind}");
                    refused += 1;
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                }
            }
        }
        assert!(refused > 0);
        assert_eq!(dynamo.items("events").unwrap().len(), written);
    }
}
