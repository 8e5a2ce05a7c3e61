//! Decides who may use the HTTP API: everybody, or with `--auth` callers with a token, as the template says for each
//! route. It answers like API Gateway.

use std::sync::Arc;

use axum::{
    http::{StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use ringfence_token::{HEADERS_BYTES_MAX, Refused, TokenRules, claim_texts};
use serde_json::{Value, json};

use crate::{clock, gateway::message, template::Route};

/// Lets requests in.
#[derive(Clone, Default)]
pub struct Authorizer(Option<Arc<TokenRules>>);

impl Authorizer {
    /// Checks tokens on the routes that take them.
    #[must_use]
    pub fn of_tokens() -> Self {
        Self(Some(Arc::new(TokenRules::local())))
    }

    /// The claims for the function; none, if the route is open.
    ///
    /// # Errors
    /// The token is missing or refused.
    pub(crate) fn admit(
        &self,
        route: &Route,
        parts: &Parts,
    ) -> Result<Option<Value>, Box<Response>> {
        let (Some(rules), Some(scopes)) = (&self.0, &route.token_scopes) else { return Ok(None) };
        if bytes(parts) > HEADERS_BYTES_MAX {
            let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            return Err(message(status, "Request Header Fields Too Large").into());
        }
        let header = parts.headers.get(header::AUTHORIZATION).and_then(|text| text.to_str().ok());
        let now_s = u64::try_from(clock::now().timestamp()).unwrap_or_default();
        match rules.check(header, scopes, now_s) {
            Ok(claims) => {
                let of_route = (!scopes.is_empty()).then_some(scopes);
                Ok(Some(json!({ "jwt": { "claims": claim_texts(&claims), "scopes": of_route } })))
            }
            Err(Refused::Unauthorized(why)) => {
                let why = format!("Bearer error=\"invalid_token\" error_description=\"{why}\"");
                let answer = message(StatusCode::UNAUTHORIZED, "Unauthorized");
                Err(([(header::WWW_AUTHENTICATE, why)], answer).into_response().into())
            }
            Err(Refused::Forbidden) => Err(message(StatusCode::FORBIDDEN, "Forbidden").into()),
        }
    }
}

/// The bytes of the request line and of the headers' values.
fn bytes(parts: &Parts) -> usize {
    let line = parts.method.as_str().len() + parts.uri.to_string().len();
    line + parts.headers.values().map(|value| value.len()).sum::<usize>()
}
