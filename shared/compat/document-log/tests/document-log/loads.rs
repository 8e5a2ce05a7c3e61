//! The cache saves reads, and never leads to a wrong answer.

use std::time::Duration;

use ringfence_aws::Clock;
use ringfence_core::{Consistency, Envelope};
use ringfence_document_log::{
    AccessStrategy, Body, Cache, Decided, DocumentLog, DynamoStore, Encoding, Expect, Load,
    MemoryStore, Store, TipChange, Unfold, Write,
};
use serde_json::json;

use crate::basket::{
    Closed, Event, State, add, added, baskets, snapshot, some_cache, state, transact,
};
use crate::stack::{NOW_MS, Stack, events_max, log, name};

#[tokio::test]
async fn a_cached_state_needs_only_a_check_of_the_tip() {
    let stack = Stack::start().await;
    for (id, access) in [("all", AccessStrategy::Unoptimized), ("snapshot", snapshot())] {
        let category = baskets(log(stack.store()), access, some_cache());
        add(&category, id, 1).await;
        stack.take();
        for sku in 2..5 {
            add(&category, id, sku).await;
            assert_eq!(stack.operations(), ["GetItem", "UpdateItem"]);
        }
        state(&category, id).await;
        assert_eq!(stack.operations(), ["GetItem"]);
    }
}

#[tokio::test]
async fn only_events_after_the_cached_state_are_read() {
    let stack = Stack::start().await;
    let limited = |store: DynamoStore| log(store).with_limits(events_max(1));
    let cached = baskets(limited(stack.store()), AccessStrategy::Unoptimized, some_cache());
    let other = baskets(limited(stack.other_store()), AccessStrategy::Unoptimized, Cache::none());
    for sku in 0..10 {
        add(&cached, "x", sku).await;
    }
    for sku in 10..13 {
        add(&other, "x", sku).await;
    }
    stack.take();
    assert_eq!(state(&cached, "x").await.total(), 13);
    let exchanges = stack.take();
    let query = &exchanges[1];
    assert_eq!((exchanges.len(), &*query.operation), (2, "Query"));
    // The Tip has one of the three new events, and each calf has at least one.
    assert_eq!(query.answer["Items"].as_array().expect("items").len(), 2);
}

#[tokio::test]
async fn a_stale_or_cached_read_sends_no_request_within_its_time() {
    let stack = Stack::start().await;
    let clock = Clock::fixed(NOW_MS);
    let log = DocumentLog::new(stack.store(), clock.clone());
    let category = baskets(log, snapshot(), some_cache());
    let total = async |load| {
        let read = category.query("x", load, &Envelope::default(), State::total).await;
        let (total, _) = read.expect("it can be read");
        (total, stack.operations())
    };
    assert_eq!(total(Load::Cached).await, (0, vec!["GetItem".to_owned()]));
    add(&category, "x", 1).await;
    stack.take();
    let other = baskets(crate::stack::log(stack.other_store()), snapshot(), Cache::none());
    add(&other, "x", 2).await;
    clock.set(NOW_MS + 1_000);
    assert_eq!(total(Load::Cached).await, (1, vec![]));
    assert_eq!(total(Load::Stale(Duration::from_secs(1))).await, (1, vec![]));
    clock.set(NOW_MS + 1_001);
    let asked = vec!["GetItem".to_owned()];
    assert_eq!(total(Load::Stale(Duration::from_secs(1))).await, (2, asked));
    assert_eq!(total(Load::Stale(Duration::from_secs(1))).await, (2, vec![]));
}

#[tokio::test]
async fn an_assumed_empty_stream_is_written_without_a_read() {
    let stack = Stack::start().await;
    let category = baskets(log(stack.store()), snapshot(), Cache::none());
    let first = transact(&category, "x", Load::Empty, |state| state.add(1, 1)).await;
    assert_eq!((first.version, first.attempts, stack.operations()), (1, 1, vec!["PutItem".into()]));
    // The refusal returns the Tip. The second decision needs nothing else.
    let second = transact(&category, "x", Load::Empty, |state| state.add(2, 1)).await;
    assert_eq!((second.version, second.attempts), (2, 2));
    let operations = stack.operations();
    assert_eq!(operations.last().map(String::as_str), Some("UpdateItem"));
    assert_eq!(state(&category, "x").await.total(), 2);
}

#[tokio::test]
async fn a_rejection_rests_on_all_acknowledged_events() {
    let stack = Stack::start().await;
    let cached = baskets(log(stack.store()), snapshot(), some_cache());
    let other = baskets(log(stack.other_store()), snapshot(), Cache::none());
    add(&cached, "x", 1).await;
    let close = |_: &State| Ok(vec![Event::Closed]);
    transact(&other, "x", Load::Eventual, close).await;
    // The cached state would accept the command; the append shows that it is old.
    let rejected = transact(&cached, "x", Load::Cached, |state| state.add(2, 1)).await;
    assert_eq!((rejected.outcome, rejected.attempts), (Decided::Rejected(Closed), 2));
    // On the cached state, the command would write nothing, so it reads the store.
    let reopen = |_: &State| Ok(vec![Event::Snapshot { items: [].into(), closed: false }]);
    transact(&other, "x", Load::Eventual, reopen).await;
    let done = transact(&cached, "x", Load::Cached, |state| state.ensure(1)).await;
    assert_eq!(done.outcome, Decided::Accepted(vec![added(1).of("x")]));
    stack.take();
    let nothing = transact(&cached, "x", Load::Cached, |state| state.ensure(1)).await;
    assert_eq!((nothing.outcome, stack.operations().len()), (Decided::Accepted(vec![]), 1));
    let nothing = transact(&cached, "x", Load::Strong, |state| state.ensure(1)).await;
    assert_eq!((nothing.outcome, stack.operations().len()), (Decided::Accepted(vec![]), 1));
}

#[tokio::test]
async fn an_unfold_of_another_version_than_the_tip_is_ignored() {
    let store = MemoryStore::default();
    let category = baskets(log(store.clone()), snapshot(), Cache::none());
    for sku in 1..3 {
        add(&category, "x", sku).await;
    }
    let envelope = Envelope::default();
    let tip = category.log().tip(&name("x"), Consistency::Strong, &envelope).await;
    let mut tip = tip.expect("an answer").expect("a Tip");
    assert_eq!(tip.unfolds[0].version, 2);
    // It has the state before the last event.
    tip.unfolds[0] = Unfold {
        version: 1,
        data: Body::of_json(&json!({ "items": { "1": 1 }, "closed": false }), Encoding::Raw),
        ..tip.unfolds[0].clone()
    };
    let expect = Expect::Etag(tip.etag.clone().expect("an etag"));
    let write = Write { calf: None, tip, change: TipChange::Replace, expect };
    store.write(&write).await.expect("written");
    assert_eq!(state(&category, "x").await.total(), 2);
}
