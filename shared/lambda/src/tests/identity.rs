//! The sender and the cause of a command: what a decision gets of them, and what its events carry.

use std::sync::Mutex;

use ringfence::{Envelope, HandleError, Handled, NewEvent, OnLog, Outcome};
use ringfence_dynamo::{Clock, Meter};
use serde_json::{Value, json};

use super::shop::RecordDemand;
use super::{NOW_MS, http, invoke, request, topic_event};
use crate::function::Function;

/// A slice that accepts everything, and the envelopes that it was given.
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
    Function::new(Given::default(), Clock::fixed(NOW_MS), Meter::default())
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

/// The principal that the decision is given, which is also the one that its events carry.
fn principal(function: &Function<RecordDemand, Given>) -> Option<String> {
    let Envelope { context, metadata, .. } = only(function);
    assert_eq!(metadata.text("principal"), context.principal.as_deref());
    context.principal
}

#[test]
fn over_http_the_authorizer_names_the_principal_and_nobody_else() {
    let arn = format!("arn:aws:iam::123456789012:user/{}", "a".repeat(500));
    let iam = json!({ "userArn": arn, "userId": "AIDA", "accountId": "123456789012" });
    let jwt = json!({ "claims": { "sub": "subject-1", "username": "ada" }, "scopes": null });
    for (authorizer, expected) in [
        (json!({ "jwt": jwt }), Some("subject-1")),
        (json!({ "iam": iam }), Some(&*arn)),
        (json!({ "jwt": { "claims": { "username": "ada" } } }), None),
        (Value::Null, None),
    ] {
        let function = function();
        let mut request = request(&demand().to_string(), json!({ "principal": "eve" }));
        request["requestContext"]["authorizer"] = authorizer;
        let (status, _, body) = http(&function, request);
        assert_eq!(status, 200, "{body}");
        assert_eq!(principal(&function).as_deref(), expected);
    }
}

#[test]
fn a_direct_caller_names_the_principal() {
    let function = function();
    let direct = |principal: &str| json!({ "command": demand(), "principal": principal });
    assert_eq!(invoke(&function, direct("service-1")).answer.unwrap()["accepted"], true);
    assert_eq!(principal(&function).as_deref(), Some("service-1"));
    let refused = invoke(&function, direct("ada\nadmin")).answer.unwrap();
    assert_eq!(refused["errors"][0]["field"], "principal", "{refused}");
}

#[test]
fn a_reaction_carries_the_principal_and_the_trace_of_its_cause() {
    let function = function();
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let mut placed = topic_event("OrderPlaced", &["p1"]);
    placed["detail"]["meta"] = json!({
        "correlationId": "walk-1",
        "causationId": "its own cause",
        "principal": "ada",
        "traceparent": trace,
        "effectiveAt": "2026-11-20T12:00:00Z",
    });
    invoke(&function, placed).answer.unwrap();
    let Envelope { context, metadata, idempotency_key, cause_ms, .. } = only(&function);
    assert_eq!(context.principal.as_deref(), Some("ada"));
    assert_eq!(idempotency_key.as_deref(), Some(&*context.command_id));
    assert_eq!(cause_ms, Some(NOW_MS + 2), "when the cause was recorded");
    let expected = json!({
        "commandId": context.command_id,
        "correlationId": "walk-1",
        "causationId": "orderId:order-1/1",
        "principal": "ada",
        "traceparent": trace,
    });
    assert_eq!(serde_json::to_value(metadata).unwrap(), expected);
}

#[test]
fn what_a_caller_leaves_out_is_the_id_of_the_command() {
    let function = function();
    invoke(&function, demand()).answer.unwrap();
    let Envelope { context, metadata, idempotency_key, cause_ms, .. } = only(&function);
    let id = &*context.command_id;
    let expected = json!({ "commandId": id, "correlationId": id, "causationId": id });
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
