//! A table of good and bad tokens, which runs against any API that trusts the key.

use ring::hmac;
use serde_json::{Value, json};

use crate::check::HEADERS_BYTES_MAX;
use crate::key::{KEY_ID, TokenKey, encoded, message};

/// A request to a route that has a scope.
pub struct TokenCase {
    /// The property of the token that the case is about.
    pub name: &'static str,
    /// The header `Authorization`.
    pub authorization: Option<String>,
    /// The status of the API's answer; `None` if the API lets the request in, and the function answers.
    pub refused: Option<u16>,
}

/// The cases for an API that trusts this issuer and audience, and a route that has the scope, at a time in seconds
/// since 1970.
#[must_use]
pub fn token_cases(issuer: &str, audience: &str, scope: &str, now_s: u64) -> Vec<TokenCase> {
    let key = TokenKey::local();
    let right = json!({
        "iss": issuer, "aud": audience, "sub": "ada", "scope": scope,
        "iat": now_s - 60, "nbf": now_s - 60, "exp": now_s + 600,
    });
    let with = |changes: Value| {
        let mut claims = right.clone();
        for (name, claim) in changes.as_object().into_iter().flatten() {
            claims[name] = claim.clone();
        }
        if let Value::Object(claims) = &mut claims {
            claims.retain(|_, claim| !claim.is_null());
        }
        claims
    };
    let token = |changes: Value| key.sign(&with(changes));
    let under = |header: Value| key.sign_under(&header, &right);
    let good = token(json!({}));
    let (signed, signature) = good.rsplit_once('.').unwrap_or_default();
    let hs256 = json!({ "alg": "HS256", "typ": "JWT", "kid": KEY_ID });
    let secret = hmac::Key::new(hmac::HMAC_SHA256, &key.modulus());
    let by_secret = hmac::sign(&secret, message(&hs256, &right).as_bytes());
    let of_eve = message(&json!({ "alg": "RS256", "kid": KEY_ID }), &with(json!({ "sub": "eve" })));
    let (with_prefix, with_suffix) = (format!("x{scope}"), format!("{scope}x"));
    let case = |name, token: String, refused| {
        let authorization = Some(format!("Bearer {token}"));
        TokenCase { name, authorization, refused }
    };
    let lets_in = |name, changes| case(name, token(changes), None);
    let refuses = |name, changes| case(name, token(changes), Some(401));
    let forbids = |name, changes| case(name, token(changes), Some(403));
    let none = json!({ "alg": "none", "typ": "JWT", "kid": KEY_ID });
    vec![
        lets_in("a good token", json!({})),
        TokenCase {
            name: "without the word Bearer",
            authorization: Some(good.clone()),
            refused: None,
        },
        lets_in("one of several audiences", json!({ "aud": ["other", audience] })),
        lets_in(
            "a client id in place of an audience",
            json!({ "aud": null, "client_id": audience }),
        ),
        lets_in("scopes as a list under scp", json!({ "scope": null, "scp": ["a", scope] })),
        lets_in("one scope of several", json!({ "scope": format!("a {scope} b") })),
        lets_in("without nbf and iat", json!({ "nbf": null, "iat": null })),
        TokenCase { name: "no header", authorization: None, refused: Some(401) },
        case("no token", String::new(), Some(401)),
        case("no JSON", "not.a.token".to_owned(), Some(401)),
        case("two parts", signed.to_owned(), Some(401)),
        case("four parts", format!("{good}.{signature}"), Some(401)),
        case("no signature", format!("{signed}."), Some(401)),
        case("claims that were not signed", format!("{of_eve}.{signature}"), Some(401)),
        case("alg none", format!("{}.", message(&none, &right)), Some(401)),
        case("alg none with a signature", under(none), Some(401)),
        case(
            "HS256 with the public key as the secret",
            format!("{}.{}", message(&hs256, &right), encoded(by_secret)),
            Some(401),
        ),
        case("no kid", under(json!({ "alg": "RS256" })), Some(401)),
        case("the kid of another key", under(json!({ "alg": "RS256", "kid": "other" })), Some(401)),
        refuses("expired", json!({ "exp": now_s - 1 })),
        refuses("without exp", json!({ "exp": null })),
        refuses("exp as a text", json!({ "exp": "never" })),
        refuses("nbf in the future", json!({ "nbf": now_s + 300 })),
        refuses("iat in the future", json!({ "iat": now_s + 300 })),
        refuses("another issuer", json!({ "iss": "https://id.example.org" })),
        refuses("no issuer", json!({ "iss": null })),
        refuses("another audience", json!({ "aud": "other" })),
        refuses("no audience and no client id", json!({ "aud": null })),
        refuses("another client id", json!({ "aud": null, "client_id": "other" })),
        refuses(
            "another audience beside the right client id",
            json!({ "aud": "other", "client_id": audience }),
        ),
        forbids("an ID token, which has no scopes", json!({ "scope": null })),
        forbids("other scopes", json!({ "scope": "a b" })),
        forbids("a longer scope", json!({ "scope": format!("{with_prefix} {with_suffix}") })),
        case(
            "more than the headers may have",
            token(json!({ "more": "x".repeat(HEADERS_BYTES_MAX) })),
            Some(431),
        ),
    ]
}
