//! A function on the log in memory, invoked like Lambda invokes it.

mod aggregate;
mod bad_input;
mod carts;
mod customers;
mod deadline;
mod documents;
mod identity;
mod personal;
mod reactions;
mod shop;
mod spans;

use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use futures::executor::block_on;
use lambda_runtime::Context;
use ringfence_aws::{Clock, Meter};
use ringfence_core::{
    Append, Context as _, Envelope, EventLog, MemoryLog, NewEvent, OnEvents, OnLog, Slice, kit::id,
};
use serde_json::{Value, json};

use crate::slice::function::{Function, Invoked};
use crate::slice::telemetry::Line;
use shop::{PlaceOrder, ProductAdded, RecordDemand, euros};

impl Invoked {
    /// The only line.
    fn line(&self) -> &Line {
        let [line] = &self.lines[..] else { panic!("{:?}", self.lines) };
        line
    }
}

const NOW_MS: u64 = 1_719_100_800_000;

fn function<S: Slice>(given: Vec<NewEvent>) -> Function<S, OnEvents<S, MemoryLog>> {
    let catalog = S::Context::catalog().unwrap();
    let log = MemoryLog::new(catalog.clone());
    let envelope = Envelope::default();
    for event in given {
        let append = Append { events: vec![event], seen: None, record: None, envelope: &envelope };
        block_on(log.append(append)).unwrap();
    }
    Function::new(OnEvents::new(log, catalog, 0), Clock::fixed(NOW_MS), Meter::default())
}

fn shop() -> Function<PlaceOrder, OnEvents<PlaceOrder, MemoryLog>> {
    let added = |product| ProductAdded { product_id: id(product), price: euros(100) };
    function(ringfence_core::events![added("p1"), added("p2")])
}

fn order() -> Value {
    json!({ "orderId": "o1", "customerId": "c1", "productIds": ["p1", "p2"] })
}

/// A request in the form of the HTTP API.
pub(crate) fn request(body: &str, headers: Value) -> Value {
    json!({
        "version": "2.0",
        "routeKey": "POST /shop/slice",
        "rawPath": "/shop/slice",
        "rawQueryString": "",
        "headers": headers,
        "requestContext": {
            "http": { "method": "POST", "path": "/shop/slice", "sourceIp": "192.0.2.1" },
            "requestId": "request-1",
            "stage": "$default",
        },
        "body": body,
        "isBase64Encoded": false,
    })
}

fn invoke<S: Slice>(function: &Function<S, impl OnLog<S>>, payload: Value) -> Invoked {
    block_on(function.invoke(&payload.to_string(), &Context::default()))
}

/// The events in the log.
fn events<S: Slice>(
    function: &Function<S, OnEvents<S, MemoryLog>>,
) -> Vec<ringfence_core::SequencedEvent> {
    function.on().log().events()
}

/// Status, headers and body of an HTTP answer.
fn http<S: Slice>(function: &Function<S, impl OnLog<S>>, payload: Value) -> (u64, Value, Value) {
    parts(&invoke(function, payload))
}

fn parts(invoked: &Invoked) -> (u64, Value, Value) {
    let answer = invoked.answer.as_ref().unwrap();
    let body = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    (answer["statusCode"].as_u64().unwrap(), answer["headers"].clone(), body)
}

#[test]
fn a_request_with_all_that_the_types_of_api_gateway_have_is_read_like_one_without() {
    let headers = json!({ "Idempotency-Key": "key", "X-Correlation-Id": "flow" });
    let plain = request(&order().to_string(), headers.clone());
    let mut encoded = request(&aws_smithy_types::base64::encode(order().to_string()), headers);
    encoded["isBase64Encoded"] = true.into();
    for sent in [plain, encoded] {
        let typed: ApiGatewayV2httpRequest = serde_json::from_value(sent.clone()).unwrap();
        let whole = serde_json::to_value(typed).unwrap();
        assert!(whole.as_object().unwrap().len() > sent.as_object().unwrap().len());
        let (one, other) = (shop(), shop());
        assert_eq!(http(&one, sent), http(&other, whole));
        assert_eq!(events(&one), events(&other));
    }
}

#[test]
fn an_order_is_placed_once_over_http() {
    let shop = shop();
    // API Gateway sends a body like this if its type is not text.
    let mut encoded = request(&aws_smithy_types::base64::encode(order().to_string()), json!({}));
    encoded["isBase64Encoded"] = true.into();
    let (status, headers, body) = http(&shop, encoded);
    assert_eq!((status, &headers["content-type"]), (200, &json!("application/json")));
    assert_eq!(body["accepted"], true);
    assert_eq!(body["events"][0]["type"], "OrderPlaced");
    assert_eq!(
        body["events"][0],
        json!({
            "type": "OrderPlaced", "partition": "orderId:o1", "slot": 1,
        })
    );

    let (status, headers, body) = http(&shop, request(&order().to_string(), json!({})));
    assert_eq!((status, &headers["content-type"]), (422, &json!("application/problem+json")));
    assert_eq!(
        body,
        json!({
            "type": "urn:ringfence:problem:rejected",
            "title": "The command is rejected",
            "status": 422,
            "detail": "order o1 is already placed",
            "code": "OrderAlreadyPlaced",
            "orderId": "o1",
        })
    );
}

#[test]
fn an_idempotency_key_repeats_the_answer() {
    let shop = shop();
    let again = || http(&shop, request(&order().to_string(), json!({ "idempotency-key": "k" })));
    let (first, second) = (again(), again());
    assert_eq!((first.0, second.0), (200, 200));
    assert_eq!(first.2["events"], second.2["events"]);
    assert_eq!((first.2.get("repeated"), &second.2["repeated"]), (None, &json!(true)));
    // A rejection leaves no record.
    let rejected = |_| {
        let mut order = order();
        order["orderId"] = "o9".into();
        order["productIds"] = json!(["p9"]);
        http(&shop, request(&order.to_string(), json!({ "idempotency-key": "k9" }))).2
    };
    let [first, second] = [1, 2].map(rejected);
    assert_eq!(first["code"], "ProductsNotAvailable");
    assert_eq!(first, second);
    let mut other = order();
    other["productIds"] = json!(["p1"]);
    let (status, _, body) =
        http(&shop, request(&other.to_string(), json!({ "idempotency-key": "k" })));
    assert_eq!((status, &body["code"]), (422, &json!("IdempotencyKeyReused")));
}

#[test]
fn bad_input_is_named_by_field_and_limit() {
    let shop = shop();
    let check = |body: &str, status: u64, detail: &str| {
        let (found, _, problem) = http(&shop, request(body, json!({})));
        let text = problem["detail"].as_str().unwrap();
        assert_eq!((found, text.contains(detail)), (status, true), "{text}");
    };
    check("", 400, "body: is empty");
    check("{", 400, "body: is not JSON: EOF while parsing an object at line 1 column 1");
    check(r#"["o1", "c1", ["p1"]]"#, 400, "body: must be an object");
    check(&format!("{} x", order()), 400, "body: is not JSON: trailing characters");
    check("{}", 400, "orderId: is missing");
    let with = |field: &str, value: Value| {
        let mut order = order();
        order[field] = value;
        order.to_string()
    };
    check(&with("price", json!(1)), 400, "price: is unknown; the fields are orderId, customerId");
    check(&with("productIds", json!("p1")), 400, "productIds: must be a list");
    check(&with("productIds", json!(["p1", 7])), 400, "productIds[1]: must be a string, is 7");
    for hostile in ["", "a#b", "a:b", "a/b", "a\0b", "🦀", &"x".repeat(3 * 1024)] {
        check(&with("orderId", json!(hostile)), 400, "orderId: an id has 1 to 64 characters");
    }
    check(&with("customerId", json!("x".repeat(400 * 1024))), 413, "limit 358400");
    assert_eq!(events(&shop).len(), 2, "only what was given");
}

#[test]
fn bad_surroundings_are_refused() {
    let shop = shop();
    let long = "k".repeat(129);
    for key in ["", "a key", "ключ", "a/b", &long] {
        let headers = json!({ "idempotency-key": key });
        let (status, _, body) = http(&shop, request(&order().to_string(), headers));
        assert_eq!(status, 400, "{key:?}");
        assert!(body["detail"].as_str().unwrap().starts_with("Idempotency-Key"), "{body}");
    }
}

#[test]
fn a_direct_invoke_takes_a_command_with_or_without_surroundings() {
    let shop = shop();
    let bare = invoke(&shop, order());
    assert_eq!(bare.answer.unwrap()["accepted"], true);
    let mut command = order();
    command["orderId"] = "o2".into();
    let enveloped = json!({ "command": command, "commandId": "c-9", "correlationId": "walk" });
    let invoked = invoke(&shop, enveloped);
    let line = invoked.line();
    assert_eq!((line.command_id.as_deref(), line.outcome), (Some("c-9"), "accepted"));
    assert_eq!(invoked.answer.unwrap()["accepted"], true);
    let metadata = &events(&shop).last().unwrap().metadata.clone();
    let text = |key| metadata.text(key);
    assert_eq!(
        (text("commandId"), text("correlationId"), text("causationId")),
        (Some("c-9"), Some("walk"), Some("c-9"))
    );
    let wrong = invoke(&shop, json!({ "command": order(), "comandId": "x" })).answer.unwrap();
    assert_eq!((&wrong["status"], wrong["accepted"].is_null()), (&json!(400), true));
}

#[test]
fn an_effective_time_is_kept_beside_the_events_and_must_be_a_time() {
    let shop = shop();
    let time = "2026-11-22T20:30:00+01:00";
    let headers = json!({ "effective-at": time });
    let (status, _, body) = http(&shop, request(&order().to_string(), headers));
    assert_eq!(status, 200, "{body}");
    assert_eq!(events(&shop).last().unwrap().metadata.text("effectiveAt"), Some(time));
    let mut command = order();
    command["orderId"] = "o2".into();
    let direct = json!({ "command": command, "effectiveAt": time });
    assert_eq!(invoke(&shop, direct).answer.unwrap()["accepted"], true);
    assert_eq!(events(&shop).last().unwrap().metadata.text("effectiveAt"), Some(time));
    let (visible, since_1970) = (
        "must be 1 to 128 visible ASCII characters",
        "must be a time of RFC 3339 from 1970 to 9999",
    );
    for (wrong, limit) in [
        ("yesterday", since_1970),
        ("2026-11-22", since_1970),
        ("1969-12-31T23:59:59Z", since_1970),
        ("", visible),
    ] {
        let headers = json!({ "effective-at": wrong });
        let (status, _, body) = http(&shop, request(&order().to_string(), headers));
        assert_eq!(status, 400, "{wrong}");
        let error = &body["errors"][0];
        assert_eq!(error["field"], "Effective-At (effectiveAt)", "{wrong}");
        assert!(error["message"].as_str().unwrap().starts_with(limit), "{error}");
    }
}

fn topic_event(event_type: &str, products: &[&str]) -> Value {
    json!({
        "version": "0",
        "id": "17793124-05d4-b198-2fde-7ededc63b103",
        "detail-type": event_type,
        "source": "ordering",
        "time": "2026-11-21T12:00:00Z",
        "resources": [],
        "detail": {
            "id": "orderId:order-1/1",
            "type": event_type,
            "partition": "orderId:order-1",
            "slot": 1,
            "recordedAt": "2024-06-23T00:00:00.002Z",
            "tags": [{ "key": "orderId", "value": "order-1" }],
            "data": { "orderId": "order-1", "customerId": "ada", "productIds": products },
            "meta": { "correlationId": "walk-1" },
        },
    })
}

#[test]
fn an_event_of_the_topic_leads_to_its_commands_once() {
    let demand = function::<RecordDemand>(vec![]);
    let placed = topic_event("OrderPlaced", &["p1", "p2"]);
    for delivery in 1..=2 {
        let Invoked { answer, lines } = invoke(&demand, placed.clone());
        let answers = answer.unwrap()["answers"].as_array().unwrap().len();
        let attempts: Vec<_> = lines.iter().map(|line| line.attempts).collect();
        assert_eq!((answers, attempts), (2, vec![1, 1]), "delivery {delivery}");
    }
    let events = events(&demand);
    assert_eq!(events.len(), 2, "a repeat is absorbed");
    let cause = placed["detail"]["id"].as_str().unwrap();
    assert_eq!(events[0].metadata.text("causationId"), Some(cause));
    assert_eq!(events[0].metadata.text("correlationId"), Some("walk-1"));
    let key = ringfence_core::reaction_key(cause, "orderId:order-1#productId:p1");
    assert_eq!(events[0].metadata.text("commandId"), Some(&*key));
    assert!(events[0].at > NOW_MS + 2, "an effect follows its cause");
}

#[test]
fn a_replayed_event_leads_to_nothing() {
    let demand = function::<RecordDemand>(vec![]);
    let mut placed = topic_event("OrderPlaced", &["p1", "p2"]);
    placed["detail"]["replay"] = "orders-again".into();
    let invoked = invoke(&demand, placed);
    assert_eq!(invoked.line().outcome, "replay-ignored");
    assert_eq!(invoked.answer.unwrap(), json!({ "answers": [] }));
    assert!(events(&demand).is_empty());
}

#[test]
fn an_event_that_gets_no_answer_fails_the_invocation() {
    let demand = function::<RecordDemand>(vec![]);
    let unknown = invoke(&demand, topic_event("CourseDefined", &[])).answer.unwrap_err();
    assert_eq!(unknown.error_type, "malformed");
    assert!(unknown.error_message.contains("record-demand does not react to CourseDefined"));
    let undecodable = invoke(&demand, topic_event("OrderPlaced", &["p#1"])).answer.unwrap_err();
    assert_eq!(undecodable.error_type, "malformed");
    assert!(events(&demand).is_empty());
}

#[test]
fn the_line_of_a_command_says_what_became_of_it() {
    let shop = shop();
    let line = invoke(&shop, request(&order().to_string(), json!({}))).line().log().json;
    assert_eq!(
        (&line["timestamp"], &line["level"], &line["slice"], &line["outcome"], &line["attempts"]),
        (
            &json!("2024-06-23T00:00:00.000Z"),
            &json!("INFO"),
            &json!("place-order"),
            &json!("accepted"),
            &json!(1)
        )
    );
    let warm = invoke(&shop, order());
    assert_eq!((&line["cold_start"], warm.line().cold_start), (&json!(true), false));
}
