use std::sync::Mutex;

use super::*;
use crate::{
    destinations::Destinations,
    invoke::InvokeError,
    template::{Model, Table},
};

/// Counts the invocations; no rule should cause any here.
#[derive(Default)]
struct Fake(Mutex<u32>);

impl Invoke for Fake {
    async fn invoke(&self, _function: &str, _payload: &Value) -> Result<Value, InvokeError> {
        *self.0.lock().expect("a lock") += 1;
        Ok(Value::Null)
    }
}

async fn start() -> String {
    let model = Model {
        table: Table { name: "events".to_owned(), properties: Value::Null },
        functions: Vec::new(),
        routes: Vec::new(),
        mappings: Vec::new(),
        buses: vec!["topic".to_owned()],
        rules: Vec::new(),
        queues: Vec::new(),
    };
    let queues = Queues::new(["dead".to_owned()]);
    let notices = Notices::default();
    let destinations = Destinations { queues: queues.clone(), buckets: "nowhere".into() };
    let bus = Bus::new(&model, Arc::<Fake>::default(), destinations, notices.clone());
    let routes = vec![Route {
        method: "POST".to_owned(),
        path: "/ordering/place-order".to_owned(),
        function: "place-order".to_owned(),
    }];
    let router = router(Services { bus, queues, notices, routes, api: "http://api".to_owned() });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

async fn call(url: &str, target: &str, body: Value) -> (u16, Value) {
    let request = reqwest::Client::new().post(url).header("x-amz-target", target);
    let answer = request.body(body.to_string()).send().await.expect("an answer");
    (answer.status().as_u16(), answer.json().await.expect("JSON"))
}

async fn get(url: String) -> Value {
    reqwest::get(url).await.expect("an answer").json().await.expect("JSON")
}

fn entry(bus: &str, detail: &str) -> Value {
    json!({ "Source": "ordering", "DetailType": "E", "Detail": detail, "EventBusName": bus })
}

#[tokio::test]
async fn entries_succeed_and_fail_one_by_one() {
    let url = start().await;
    let entries = json!([entry("topic", "{}"), entry("topic", "{"), entry("other", "{}")]);
    let (status, answer) = call(&url, "AWSEvents.PutEvents", json!({ "Entries": entries })).await;
    assert_eq!((status, &answer["FailedEntryCount"]), (200, &json!(2)));
    assert!(answer["Entries"][0]["EventId"].is_string());
    assert_eq!(answer["Entries"][1]["ErrorCode"], "MalformedDetail");
    assert_eq!(answer["Entries"][2]["ErrorCode"], "InvalidArgument");
}

async fn check_refused(target: &str, body: Value, code: &str) {
    let (status, answer) = call(&start().await, target, body).await;
    assert_eq!((status, answer["__type"].as_str()), (400, Some(code)), "{answer}");
}

#[tokio::test]
async fn limits_of_a_call() {
    let put = "AWSEvents.PutEvents";
    let eleven = vec![entry("topic", "{}"); 11];
    check_refused(put, json!({ "Entries": eleven }), "ValidationException").await;
    check_refused(put, json!({ "Entries": [] }), "ValidationException").await;
    check_refused(put, json!({}), "SerializationException").await;
    let long = json!({ "a": "x".repeat(ENTRIES_BYTES_MAX) }).to_string();
    check_refused(put, json!({ "Entries": [entry("topic", &long)] }), "ValidationException").await;
    check_refused("AWSEvents.PutRule", json!({}), "UnknownOperationException").await;
    let send = "AmazonSQS.SendMessage";
    let message = |queue: &str, body: &str| json!({ "QueueUrl": queue, "MessageBody": body });
    check_refused(send, message("http://x/0/other", "a"), "QueueDoesNotExist").await;
    check_refused(send, message("http://x/0/dead", ""), "InvalidParameterValue").await;
}

#[tokio::test]
async fn messages_stay_readable() {
    let url = start().await;
    let message = json!({ "QueueUrl": format!("{url}/000000000000/dead"), "MessageBody": "a" });
    let (status, answer) = call(&url, "AmazonSQS.SendMessage", message).await;
    assert_eq!(status, 200);
    let expected = json!({ "dead": [{ "MessageId": answer["MessageId"], "Body": "a" }] });
    assert_eq!(get(format!("{url}/queues")).await, expected);
}

#[tokio::test]
async fn page_shows_routes_and_events_before_and_after_it_opened() {
    let url = start().await;
    assert_eq!(get(format!("{url}/routes")).await, json!(["POST http://api/ordering/place-order"]));
    let page = reqwest::get(&url).await.expect("an answer").text().await.expect("text");
    assert!(page.contains("EventTopic"));

    let put = async |detail: &str| {
        let entries = json!({ "Entries": [entry("topic", detail)] });
        assert_eq!(call(&url, "AWSEvents.PutEvents", entries).await.0, 200);
    };
    put("{\"id\":\"before\"}").await;
    let mut topic = reqwest::get(format!("{url}/topic")).await.expect("an answer");
    put("{\"id\":\"after\"}").await;
    let mut text = String::new();
    while !text.contains("after") {
        let chunk = topic.chunk().await.expect("a chunk").expect("more");
        text.push_str(&String::from_utf8_lossy(&chunk));
    }
    assert!(text.starts_with("data: {") && text.contains("\"id\":\"before\""), "{text}");
}
