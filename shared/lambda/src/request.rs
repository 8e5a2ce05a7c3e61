//! Requests of the HTTP API.

use std::collections::BTreeMap;

use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use serde_json::Value;

use crate::problem::Problem;

/// Parses a request of the HTTP API, payload format 2.0.
///
/// # Errors
/// API Gateway did not write it.
pub fn request(mut payload: Value) -> Result<ApiGatewayV2httpRequest, Problem> {
    // API Gateway writes each claim as a string, and leaves out a missing authorizer. An emulator may leave claims as
    // they are in the token, and have an empty object in place of the authorizer.
    if let Some(authorizer) = payload.pointer_mut("/requestContext/authorizer") {
        if let Some(claims) = authorizer.pointer_mut("/jwt/claims").and_then(Value::as_object_mut) {
            claims.retain(|_, claim| !claim.is_null());
            claims.values_mut().for_each(|claim| *claim = in_text(claim).into());
        }
        if authorizer.as_object().is_some_and(serde_json::Map::is_empty) {
            *authorizer = Value::Null;
        }
    }
    serde_json::from_value(payload).map_err(|error| Problem::malformed("payload", error))
}

/// The parameters of a request's query, by name. Those of one name are one text with commas, because `QueryMap` splits
/// it there.
#[must_use]
pub fn query(request: &ApiGatewayV2httpRequest) -> BTreeMap<String, String> {
    let mut all = BTreeMap::<String, String>::new();
    for (name, value) in request.query_string_parameters.iter() {
        let joined = |text: &mut String| text.extend([",", value]);
        all.entry(name.to_owned()).and_modify(joined).or_insert_with(|| value.to_owned());
    }
    all
}

/// A claim in API Gateway's form: a list is `[a b]`.
fn in_text(claim: &Value) -> String {
    match claim {
        Value::String(text) => text.clone(),
        Value::Array(all) => format!("[{}]", all.iter().map(in_text).collect::<Vec<_>>().join(" ")),
        other => other.to_string(),
    }
}
