//! The exact requests.

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::Item;
use ringfence_document_log::{Encoding, Payload, StreamAppend};
use serde_json::{Value, json};

use crate::contract::{append, written};
use crate::stack::{Stack, TABLE, command, events_max, log, name};

/// An item in the JSON of requests.
pub(crate) fn json(item: &Item) -> Value {
    item.iter().map(|(name, value)| (name.clone(), attribute(value))).collect()
}

fn attribute(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => json!({ "S": text }),
        AttributeValue::N(number) => json!({ "N": number }),
        AttributeValue::B(bytes) => json!({ "B": aws_smithy_types::base64::encode(bytes) }),
        AttributeValue::L(list) => json!({ "L": list.iter().map(attribute).collect::<Vec<_>>() }),
        AttributeValue::M(map) => json!({ "M": json(map) }),
        other => panic!("{other:?} is in no batch"),
    }
}

fn stored(sku: u64) -> Value {
    let body = aws_smithy_types::base64::encode(format!(r#"{{"quantity":1,"sku":{sku}}}"#));
    json!({ "M": {
        "t": { "S": "2024-06-23T00:00:00.000Z" }, "d": { "B": body }, "D": { "N": "0" },
    } })
}

fn types(count: usize) -> Value {
    json!({ "L": vec![json!({ "S": "Added" }); count] })
}

#[tokio::test]
async fn the_first_append_puts_the_tip_if_there_is_none() {
    let stack = Stack::start().await;
    let tip = written(append(&log(stack.store()), None, 0..1).await);
    let exchange = &stack.take()[0];
    assert_eq!(exchange.operation, "PutItem");
    let expected = json!({
        "TableName": TABLE,
        "Item": {
            "p": { "S": "Basket-a" }, "i": { "N": "2147483647" }, "n": { "N": "1" },
            "a": { "N": "1" }, "b": { "N": "0" }, "etag": { "S": tip.etag },
            "c": types(1), "e": { "L": [stored(0)] }, "u": { "L": [] },
        },
        "ConditionExpression": "attribute_not_exists(i)",
        "ReturnConsumedCapacity": "INDEXES",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    });
    assert_eq!(exchange.request, expected);
}

#[tokio::test]
async fn a_later_append_sends_only_new_events() {
    let stack = Stack::start().await;
    let log = log(stack.store());
    let first = written(append(&log, None, 0..2).await);
    stack.take();
    let tip = written(append(&log, Some(&first), 2..3).await);
    let exchange = &stack.take()[0];
    assert_eq!(exchange.operation, "UpdateItem");
    let expected = json!({
        "TableName": TABLE,
        "Key": { "p": { "S": "Basket-a" }, "i": { "N": "2147483647" } },
        "UpdateExpression": "SET a = :a, b = :b, u = :u, etag = :etag, n = :n, \
            e = list_append(e, :e), c = list_append(c, :c)",
        "ConditionExpression": "n = :version AND size(e) = :held",
        "ExpressionAttributeValues": {
            ":a": { "N": "1" }, ":b": { "N": "0" }, ":u": { "L": [] }, ":n": { "N": "3" },
            ":etag": { "S": tip.etag }, ":e": { "L": [stored(2)] }, ":c": types(1),
            ":version": { "N": "2" }, ":held": { "N": "2" },
        },
        "ReturnConsumedCapacity": "INDEXES",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    });
    assert_eq!(exchange.request, expected);
}

#[tokio::test]
async fn a_calving_moves_old_events_and_adds_new_ones_in_one_transaction() {
    let stack = Stack::start().await;
    let log = log(stack.store()).with_limits(events_max(2));
    let first = written(append(&log, None, 0..2).await);
    stack.take();
    let tip = written(append(&log, Some(&first), 2..3).await);
    let exchange = &stack.take()[0];
    assert_eq!(exchange.operation, "TransactWriteItems");
    let expected = json!({
        "TransactItems": [
            { "Put": {
                "TableName": TABLE,
                "Item": {
                    "p": { "S": "Basket-a" }, "i": { "N": "0" }, "n": { "N": "2" },
                    "c": types(2), "e": { "L": [stored(0), stored(1)] }, "u": { "L": [] },
                },
                "ConditionExpression": "attribute_not_exists(i)",
            } },
            { "Update": {
                "TableName": TABLE,
                "Key": { "p": { "S": "Basket-a" }, "i": { "N": "2147483647" } },
                "UpdateExpression":
                    "SET a = :a, b = :b, u = :u, etag = :etag, n = :n, e = :e, c = :c",
                "ConditionExpression": "n = :version AND size(e) = :held",
                "ExpressionAttributeValues": {
                    ":a": { "N": "1" }, ":b": { "N": tip.calved_bytes.to_string() },
                    ":u": { "L": [] }, ":n": { "N": "3" }, ":etag": { "S": tip.etag },
                    ":e": { "L": [stored(2)] }, ":c": types(1),
                    ":version": { "N": "2" }, ":held": { "N": "2" },
                },
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            } },
        ],
        "ClientRequestToken": tip.etag,
        "ReturnConsumedCapacity": "INDEXES",
    });
    assert_eq!(exchange.request, expected);
}

#[tokio::test]
async fn unfolds_alone_are_guarded_by_the_etag() {
    let stack = Stack::start().await;
    let log = log(stack.store()).with_encoding(Encoding::Raw);
    let first = written(append(&log, None, 0..1).await);
    stack.take();
    let (stream, envelope) = (name("a"), command("c"));
    let unfolds = vec![Payload::new("State", Some(json!(1)))];
    let (known, events) = (Some(&first), vec![]);
    let append = StreamAppend {
        stream: &stream,
        known,
        by_etag: true,
        events,
        unfolds,
        envelope: &envelope,
    };
    let tip = written(log.append(append).await.expect("it is settled"));
    let unfold = json!({ "M": {
        "i": { "N": "1" }, "t": { "S": "2024-06-23T00:00:00.000Z" }, "c": { "S": "State" },
        "d": { "B": "MQ==" }, "D": { "N": "0" },
    } });
    let expected = json!({
        "TableName": TABLE,
        "Key": { "p": { "S": "Basket-a" }, "i": { "N": "2147483647" } },
        "UpdateExpression": "SET a = :a, b = :b, u = :u, etag = :etag",
        "ConditionExpression": "etag = :expected",
        "ExpressionAttributeValues": {
            ":a": { "N": "0" }, ":b": { "N": "0" }, ":u": { "L": [unfold] },
            ":etag": { "S": tip.etag }, ":expected": { "S": first.etag },
        },
        "ReturnConsumedCapacity": "INDEXES",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    });
    assert_eq!(stack.take()[0].request, expected);
}
