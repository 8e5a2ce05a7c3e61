//! Forwards requests to a server in this process that can't be put under the guard, because it makes its routes itself.

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{StatusCode, Version, uri::PathAndQuery},
    response::{IntoResponse, Response},
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};

/// A client with the URL of the server.
type Server = (Client<HttpConnector, Body>, String);

/// Routes that forward each request to the server at this URL, which has no path.
pub(crate) fn to(url: &str) -> Router {
    let client = Client::builder(TokioExecutor::new()).build_http();
    Router::new().fallback(pass_on).with_state((client, url.to_owned()))
}

async fn pass_on(State((client, url)): State<Server>, mut request: Request) -> Response {
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
