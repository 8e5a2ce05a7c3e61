use std::sync::Mutex;

use aws_sdk_sqs::types::QueueAttributeName as Attribute;

use super::*;
use crate::{
    destinations::Destinations,
    invoke::InvokeError,
    notices::{Notice, Notices},
    template::Model,
};

/// Counts the invocations. No rule should cause one here.
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
    let bus = Buses::new(&model, Arc::<Fake>::default(), destinations, Notices::default());
    let outputs = [
        ("ApiUrl", "https://x.execute-api.us-east-1.amazonaws.com"),
        ("EventTableName", "ringfence-local-EventTable"),
    ];
    let outputs = outputs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let (api, starts) = ("http://api".to_owned(), vec![0, 60_000]);
    let folder = tempfile::tempdir().expect("a folder").keep();
    let inbox = Inbox::new(&folder, Notices::default()).expect("a folder");
    let parameters = [("SMTP_URL".to_owned(), "smtp://127.0.0.1".to_owned())].into();
    let router = router(Services { bus, queues, buckets, inbox, parameters, api, outputs, starts });
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
    let mut long = entry("topic", "{}");
    long["DetailType"] = json!("é".repeat(129));
    let entries = json!([entry("topic", "{}"), entry("topic", "{"), entry("other", "{}"), long]);
    let (status, answer) = call(&url, "AWSEvents.PutEvents", json!({ "Entries": entries })).await;
    assert_eq!((status, &answer["FailedEntryCount"]), (200, &json!(3)));
    assert_eq!(answer["Entries"][3]["ErrorCode"], "InvalidArgument");
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
    check_refused(send, message("http://x/0/dead", "\u{1}"), "InvalidMessageContents").await;
    for (name, id) in [
        ("MessageDeduplicationId", "x".to_owned()),
        ("MessageGroupId", String::new()),
        ("MessageGroupId", "a b".to_owned()),
        ("MessageGroupId", "x".repeat(129)),
    ] {
        let mut message = message("http://x/0/dead", "a");
        message[name] = json!(id);
        check_refused(send, message, "InvalidParameterValue").await;
    }
    let hidden = json!({ "QueueUrl": "http://x/0/dead", "VisibilityTimeout": 43_201 });
    check_refused("AmazonSQS.ReceiveMessage", hidden, "InvalidParameterValue").await;
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

/// The real SQS client for this endpoint.
fn sqs(url: &str) -> aws_sdk_sqs::Client {
    let variables = [
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "local"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
        ("AWS_ENDPOINT_URL", url),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let config = ringfence_aws::sdk_config_of(variables.into()).expect("a configuration");
    aws_sdk_sqs::Client::new(&config)
}

#[tokio::test]
async fn the_sdk_receives_and_deletes_messages() {
    let queues = queues();
    let url = start_with(Buckets::new("nowhere".into(), Vec::new()), queues.clone()).await;
    let sqs = sqs(&url);
    let queue = format!("{url}/000000000000/dead");
    for body in ["{\"cause\":\"x\"}", "b"] {
        sqs.send_message().queue_url(&queue).message_body(body).send().await.expect("sent");
    }
    let receive = || sqs.receive_message().queue_url(&queue).max_number_of_messages(10);
    let received = receive().send().await.expect("an answer");
    let bodies: Vec<_> = received.messages().iter().filter_map(|m| m.body()).collect();
    assert_eq!(bodies, ["{\"cause\":\"x\"}", "b"]);
    assert!(receive().send().await.expect("an answer").messages().is_empty(), "they are hidden");
    let asked = sqs.get_queue_attributes().queue_url(&queue).attribute_names(Attribute::All);
    let found = asked.send().await.expect("an answer").attributes.expect("attributes");
    let counts =
        [Attribute::ApproximateNumberOfMessages, Attribute::ApproximateNumberOfMessagesNotVisible];
    assert_eq!(counts.map(|name| &*found[&name]), ["0", "2"]);
    assert!(!found.contains_key(&Attribute::FifoQueue));

    let receipt = received.messages()[0].receipt_handle().expect("a receipt");
    sqs.delete_message().queue_url(&queue).receipt_handle(receipt).send().await.expect("deleted");
    assert_eq!(queues.messages()["dead"].len(), 1, "one is left");
    let unknown = sqs.receive_message().queue_url("http://x/0/other").send().await;
    let unknown = unknown.expect_err("no such queue").into_service_error();
    assert!(unknown.is_queue_does_not_exist(), "{unknown:?}");
}

#[tokio::test]
async fn clients_of_s3_list_get_put_and_delete_objects() {
    let folder = tempfile::tempdir().expect("a folder");
    let buckets = Buckets::new(folder.path().to_owned(), vec!["lost".to_owned()]);
    let url = start_with(buckets.clone(), queues()).await;
    let client = reqwest::Client::new();
    let send = async |method: reqwest::Method, path: &str| {
        let answer =
            client.request(method, format!("{url}{path}")).send().await.expect("an answer");
        (answer.status().as_u16(), answer.text().await.expect("a text"))
    };
    let get = async |path: &str| send(reqwest::Method::GET, path).await;
    let (status, empty) = get("/lost?list-type=2").await;
    assert!(status == 200 && empty.contains("<KeyCount>0</KeyCount>"), "{empty}");
    let keys = ["aws/lambda/a&b/<1>", "aws/lambda/f/2026/11/21/10.00.00-x y", "other"];
    for key in keys {
        buckets.put("lost", key, key.as_bytes()).expect("written");
    }
    let (_, first) = get("/lost?list-type=2&max-keys=2").await;
    let token = first.split("<NextContinuationToken>").nth(1).expect("more");
    assert!(first.contains("<Key>aws/lambda/a&amp;b/&lt;1&gt;</Key><Size>18</Size>"), "{first}");
    assert!(token.starts_with(keys[1]) && !first.contains("<Key>other</Key>"), "{first}");
    let from = "aws/lambda/f/2026/11/21/10.00.00-x%20y";
    let (_, last) = get(&format!("/lost?list-type=2&max-keys=2&continuation-token={from}")).await;
    assert!(last.contains("<KeyCount>1</KeyCount>") && last.contains("<Key>other</Key>"), "{last}");
    let (_, some) = get("/lost?list-type=2&prefix=aws/").await;
    assert!(some.contains("<KeyCount>2</KeyCount>"), "{some}");

    for (key, path) in keys.into_iter().zip(["aws/lambda/a%26b/%3C1%3E", from, "other"]) {
        let path = format!("/lost/{path}");
        assert_eq!(get(&path).await, (200, key.to_owned()));
        assert_eq!(send(reqwest::Method::DELETE, &path).await.0, 204);
    }
    let large = vec![b'x'; 3 * 1024 * 1024];
    let put = client.put(format!("{url}/lost/large")).body(large.clone()).send().await;
    assert_eq!(put.expect("an answer").status(), 200);
    assert_eq!(buckets.get("lost", "large").expect("an object"), large);
    assert_eq!(send(reqwest::Method::DELETE, "/lost/large").await.0, 204);
    assert!(buckets.list("lost").expect("a bucket").is_empty());
    for (path, code) in [("/lost/other", "NoSuchKey"), ("/found?list-type=2", "NoSuchBucket")] {
        let (status, gone) = get(path).await;
        assert!(status == 404 && gone.contains(&format!("<Code>{code}</Code>")), "{gone}");
    }
    for key in ["x/".repeat(513), "x".repeat(256), "a%00".to_owned()] {
        let put = client.put(format!("{url}/lost/{key}")).body("x").send().await;
        let put = put.expect("an answer");
        assert_eq!(put.status(), 400, "{key}");
        assert!(put.text().await.expect("a text").contains("<Code>KeyTooLongError</Code>"));
    }
    assert!(get("/lost/%2E%2E%2Fsecret").await.0 >= 400, "a key is not a path");
}

#[tokio::test]
async fn forms_ask_for_the_outputs_and_starts_of_the_one_stack_and_the_age_of_a_queue() {
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
    let (_, events) = describe("Action=DescribeStackEvents&StackName=ringfence-local").await;
    let (_, newest) = events.split_once("<Timestamp>").expect("an event");
    assert!(newest.starts_with("1970-01-01T00:01:00.000Z</Timestamp>"), "{events}");
    // When it was made is not known.
    assert!(newest.contains("UPDATE_COMPLETE") && !newest.contains("CREATE_COMPLETE"), "{events}");
    let age = "Action=GetMetricStatistics&Dimensions.member.1.Value=";
    assert!(describe(&format!("{age}dead")).await.1.contains("<Datapoints></Datapoints>"));
    assert_eq!(describe(&format!("{age}other")).await.0, 400);
    let (status, refused) = describe(&format!("{form}shop")).await;
    assert_eq!(status, 400);
    assert!(refused.contains("Stack with id shop does not exist"), "{refused}");
    assert_eq!(describe("Action=DeleteStack&StackName=shop").await.0, 400);
}

#[tokio::test]
async fn a_mail_and_a_webhook_are_files_and_a_parameter_has_the_value_of_a_variable() {
    let (notices, folder) = (Notices::default(), tempfile::tempdir().expect("a folder"));
    let mut watch = notices.watch();
    let inbox = Inbox::new(folder.path(), notices).expect("a folder").routes(1_000);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, inbox).await });
    let send = async |url: &str, body: &'static str| {
        let request = reqwest::Client::new().post(url).header("webhook-id", "one");
        request.header("x-other", "two").body(body).send().await.expect("an answer").status()
    };
    let ses = format!("{url}/v2/email/outbound-emails");
    assert_eq!(send(&ses, r#"{"Content":{"Simple":{}}}"#).await, 400);
    assert_eq!(send(&ses, r#"{"Content":{"Raw":{"Data":"SGVsbG8="}}}"#).await, 200);
    let Ok(Notice::Mail(path)) = watch.recv().await else { panic!("a mail") };
    assert_eq!(std::fs::read_to_string(&*path).expect("a file"), "Hello");
    // The template's parameter has this URL on this machine.
    let partner = crate::outside::parameter("WebhookUrl", &url).expect("a value");
    assert_eq!(send(&partner, "{}").await, 204);
    let Ok(Notice::Webhook(path)) = watch.recv().await else { panic!("a webhook") };
    let kept = std::fs::read_to_string(&*path).expect("a file");
    assert_eq!(kept, "POST /webhooks\nwebhook-id: one\n\n{}");

    let get = "AmazonSSM.GetParameter";
    let (status, answer) = call(&start().await, get, json!({ "Name": "SMTP_URL" })).await;
    assert_eq!((status, &answer["Parameter"]["Value"]), (200, &json!("smtp://127.0.0.1")));
    check_refused(get, json!({ "Name": "HOME" }), "ParameterNotFound").await;
}
