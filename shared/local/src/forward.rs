//! Passes requests on to a server in this process that can't be put under the guard, because it makes its routes itself.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{
        StatusCode,
        header::{CONNECTION, TRANSFER_ENCODING},
    },
    response::{IntoResponse, Response},
};

/// The most bytes of a request's body: more than DynamoDB takes.
const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Routes that pass each request on to the server at this URL.
///
/// # Errors
/// There is no HTTP client.
pub(crate) fn to(url: &str) -> reqwest::Result<Router> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    Ok(Router::new().fallback(pass_on).with_state(Arc::new((client, url.to_owned()))))
}

async fn pass_on(
    State(server): State<Arc<(reqwest::Client, String)>>,
    request: Request,
) -> Response {
    let (client, url) = &*server;
    let (mut parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_BYTES_MAX).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    // The body is whole now.
    parts.headers.remove(TRANSFER_ENCODING);
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let request = client.request(parts.method, format!("{url}{path}")).headers(parts.headers);
    let answered = async {
        let answer = request.body(body).send().await?;
        let (status, mut headers) = (answer.status(), answer.headers().clone());
        for name in [CONNECTION, TRANSFER_ENCODING] {
            headers.remove(name);
        }
        Ok::<_, reqwest::Error>((status, headers, Body::from(answer.bytes().await?)))
    };
    match answered.await {
        Ok(answer) => answer.into_response(),
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}
