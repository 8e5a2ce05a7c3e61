//! Tables that a program creates.

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::Clock;
use ringfence_aws::wire::Wire;
use ringfence_core::{Catalog, Envelope, EventLog, Extent, StoreError, events};
use ringfence_dcb_log::{DcbLog, table_layout};
use ringfence_local::embedded::Embedded;

use crate::reads::{catalog, noted, plan_of};
use crate::stack::{NOW_MS, append, committed};

fn layout_catalog() -> Catalog {
    catalog().expect("free of contradictions")
}

#[tokio::test]
async fn a_table_that_a_program_creates_serves_every_read_of_its_catalog() {
    let dynamo = Embedded::start().await.expect("an embedded DynamoDB");
    let client = Wire::default().client(dynamo.endpoint());
    let layout = table_layout(&layout_catalog());
    layout.create(&client, "made").await.expect("the table");
    let log = DcbLog::new(client.clone(), "made", layout_catalog(), Clock::fixed(NOW_MS));
    let envelope = Envelope::default();
    committed(append(&log, events![noted("b", "r", "x")], &envelope).await);
    for tags in [&[("bookId", "b")][..], &[("readerId", "r")]] {
        let plan = plan_of(&layout_catalog(), &[tags]);
        let read =
            log.read_with_seen(&plan, ringfence_core::Consistency::Eventual, &envelope).await;
        let (events, seen) = read.expect("a read");
        assert_eq!(events.len(), 1, "{tags:?}");
        let seen = match seen.of(&plan.reads[0].boundary) {
            Some(Extent::Prefix(prefix)) => prefix.slot,
            Some(Extent::Fence { counts, .. }) => counts["Noted"],
            None => 0,
        };
        assert_eq!(seen, 1, "{tags:?}");
    }
    let described = client.describe_time_to_live().table_name("made").send().await;
    let described = described.expect("a description").time_to_live_description;
    let attribute = described.and_then(|of| of.attribute_name);
    assert_eq!(attribute.as_deref(), Some("expiresAt"));
}

#[tokio::test]
async fn an_existing_table_is_not_created_again() {
    let dynamo = Embedded::start().await.expect("an embedded DynamoDB");
    let client = Wire::default().client(dynamo.endpoint());
    let layout = table_layout(&layout_catalog());
    layout.create(&client, "made").await.expect("the table");
    let put = client.put_item().table_name("made");
    let put = put.item("id", AttributeValue::S("a".to_owned()));
    let put = put.item("position", AttributeValue::N("1".to_owned()));
    put.send().await.expect("a put");
    let error = layout.create(&client, "made").await.expect_err("there is one");
    assert!(matches!(error, StoreError::Failed { operation: "CreateTable", .. }), "{error:?}");
    let found = client.scan().table_name("made").send().await.expect("a scan");
    assert_eq!(found.count, 1);
}
