//! An answer as HTTP.

use aws_lambda_events::apigw::ApiGatewayV2httpResponse;
use aws_lambda_events::http::HeaderValue;
use aws_lambda_events::http::header::{CONTENT_TYPE, RETRY_AFTER};
use serde_json::Value;

use crate::problem::Problem;

/// A caller should retry on a busy boundary after this many seconds.
const RETRY_AFTER_SECONDS: u32 = 1;

/// The answer as an API Gateway response, payload format 2.0.
pub fn http(answer: Result<Value, Problem>) -> ApiGatewayV2httpResponse {
    let (status, content_type, body) = match answer {
        Ok(body) => (200, "application/json", body),
        Err(problem) => (problem.status, "application/problem+json", problem.document()),
    };
    let mut response = ApiGatewayV2httpResponse::default();
    response.status_code = status.into();
    response.headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if matches!(status, 409 | 503) {
        response.headers.insert(RETRY_AFTER, RETRY_AFTER_SECONDS.into());
    }
    // A terminal begins its next output on a new line.
    response.body = Some(format!("{body}\n").into());
    response
}
