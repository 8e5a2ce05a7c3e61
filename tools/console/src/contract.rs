//! The API for callers: the document of OpenAPI, and a page of it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::IntoResponse;
use serde_json::Value;

use crate::frame::Problem;
use crate::site::Site;

/// The path of the document.
pub(crate) const DOCUMENT: &str = "/api/openapi.json";

const LINKS: &str =
    r#"<nav><a href="/">Console</a> · <a href="/api/openapi.json">openapi.json</a></nav>"#;

/// The document.
pub(crate) async fn document(State(site): State<Arc<Site>>) -> Result<Json<Value>, Problem> {
    Ok(Json(site.lists.contract()?.openapi()))
}

/// The page that `ringfence api --html` writes.
pub(crate) async fn page(State(site): State<Arc<Site>>) -> Result<impl IntoResponse, Problem> {
    let page = site.lists.contract()?.page(LINKS);
    let policy = format!("{}; frame-ancestors 'none'", page.policy);
    let html = "text/html; charset=utf-8".to_owned();
    Ok(([(CONTENT_TYPE, html), (CONTENT_SECURITY_POLICY, policy)], page.html))
}
