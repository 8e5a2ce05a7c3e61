//! The `ringfence` command as it is started.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::process::{Command, Output};

use ringfence::{Append, Envelope, EventLog, events, kit::id};
use ringfence_catalog::{OrderId, ProductDemandRecorded};
use ringfence_dcb_log::DcbLog;
use ringfence_dynamo::{Clock, wire::Wire};
use ringfence_local::{embedded::Embedded, template::Template};
use serde_json::{Value, json};

const TABLE: &str = "events";

/// Runs the command; its status and what it says.
fn ringfence(command: &str, endpoint: &str, more: &[&str]) -> (i32, String) {
    let mut ringfence = Command::new(env!("CARGO_BIN_EXE_ringfence"));
    ringfence.args([command, "--settle-seconds", "0", "--table", TABLE]);
    ringfence.args(["--endpoint-url", endpoint]).args(more);
    let credentials = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|name| (name, "local"));
    ringfence.envs(credentials).env("AWS_REGION", "eu-west-1");
    let Output { status, stdout, stderr } = ringfence.output().unwrap();
    let said = String::from_utf8([stdout, stderr].concat()).unwrap();
    (status.code().unwrap(), said)
}

#[tokio::test(flavor = "multi_thread")]
async fn fences_are_verified_and_repaired() {
    let dynamo = Embedded::start().await.unwrap();
    let template = Template::of_workspace().unwrap();
    dynamo.create_table(&template.table("EventTable").unwrap(), TABLE).unwrap();
    let client = Wire::default().client(dynamo.endpoint());
    let catalog = ringfence_catalog::catalog().unwrap();
    let log = DcbLog::new(client.clone(), TABLE, catalog, Clock::system());
    let order_id: OrderId = id("o1");
    let events = events![ProductDemandRecorded { product_id: id("p1"), order_id }];
    let envelope = Envelope::default();
    log.append(Append { events, seen: None, record: None, envelope: &envelope }).await.unwrap();

    let run = |command, more: &[&str]| ringfence(command, dynamo.endpoint(), more);
    let right = (0, "1 events, 2 fences: all in order\n".to_owned());
    assert_eq!(run("verify", &[]), right);

    let text = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
    let update = client.update_item().table_name(TABLE).key("position", text("FENCE"));
    let update = update.key("id", text("fence#productId:p1")).update_expression("REMOVE #count");
    let update = update.expression_attribute_names("#count", "cnt#ProductDemandRecorded");
    update.send().await.unwrap();

    let differs = "productId:p1: counts 0 ProductDemandRecorded, found 1\n";
    let wrong = format!("differs  {differs}1 events, 2 fences: not in order\n");
    assert_eq!(run("verify", &["--passes", "2"]), (1, wrong));
    let (status, said) = run("verify", &["--json"]);
    let count = json!({
        "wrong": "count", "type": "ProductDemandRecorded", "counted": 0, "found": 1,
    });
    let expected = json!({
        "events": 1,
        "fences": 2,
        "inOrder": false,
        "differences": [{ "boundary": "productId:p1", "wrong": [count] }],
        "unindexed": {},
        "mended": [],
        "indexed": {},
    });
    assert_eq!((status, serde_json::from_str::<Value>(&said).unwrap()), (1, expected));

    let mended = format!("mended   {differs}{}", right.1);
    assert_eq!(run("repair", &[]), (0, mended));
    assert_eq!(run("repair", &[]), right);
    assert_eq!(run("verify", &[]), right);
}

#[test]
fn what_can_not_be_done_has_a_status_of_its_own() {
    // Nobody listens there.
    let (status, said) = ringfence("verify", "no endpoint", &[]);
    assert_eq!(status, 2, "{said}");
    assert!(said.starts_with("error: scanning the table: no answer after 8 attempts: "), "{said}");
    assert_eq!(ringfence("verify", "http://127.0.0.1:1", &["--passes", "0"]).0, 2);
}
