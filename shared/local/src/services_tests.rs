use std::sync::Mutex;

use super::*;
use crate::{destinations::Destinations, invoke::InvokeError, notices::Notices, template::Model};

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
    start_with(Buckets::new("nowhere".into(), Vec::new()), queues()).await
}

fn queues() -> Queues {
    Queues::new(["dead".to_owned()])
}

async fn start_with(buckets: Buckets, queues: Queues) -> String {
    let model = Model { buses: vec!["topic".to_owned()], ..Model::default() };
    let destinations = Destinations { queues: queues.clone(), buckets: buckets.clone() };
    let bus = Bus::new(&model, Arc::<Fake>::default(), destinations, Notices::default());
    let outputs = [
        ("ApiUrl", "https://x.execute-api.us-east-1.amazonaws.com"),
        ("EventTableName", "ringfence-local-EventTable"),
    ];
    let outputs = outputs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let api = "http://api".to_owned();
    let router = router(Services { bus, queues, buckets, api, outputs });
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
    let queues = queues();
    let url = start_with(Buckets::new("nowhere".into(), Vec::new()), queues.clone()).await;
    let message = json!({ "QueueUrl": format!("{url}/000000000000/dead"), "MessageBody": "a" });
    let (status, answer) = call(&url, "AmazonSQS.SendMessage", message).await;
    assert_eq!(status, 200);
    let expected = json!({ "dead": [{ "MessageId": answer["MessageId"], "Body": "a" }] });
    assert_eq!(json!(queues.messages()), expected);
}

/// Real clients of this endpoint.
fn clients(url: &str) -> (aws_sdk_sqs::Client, aws_sdk_s3::Client) {
    let variables = [
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "local"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
        ("AWS_ENDPOINT_URL", url),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let config = ringfence_dynamo::sdk_config_of(variables.into()).expect("a configuration");
    (aws_sdk_sqs::Client::new(&config), aws_sdk_s3::Client::new(&config))
}

#[tokio::test]
async fn the_sdk_receives_and_deletes_messages() {
    let queues = queues();
    let url = start_with(Buckets::new("nowhere".into(), Vec::new()), queues.clone()).await;
    let (sqs, _) = clients(&url);
    let queue = format!("{url}/000000000000/dead");
    for body in ["{\"cause\":\"x\"}", "b"] {
        sqs.send_message().queue_url(&queue).message_body(body).send().await.expect("sent");
    }
    let receive = || sqs.receive_message().queue_url(&queue).max_number_of_messages(10);
    let received = receive().send().await.expect("an answer");
    let bodies: Vec<_> = received.messages().iter().filter_map(|m| m.body()).collect();
    assert_eq!(bodies, ["{\"cause\":\"x\"}", "b"]);
    assert!(receive().send().await.expect("an answer").messages().is_empty(), "they are hidden");

    let receipt = received.messages()[0].receipt_handle().expect("a receipt");
    sqs.delete_message().queue_url(&queue).receipt_handle(receipt).send().await.expect("deleted");
    assert_eq!(queues.messages()["dead"].len(), 1, "one is left");
    let unknown = sqs.receive_message().queue_url("http://x/0/other").send().await;
    let unknown = unknown.expect_err("no such queue").into_service_error();
    assert!(unknown.is_queue_does_not_exist(), "{unknown:?}");
}

#[tokio::test]
async fn the_sdk_lists_gets_and_deletes_objects() {
    let folder = tempfile::tempdir().expect("a folder");
    let buckets = Buckets::new(folder.path().to_owned(), vec!["lost".to_owned()]);
    let (_, s3) = clients(&start_with(buckets.clone(), queues()).await);
    let empty = s3.list_objects_v2().bucket("lost").send().await.expect("an empty bucket");
    assert!(empty.contents().is_empty());
    let keys = ["aws/lambda/a&b/<1>", "aws/lambda/f/2026/11/21/10.00.00-x y", "other"];
    for key in keys {
        buckets.put("lost", key, key.as_bytes()).expect("written");
    }
    let mut listed = Vec::new();
    let mut pages = s3.list_objects_v2().bucket("lost").max_keys(2).into_paginator().send();
    while let Some(page) = pages.next().await {
        let page = page.expect("a page");
        listed.extend(page.contents().iter().filter_map(|o| o.key().map(str::to_owned)));
    }
    assert_eq!(listed, keys);
    let some = s3.list_objects_v2().bucket("lost").prefix("aws/").send().await.expect("an answer");
    assert_eq!(some.contents().len(), 2);
    assert_eq!(some.contents()[0].size(), Some(18));

    for key in keys {
        let object = s3.get_object().bucket("lost").key(key).send().await.expect("an object");
        let body = object.body.collect().await.expect("a body").into_bytes();
        assert_eq!(body, key.as_bytes());
        s3.delete_object().bucket("lost").key(key).send().await.expect("deleted");
    }
    assert!(buckets.list("lost").expect("a bucket").is_empty());
    let gone = s3.get_object().bucket("lost").key("other").send().await;
    assert!(gone.expect_err("no object").into_service_error().is_no_such_key());
    let unknown = s3.list_objects_v2().bucket("found").send().await;
    assert!(unknown.expect_err("no bucket").into_service_error().is_no_such_bucket());
    let outside = s3.get_object().bucket("lost").key("../secret").send().await;
    assert!(outside.is_err(), "a key is not a path");
}

#[tokio::test]
async fn cloudformation_describes_the_outputs_of_the_one_stack() {
    let url = start().await;
    let describe = async |form: &str| {
        let form = form.to_owned();
        let answer = reqwest::Client::new().post(&url).body(form).send().await.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("a text"))
    };
    let form = "Action=DescribeStacks&Version=2010-05-15&StackName=";
    let (status, described) = describe(&format!("{form}ringfence-local")).await;
    assert_eq!(status, 200, "{described}");
    for (name, value) in
        [("ApiUrl", "http://api"), ("EventTableName", "ringfence-local-EventTable")]
    {
        let output = format!("<OutputKey>{name}</OutputKey><OutputValue>{value}</OutputValue>");
        assert!(described.contains(&output), "{described}");
    }
    let (status, refused) = describe(&format!("{form}shop")).await;
    assert_eq!(status, 400);
    assert!(refused.contains("Stack with id shop does not exist"), "{refused}");
    assert_eq!(describe("Action=DeleteStack&StackName=shop").await.0, 400);
}
