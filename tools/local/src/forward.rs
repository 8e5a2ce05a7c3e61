//! The port of a stack's data. It forwards requests to the embedded DynamoDB, which can't be put under the guard,
//! because it makes its routes itself. The answers have the time of the stack's clock.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, Version, header::DATE, uri::PathAndQuery},
    response::{IntoResponse, Response},
    routing::post,
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};

use crate::functions::Functions;

/// A request to this path lets time pass: the milliseconds in its body.
const PASS_TIME: &str = "/ringfence/pass-time";

/// A client with the URL of the server, and the stack's functions with the clock.
type Server = (Client<HttpConnector, Body>, String, Arc<Functions>);

/// Routes that forward each request to the server at this URL, which has no path.
pub(crate) fn to(url: &str, functions: &Arc<Functions>) -> Router {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let server = (client, url.to_owned(), functions.clone());
    Router::new().route(PASS_TIME, post(pass_time)).fallback(pass_on).with_state(server)
}

async fn pass_time(State((.., functions)): State<Server>, body: String) -> Response {
    let passed = match body.parse() {
        Ok(ms) => functions.pass_time(ms).await.map_err(|error| error.to_string()),
        Err(_) => Err("the body is not a number of milliseconds".to_owned()),
    };
    match passed {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(why) => (StatusCode::UNPROCESSABLE_ENTITY, why).into_response(),
    }
}

async fn pass_on(State((client, url, functions)): State<Server>, mut request: Request) -> Response {
    let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    let Ok(uri) = format!("{url}{path}").parse() else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    *request.uri_mut() = uri;
    *request.version_mut() = Version::HTTP_11;
    let mut answer = match client.request(request).await {
        Ok(answer) => answer.into_response(),
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    };
    let date = functions.clock().now().format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let date = HeaderValue::try_from(date).expect("a date is a header");
    answer.headers_mut().insert(DATE, date);
    answer
}
