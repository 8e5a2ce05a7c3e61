//! Asserts exact requests and units. Payloads have 500 bytes, so that an event's item has at most 1,024.
//!
//! The units are computed from the documented sizes of the items; the emulator's own figures agree.

use std::num::NonZeroU32;

use ringfence_aggregate_log::{
    AggregateTable, ListOptions, NewAggregateEvent, Push, PushPlace, Range, Version,
};
use ringfence_aws::{Usage, item_bytes, read_units, transact_write_units, write_units};
use ringfence_core::Consistency;

use crate::customers::customer;
use crate::stack::{Stack, TABLE, event, key, versions};

/// JSON bytes of a payload.
const PAYLOAD_BYTES: usize = 500;

/// The cost of an operation: requests, units of the table, units of the index.
#[derive(Debug, PartialEq)]
struct Cost {
    requests: (u32, u32),
    read: f64,
    write: f64,
    index: f64,
}

fn cost(usage: &Usage) -> Cost {
    let index = usage.indexes.values().map(|units| units.read + units.write).sum();
    let (read, write) = (usage.tables.read, usage.tables.write);
    Cost { requests: (usage.reads, usage.writes), read, write, index }
}

fn padded() -> NewAggregateEvent {
    event("PointsAdded", "x".repeat(PAYLOAD_BYTES - 2).into())
}

/// A table with one aggregate that has this many events.
async fn filled(events: u64) -> (Stack, AggregateTable) {
    let stack = Stack::start();
    let seeder = stack.table();
    for version in 1..=events {
        let place = PushPlace::Forced(version);
        seeder.push_event(&customer("1"), place, padded()).await.expect("pushed");
    }
    let log = stack.table();
    (stack, log)
}

/// The bytes of all items.
async fn bytes(stack: &Stack) -> Vec<usize> {
    stack.items(TABLE).await.iter().map(item_bytes).collect()
}

#[tokio::test]
async fn create() {
    let (stack, log) = filled(0).await;
    let place = PushPlace::After(Version::NONE);
    log.push_event(&customer("1"), place, padded()).await.expect("pushed");
    let expected = Cost { requests: (0, 1), read: 0.0, write: 1.0, index: 1.0 };
    assert_eq!(cost(&log.meter().snapshot()), expected);
    assert_eq!(bytes(&stack).await.into_iter().map(write_units).sum::<f64>(), expected.write);
}

#[tokio::test]
async fn read_a_hundred_events() {
    let (stack, log) = filled(100).await;
    assert_eq!(versions(&log, &customer("1"), Range::default()).await.len(), 100);
    let expected = Cost { requests: (1, 0), read: 16.0, write: 0.0, index: 0.0 };
    assert_eq!(cost(&log.meter().snapshot()), expected);
    let sum = bytes(&stack).await.into_iter().sum();
    assert_eq!(read_units(sum, Consistency::Strong), expected.read);
}

#[tokio::test]
async fn append_to_a_hundred_events() {
    for (place, requests, read) in [
        // A push after a version that was read costs only the put.
        (None, (0, 1), 0.0),
        (Some(PushPlace::At(101)), (1, 1), 1.0),
        (Some(PushPlace::End), (1, 1), 1.0),
    ] {
        let (stack, log) = filled(100).await;
        let newest = crate::stack::events(&stack.table(), &customer("1"), Range::NEWEST).await;
        let place = place.unwrap_or(PushPlace::After(newest[0].version));
        log.push_event(&customer("1"), place, padded()).await.expect("pushed");
        let expected = Cost { requests, read, write: 1.0, index: 0.0 };
        assert_eq!(cost(&log.meter().snapshot()), expected, "{place:?}");
    }
}

#[tokio::test]
async fn decide_on_a_hundred_events_and_append() {
    let (_stack, log) = filled(100).await;
    let read = crate::stack::events(&log, &customer("1"), Range::default()).await;
    let place = PushPlace::After(read[99].version);
    log.push_event(&customer("1"), place, padded()).await.expect("pushed");
    let expected = Cost { requests: (1, 1), read: 16.0, write: 1.0, index: 0.0 };
    assert_eq!(cost(&log.meter().snapshot()), expected);
}

#[tokio::test]
async fn the_last_event_of_a_hundred() {
    let (_stack, log) = filled(100).await;
    assert_eq!(versions(&log, &customer("1"), Range::NEWEST).await, [100]);
    let expected = Cost { requests: (1, 0), read: 1.0, write: 0.0, index: 0.0 };
    assert_eq!(cost(&log.meter().snapshot()), expected);
}

#[tokio::test]
async fn a_group_of_five() {
    let (stack, log) = filled(0).await;
    let push = |n: u64| Push {
        key: key(["CUSTOMERS", "CARDS"][usize::from(n.is_multiple_of(2))], &n.to_string()),
        place: PushPlace::After(Version::NONE),
        events: vec![padded()],
    };
    log.push_event_group((1..=5).map(push).collect()).await.expect("pushed");
    let expected = Cost { requests: (0, 1), read: 0.0, write: 10.0, index: 5.0 };
    assert_eq!(cost(&log.meter().snapshot()), expected);
    let sum = bytes(&stack).await.into_iter().map(transact_write_units).sum::<f64>();
    assert_eq!(sum, expected.write);
}

#[tokio::test]
async fn list_forty_aggregates() {
    let stack = Stack::start();
    for n in 0..50 {
        let place = PushPlace::After(Version::NONE);
        let pushed = stack.table().push_event(&customer(&n.to_string()), place, padded()).await;
        pushed.expect("pushed");
    }
    let log = stack.table();
    let list = ListOptions { limit: NonZeroU32::new(40), ..ListOptions::default() };
    let listed = log.list_aggregate_ids("CUSTOMERS", &list).await.expect("a page");
    assert_eq!(listed.aggregates.len(), 40);
    // One eventually consistent read of 40 entries of some 90 bytes.
    let expected = Cost { requests: (1, 0), read: 0.0, write: 0.0, index: 0.5 };
    assert_eq!(cost(&log.meter().snapshot()), expected);
}
