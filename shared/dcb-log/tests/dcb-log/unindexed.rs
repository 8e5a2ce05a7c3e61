//! A repair names and puts missing index items, beside writers and beside another repair.

use std::collections::BTreeMap;

use futures::TryStreamExt;
use ringfence_aws::wire::{Exchange, Fault, Wire};
use ringfence_aws::{Clock, Item};
use ringfence_core::{Catalog, Consistency, Event, EventLog, NewEvent, events};
use ringfence_dcb_log::DcbReport;
use ringfence_harness::bound;

use crate::items::{catalog, moved, plan};
use crate::repair::{stepped, stepped_repair};
use crate::stack::{NOW_MS, Stack, TABLE, append, committed, envelope};
use crate::verify::{OPTIONS, repair, verify};

mod before {
    use super::{Catalog, Event};

    /// As in [`crate::items`], before decisions read depots or journeys.
    #[derive(Clone, Debug, PartialEq, Event)]
    pub(crate) struct Moved {
        #[tag(partition)]
        pub(crate) parcel_id: String,
        #[tag(key = "depot")]
        pub(crate) from: String,
        #[tag(key = "depot")]
        pub(crate) to: String,
    }

    pub(crate) fn catalog() -> Catalog {
        Catalog::new("parcels", [Moved::SCHEMA]).expect("no contradictions")
    }
}

/// The append of a writer of the old version, at this time.
pub(crate) async fn moved_before(stack: &Stack, ms: u64, parcel: &str) {
    let event = before::Moved { parcel_id: parcel.into(), from: "x".into(), to: "y".into() };
    let catalog = before::catalog();
    let log = stack.log_of(&catalog, &Clock::fixed(ms));
    committed(append(&log, events![event], &envelope()).await);
}

fn entries(depot: u64, all: u64) -> BTreeMap<String, u64> {
    let entries = [("tag#depot", depot), ("tag#$type", all)].into_iter();
    entries.filter(|(_, n)| *n > 0).map(|(name, n)| (name.to_owned(), n)).collect()
}

pub(crate) async fn index_items(stack: &Stack) -> Vec<Item> {
    let items = stack.items().await.into_iter();
    let mut items: Vec<_> = items.filter(|item| item.contains_key("indexOf")).collect();
    items.sort_by_key(|item| format!("{:?}", (&item["id"], &item["position"])));
    items
}

pub(crate) async fn delete(stack: &Stack, item: &Item) {
    let mut key = item.clone();
    key.retain(|name, _| name == "id" || name == "position");
    let delete = stack.client.delete_item().table_name(TABLE).set_key(Some(key));
    delete.send().await.expect("deleted");
}

#[tokio::test]
async fn a_missing_index_item_is_named_and_restored() {
    let stack = Stack::start(catalog()).await;
    stack.seed(vec![moved("p", "x", "y"), moved("q", "y", "z")]).await;
    let all = index_items(&stack).await;
    assert_eq!(all.len(), 6);
    for (n, item) in all.iter().enumerate() {
        delete(&stack, item).await;
        let of_type = item["id"].as_s().expect("a text").starts_with("tag#$type");
        let lacking = if of_type { entries(0, 1) } else { entries(1, 0) };
        let report = verify(&stack).await;
        assert_eq!((report.in_order(), &report.unindexed), (false, &lacking), "item {n}");
        let report = repair(&stack).await;
        assert_eq!((report.in_order(), &report.indexed), (true, &lacking), "item {n}");
        assert_eq!(index_items(&stack).await, all, "item {n}");
    }
    assert_eq!(repair(&stack).await.indexed, BTreeMap::new());
}

#[tokio::test]
async fn events_and_index_items_are_read_strongly_and_fences_of_a_survey_are_not() {
    let stack = Stack::start(catalog()).await;
    stack.seed(vec![moved("p", "x", "y")]).await;
    stack.wire.forget();
    assert!(verify(&stack).await.in_order());
    let strong = stack.wire.take().into_iter().map(|Exchange { operation, request, .. }| {
        let of_items = request["RequestItems"][TABLE]["ConsistentRead"] == true;
        (operation, of_items || request["ConsistentRead"] == true)
    });
    let expected = [("Scan", false), ("Scan", true), ("BatchGetItem", true)];
    let expected = expected.map(|(operation, strong)| (operation.to_owned(), strong));
    assert_eq!(strong.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn more_index_items_than_one_request_asks_for_are_put() {
    let stack = Stack::start(catalog()).await;
    for parcel in 0..45 {
        stack.seed(vec![moved(&format!("p{parcel}"), "x", "y")]).await;
    }
    for item in index_items(&stack).await {
        delete(&stack, &item).await;
    }
    assert_eq!(verify(&stack).await.unindexed, entries(90, 45));
    assert_eq!(repair(&stack).await.indexed, entries(90, 45));
    stack.check_fences().await;
}

#[tokio::test]
async fn a_newly_declared_tag_and_type_are_filled_beside_writers() {
    for slot in (0..).step_by(bound(2, 1)) {
        let stack = Stack::start(catalog()).await;
        for (ms, parcel) in [(1, "p"), (2, "q")] {
            moved_before(&stack, NOW_MS - 7_200_000 + ms, parcel).await;
        }
        let write = async |request: usize, _: &str| {
            if request == slot {
                stack.seed(vec![moved("r", "x", "z")]).await;
                assert!(repair(&stack).await.in_order(), "before {slot}");
            }
        };
        let (report, requests) = stepped_repair(&stack, write).await;
        assert!(report.in_order(), "before {slot}: {report:?}");
        let DcbReport { indexed, .. } = report;
        assert!(slot <= requests || indexed == entries(4, 2), "{indexed:?}");
        stack.check_fences().await;
        let expected = if slot < requests { 3 } else { 2 };
        for tags in [&[("depot", "x")][..], &[]] {
            let (log, plan) = (stack.log(), plan(&stack, tags));
            let read = log.read(&plan, Consistency::Strong, &envelope()).try_collect().await;
            let read: Vec<_> = read.expect("a read");
            assert_eq!(read.len(), expected, "before {slot}");
        }
        if slot > requests {
            break;
        }
    }
}

#[tokio::test]
async fn an_event_that_shows_before_its_index_items_is_not_reported() {
    let stack = Stack::start(catalog()).await;
    stack.seed(vec![moved("p", "x", "y")]).await;
    for seed in 0..8 {
        stack.wire.inject("BatchGetItem", 0, Fault::stale(seed));
        assert_eq!(
            verify(&stack).await,
            DcbReport { events: 1, fences: 3, ..DcbReport::default() }
        );
        stack.wire.inject("BatchGetItem", 0, Fault::stale(seed));
        assert_eq!(repair(&stack).await.indexed, BTreeMap::new());
    }
}

#[tokio::test]
async fn verifying_during_writes_finds_no_missing_index_item() {
    let stack = Stack::start(catalog()).await;
    let (wire, seed) = (Wire::default(), async || {
        let events: Vec<NewEvent> = vec![moved("p", "x", "y")];
        stack.seed(events).await;
    });
    seed().await;
    let log = stack.log_through(&wire, &stack.catalog);
    let (report, _) = stepped(&wire, log.verify_fences(&OPTIONS), async |_, _| seed().await).await;
    let report = report.expect("a report");
    assert!(report.in_order(), "{report:?}");
}

#[tokio::test]
async fn a_repair_of_index_items_whose_requests_fail_ends_and_is_right() {
    for fault in [
        Fault::LostAfter,
        Fault::LostBefore,
        Fault::error("InternalServerError"),
        Fault::error("ThrottlingException"),
        Fault::unprocessed(1),
    ] {
        for operation in ["BatchGetItem", "PutItem"] {
            let stack = Stack::start(catalog()).await;
            stack.seed(vec![moved("p", "x", "y")]).await;
            let lost = index_items(&stack).await;
            delete(&stack, &lost[0]).await;
            delete(&stack, &lost[2]).await;
            stack.wire.inject(operation, 0, fault.clone());
            let report = repair(&stack).await;
            let indexed: u64 = report.indexed.values().sum();
            assert_eq!((indexed, report.in_order()), (2, true), "{operation} {fault:?}");
            assert_eq!(index_items(&stack).await, lost);
        }
    }
}
