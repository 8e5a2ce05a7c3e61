//! Problems as the caller sees them: RFC 9457 problem details. The cause goes only to the log.

use std::fmt::Display;

use lambda_runtime::Diagnostic;
use ringfence_core::{KeyReused, LimitExceeded, Rejected, StoreError};
use serde_json::{Value, json};

use crate::bounded::bounded;

/// The longest field name that is repeated, in bytes of JSON.
const FIELD_BYTES_MAX: usize = 256;
/// The longest message about a field, in bytes of JSON.
const MESSAGE_BYTES_MAX: usize = 512;
/// The longest detail of a problem, in bytes of JSON.
const DETAIL_BYTES_MAX: usize = 1_024;

/// An answer other than success.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// HTTP status.
    pub status: u16,
    /// Stable name: the `type` after `urn:ringfence:problem:`, and the outcome in logs.
    pub kind: &'static str,
    title: &'static str,
    detail: String,
    /// Further members, such as a rejection's `code`.
    extension: Value,
}

/// The advice after an attempt without effect.
const AGAIN: &str =
    "this attempt wrote nothing; send the command again, with its Idempotency-Key if it has one";

impl Problem {
    /// A problem with a title and a detail. A long `detail` is cut, because it may repeat the caller's text.
    pub fn new(status: u16, kind: &'static str, title: &'static str, detail: String) -> Self {
        let detail = bounded(&detail, DETAIL_BYTES_MAX);
        Self { status, kind, title, detail, extension: Value::Null }
    }

    /// Adds further members, which are those of an object.
    #[must_use]
    pub fn with(self, extension: Value) -> Self {
        Self { extension, ..self }
    }

    /// Adds one member.
    #[must_use]
    pub fn and(mut self, member: &str, value: Value) -> Self {
        self.extension[member] = value;
        self
    }

    /// 400: `field` is missing or wrong. An empty name is shown in quotation marks.
    pub fn malformed(field: &str, message: impl Display) -> Self {
        Self::wrong(field, &message.to_string())
    }

    fn wrong(field: &str, message: &str) -> Self {
        let field = if field.is_empty() { r#""""# } else { field };
        let field = bounded(field, FIELD_BYTES_MAX);
        let message = bounded(message, MESSAGE_BYTES_MAX);
        let title = "The request is malformed";
        let detail = format!("{field}: {message}");
        let extension = json!({ "errors": [{ "field": field, "message": message }] });
        Self { extension, ..Self::new(400, "malformed", title, detail) }
    }

    /// 403: the caller's token has none of the required scopes.
    pub fn scope_missing(scopes: &[&str]) -> Self {
        let detail = format!("the token has none of these scopes: {}", scopes.join(", "));
        Self::new(403, "scope-missing", "The token does not allow this", detail)
            .with(json!({ "code": "ScopeMissing" }))
    }

    /// 404: no slice has the path of the request, or callers do not give its commands.
    pub fn slice_not_found() -> Self {
        let detail = "no slice takes commands from callers at this path".to_owned();
        Self::new(404, "slice-not-found", "There is no such slice", detail)
    }

    /// 413: more than an event or a transaction can hold.
    pub fn too_large(detail: String) -> Self {
        Self::new(413, "too-large", "The command is too large", detail)
    }

    /// 413: a limit of the log. A long subject, such as a path through the caller's JSON, is cut, so the limit can be
    /// named too.
    pub fn limit(limit: &LimitExceeded) -> Self {
        let subject = bounded(&limit.subject, FIELD_BYTES_MAX);
        Self::too_large(LimitExceeded { subject, ..limit.clone() }.to_string())
    }

    /// 422: the slice rejects the command. The kit's cases refuse a rejection whose fields have names of the document's
    /// members.
    pub fn rejected(rejected: Rejected) -> Self {
        let Rejected { message, rejection } = rejected;
        Self::new(422, "rejected", "The command is rejected", message).with(rejection)
    }

    /// 500: the caller does not see the cause.
    pub fn internal(request_id: &str) -> Self {
        let detail = format!("the cause is in the log, under request {request_id}");
        Self::new(500, "internal", "The request failed", detail)
    }

    /// The problem for a failed request to the store of any log.
    pub fn of_store(error: &StoreError, request_id: &str) -> Self {
        match error {
            StoreError::Contention { .. } => Self::contention(),
            StoreError::Throttled { .. } => {
                Self::new(503, "throttled", "The log is busy", AGAIN.to_owned())
            }
            StoreError::Unavailable { .. } => {
                Self::new(503, "unavailable", "The log does not answer", AGAIN.to_owned())
            }
            StoreError::OutcomeUnknown { .. } => Self::new(
                504,
                "outcome-unknown",
                "The log did not answer",
                "the command may have taken effect; repeat it with the same Idempotency-Key"
                    .to_owned(),
            ),
            StoreError::Failed { .. } => Self::internal(request_id),
        }
    }

    /// 503: the log has an event of a type that this version of the program does not know. During a deploy a newer
    /// function wrote it, and the next attempt may reach that one.
    pub fn unknown_type() -> Self {
        let detail = format!(
            "{AGAIN}. The log has an event of a type that this version does not know, as during a deploy or after a \
             roll-back"
        );
        Self::new(503, "unknown-type", "The command can't be decided yet", detail)
    }

    /// 503: the log has an event of a version that this version of the program does not know, as during a deploy.
    pub fn newer_version() -> Self {
        let detail = format!(
            "{AGAIN}. The log has an event of a newer version than this function knows, as during a deploy or after a \
             roll-back"
        );
        Self::new(503, "newer-version", "The command can't be decided yet", detail)
    }

    /// 409: other writers were faster each time.
    pub fn contention() -> Self {
        Self::new(
            409,
            "contention",
            "Others keep changing what the command depends on",
            AGAIN.to_owned(),
        )
    }

    /// 422: the key belongs to another command.
    pub fn key_reused(error: &KeyReused) -> Self {
        let title = "The idempotency key belongs to another command";
        Self::new(422, "key-reused", title, error.to_string())
            .with(json!({ "code": "IdempotencyKeyReused" }))
    }

    /// 422: the command has personal data of a forgotten subject. A later repeat of an accepted command gets it too.
    pub fn subject_forgotten() -> Self {
        let detail =
            "the command has personal data of a forgotten person, so it is not carried out";
        Self::new(422, "subject-forgotten", "The person is forgotten", detail.to_owned())
            .with(json!({ "code": "SubjectForgotten" }))
    }

    /// The text for a person.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Whether a reaction is done with its command: the slice rejects it, or an earlier version of the reaction took
    /// effect in its place. After any other problem the command has no answer yet.
    pub fn settles_reaction(&self) -> bool {
        matches!(self.kind, "rejected" | "key-reused")
    }

    /// Whether it answers a command for good: the same command would get the same answer. After any other problem it
    /// may be accepted later.
    pub fn settles_command(&self) -> bool {
        self.status < 500 && self.kind != "contention"
    }

    /// The failure of an invocation whose caller does not wait: `errorType` is the stable name.
    pub fn diagnostic(self) -> Diagnostic {
        Diagnostic { error_type: self.kind.to_owned(), error_message: self.detail }
    }

    /// The failure of an invocation whose caller wants an error: `errorType` is the code of a rejection, or else the
    /// stable name, and `errorMessage` the document. So a state machine can retry and catch it by its name.
    pub fn error(self) -> Diagnostic {
        let code = self.extension.get("code").and_then(Value::as_str).map(str::to_owned);
        let error_type = code.unwrap_or_else(|| self.kind.to_owned());
        Diagnostic { error_type, error_message: self.document().to_string() }
    }

    /// The `application/problem+json` document.
    pub fn document(self) -> Value {
        let mut document = match self.extension {
            extension @ Value::Object(_) => extension,
            _ => json!({}),
        };
        document["type"] = format!("urn:ringfence:problem:{}", self.kind).into();
        document["title"] = self.title.into();
        document["status"] = self.status.into();
        document["detail"] = self.detail.into();
        document
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callers_text_is_repeated_only_up_to_a_limit() {
        let long = "x".repeat(100_000);
        let problem = Problem::new(422, "rejected", "The command is rejected", long.clone());
        assert_eq!(problem.detail().len(), DETAIL_BYTES_MAX);
        let document = Problem::malformed(&long, &long).document();
        let error = &document["errors"][0];
        let lengths = ["field", "message"].map(|of| error[of].as_str().map(str::len));
        assert_eq!(lengths, [Some(FIELD_BYTES_MAX), Some(MESSAGE_BYTES_MAX)]);
        assert_eq!(Problem::malformed("", "is unknown").detail(), r#""": is unknown"#);
    }
}
