//! The faults that `verify` finds.

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aggregate_log::{AggregateDefect, PushPlace};
use ringfence_aws::Item;
use ringfence_aws::wire::Fault;

use crate::customers::{added, customer};
use crate::stack::{NOW_MS, Stack, TABLE, key};

async fn fill(stack: &Stack, id: &str, versions: &[u64]) {
    let log = stack.table();
    for version in versions {
        let place = PushPlace::Forced(*version);
        log.push_event(&customer(id), place, added(1)).await.expect("pushed");
    }
}

/// Changes an item without any checks.
async fn change(stack: &Stack, id: &str, version: u64, change: impl Fn(&mut Item)) {
    let version = AttributeValue::N(version.to_string());
    let id = AttributeValue::S(customer(id).to_string());
    for mut item in stack.items(TABLE).await {
        if item["aggregateId"] == id && item["version"] == version {
            change(&mut item);
            stack.put(TABLE, item).await;
        }
    }
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

#[tokio::test]
async fn a_log_of_this_crate_has_no_faults() {
    let stack = Stack::start();
    fill(&stack, "1", &[1, 2, 3]).await;
    fill(&stack, "2", &[1]).await;
    let other = stack.table().push_event(&key("CARDS", "1"), PushPlace::End, added(1)).await;
    other.expect("pushed");
    // Pages that end in the middle of an aggregate must not look like gaps.
    for page in 0..10 {
        stack.wire.inject("Scan", page, Fault::page(1));
    }
    let report = stack.table().verify(&|_| {}).await.expect("a report");
    assert_eq!((report.events, report.aggregates, report.wrong), (5, 3, vec![]));
}

#[tokio::test]
async fn faults_are_found_and_named() {
    let stack = Stack::start();
    fill(&stack, "gap", &[1, 2, 5, 6]).await;
    fill(&stack, "headless", &[2, 4]).await;
    fill(&stack, "unlisted", &[1, 2]).await;
    change(&stack, "unlisted", 1, |item| drop(item.remove("eventStoreId"))).await;
    fill(&stack, "twice", &[1, 2]).await;
    change(&stack, "twice", 2, |item| {
        item.insert("eventStoreId".to_owned(), text("CUSTOMERS"));
    })
    .await;
    fill(&stack, "late", &[1]).await;
    stack.clock.set(NOW_MS - 1);
    fill(&stack, "late", &[2]).await;
    let broken =
        [("aggregateId", text("CUSTOMERS#odd")), ("version", AttributeValue::N("1".into()))];
    stack.put(TABLE, broken.map(|(name, value)| (name.to_owned(), value)).into()).await;

    let report = stack.table().verify(&|_| {}).await.expect("a report");
    let mut wrong: Vec<_> = report.wrong.iter().map(AggregateDefect::to_string).collect();
    wrong.sort();
    assert_eq!(
        wrong,
        [
            "CUSTOMERS#gap: version 5 follows 2",
            "CUSTOMERS#headless: version 2 follows 0",
            "CUSTOMERS#headless: version 4 follows 2",
            "CUSTOMERS#late: version 2 is of 2024-06-22T23:59:59.999Z, earlier than its predecessor",
            "CUSTOMERS#twice: version 2 has eventStoreId Some(\"CUSTOMERS\")",
            "CUSTOMERS#unlisted: version 1 has eventStoreId None",
            "item CUSTOMERS#odd 1 is not an event",
        ]
    );
    assert_eq!(report.events, 12);
}
