//! The sender and the cause of a command, in decisions and in events.

use std::sync::Mutex;

use ringfence_aws::{Clock, Meter};
use ringfence_core::{
    Envelope, HandleError, Handled, NewEvent, OnLog, Outcome, Principal, PrincipalKind, Traceparent,
};
use serde_json::{Value, json};

use super::shop::RecordDemand;
use super::spans::Discount;
use super::{NOW_MS, events, http, invoke, order, request, shop, topic_event};
use crate::slice::function::Function;

/// A slice that accepts everything and records the envelopes.
#[derive(Default)]
struct Given(Mutex<Vec<Envelope>>);

impl OnLog<RecordDemand> for Given {
    async fn handle(&self, _: &RecordDemand, envelope: &Envelope) -> Result<Handled, HandleError> {
        self.0.lock().unwrap().push(envelope.clone());
        let outcome = Outcome::Accepted(vec![]);
        Ok(Handled { outcome, attempts: 1, repeated: false, conflicts: vec![], written: vec![] })
    }

    async fn add(&self, _: Vec<NewEvent>, _: &Envelope) -> Result<(), HandleError> {
        unreachable!("a function adds nothing")
    }
}

fn function() -> Function<RecordDemand, Given> {
    let function = Function::new(Given::default(), Clock::fixed(NOW_MS), Meter::default());
    function.with_issuers("main=https://id.example.com/".parse().unwrap())
}

fn demand() -> Value {
    json!({ "type": "Record", "productId": "p1", "orderId": "o1" })
}

/// The envelope of the only command.
fn only(function: &Function<RecordDemand, Given>) -> Envelope {
    let mut given = function.on().0.lock().unwrap();
    assert_eq!(given.len(), 1);
    given.remove(0)
}

/// The principal in the decision, which must be the same in the events.
fn principal(function: &Function<RecordDemand, Given>) -> Option<Principal> {
    let Envelope { context, metadata, .. } = only(function);
    let text = context.principal.as_ref().map(Principal::to_string);
    assert_eq!(metadata.text("principal"), text.as_deref());
    assert_eq!(metadata.text("by"), None, "a caller gives it, and no part of the stack");
    context.principal
}

/// A request whose sender the API's authorizer has found; the API is of the account 123456789012.
fn from(authorizer: Value) -> Value {
    let mut request = request(&demand().to_string(), json!({ "principal": "eve", "by": "eve" }));
    request["requestContext"]["accountId"] = "123456789012".into();
    request["requestContext"]["authorizer"] = authorizer;
    request
}

#[test]
fn over_http_the_authorizer_names_the_principal_and_nobody_else() {
    const ISSUER: &str = "https://id.example.com/";
    let jwt = |claims: Value| json!({ "jwt": { "claims": claims, "scopes": null } });
    let ada = |more: (&str, &str)| jwt(json!({ "iss": ISSUER, "sub": "ada", more.0: more.1 }));
    let iam = |arn: &str| json!({ "iam": { "userArn": arn, "userId": "AIDA", "accountId": "123456789012" } });
    let sts = |resource: &str| iam(&format!("arn:aws:sts::123456789012:{resource}"));
    let long = "s".repeat(300);
    for (authorizer, expected, scopes) in [
        (ada(("username", "eve")), Some("jwt:main:ada"), vec![]),
        (ada(("scope", "a b")), Some("jwt:main:ada"), vec!["a", "b"]),
        (ada(("scp", "[a b]")), Some("jwt:main:ada"), vec!["a", "b"]),
        (
            jwt(json!({ "iss": ISSUER, "sub": "ada", "scope": "a", "scp": "[b c]" })),
            Some("jwt:main:ada"),
            vec!["a", "b", "c"],
        ),
        (ada(("client_id", "app")), Some("jwt:main:ada"), vec![]),
        (jwt(json!({ "iss": ISSUER, "sub": long })), Some(&*format!("jwt:main:{long}")), vec![]),
        // Claims that are not strings.
        (
            jwt(json!({
                "iss": ISSUER, "sub": "ada", "aud": ["a", "b"], "exp": 1_735_689_600, "scp": ["a", "b"],
                "email_verified": true, "address": { "country": "AT" }, "nonce": null,
            })),
            Some("jwt:main:ada"),
            vec!["a", "b"],
        ),
        // The same subject of another issuer is another person.
        (
            jwt(json!({ "iss": "https://id.example.org", "sub": "ada" })),
            Some("jwt:https%3A%2F%2Fid.example.org:ada"),
            vec![],
        ),
        // The token of a program, with the program's scopes.
        (
            jwt(json!({ "iss": ISSUER, "client_id": "app", "scope": "a" })),
            Some("client:main:app"),
            vec!["a"],
        ),
        // A token of Cognito for a program, for a person, and one of an issuer whose people choose their subjects.
        (
            jwt(
                json!({ "iss": ISSUER, "sub": "app", "client_id": "app", "token_use": "access", "scope": "a" }),
            ),
            Some("client:main:app"),
            vec!["a"],
        ),
        (
            jwt(json!({
                "iss": ISSUER, "sub": "app", "client_id": "app", "token_use": "access", "username": "ada",
            })),
            Some("jwt:main:app"),
            vec![],
        ),
        (
            jwt(json!({ "iss": ISSUER, "sub": "app", "client_id": "app" })),
            Some("jwt:main:app"),
            vec![],
        ),
        (iam("arn:aws:iam::123456789012:user/ada"), Some("iam:user/ada"), vec![]),
        (iam("arn:aws:iam::123456789012:user/staff/north/ada"), Some("iam:user/ada"), vec![]),
        (iam("arn:aws-cn:iam::123456789012:root"), Some("iam:root"), vec![]),
        (sts("assumed-role/shop/eve@example.com"), Some("iam:role/shop"), vec![]),
        (sts("federated-user/ada"), Some("iam:federated-user/ada"), vec![]),
        (
            iam("arn:aws:sts::111122223333:assumed-role/shop/s"),
            Some("iam:111122223333:role/shop"),
            vec![],
        ),
        (json!({}), None, vec![]),
        (Value::Null, None, vec![]),
    ] {
        let function = function();
        let (status, _, body) = http(&function, from(authorizer.clone()));
        assert_eq!(status, 200, "{body}");
        let expected = expected.map(|text| Principal::from(text).with_scopes(scopes));
        assert_eq!(principal(&function), expected, "{authorizer}");
    }
    for authorizer in [
        jwt(json!({ "iss": ISSUER, "sub": null })),
        jwt(json!({ "iss": ISSUER, "sub": "", "client_id": "" })),
        jwt(json!({ "sub": "ada" })),
        jwt(json!({ "iss": "main", "sub": "ada" })),
        iam("ada"),
        json!({ "iam": { "userId": "AIDA" } }),
        // Only the authorizer knows which member names the caller.
        json!({ "lambda": { "sub": "ada", "userArn": "ada" } }),
        json!({ "lambda": null }),
    ] {
        let function = function();
        let (status, _, body) = http(&function, from(authorizer.clone()));
        let field = &body["errors"][0]["field"];
        assert_eq!((status, field), (400, &json!("Authorization")), "{authorizer}");
        assert!(function.on().0.lock().unwrap().is_empty(), "{authorizer}");
    }
}

#[test]
fn a_token_needs_a_scope_of_the_slice_and_without_one_nothing_is_decided() {
    let jwt = |scope: &str| {
        let claims = json!({ "iss": "https://id.example.com", "sub": "ada", "scope": scope });
        json!({ "jwt": { "claims": claims, "scopes": null } })
    };
    let iam = json!({ "iam": { "userArn": "arn:aws:iam::123456789012:user/ada" } });
    for (authorizer, status) in [
        (jwt("orders/all"), 200),
        (jwt("a orders/write b"), 200),
        (jwt(""), 403),
        (jwt("orders/read"), 403),
        (iam, 200),
        (Value::Null, 200),
    ] {
        let shop = shop();
        let known = events(&shop).len();
        let mut request = request(&order().to_string(), json!({}));
        request["requestContext"]["authorizer"] = authorizer.clone();
        assert_eq!(http(&shop, request.clone()).0, status, "{authorizer}");
        assert_eq!(events(&shop).len() - known, usize::from(status == 200), "{authorizer}");
        if status == 403 {
            request["body"] = "no JSON".into();
            let invoked = invoke(&shop, request);
            let line = invoked.line().log().json;
            assert_eq!(line["outcome"], "scope-missing");
            assert_eq!(line["principal"], "jwt:https%3A%2F%2Fid.example.com:ada");
            let (status, _, body) = super::parts(&invoked);
            assert_eq!((status, &body["code"]), (403, &json!("ScopeMissing")));
            let detail = "the token has none of these scopes: orders/write, orders/all";
            assert_eq!(body["detail"], detail);
        }
    }
    let direct = json!({ "command": order(), "principal": "jwt:main:ada" });
    assert_eq!(invoke(&shop(), direct).answer.unwrap()["accepted"], true);
}

#[test]
fn a_slice_without_callers_takes_direct_commands_and_no_request() {
    let discount = super::function::<Discount>(vec![]);
    let command = json!({ "productId": "p1" });
    for body in [&*command.to_string(), "no JSON"] {
        let invoked = invoke(&discount, request(body, json!({ "idempotency-key": "no key" })));
        let (status, _, problem) = super::parts(&invoked);
        let kind = "urn:ringfence:problem:slice-not-found";
        assert_eq!((status, &problem["type"]), (404, &json!(kind)));
        assert_eq!(invoked.line().outcome, "slice-not-found");
    }
    assert_eq!(events(&discount).len(), 0);
    assert_eq!(invoke(&discount, command).answer.unwrap()["accepted"], true);
    assert_eq!(events(&discount).len(), 1);
}

#[test]
fn no_caller_names_a_principal_over_http_or_what_gives_a_command() {
    let body = json!({ "command": demand(), "principal": "jwt:main:ada" }).to_string();
    let refused = http(&function(), request(&body, json!({})));
    assert_eq!(refused.0, 400, "{}", refused.2);
    for field in ["principal", "by"] {
        let mut command = demand();
        command[field] = "eve".into();
        let refused = http(&function(), request(&command.to_string(), json!({})));
        assert_eq!((refused.0, &refused.2["errors"][0]["field"]), (400, &json!(field)));
    }
    let refused = invoke(&function(), json!({ "command": demand(), "by": "place-order" }));
    assert_eq!(refused.answer.unwrap()["errors"][0]["field"], "by");
}

#[test]
fn a_direct_caller_names_itself_and_nobody_else() {
    let direct = |principal: &str| json!({ "command": demand(), "principal": principal });
    for (name, expected) in
        [("service-1", "direct:service-1"), ("jwt:main:ada", "direct:jwt:main:ada")]
    {
        let function = function();
        let invoked = invoke(&function, direct(name));
        assert_eq!(invoked.answer.unwrap()["accepted"], true);
        let line = invoked.lines[0].log().json;
        assert_eq!((&line["principal"], line.get("by")), (&json!(expected), None));
        assert_eq!(principal(&function), Some(Principal::from(expected)));
    }
    let refused = invoke(&function(), direct("ada\nadmin")).answer.unwrap();
    assert_eq!(refused["errors"][0]["field"], "principal", "{refused}");
    let mut malformed = direct("service-1");
    malformed["command"] = json!({});
    assert_eq!(invoke(&function(), malformed).line().log().json["principal"], "direct:service-1");
}

#[test]
fn a_reaction_carries_the_principal_of_its_cause() {
    let function = function();
    let mut placed = topic_event("OrderPlaced", &["p1"]);
    placed["detail"]["meta"] = json!({
        "correlationId": "walk-1",
        "causationId": "its own cause",
        "principal": "jwt:main:ada",
        "by": "place-order",
        "effectiveAt": "2026-11-20T12:00:00Z",
    });
    let line = invoke(&function, placed).line().log().json;
    let given = (&line["principal"], &line["by"]);
    assert_eq!(given, (&json!("jwt:main:ada"), &json!("record-demand")));
    let Envelope { context, metadata, idempotency_key, cause_ms, .. } = only(&function);
    assert_eq!(context.principal, Some(Principal::from("jwt:main:ada")));
    assert_eq!(idempotency_key.as_deref(), Some(&*context.command_id));
    assert_eq!(cause_ms, Some(NOW_MS + 2), "when the cause was recorded");
    let expected = json!({
        "commandId": context.command_id,
        "correlationId": "walk-1",
        "causationId": "orderId:order-1/1",
        "principal": "jwt:main:ada",
        "by": "record-demand",
        "traceparent": metadata.text("traceparent"),
    });
    assert_eq!(serde_json::to_value(metadata).unwrap(), expected);
}

#[test]
fn a_reaction_carries_what_an_older_version_has_recorded_as_the_principal() {
    for text in ["ada", "arn:aws:sts::123456789012:assumed-role/shop/s"] {
        let function = function();
        let mut placed = topic_event("OrderPlaced", &["p1"]);
        placed["detail"]["meta"] = json!({ "principal": text });
        invoke(&function, placed).answer.unwrap();
        let Envelope { context, metadata, .. } = only(&function);
        assert_eq!(metadata.text("principal"), Some(text));
        assert_eq!(context.principal.unwrap().kind, PrincipalKind::Other);
    }
}

#[test]
fn ids_that_a_caller_leaves_out_are_the_commands_id() {
    let function = function();
    invoke(&function, demand()).answer.unwrap();
    let Envelope { context, metadata, idempotency_key, cause_ms, .. } = only(&function);
    let id = &*context.command_id;
    let span = Traceparent::of_command(id, "record-demand", None).to_string();
    let expected = json!({
        "commandId": id, "correlationId": id, "causationId": id, "traceparent": span,
    });
    assert_eq!(serde_json::to_value(metadata).unwrap(), expected);
    assert_eq!((idempotency_key, cause_ms, context.now_ms), (None, None, NOW_MS));
}

#[test]
fn an_event_of_another_context_with_the_same_type_name_leads_to_nothing() {
    let function = function();
    let mut placed = topic_event("OrderPlaced", &["p1"]);
    placed["source"] = "wishes".into();
    let refused = invoke(&function, placed).answer.unwrap_err();
    assert_eq!(refused.error_type, "malformed");
    let said = r#"record-demand does not react to OrderPlaced of "wishes""#;
    assert!(refused.error_message.contains(said), "{}", refused.error_message);
    assert!(function.on().0.lock().unwrap().is_empty());
}
