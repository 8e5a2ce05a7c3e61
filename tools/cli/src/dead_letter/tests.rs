//! Dead letters as stacks have written them.

use serde_json::json;

use super::*;

const ID: &str = "orderId:o1/3";

fn event() -> Value {
    json!({
        "version": "0", "id": "x", "source": "ordering", "detail-type": "OrderPlaced",
        "detail": {
            "id": ID, "slot": 3, "recordedAt": "2023-11-14T22:13:20.000Z", "data": { "a": 1 },
        },
    })
}

fn of_message(body: &str) -> Result<DeadLetter> {
    DeadLetter::of_message(body, &BTreeMap::new())
}

fn check(body: &Value, cause: Option<&str>, work: &Work) {
    let dead_letter = of_message(&body.to_string()).expect("a dead letter");
    assert_eq!((dead_letter.cause.as_deref(), &dead_letter.work), (cause, work));
}

#[test]
fn messages_say_what_they_ask_for() {
    let record = json!({ "dynamodb": {} });
    let publish = Work::Publish(vec![record.clone()]);
    check(&json!({ "cause": "c", "record": record }), Some("c"), &publish);
    let id = "orderId:o1";
    let partition = Partition::from(BoundaryId::stored(id));
    let index = Work::Index(BTreeSet::from([partition]));
    check(&json!({ "cause": "c", "partition": id }), Some("c"), &index);
    let dead_letter = json!({ "cause": "c", "log": "aggregates", "partition": "customers#ada" });
    let partition = Partition::from(BoundaryId::stored("customers#ada"));
    check(&dead_letter, Some("c"), &Work::Index(BTreeSet::from([partition])));
}

#[test]
fn events_of_a_record_that_was_too_large_for_a_message_are_found_by_their_key() {
    for (log, key) in [
        (LogKind::Dcb, json!({ "id": { "S": "orderId:o1" }, "position": { "N": "3" } })),
        (
            LogKind::Aggregates,
            json!({ "aggregateId": { "S": "customers#a" }, "version": { "N": "3" } }),
        ),
    ] {
        let stored = Stored::Item { log, key: key.clone() };
        check(&json!({ "cause": "c", "key": key }), Some("c"), &Work::PublishStored(stored));
    }
    let key = json!({ "p": { "S": "carts-a:1" }, "i": { "N": "2147483647" } });
    let dead_letter = json!({ "cause": "c", "key": key, "n": { "N": "7" }, "a": { "N": "2" } });
    let stream = StreamName::new("carts", "a:1").expect("a name");
    let stored = Stored::Span { stream, events: 5..7 };
    check(&dead_letter, Some("c"), &Work::PublishStored(stored));
    let unsaid = json!({ "cause": "c", "key": key }).to_string();
    check_refused(&unsaid, "the dead letter does not say which events of the stream");
}

#[test]
fn events_are_repeated_as_they_were_with_their_history() {
    let mut detail = event()["detail"].clone();
    detail["redriven"] = json!({ "unknown": { "firstFailed": null, "tries": 1 } });
    let repeat = Work::Repeat(TopicEntry {
        source: "ordering".to_owned(),
        detail_type: "OrderPlaced".to_owned(),
        detail: detail.to_string(),
        id: ID.to_owned(),
        time_ms: Some(1_700_000_000_000),
    });
    check(&event(), None, &repeat);
    let failed = json!({
        "requestContext": { "condition": "RetriesExhausted" },
        "responsePayload": { "errorMessage": "no table" },
        "requestPayload": event(),
    });
    check(&failed, Some("no table"), &repeat);
}

#[test]
fn a_dead_letter_of_an_automation_names_function_and_rule() {
    let function = "arn:aws:lambda:eu-west-1:1:function:shop-PlaceOrder-1A";
    let failed = json!({
        "requestContext": { "functionArn": format!("{function}:$LATEST") },
        "requestPayload": event(),
    });
    let failed = of_message(&failed.to_string()).expect("a dead letter").whose;
    assert_eq!((failed.function.as_deref(), failed.rule), (Some("shop-PlaceOrder-1A"), None));
    let attributes = [
        ("ERROR_CODE", "NO_PERMISSIONS"),
        ("ERROR_MESSAGE", "not authorized"),
        ("RULE_ARN", "arn:aws:events:eu-west-1:1:rule/shop-events/shop-PlaceOrderRule-2B"),
        ("TARGET_ARN", function),
    ];
    let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let dead_letter = DeadLetter::of_message(&event().to_string(), &attributes.into());
    let dead_letter = dead_letter.expect("a dead letter");
    let whose = dead_letter.whose.to_string();
    assert_eq!(whose, " of function shop-PlaceOrder-1A, rule shop-PlaceOrderRule-2B");
    assert_eq!(dead_letter.cause.as_deref(), Some("NO_PERMISSIONS: not authorized"));
}

fn check_refused(body: &str, cause: &str) {
    let error = of_message(body).expect_err("no dead letter");
    assert!(format!("{error:#}").starts_with(cause), "{error:#}");
}

#[test]
fn a_message_that_is_not_a_dead_letter_is_refused_with_the_reason() {
    check_refused("{", "the message is not JSON: ");
    check_refused(
        "{}",
        "the message is neither a dead letter of this stack nor an event of its bus",
    );
    let no_command = r#"{"cause":"it is not a command","body":"{}"}"#;
    check_refused(
        no_command,
        "it is not a command. The message can't be redriven: look at its body",
    );
    let foreign = r#"{"source":"aws.s3","detail-type":"x","detail":{}}"#;
    check_refused(foreign, "not an event of the bus: /detail/id is missing");
}

#[test]
fn a_failed_batch_is_published_or_indexed_as_it_is_asked() {
    let record = |name: &str, id| json!({ "dynamodb": { "Keys": { name: { "S": id } } } });
    let records = [("id", "a:1"), ("aggregateId", "a#1"), ("p", "a-1:2"), ("id", "a:1")];
    let payload = json!({ "Records": records.map(|(name, id)| record(name, id)) });
    let object = json!({
        "requestContext": { "condition": "RetryAttemptsExhausted" },
        "payload": payload.to_string(),
    })
    .to_string();
    let dead_letter = |to| DeadLetter::of_object(&object, to).expect("a batch");
    let records = payload["Records"].as_array().cloned().expect("records");
    assert_eq!(dead_letter(To::Bus).work, Work::Publish(records));
    assert_eq!(dead_letter(To::Bus).cause.as_deref(), Some("RetryAttemptsExhausted"));
    let stream = StreamName::new("a", "1:2").expect("a name");
    let partitions = [
        BoundaryId::stored("a:1").into(),
        Partition::from(BoundaryId::stored("a#1")),
        Partition::from(stream.partition()),
    ];
    assert_eq!(dead_letter(To::Index).work, Work::Index(BTreeSet::from(partitions)));
    for payload in ["{}", "[]", "null"] {
        let object = json!({ "payload": payload }).to_string();
        let error = DeadLetter::of_object(&object, To::Bus).expect_err("no batch").to_string();
        assert_eq!(error, "the object's payload has no records of a stream");
    }
}

#[test]
fn a_function_has_the_name_of_the_stack_or_that_of_cloudformation() {
    for function in ["notify-partner", "NotifyPartner", "my-shop-NotifyPartner-0aB1cD2eF3gH"] {
        assert!(is_function_of(function, "notify-partner"), "{function}");
    }
    for function in
        ["my-shop-NotifyPartners-0aB1cD2eF3gH", "notify-partner-x", "my-NotifyPart-0aB1"]
    {
        assert!(!is_function_of(function, "notify-partner"), "{function}");
    }
    assert!(is_function_of(
        "s-ReleaseAllocationsOfCanc-0aB1",
        "release-allocations-of-cancelled-orders"
    ));
}
