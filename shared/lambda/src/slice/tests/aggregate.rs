//! Slices on the aggregate log, invoked like Lambda invokes them, on a DynamoDB in this process. The tests on the DCB
//! log check payloads and answers for all logs.

use std::sync::Arc;

use futures::TryStreamExt;
use lambda_runtime::Context;
use ringfence_aggregate_log::{
    AggregateError, AggregateEvent, AggregateKey, AggregateLog, AggregateTable, Range,
};
use ringfence_aws::wire::{Fault, Wire};
use ringfence_aws::{Clock, CodecError};
use ringfence_core::{
    Cause, Command, CommandContext, Context as _, Current, FilingError, HandleError, LimitExceeded,
    LimitKind, LogError, Never, OnEvents, Slice, TopicEvent,
};
use ringfence_local::engine::Engine;
use serde_json::{Value, json};

use super::customers::{
    ChangeEmail, CustomerId, CustomerRenamed, Customers, Points, RegisterCustomer, RenameCustomer,
    TransferPoints,
};
use super::{NOW_MS, parts, topic_event};
use crate::slice::function::{Function, Invoked};
use crate::slice::unsettled::problem;

/// A request is sent this often before it is given up.
const SENDS: usize = ringfence_aws::ATTEMPTS_MAX as usize;

struct Shop {
    wire: Wire,
    table: AggregateTable,
}

fn shop() -> Shop {
    let key = |name, kind| json!({ "AttributeName": name, "KeyType": kind });
    let attribute = |name, kind| json!({ "AttributeName": name, "AttributeType": kind });
    let properties = json!({
        "KeySchema": [key("aggregateId", "HASH"), key("version", "RANGE")],
        "AttributeDefinitions": [attribute("aggregateId", "S"), attribute("version", "N")],
    });
    let engine = Engine::memory().unwrap();
    engine.create_table(&properties, "aggregates").unwrap();
    let wire = Wire::default();
    let client =
        wire.client_of(Arc::new(move |operation: &str, body: &[u8]| engine.call(operation, body)));
    Shop { wire, table: AggregateTable::new(client, "aggregates", Clock::fixed(NOW_MS)) }
}

impl Shop {
    /// A function that keeps this many decisions.
    fn function<C: Slice>(&self, decisions: usize) -> Function<C, OnEvents<C, AggregateLog>> {
        let (catalog, clock) = (Customers::catalog().unwrap(), Clock::fixed(NOW_MS));
        let log = AggregateLog::new(self.table.clone(), catalog.clone(), clock.clone());
        let on = OnEvents::new(log, catalog, decisions);
        Function::new(on, clock, self.table.meter().clone())
    }

    async fn invoke<C: Slice>(&self, payload: Value) -> Invoked {
        self.function::<C>(0).invoke(&payload.to_string(), &Context::default()).await
    }

    /// Status and body of an HTTP answer to a command under a key.
    async fn post<C: Slice>(&self, command: Value, key: &str) -> (u64, Value) {
        let invoked = self.invoke::<C>(request(&command, key)).await;
        let (status, _, body) = parts(&invoked);
        (status, body)
    }

    async fn events(&self, customer: &str) -> Vec<AggregateEvent> {
        let key = AggregateKey::of_partition(&format!("customers#{customer}")).unwrap();
        self.table.get_events(&key, Range::default()).try_collect().await.unwrap()
    }

    async fn register(&self, customer: &str) {
        let answer = self.invoke::<RegisterCustomer>(ada(customer)).await.answer.unwrap();
        assert_eq!(answer["accepted"], true, "{answer}");
    }
}

fn ada(customer: &str) -> Value {
    json!({ "customerId": customer, "name": "Ada" })
}

fn rename(name: &str) -> Value {
    json!({ "customerId": "ada", "name": name })
}

fn request(command: &Value, key: &str) -> Value {
    super::request(&command.to_string(), json!({ "idempotency-key": key }))
}

#[tokio::test]
async fn a_customer_is_registered_over_http_and_renamed_by_a_direct_invoke() {
    let shop = shop();
    let headers = json!({ "idempotency-key": "k", "x-correlation-id": "walk-1" });
    let request = super::request(&ada("ada").to_string(), headers);
    let invoked = shop.invoke::<RegisterCustomer>(request).await;
    let event = json!({
        "type": "CustomerRegistered", "slot": 1, "partition": "customers#ada",
    });
    let (status, _, body) = parts(&invoked);
    assert_eq!((status, body), (200, json!({ "accepted": true, "events": [event] })));
    let line = invoked.line().log().json;
    assert_eq!(
        (&line["slice"], &line["outcome"], &line["attempts"], &line["requests"]),
        (&json!("register-customer"), &json!("accepted"), &json!(1), &json!(2))
    );

    let invoked = shop.invoke::<RenameCustomer>(rename("Eve")).await;
    assert_eq!(invoked.answer.unwrap()["events"][0]["slot"], 2);
    assert_eq!(invoked.lines[0].log().json["requests"], 2, "its own");

    let events = shop.events("ada").await;
    let metadata = events[0].metadata.as_ref().unwrap();
    let text = |key: &str| metadata[key].as_str();
    assert_eq!(text("commandId"), Some("k"));
    assert_eq!(text("correlationId"), Some("walk-1"));
    assert_eq!(text("causationId"), text("commandId"));
    assert_eq!(text("slice"), Some("register-customer"));
    assert_eq!(text("commandSha256").map(str::len), Some(64));
    // Without a key, events are not a record. They still name the command and the slice.
    let metadata = events[1].metadata.as_ref().unwrap();
    assert_eq!(metadata["commandId"].as_str(), invoked.lines[0].command_id.as_deref());
    let id = &metadata["commandId"];
    let span = &metadata["traceparent"];
    let without =
        json!({ "commandId": id, "correlationId": id, "causationId": id, "traceparent": span });
    let mut with = without.clone();
    with["slice"] = "rename-customer".into();
    assert_eq!(metadata, &with);
    // In the JSON of a map it takes one byte more than name and value.
    let [with, without] = [&with, &without].map(ringfence_core::storable::bytes);
    assert_eq!(with - without, "slice".len() + "rename-customer".len() + 1);
}

#[test]
fn a_refusal_of_the_log_names_its_limit() {
    let check = |error: LogError, status: u16, said: &str| {
        let document = problem(&HandleError::from(error), "r").document();
        assert_eq!(document["status"], status, "{document}");
        assert!(document.to_string().contains(said), "{document}");
    };
    let key = "customerId".to_owned();
    check(FilingError::BoundaryTooLong { key, bytes: 2_049 }.into(), 400, "2049 bytes, limit");
    let check = |error: AggregateError, status, said| check(error.into(), status, said);
    let (kind, subject) = (LimitKind::Event, "x".repeat(300_000));
    let (unit, advice) = ("bytes", "split it");
    let limit = LimitExceeded { kind, subject, found: 8, limit: 7, unit, advice };
    check(limit.into(), 413, "x…: 8 bytes, limit 7; split it");
    let path = "payload.points".to_owned();
    let source = CodecError { path, problem: ringfence_aws::ValueProblem::Digits(40) };
    let key = AggregateKey::new("customers", "ada").unwrap();
    check(AggregateError::Unstorable { key, source }, 400, "payload.points: the number has 40");
    check(AggregateError::Invalid("its author's mistake".to_owned()), 500, "request r");
}

#[tokio::test]
async fn rejections_are_problem_documents() {
    let shop = shop();
    let (status, body) = shop.post::<RenameCustomer>(rename("Eve"), "k").await;
    let expected = json!({
        "type": "urn:ringfence:problem:rejected",
        "title": "The command is rejected",
        "status": 422,
        "detail": "customer ada does not exist",
        "code": "CustomerNotFound",
        "customerId": "ada",
    });
    assert_eq!((status, body), (422, expected));
    let transfer = json!({ "from": "ada", "to": "bob", "points": 1 });
    let (status, body) = shop.post::<TransferPoints>(transfer, "k").await;
    assert_eq!((status, &body["code"]), (422, &json!("CustomerNotFound")));

    let (status, body) = shop.post::<RenameCustomer>(json!({ "customerId": "ada" }), "k").await;
    assert_eq!((status, &body["detail"]), (400, &json!("name: is missing")));
    // A state machine gets a problem as an error, which it catches by its name.
    let direct = |command| json!({ "command": command, "failOnProblem": true });
    let mut unknown = direct(rename("Eve"));
    unknown["who"] = json!("eve");
    for (payload, name) in [
        (direct(rename("Eve")), "CustomerNotFound"),
        (direct(json!({ "customerId": "ada" })), "malformed"),
        (unknown, "malformed"),
    ] {
        let error = shop.invoke::<RenameCustomer>(payload).await.answer.unwrap_err();
        let document: Value = serde_json::from_str(&error.error_message).unwrap();
        assert_eq!((&*error.error_type, document["status"].is_u64()), (name, true));
    }
    let wrong = json!({ "command": rename("Eve"), "failOnProblem": "yes" });
    let answer = shop.invoke::<RenameCustomer>(wrong).await.answer.unwrap();
    assert_eq!(answer["detail"], "failOnProblem: must be true or false");
    let email = json!({ "customerId": "ada", "email": "nowhere" });
    let (status, body) = shop.post::<ChangeEmail>(email, "k").await;
    assert_eq!(status, 400);
    assert_eq!(body["detail"], "email: an email address has an @");
    shop.register("ada").await;
    let (status, body) = shop.post::<RenameCustomer>(rename(&"x".repeat(201)), "k").await;
    let detail = "name: must have at most 200 bytes, has 201";
    assert_eq!((status, &body["detail"]), (400, &json!(detail)));
    assert_eq!(shop.events("ada").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_unknown_until_the_command_is_repeated() {
    // The first send takes effect or not. All others are lost on the way.
    for (fault, takes_effect) in [(Fault::LostAfter, true), (Fault::LostBefore, false)] {
        let shop = shop();
        shop.register("ada").await;
        shop.wire.inject("PutItem", 0, fault);
        (1..SENDS).for_each(|_| shop.wire.inject("PutItem", 0, Fault::LostBefore));
        let (status, body) = shop.post::<RenameCustomer>(rename("Eve"), "k").await;
        assert_eq!((status, &body["status"]), (504, &json!(504)), "{body}");
        assert!(shop.wire.is_spent());
        let (status, body) = shop.post::<RenameCustomer>(rename("Eve"), "k").await;
        assert_eq!((status, body.get("repeated").is_some()), (200, takes_effect));
        assert_eq!(shop.events("ada").await.len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_other_transactions_keep_blocking_is_answered_with_contention() {
    let shop = shop();
    shop.register("ada").await;
    let busy = || Fault::error("TransactionConflictException");
    (0..SENDS).for_each(|_| shop.wire.inject("PutItem", 0, busy()));
    let invoked = shop.invoke::<RenameCustomer>(request(&rename("Eve"), "k")).await;
    let (status, headers, body) = parts(&invoked);
    assert_eq!((status, &body["type"]), (409, &json!("urn:ringfence:problem:contention")));
    assert_eq!(headers["retry-after"], "1");
    assert_eq!((invoked.lines[0].outcome, invoked.lines[0].attempts), ("contention", 8));
    let throttled = || Fault::error("ThrottlingException");
    (0..SENDS).for_each(|_| shop.wire.inject("Query", 0, throttled()));
    let (status, body) = shop.post::<RenameCustomer>(rename("Eve"), "k").await;
    assert_eq!((status, &body["type"]), (503, &json!("urn:ringfence:problem:throttled")));
    assert_eq!(shop.events("ada").await.len(), 1);
}

/// Greets the customer of an order by name.
#[derive(Command)]
struct Greet {
    #[tag(partition)]
    customer_id: CustomerId,
    name: String,
}

impl Slice for Greet {
    const NAME: &'static str = "greet";
    const REACTS_TO: &'static [Cause] = &[Cause::named("ordering", "OrderPlaced")];
    type Context = Customers;
    type State = Points;
    type Writes = CustomerRenamed;
    type Rejection = Never;

    fn decide(&self, _: &Points, _: &CommandContext) -> Result<Vec<CustomerRenamed>, Never> {
        let (customer_id, name) = (self.customer_id.clone(), self.name.clone());
        Ok(vec![CustomerRenamed { customer_id, name }])
    }

    fn react(event: &Current<'_, TopicEvent>) -> Result<Vec<Self>, serde_json::Error> {
        let customer_id = serde_json::from_value(event.data["customerId"].clone())?;
        let name = event.data["name"].as_str().unwrap_or("Dear").to_owned();
        Ok(vec![Self { customer_id, name }])
    }
}

#[tokio::test]
async fn an_event_of_the_topic_leads_to_its_command_once() {
    let shop = shop();
    let placed = topic_event("OrderPlaced", &["p1"]);
    let customer = placed["detail"]["data"]["customerId"].as_str().unwrap().to_owned();
    for delivery in 1..=2 {
        let answer = shop.invoke::<Greet>(placed.clone()).await.answer.unwrap();
        let repeated = answer["answers"][0].get("repeated").is_some();
        assert_eq!(repeated, delivery == 2, "{answer}");
    }
    let events = shop.events(&customer).await;
    assert_eq!(events.len(), 1);
    let metadata = events[0].metadata.as_ref().unwrap();
    assert_eq!(metadata["causationId"], placed["detail"]["id"]);
}

#[tokio::test]
async fn a_mended_reaction_takes_effect_only_where_none_has() {
    let shop = shop();
    let mut placed = topic_event("OrderPlaced", &["p1"]);
    shop.invoke::<Greet>(placed.clone()).await.answer.unwrap();
    placed["detail"]["data"]["name"] = "Friend".into();
    let answer = shop.invoke::<Greet>(placed.clone()).await.answer.unwrap();
    assert_eq!(answer["answers"][0]["type"], "urn:ringfence:problem:key-reused");
    let customer = placed["detail"]["data"]["customerId"].as_str().unwrap();
    assert_eq!(shop.events(customer).await.len(), 1);
}
