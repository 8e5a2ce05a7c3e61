//! The template's HTTP API: requests become API Gateway events (payload format 2.0), and answers of functions become
//! responses. Without `--auth` everybody may use it, because it is only reachable from this machine.

use std::{
    collections::BTreeMap,
    error::Error,
    net::SocketAddr,
    str::Utf8Error,
    sync::{Arc, OnceLock},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{ConnectInfo, Query, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header, request::Parts},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use http_body_util::LengthLimitError;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    authorizer::Authorizer,
    clock,
    gateway::message,
    invoke::{Invoke, InvokeError},
    notices::Notices,
    routes::{Variables, route_of},
    template::{ACCOUNT, DEFAULT, Route},
};

/// The longest wait for a function, as for API Gateway. The function continues.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(30);
/// The most bytes of a request's body, as for API Gateway: 10 MB.
pub const BODY_BYTES_MAX: usize = 10 * 1024 * 1024;

struct Api<I> {
    routes: Vec<Route>,
    functions: Arc<I>,
    notices: Notices,
    authorizer: Authorizer,
}

/// A router with the API's routes. All other paths are not found.
pub fn router<I: Invoke>(
    routes: &[Route],
    functions: &Arc<I>,
    notices: &Notices,
    authorizer: &Authorizer,
) -> Router {
    let api = Arc::new(Api {
        routes: routes.to_vec(),
        functions: functions.clone(),
        notices: notices.clone(),
        authorizer: authorizer.clone(),
    });
    Router::new().fallback(handle::<I>).with_state(api)
}

async fn handle<I: Invoke>(
    State(api): State<Arc<Api<I>>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let found = route_of(&api.routes, parts.method.as_str(), parts.uri.path());
    let Some((route, variables)) = found else { return not_found().await };
    let Ok(parameters) = decoded(&variables) else { return not_utf8() };
    // API Gateway would join them, which makes the token ambiguous.
    if parts.headers.get_all(header::AUTHORIZATION).iter().nth(1).is_some() {
        return message(StatusCode::BAD_REQUEST, "Bad Request");
    }
    let caller = match api.authorizer.admit(route, &parts) {
        Ok(caller) => caller,
        Err(answer) => return *answer,
    };
    let body = match axum::body::to_bytes(body, BODY_BYTES_MAX).await {
        Ok(body) => body,
        Err(error) if is_too_long(&error) => {
            return message(StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large");
        }
        // The connection was lost, or the body is not in chunks as its header says.
        Err(_) => return message(StatusCode::BAD_REQUEST, "Bad Request"),
    };
    let mut event = event(route, peer, &parameters, &parts, &body);
    if let Some(caller) = caller {
        event["requestContext"]["authorizer"] = caller;
    }
    let invoked = timeout(ANSWER_WAIT_MAX, api.functions.invoke(&route.function, &event)).await;
    let late = |_| {
        let (function, timeout) = (route.function.clone(), ANSWER_WAIT_MAX);
        Err(InvokeError::TimedOut { function, timeout })
    };
    match invoked.unwrap_or_else(late) {
        Ok(answer) => response(answer),
        Err(error) => {
            api.notices.trouble(&error);
            match error {
                InvokeError::TooLarge { .. } => {
                    message(StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large")
                }
                InvokeError::TimedOut { .. } => {
                    message(StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable")
                }
                _ => internal_error(),
            }
        }
    }
}

fn is_too_long(error: &axum::Error) -> bool {
    error.source().is_some_and(|cause| cause.is::<LengthLimitError>())
}

/// The variables of the path, as functions get them. For API Gateway an encoded `?` ends the path.
fn decoded(variables: &Variables<'_, '_>) -> Result<BTreeMap<String, String>, Utf8Error> {
    let decoded = variables.iter().map(|(name, sent)| {
        let value = percent_decode_str(sent).decode_utf8()?;
        let value = value.split('?').next().unwrap_or_default();
        Ok(((*name).to_owned(), value.to_owned()))
    });
    decoded.collect()
}

/// An API Gateway event.
fn event(
    route: &Route,
    peer: SocketAddr,
    parameters: &BTreeMap<String, String>,
    parts: &Parts,
    body: &Bytes,
) -> Value {
    let headers = joined_headers(&parts.headers);
    let path = parts.uri.path();
    let now = clock::now();
    let route_key = match &*route.path {
        DEFAULT => DEFAULT.to_owned(),
        path => format!("{} {path}", route.method),
    };
    let host = headers.get("host").cloned().unwrap_or_default();
    let mut event = json!({
        "version": "2.0",
        "routeKey": route_key,
        "rawPath": path,
        "rawQueryString": parts.uri.query().unwrap_or_default(),
        "headers": headers,
        "requestContext": {
            "accountId": ACCOUNT,
            "apiId": "local",
            "domainName": host,
            "domainPrefix": "local",
            "http": {
                "method": parts.method.as_str(),
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": peer.ip().to_string(),
                "userAgent": headers.get("user-agent"),
            },
            "requestId": clock::id(),
            "routeKey": route_key,
            "stage": "$default",
            "time": now.format("%d/%b/%Y:%H:%M:%S %z").to_string(),
            "timeEpoch": now.timestamp_millis(),
        },
        "isBase64Encoded": false,
    });
    let query = query(&parts.uri);
    if !query.is_empty() {
        event["queryStringParameters"] = json!(query);
    }
    if !parameters.is_empty() {
        event["pathParameters"] = json!(parameters);
    }
    let cookies = parts.headers.get_all(header::COOKIE).iter();
    let cookies: Vec<_> =
        cookies.filter_map(|v| v.to_str().ok()).flat_map(|v| v.split("; ")).collect();
    if !cookies.is_empty() {
        event["cookies"] = json!(cookies);
    }
    if !body.is_empty() {
        match std::str::from_utf8(body) {
            Ok(text) if is_text(&headers) => event["body"] = json!(text),
            _ => {
                event["body"] = json!(STANDARD.encode(body));
                event["isBase64Encoded"] = json!(true);
            }
        }
    }
    event
}

/// Query parameters, decoded. Several of one name are joined.
fn query(uri: &Uri) -> BTreeMap<String, String> {
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(uri);
    join(pairs.map(|Query(pairs)| pairs).unwrap_or_default())
}

/// Headers by lower-case name. Several of one name are joined; cookies are kept apart.
fn joined_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = headers.iter().filter(|(name, _)| *name != header::COOKIE);
    join(headers.map(|(name, value)| (name.as_str().to_owned(), text(value))))
}

fn join(pairs: impl IntoIterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let mut joined = BTreeMap::<String, String>::new();
    for (name, value) in pairs {
        joined
            .entry(name)
            .and_modify(|values| *values = format!("{values},{value}"))
            .or_insert(value);
    }
    joined
}

/// API Gateway passes these content types on as text. It encodes all others in base64, also `…+json` and a body without
/// a type.
fn is_text(headers: &BTreeMap<String, String>) -> bool {
    let Some(content_type) = headers.get("content-type") else { return false };
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    kind.starts_with("text/")
        || ["application/json", "application/xml", "application/javascript"].contains(&kind)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    status_code: u16,
    #[serde(default)]
    headers: BTreeMap<String, Value>,
    #[serde(default)]
    cookies: Vec<String>,
    body: Option<String>,
    #[serde(default)]
    is_base64_encoded: bool,
}

/// The response for a function's answer. An answer without a status code is the body itself.
fn response(answer: Value) -> Response {
    if answer.get("statusCode").is_none() {
        return (StatusCode::OK, axum::Json(answer)).into_response();
    }
    match serde_json::from_value(answer).ok().and_then(mapped) {
        Some(response) => response,
        None => internal_error(),
    }
}

fn mapped(answer: Answer) -> Option<Response> {
    let body = answer.body.unwrap_or_default();
    let body = match answer.is_base64_encoded {
        true => Body::from(STANDARD.decode(body).ok()?),
        false => Body::from(body),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(answer.status_code).ok()?;
    let headers = response.headers_mut();
    for (name, value) in answer.headers {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        headers.insert(
            HeaderName::from_bytes(name.as_bytes()).ok()?,
            HeaderValue::from_str(&value).ok()?,
        );
    }
    for cookie in answer.cookies {
        headers.append(header::SET_COOKIE, HeaderValue::from_str(&cookie).ok()?);
    }
    // This is API Gateway's default.
    headers
        .entry(header::CONTENT_TYPE)
        .or_insert(HeaderValue::from_static("text/plain;charset=UTF-8"));
    Some(response)
}

/// Redirects a browser to the console. Without a console there is nothing at this path.
pub(crate) fn to_console(console: Arc<OnceLock<String>>) -> Router {
    let lead = async move || match console.get() {
        Some(url) => Redirect::to(url).into_response(),
        None => not_found().await,
    };
    Router::new().route("/", get(lead).fallback(not_found))
}

/// The answer where there is no route.
async fn not_found() -> Response {
    message(StatusCode::NOT_FOUND, "Not Found")
}

fn not_utf8() -> Response {
    let (field, message) = ("path", "is not UTF-8 when it is decoded");
    let problem = json!({
        "type": "urn:ringfence:problem:malformed",
        "title": "The request is malformed",
        "status": 400,
        "detail": format!("{field}: {message}"),
        "errors": [{ "field": field, "message": message }],
    });
    let content_type = [(header::CONTENT_TYPE, "application/problem+json")];
    (StatusCode::BAD_REQUEST, content_type, format!("{problem}\n")).into_response()
}

fn internal_error() -> Response {
    message(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
}

#[cfg(test)]
#[path = "api_tests.rs"]
mod tests;
