//! The promises of a table: pushes, their places, groups and ranges.

use ringfence_aggregate_log::{
    AggregateError, AggregateTable, NewAggregateEvent, Push, PushPlace, Range, VERSION_MAX, Version,
};
use ringfence_core::EVENT_BYTES_MAX;
use serde_json::json;

use crate::customers::{added, customer};
use crate::stack::{NOW, conflict, event, events, in_process, key, versions};

/// Pushes `count` events to a new aggregate.
async fn fill(table: &AggregateTable, id: &str, count: i64) {
    for points in 0..count {
        table.push_event(&customer(id), PushPlace::End, added(points)).await.expect("pushed");
    }
}

#[tokio::test]
async fn a_read_returns_the_pushed_event() {
    let (table, clock) = in_process();
    let key = customer("c#1");
    let payload = json!({ "name": "Ada", "nested": { "list": [1, 2.5, -3, null, true, ""] } });
    let first = NewAggregateEvent {
        metadata: Some(json!({ "id": "free of rules", "correlationId": "r-1" })),
        ..event("CustomerRegistered", payload.clone())
    };
    let pushed =
        table.push_event(&key, PushPlace::After(Version::NONE), first).await.expect("pushed");
    assert_eq!((pushed.version.number(), &*pushed.timestamp), (1, NOW));
    assert_eq!((&pushed.key, pushed.payload.as_ref()), (&key, Some(&payload)));

    clock.set(crate::stack::NOW_MS + 1_500);
    let bare = |event_type: &str, timestamp_ms| NewAggregateEvent {
        event_type: event_type.to_owned(),
        payload: None,
        metadata: None,
        timestamp_ms,
    };
    let place = PushPlace::After(pushed.version);
    let second = table.push_event(&key, place, bare("B", None)).await.expect("pushed");
    assert_eq!(second.timestamp, "2024-06-23T00:00:01.500Z");
    let place = PushPlace::After(second.version);
    let third = table.push_event(&key, place, bare("C", Some(0))).await.expect("pushed");
    assert_eq!(third.timestamp, "1970-01-01T00:00:00.000Z");
    assert_eq!(events(&table, &key, Range::default()).await, [pushed, second, third]);
}

#[tokio::test]
async fn a_taken_version_is_a_conflict_that_names_it() {
    let (table, _) = in_process();
    fill(&table, "1", 2).await;
    for place in [PushPlace::After(Version::NONE), PushPlace::At(1), PushPlace::At(2)] {
        let version = if place == PushPlace::At(2) { 2 } else { 1 };
        let pushed = table.push_event(&customer("1"), place, added(9)).await;
        assert_eq!(conflict(pushed), ("CUSTOMERS#1".to_owned(), version), "{place:?}");
    }
    assert_eq!(versions(&table, &customer("1"), Range::default()).await, [1, 2]);
}

#[tokio::test]
async fn a_version_that_would_leave_a_gap_is_refused() {
    let (table, _) = in_process();
    let key = customer("1");
    for (there, version) in [(0, 2), (1, 3), (1, 7)] {
        if there == 1 {
            let _ = table.push_event(&key, PushPlace::At(1), added(0)).await;
        }
        match table.push_event(&key, PushPlace::At(version), added(0)).await {
            Err(AggregateError::Gap { version: refused, newest, .. }) => {
                assert_eq!((refused, newest.number()), (version, there));
            }
            other => panic!("no gap: {other:?}"),
        }
    }
    let pushed = table.push_event(&key, PushPlace::At(2), added(0)).await.expect("no gap");
    assert_eq!(pushed.version.number(), 2);
}

#[tokio::test]
async fn an_event_at_the_end_goes_after_the_newest() {
    let (table, _) = in_process();
    fill(&table, "1", 3).await;
    assert_eq!(versions(&table, &customer("1"), Range::default()).await, [1, 2, 3]);
}

#[tokio::test]
async fn a_forced_event_replaces_what_is_there() {
    let (table, _) = in_process();
    fill(&table, "1", 3).await;
    table.push_event(&customer("1"), PushPlace::Forced(2), added(99)).await.expect("forced");
    let found = events(&table, &customer("1"), Range::default()).await;
    assert_eq!(found.len(), 3);
    assert_eq!(found[1].payload, Some(json!({ "points": 99 })));
}

#[tokio::test]
async fn a_range_has_its_versions_in_its_order() {
    let (table, _) = in_process();
    fill(&table, "1", 10).await;
    let all = Range::default();
    for (range, expected) in [
        (all, (1..=10).collect::<Vec<_>>()),
        (Range { min_version: Some(8), ..all }, vec![8, 9, 10]),
        (Range { max_version: Some(3), ..all }, vec![1, 2, 3]),
        (Range { min_version: Some(4), max_version: Some(5), ..all }, vec![4, 5]),
        (Range { min_version: Some(5), max_version: Some(4), ..all }, vec![]),
        (Range { min_version: Some(11), ..all }, vec![]),
        (Range { limit: Some(2), ..all }, vec![1, 2]),
        (Range { limit: Some(0), ..all }, vec![]),
        (Range { limit: Some(11), ..all }, (1..=10).collect()),
        (Range { min_version: Some(3), limit: Some(2), ..all }, vec![3, 4]),
        (Range { max_version: Some(7), limit: Some(2), reverse: true, ..all }, vec![7, 6]),
        (Range { reverse: true, ..all }, (1..=10).rev().collect()),
        (Range::NEWEST, vec![10]),
    ] {
        assert_eq!(versions(&table, &customer("1"), range).await, expected, "{range:?}");
    }
    assert!(versions(&table, &customer("2"), all).await.is_empty());
}

#[tokio::test]
async fn aggregates_with_equal_ids_in_two_stores_are_separate() {
    let (table, _) = in_process();
    fill(&table, "1", 2).await;
    let card = key("CARDS", "1");
    let pushed = table.push_event(&card, PushPlace::After(Version::NONE), added(5)).await;
    assert_eq!(pushed.expect("pushed").version.number(), 1);
    assert_eq!(versions(&table, &customer("1"), Range::default()).await, [1, 2]);
    assert_eq!(versions(&table, &card, Range::default()).await, [1]);
}

fn push(store: &str, id: &str, place: PushPlace, points: &[i64]) -> Push {
    Push { key: key(store, id), place, events: points.iter().map(|p| added(*p)).collect() }
}

#[tokio::test]
async fn a_group_is_one_push() {
    let (table, clock) = in_process();
    fill(&table, "1", 1).await;
    clock.set(0);
    let mut group = vec![
        push("CUSTOMERS", "1", PushPlace::At(2), &[-5, -6]),
        push("CUSTOMERS", "2", PushPlace::After(Version::NONE), &[5]),
        push("CARDS", "1", PushPlace::End, &[7]),
    ];
    group[1].events[0].timestamp_ms = Some(crate::stack::NOW_MS);
    let pushed = table.push_event_group(group).await.expect("pushed");
    let names: Vec<_> =
        pushed.iter().map(|e| format!("{} {}", e.key, e.version.number())).collect();
    assert_eq!(names, ["CUSTOMERS#1 2", "CUSTOMERS#1 3", "CUSTOMERS#2 1", "CARDS#1 1"]);
    assert!(pushed.iter().all(|event| event.timestamp == NOW), "{pushed:?}");
    let range = Range { min_version: Some(2), ..Range::default() };
    assert_eq!(events(&table, &customer("1"), range).await, pushed[..2]);
    assert_eq!(events(&table, &key("CARDS", "1"), Range::default()).await, pushed[3..]);
}

#[tokio::test]
async fn a_conflict_of_a_group_changes_nothing_and_names_the_aggregate() {
    let (table, _) = in_process();
    fill(&table, "1", 1).await;
    let group = vec![
        push("CARDS", "1", PushPlace::After(Version::NONE), &[7]),
        push("CUSTOMERS", "1", PushPlace::After(Version::NONE), &[7]),
    ];
    let pushed = table.push_event_group(group).await;
    assert_eq!(conflict(pushed), ("CUSTOMERS#1".to_owned(), 1));
    assert!(versions(&table, &key("CARDS", "1"), Range::default()).await.is_empty());

    let group = vec![
        push("CARDS", "1", PushPlace::After(Version::NONE), &[7]),
        push("CUSTOMERS", "1", PushPlace::At(3), &[7]),
    ];
    let pushed = table.push_event_group(group).await;
    assert!(matches!(pushed, Err(AggregateError::Gap { version: 3, .. })), "{pushed:?}");
    assert!(versions(&table, &key("CARDS", "1"), Range::default()).await.is_empty());
}

#[tokio::test]
async fn an_invalid_group_is_refused() {
    let (table, _) = in_process();
    let one = |id: &str| push("CARDS", id, PushPlace::End, &[1]);
    let mut early = one("2");
    early.events[0].timestamp_ms = Some(1);
    let mut late = one("3");
    late.events[0].timestamp_ms = Some(2);
    for (group, why) in [
        (vec![], "at least one event"),
        (vec![push("CARDS", "1", PushPlace::End, &[])], "at least one event"),
        (vec![one("1"), one("1")], "CARDS#1 is in the group twice"),
        (vec![one("1"), early, late], "not 1970-01-01T00:00:00.001Z, 1970-01-01T00:00:00.002Z"),
        (vec![push("CARDS", "1", PushPlace::At(0), &[1])], "the first version is 1"),
        (vec![push("CARDS", "1", PushPlace::Forced(0), &[1])], "the first version is 1"),
    ] {
        match table.push_event_group(group).await {
            Err(AggregateError::Invalid(found)) => assert!(found.contains(why), "{found}"),
            other => panic!("{why}: {other:?}"),
        }
    }
    assert!(versions(&table, &key("CARDS", "1"), Range::default()).await.is_empty());
}

#[tokio::test]
async fn an_event_that_no_table_can_hold_is_refused() {
    let (table, _) = in_process();
    let cards = |events: usize| vec![push("CARDS", "1", PushPlace::End, &vec![1; events])];
    let large = |bytes: usize| event("LARGE", "x".repeat(bytes).into());
    let refused = table.push_event_group(cards(101)).await;
    assert!(matches!(refused, Err(AggregateError::Limit(_))), "{refused:?}");
    let refused = table.push_event(&customer("1"), PushPlace::End, large(EVENT_BYTES_MAX)).await;
    assert!(matches!(refused, Err(AggregateError::Limit(_))), "{refused:?}");
    let group = Push {
        key: customer("1"),
        place: PushPlace::End,
        events: vec![large(EVENT_BYTES_MAX - 1_000); 12],
    };
    let refused = table.push_event_group(vec![group]).await;
    assert!(matches!(refused, Err(AggregateError::Limit(_))), "{refused:?}");
    for (payload, path) in [(json!(1e200), "payload"), (json!([{ "": 1 }]), "payload[0]")] {
        let refused = table.push_event(&customer("1"), PushPlace::End, event("N", payload)).await;
        let names = matches!(
            &refused,
            Err(AggregateError::Unstorable { source, .. }) if source.path == path
        );
        assert!(names, "{refused:?}");
    }
    for event_type in ["", "__REPLAYED__", "__AGGREGATE_EXISTS__"] {
        let refused =
            table.push_event(&customer("1"), PushPlace::End, event(event_type, json!(1))).await;
        assert!(matches!(refused, Err(AggregateError::Invalid(_))), "{refused:?}");
    }
    for version in [VERSION_MAX + 1, u64::MAX] {
        let refused = table.push_event(&customer("1"), PushPlace::Forced(version), added(1)).await;
        assert!(matches!(refused, Err(AggregateError::Limit(_))), "{refused:?}");
    }
    assert!(versions(&table, &customer("1"), Range::default()).await.is_empty());
    table.push_event_group(cards(100)).await.expect("at the limit");
}
