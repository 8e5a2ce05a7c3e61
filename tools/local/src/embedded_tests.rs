use super::*;

pub(crate) fn table() -> Value {
    json!({
        "KeySchema": [
            { "AttributeName": "id", "KeyType": "HASH" },
            { "AttributeName": "position", "KeyType": "RANGE" },
        ],
        "AttributeDefinitions": [
            { "AttributeName": "id", "AttributeType": "S" },
            { "AttributeName": "position", "AttributeType": "S" },
        ],
        "StreamSpecification": { "StreamViewType": "NEW_IMAGE" },
        "TimeToLiveSpecification": { "AttributeName": "expiresAt", "Enabled": true },
    })
}

pub(crate) async fn put(dynamo: &Embedded, table: &str, id: &str) {
    let answer = reqwest::Client::new()
        .post(dynamo.endpoint())
        .header("x-amz-target", "DynamoDB_20120810.PutItem")
        .header("content-type", "application/x-amz-json-1.0")
        .header("authorization", "AWS4-HMAC-SHA256 Credential=local/20260101/local/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
        .header("x-amz-date", "20260101T000000Z")
        .body(
            json!({ "TableName": table, "Item": { "id": { "S": id }, "position": { "S": "1" } } })
                .to_string(),
        )
        .send()
        .await
        .expect("an answer");
    let status = answer.status();
    assert!(status.is_success(), "{}", answer.text().await.expect("a body"));
}

#[tokio::test]
async fn a_stream_has_each_write_once_in_order() {
    let dynamo = Embedded::start().await.expect("a database");
    dynamo.create_table(&table(), "events").expect("a table");
    let mut stream = dynamo.stream("events").expect("a stream");
    assert!(stream.read().expect("records").is_empty());
    for id in ["a", "b"] {
        put(&dynamo, "events", id).await;
    }
    let records = stream.read().expect("records");
    let ids: Vec<_> = records
        .iter()
        .map(|r| r.pointer("/dynamodb/NewImage/id/S").and_then(Value::as_str))
        .collect();
    assert_eq!(ids, [Some("a"), Some("b")]);
    assert_eq!(records[0]["eventName"], "INSERT");
    assert_eq!(records[0]["eventSourceARN"], stream.arn());
    assert!(stream.read().expect("records").is_empty());
}

#[tokio::test]
async fn the_engine_of_a_stack_answers_while_the_stack_itself_computes() {
    use std::io::{Read, Write};

    let dynamo = Embedded::hidden().await.expect("a database");
    let address = dynamo.endpoint().strip_prefix("http://").expect("a URL");
    // The test's runtime has only this thread, which does nothing else until the answer is there.
    let mut socket = std::net::TcpStream::connect(address).expect("a connection");
    socket.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("a limit");
    socket
        .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .expect("sent");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
}

#[tokio::test]
async fn databases_share_nothing() {
    let (one, two) = (Embedded::start().await.expect("one"), Embedded::start().await);
    let two = two.expect("two");
    one.create_table(&table(), "events").expect("a table");
    assert!(two.stream("events").is_err());
}

#[tokio::test]
async fn table_without_stream_is_an_error_that_names_it() {
    let dynamo = Embedded::start().await.expect("a database");
    let mut plain = table();
    plain.as_object_mut().expect("an object").remove("StreamSpecification");
    dynamo.create_table(&plain, "plain").expect("a table");
    let error = dynamo.stream("plain").err().expect("no stream");
    assert_eq!(error.to_string(), "table plain has no stream");
}
