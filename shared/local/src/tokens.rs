//! The tokens of a stack that checks them.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use ringfence_token::{AUDIENCE, ISSUER, Key};
use serde_json::{Value, json};

use crate::{
    clock,
    template::{Model, Route},
};

/// How long the operator's token holds, in seconds: a stack that runs for a week is started again.
const OPERATOR_SECONDS: i64 = 7 * 24 * 3600;
/// The variable with the aliases of issuers.
const JWT_ISSUERS: &str = "JWT_ISSUERS";

/// Gives the issuer of this machine the alias `main` in all functions that know aliases.
///
/// # Errors
/// No route takes tokens.
pub(crate) fn require(model: &mut Model) -> Result<()> {
    let takes_tokens = model.routes.iter().any(|route| route.token_scopes.is_some());
    ensure!(
        takes_tokens,
        "--auth: the API of template.yaml takes no tokens: give it a JWT authorizer"
    );
    for function in &mut model.functions {
        if let Some(issuers) = function.environment.get_mut(JWT_ISSUERS) {
            *issuers = format!("main={ISSUER}");
        }
    }
    Ok(())
}

/// The public key.
pub(crate) fn jwks() -> Value {
    Key::local().jwks()
}

/// The token of the person who runs the stack, for the console and for a shell. It has the scopes of all routes.
pub(crate) fn of_operator(routes: &[Route]) -> String {
    let scopes: BTreeSet<_> =
        routes.iter().flat_map(|route| &route.token_scopes).flatten().collect();
    let scopes: Vec<_> = scopes.into_iter().map(String::as_str).collect();
    let now_s = clock::now().timestamp();
    Key::local().sign(&json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": "operator", "scope": scopes.join(" "),
        "iat": now_s, "exp": now_s + OPERATOR_SECONDS,
    }))
}
