//! Reads, writes, lists and imports tables of the older layout, and pushes groups over several tables.

use std::num::NonZeroU32;

use aws_sdk_dynamodb::types::AttributeValue;
use futures::TryStreamExt;
use ringfence_aggregate_log::{
    AggregateError, AggregateLog, AggregateTable, ListOptions, Push, PushPlace, Range,
    push_to_tables,
};
use ringfence_aws::Item;
use ringfence_aws::wire::Fault;

use crate::customers::{add, added, catalog, customer, register, transfer};
use crate::stack::{LEGACY, Stack, TABLE, conflict, events, import, key, run, versions};

fn item(id: &str, version: u64) -> Item {
    let text = |value: String| AttributeValue::S(value);
    let mut item = Item::from([
        ("aggregateId".to_owned(), text(id.to_owned())),
        ("version".to_owned(), AttributeValue::N(version.to_string())),
        ("type".to_owned(), text("PointsAdded".to_owned())),
        ("timestamp".to_owned(), text(format!("2020-01-01T00:00:0{version}.000Z"))),
        // It has no JSON form, and must still be imported.
        ("extra".to_owned(), AttributeValue::B(vec![1, 2].into())),
    ]);
    if version == 1 {
        item.insert("isInitialEvent".to_owned(), AttributeValue::N("1".to_owned()));
    }
    item
}

async fn legacy(stack: &Stack) -> AggregateTable {
    for id in ["a", "b", "c#d"] {
        for version in 1..=3 {
            stack.put(LEGACY, item(id, version)).await;
        }
    }
    stack.legacy_table()
}

#[tokio::test]
async fn a_legacy_table_is_read_and_listed() {
    let stack = Stack::start();
    let legacy = legacy(&stack).await;
    let newest = events(&legacy, &customer("c#d"), Range::NEWEST).await;
    assert_eq!((newest.len(), newest[0].version.number()), (1, 3));
    assert_eq!(events(&legacy, &customer("a"), Range::default()).await[0].key, customer("a"));
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
    let stack = Stack::start();
    let (legacy, log) = (legacy(&stack).await, stack.table());
    stack.wire.inject("PutItem", 4, Fault::error("AccessDeniedException"));
    assert!(import(&legacy, &log).await.is_err());
    stack.wire.inject("PutItem", 2, Fault::LostAfter);
    let rest = import(&legacy, &log).await.expect("the rest");
    assert_eq!(rest.len(), 9);
    assert!(rest.contains(&true) && rest.contains(&false), "{rest:?}");
    let again = import(&legacy, &log).await.expect("nothing is left");
    assert_eq!(again, [false; 9]);

    for id in ["a", "b", "c#d"] {
        let range = Range::default();
        let before = events(&legacy, &customer(id), range).await;
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
    let stack = Stack::start();
    let (legacy, log) = (legacy(&stack).await, stack.table());
    log.push_event(&customer("b"), PushPlace::End, added(7)).await.expect("pushed");
    assert_eq!(conflict(import(&legacy, &log).await), ("CUSTOMERS#b".to_owned(), 1));
}

#[tokio::test]
async fn items_of_a_legacy_table_have_the_layout_of_the_original() {
    let stack = Stack::start();
    let legacy = legacy(&stack).await;
    let log = AggregateLog::new(legacy.clone(), catalog(), stack.clock.clone());
    for customer in ["ada", "bob"] {
        run(&log, &register(customer), None).await;
    }
    run(&log, &add("ada", &[5]), None).await;
    // A decision on two aggregates is a transaction.
    run(&log, &transfer("bob", 1), None).await;
    let mut written: Vec<String> = Vec::new();
    for item in stack.items(LEGACY).await {
        if item.contains_key("pushId") {
            assert!(!item.contains_key("eventStoreId"), "{item:?}");
            let (id, version) = (&item["aggregateId"], &item["version"]);
            let (id, version) = (id.as_s().expect("a text"), version.as_n().expect("a number"));
            written.push(format!("{id} {version} {}", item.contains_key("isInitialEvent")));
        }
    }
    written.sort();
    assert_eq!(written, ["ada 1 true", "ada 2 false", "ada 3 false", "bob 1 true", "bob 2 false"]);
    assert_eq!(versions(&legacy, &customer("ada"), Range::default()).await, [1, 2, 3]);
    let taken = legacy.push_event(&customer("a"), PushPlace::At(3), added(1)).await;
    assert_eq!(conflict(taken), ("CUSTOMERS#a".to_owned(), 3));
    for place in [PushPlace::End, PushPlace::Forced(1)] {
        let elsewhere = legacy.push_event(&key("CARDS", "a"), place, added(1)).await;
        let said = "refused: the table has the aggregates of CUSTOMERS, and none of CARDS";
        assert_eq!(elsewhere.expect_err("another store").to_string(), said);
    }
    assert!(legacy.verify(&|_| ()).await.expect("a report").wrong.is_empty());
}

#[tokio::test]
async fn a_group_over_tables_is_all_or_nothing() {
    let stack = Stack::start();
    let (log, other, legacy) = (stack.table(), stack.other_table(), legacy(&stack).await);
    let push = |store: &str, id: &str, place| Push {
        key: key(store, id),
        place,
        events: vec![added(1), added(2)],
    };
    stack.operations();
    let group = [
        (&log, push("CARDS", "x", PushPlace::End)),
        (&other, push("VOUCHERS", "x", PushPlace::At(1))),
        (&legacy, push("CUSTOMERS", "a", PushPlace::At(4))),
    ];
    let pushed = push_to_tables(&group).await.expect("pushed");
    let places: Vec<_> =
        pushed.iter().map(|event| format!("{} {}", event.key, event.version.number())).collect();
    let expected = [
        "CARDS#x 1",
        "CARDS#x 2",
        "VOUCHERS#x 1",
        "VOUCHERS#x 2",
        "CUSTOMERS#a 4",
        "CUSTOMERS#a 5",
    ];
    assert_eq!(places, expected);
    assert_eq!(stack.operations(), ["Query", "Query", "TransactWriteItems"]);

    let group = [
        (&other, push("VOUCHERS", "x", PushPlace::At(3))),
        (&legacy, push("CUSTOMERS", "a", PushPlace::At(4))),
        (&log, push("CARDS", "x", PushPlace::At(3))),
    ];
    assert_eq!(conflict(push_to_tables(&group).await), ("CUSTOMERS#a".to_owned(), 4));
    assert_eq!(versions(&other, &key("VOUCHERS", "x"), Range::default()).await, [1, 2]);
    assert_eq!(versions(&log, &key("CARDS", "x"), Range::default()).await, [1, 2]);
    let twice =
        [(&log, push("CARDS", "x", PushPlace::End)), (&other, push("CARDS", "x", PushPlace::End))];
    for group in [&twice[..], &[]] {
        let refused = push_to_tables(group).await;
        assert!(matches!(refused, Err(AggregateError::Invalid(_))), "{refused:?}");
    }
}
