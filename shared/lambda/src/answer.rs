//! An answer as HTTP.

use serde_json::{Value, json};

use crate::problem::Problem;

/// The seconds after which to try a busy boundary again.
const RETRY_AFTER_SECONDS: u32 = 1;

/// The answer as an API Gateway response, payload format 2.0.
pub fn http(answer: Result<Value, Problem>) -> Value {
    let (status, content_type, body) = match answer {
        Ok(body) => (200, "application/json", body),
        Err(problem) => (problem.status, "application/problem+json", problem.document()),
    };
    let mut headers = json!({ "content-type": content_type });
    if matches!(status, 409 | 503) {
        headers["retry-after"] = RETRY_AFTER_SECONDS.to_string().into();
    }
    json!({
        "statusCode": status,
        "headers": headers,
        // A terminal shows its next output on a line of its own.
        "body": format!("{body}\n"),
        "isBase64Encoded": false,
    })
}
