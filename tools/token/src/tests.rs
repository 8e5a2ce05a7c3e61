use serde_json::json;

use crate::{AUDIENCE, ISSUER, Refused, TokenKey, TokenRules, claim_texts, token_cases};

const NOW_S: u64 = 1_719_100_800;

#[test]
fn each_token_of_the_table_is_judged_as_by_api_gateway() {
    let (rules, scopes) = (TokenRules::local(), ["orders/write", "orders/all"].map(str::to_owned));
    for case in token_cases(ISSUER, AUDIENCE, "orders/write", NOW_S) {
        let found = rules.check(case.authorization.as_deref(), &scopes, NOW_S);
        let status = match &found {
            Ok(_) => None,
            Err(Refused::Unauthorized(_)) => Some(401),
            Err(Refused::Forbidden) => Some(403),
        };
        // The size is not the token's: the API checks it before.
        let expected = case.refused.filter(|status| *status != 431);
        assert_eq!(status, expected, "{}: {found:?}", case.name);
    }
}

#[test]
fn a_route_without_scopes_takes_a_token_without_any() {
    let (rules, key) = (TokenRules::local(), TokenKey::local());
    let until = |end: u64| {
        let claims = json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": end });
        rules.check(Some(&key.sign(&claims)), &[], NOW_S).is_ok()
    };
    assert_eq!([until(NOW_S - 1), until(NOW_S), until(NOW_S + 1)], [false, false, true]);
}

#[test]
fn claims_are_passed_on_as_texts() {
    let claims =
        json!({ "sub": "ada", "exp": 7, "is_member": true, "scp": ["a", "b"], "nick": null });
    let expected = json!({ "sub": "ada", "exp": "7", "is_member": "true", "scp": "[a b]" });
    assert_eq!(json!(claim_texts(claims.as_object().unwrap())), expected);
}

#[test]
fn the_key_set_has_the_public_key_alone() {
    let jwks = TokenKey::local().jwks();
    let names: Vec<_> = jwks["keys"][0].as_object().unwrap().keys().collect();
    assert_eq!(names, ["alg", "e", "kid", "kty", "n", "use"]);
    assert_eq!(jwks["keys"][0]["e"], "AQAB");
}
