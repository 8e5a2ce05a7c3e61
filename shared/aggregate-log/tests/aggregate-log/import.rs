//! The layout of one table a store: read, listed, imported.

use std::num::NonZeroU32;

use aws_sdk_dynamodb::types::AttributeValue;
use futures::TryStreamExt;
use ringfence_aggregate_log::{
    AggregateError, AggregateEvent, AggregateKey, LegacyImport, LegacyTable, ListOptions,
    PushPlace, Range,
};
use ringfence_dynamo::Item;
use ringfence_dynamo::wire::Fault;

use crate::customers::{added, customer};
use crate::stack::{LEGACY, Stack, TABLE, conflict, events, key, versions};

fn item(id: &str, version: u64) -> Item {
    let text = |value: String| AttributeValue::S(value);
    let mut item = Item::from([
        ("aggregateId".to_owned(), text(id.to_owned())),
        ("version".to_owned(), AttributeValue::N(version.to_string())),
        ("type".to_owned(), text("PointsAdded".to_owned())),
        ("timestamp".to_owned(), text(format!("2020-01-01T00:00:0{version}.000Z"))),
        // It has no JSON form, and must be imported all the same.
        ("extra".to_owned(), AttributeValue::B(vec![1, 2].into())),
    ]);
    if version == 1 {
        item.insert("isInitialEvent".to_owned(), AttributeValue::N("1".to_owned()));
    }
    item
}

async fn legacy(stack: &Stack) -> LegacyTable {
    for id in ["a", "b", "c#d"] {
        for version in 1..=3 {
            stack.put(LEGACY, item(id, version)).await;
        }
    }
    LegacyTable::new(stack.client.clone(), LEGACY, "CUSTOMERS").expect("a store")
}

/// The events of an aggregate of a legacy table.
pub(crate) async fn of_legacy(
    legacy: &LegacyTable,
    key: &AggregateKey,
    range: Range,
) -> Vec<AggregateEvent> {
    legacy.get_events(key, range).try_collect().await.expect("events")
}

#[tokio::test]
async fn a_legacy_table_is_read_and_listed() {
    let stack = Stack::start().await;
    let legacy = legacy(&stack).await;
    let newest = of_legacy(&legacy, &customer("c#d"), Range::NEWEST).await;
    assert_eq!((newest.len(), newest[0].version.number()), (1, 3));
    assert_eq!(of_legacy(&legacy, &customer("a"), Range::default()).await[0].key, customer("a"));
    let elsewhere = legacy.get_events(&key("CARDS", "a"), Range::default());
    let refused: Result<Vec<_>, _> = elsewhere.try_collect().await;
    assert!(matches!(refused, Err(AggregateError::Invalid(_))), "{refused:?}");
    let mut list = ListOptions { limit: NonZeroU32::new(2), ..ListOptions::default() };
    let mut ids = Vec::new();
    loop {
        let page = legacy.list_aggregate_ids("CUSTOMERS", &list).await.expect("a page");
        ids.extend(page.aggregates.into_iter().map(|aggregate| aggregate.id));
        list.page_token = page.next_page_token;
        if list.page_token.is_none() {
            break;
        }
    }
    ids.sort();
    assert_eq!(ids, ["a", "b", "c#d"]);
    let refused = legacy.list_aggregate_ids("CARDS", &ListOptions::default()).await;
    assert!(matches!(refused, Err(AggregateError::Invalid(_))), "{refused:?}");
}

#[tokio::test]
async fn an_import_copies_every_event_once_however_often_it_runs() {
    let stack = Stack::start().await;
    let (legacy, log) = (legacy(&stack).await, stack.table());
    stack.wire.inject("PutItem", 4, Fault::error("AccessDeniedException"));
    assert!(legacy.import(&log).await.is_err());
    stack.wire.inject("PutItem", 2, Fault::LostAfter);
    let rest = legacy.import(&log).await.expect("the rest");
    assert_eq!(rest.events + rest.present, 9);
    assert!(rest.present >= 1 && rest.events >= 1, "{rest:?}");
    let again = legacy.import(&log).await.expect("nothing is left");
    assert_eq!(again, LegacyImport { events: 0, present: 9 });

    for id in ["a", "b", "c#d"] {
        let range = Range::default();
        let before = of_legacy(&legacy, &customer(id), range).await;
        let after = events(&log, &customer(id), range).await;
        assert_eq!(before, after);
        assert_eq!(before.len(), 3);
    }
    let listed =
        log.list_aggregate_ids("CUSTOMERS", &ListOptions::default()).await.expect("a page");
    assert_eq!(listed.aggregates.len(), 3);
    assert!(log.verify(&|_| {}).await.expect("a report").wrong.is_empty());
    assert_eq!(stack.items(LEGACY).await.len(), 9);
    let copies = stack.items(TABLE).await;
    assert!(copies.iter().all(|item| item.contains_key("extra")), "{copies:?}");
    assert!(!copies.iter().any(|item| item.contains_key("isInitialEvent")), "{copies:?}");
    assert!(versions(&log, &key("CARDS", "a"), Range::default()).await.is_empty());
}

#[tokio::test]
async fn an_import_never_replaces_another_event() {
    let stack = Stack::start().await;
    let (legacy, log) = (legacy(&stack).await, stack.table());
    log.push_event(&customer("b"), PushPlace::End, added(7)).await.expect("pushed");
    assert_eq!(conflict(legacy.import(&log).await), ("CUSTOMERS#b".to_owned(), 1));
}
