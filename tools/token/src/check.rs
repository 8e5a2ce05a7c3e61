//! Checks a token like an HTTP API of API Gateway, by its documentation: the algorithm and the signature, `kid`, `iss`,
//! `aud` or else `client_id`, `exp`, `nbf`, `iat`, and the scopes of the route.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::signature::{
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RsaParameters,
};
use serde_json::{Map, Value};

use crate::key::{AUDIENCE, ISSUER, KEY_ID, TokenKey};

/// API Gateway accepts at most this many bytes in the request line and the values of all headers.
pub const HEADERS_BYTES_MAX: usize = 10_240;

/// The rules of an API for tokens.
pub struct TokenRules {
    issuer: String,
    audience: String,
    key: TokenKey,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// 401: the token is missing or invalid. API Gateway gives the reason in the header `www-authenticate`.
    Unauthorized(&'static str),
    /// 403: it has none of the scopes of the route.
    Forbidden,
}

impl TokenRules {
    /// The rules of a stack on one machine. Its issuer takes the place of the template's, whose keys are elsewhere.
    #[must_use]
    pub fn local() -> Self {
        let [issuer, audience] = [ISSUER, AUDIENCE].map(str::to_owned);
        Self { issuer, audience, key: TokenKey::local() }
    }

    /// The claims of the token in a header `Authorization`, at a time in seconds since 1970, on a route with these
    /// scopes.
    ///
    /// # Errors
    /// The request is refused.
    pub fn check(
        &self,
        authorization: Option<&str>,
        scopes: &[String],
        now_s: u64,
    ) -> Result<Map<String, Value>, Refused> {
        let claims = self.claims(authorization.unwrap_or_default(), now_s);
        let claims = claims.map_err(Refused::Unauthorized)?;
        let own = ["scope", "scp"].iter().filter_map(|name| claims.get(*name)).flat_map(words);
        let own: Vec<_> = own.collect();
        match scopes.is_empty() || scopes.iter().any(|scope| own.contains(&scope.as_str())) {
            true => Ok(claims),
            false => Err(Refused::Forbidden),
        }
    }

    fn claims(&self, authorization: &str, now_s: u64) -> Result<Map<String, Value>, &'static str> {
        // The word may be missing.
        let (word, rest) = authorization.split_at_checked(7).unwrap_or_default();
        let token = if word.eq_ignore_ascii_case("bearer ") { rest } else { authorization };
        let token = token.trim();
        if token.is_empty() {
            return Err("there is no token");
        }
        let malformed = || "the token is malformed";
        let (message, signature) = token.rsplit_once('.').ok_or_else(malformed)?;
        let (header, claims) = message.split_once('.').ok_or_else(malformed)?;
        let header = object(header).ok_or_else(malformed)?;
        let claims = object(claims).ok_or_else(malformed)?;
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).map_err(|_| malformed())?;
        let text = |of: &Map<String, Value>, name| of.get(name)?.as_str().map(str::to_owned);
        let algorithm = text(&header, "alg").and_then(|name| algorithm(&name));
        let algorithm = algorithm.ok_or("the token is not signed by an RSA key")?;
        if text(&header, "kid").as_deref() != Some(KEY_ID) {
            return Err("the issuer has no such key");
        }
        if !self.key.has_signed(algorithm, message, &signature) {
            return Err("the signature is wrong");
        }
        if text(&claims, "iss").as_deref() != Some(&*self.issuer) {
            return Err("the token is of another issuer");
        }
        let audience = claims.get("aud").or_else(|| claims.get("client_id"));
        let is_of_audience = audience.is_some_and(|of| texts(of).contains(&&*self.audience));
        if !is_of_audience {
            return Err("the token is for another audience");
        }
        let time = |name| match claims.get(name) {
            None => Ok(None),
            Some(time) => time.as_u64().map(Some).ok_or("a time of the token is not an integer"),
        };
        let (expires, begins, issued) = (time("exp")?, time("nbf")?, time("iat")?);
        if expires.is_none_or(|end| end <= now_s) {
            return Err("the token has expired, or does not say when it does");
        }
        if begins.is_some_and(|begin| begin > now_s) || issued.is_some_and(|at| at > now_s) {
            return Err("the token is not valid yet");
        }
        Ok(claims)
    }
}

/// The algorithms with RSA.
fn algorithm(name: &str) -> Option<&'static RsaParameters> {
    match name {
        "RS256" => Some(&RSA_PKCS1_2048_8192_SHA256),
        "RS384" => Some(&RSA_PKCS1_2048_8192_SHA384),
        "RS512" => Some(&RSA_PKCS1_2048_8192_SHA512),
        _ => None,
    }
}

fn object(part: &str) -> Option<Map<String, Value>> {
    let json = BASE64_URL_SAFE_NO_PAD.decode(part).ok()?;
    serde_json::from_slice(&json).ok()
}

/// The texts of a claim that is a text or a list.
fn texts(claim: &Value) -> Vec<&str> {
    match claim {
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    }
}

/// The words of the texts of a claim.
fn words(claim: &Value) -> impl Iterator<Item = &str> {
    texts(claim).into_iter().flat_map(str::split_whitespace)
}

/// The claims in API Gateway's format: each is a text, and a list is `[a b]`.
#[must_use]
pub fn claim_texts(claims: &Map<String, Value>) -> Map<String, Value> {
    let claims = claims.iter().filter(|(_, claim)| !claim.is_null());
    claims.map(|(name, claim)| (name.clone(), claim_text(claim).into())).collect()
}

fn claim_text(claim: &Value) -> String {
    match claim {
        Value::String(text) => text.clone(),
        Value::Array(list) => {
            format!("[{}]", list.iter().map(claim_text).collect::<Vec<_>>().join(" "))
        }
        other => other.to_string(),
    }
}
