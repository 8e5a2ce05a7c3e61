//! Answers that come from API Gateway itself.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::json;

pub(crate) fn message(status: StatusCode, text: &str) -> Response {
    (status, axum::Json(json!({ "message": text }))).into_response()
}
