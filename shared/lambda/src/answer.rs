//! From an outcome to an answer.

use ringfence::{Handled, Outcome};
use serde_json::{Value, json};

use crate::problem::{Problem, RETRY_AFTER_SECONDS};

/// The answer to a command: a document, or the domain's refusal as a problem.
pub(crate) fn of_handled(handled: Handled) -> Result<Value, Problem> {
    match handled.outcome {
        Outcome::Accepted(events) => {
            let mut answer = json!({ "accepted": true, "events": events });
            if handled.repeated {
                answer["repeated"] = true.into();
            }
            Ok(answer)
        }
        Outcome::Rejected { refusal, events } => {
            let problem = Problem::rejected(refusal);
            Err(if events.is_empty() { problem } else { problem.and("events", json!(events)) })
        }
    }
}

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
