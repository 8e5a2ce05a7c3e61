//! The tokens of a stack with `--auth`.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use ringfence_token::{AUDIENCE, ISSUER, TokenKey};
use serde_json::{Value, json};

use crate::{
    clock,
    template::{Model, Route},
};

/// Such a token is valid for this many seconds, which is a week. A stack makes a new one at its start.
const TOKEN_SECONDS: i64 = 7 * 24 * 3600;
/// The variable with the aliases of issuers.
const JWT_ISSUERS: &str = "JWT_ISSUERS";

/// Gives the issuer of this machine the alias `main` in all functions that have aliases.
///
/// # Errors
/// No route takes tokens.
pub(crate) fn require(model: &mut Model) -> Result<()> {
    ensure!(
        model.takes_tokens(),
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
    TokenKey::local().jwks()
}

/// A token with the scopes of all routes and with these, which functions ask for. `claim` is `sub` for a person, and
/// `client_id` for a program.
pub(crate) fn of(claim: &str, name: &str, routes: &[Route], scopes: &[&str]) -> String {
    let of_routes = routes.iter().flat_map(|route| &route.token_scopes).flatten();
    let scopes: BTreeSet<_> = of_routes.map(String::as_str).chain(scopes.iter().copied()).collect();
    let scopes: Vec<_> = scopes.into_iter().collect();
    let now_s = clock::now().timestamp();
    TokenKey::local().sign(&json!({
        "iss": ISSUER, "aud": AUDIENCE, claim: name, "scope": scopes.join(" "),
        "iat": now_s, "exp": now_s + TOKEN_SECONDS,
    }))
}
