//! Slots: what a decision has seen of a partition, where its events go, and the cost of a conflict.

use std::time::Duration;

use futures::TryStreamExt;
use ringfence_aws::Clock;
use ringfence_aws::wire::{Edit, Exchange, Fault};
use ringfence_core::kit::id;
use ringfence_core::{
    Append, BoundaryId, Catalog, Consistency, Event, EventLog, EventSchema, Extent, LogError,
    NewEvent, Plan, Query, QueryItem, SequencedEvent, Slice, events,
};
use serde_json::Value;

use crate::faults::{add, ordered, renamed, requests, shop, stale};
use crate::reads::{catalog, noted, plan};
use crate::shop::{
    ChangeProductName, OrderListed, PlaceOrder, ProductAdded, ProductListed, ProductStocked,
    RecordDemand,
};
use crate::stack::{NOW_MS, Stack, append, code, committed, envelope};
use crate::unindexed;
use crate::verify::before;

/// A page without the items at this position, as from a replica that does not have them yet.
fn without(position: u64) -> Fault {
    Fault::Reply(Edit::new(move |page| {
        let items = page["Items"].as_array_mut().expect("items");
        let position = Value::from(position.to_string());
        items.retain(|item| item["position"]["N"] != position);
    }))
}

/// A page that ends before this position.
fn until(position: u64) -> Fault {
    Fault::Reply(Edit::new(move |page| {
        let before = |item: &Value| {
            let slot = item["position"]["N"].as_str().and_then(|slot| slot.parse::<u64>().ok());
            slot.is_some_and(|slot| slot < position)
        };
        page["Items"].as_array_mut().expect("items").retain(before);
    }))
}

fn operations(exchanges: &[Exchange]) -> Vec<&str> {
    exchanges.iter().map(|exchange| exchange.operation.as_str()).collect()
}

/// The strong queries: the partition of each, and the slot after which it reads.
fn tails(exchanges: &[Exchange]) -> Vec<(String, String)> {
    let queries = requests(exchanges, "Query").into_iter();
    let strong = queries.filter(|query| query["ConsistentRead"] == true);
    let of = |query: &Value, name: &str, kind: &str| {
        let value = &query["ExpressionAttributeValues"][name][kind];
        value.as_str().unwrap_or_default().to_owned()
    };
    strong.map(|query| (of(&query, ":key", "S"), of(&query, ":than", "N"))).collect()
}

/// Appends three notes of one reader in one book, one at a time, and reads them through these faults. Returns what a
/// decision has seen: the last slot of the partition, the count of the reader's fence, and the number of events.
async fn seen_through(faults: Vec<Fault>) -> (u64, u64, usize) {
    let stack = Stack::start(catalog()).await;
    for note in ["1", "2", "3"] {
        stack.seed(events![noted("b", "r", note)]).await;
    }
    let plan = plan(&stack, &[&[("bookId", "b")], &[("readerId", "r")]]);
    // The partition is read first.
    faults.into_iter().for_each(|fault| stack.wire.inject("Query", 0, fault));
    let (log, envelope) = (stack.log(), envelope());
    let read = log.read_with_seen(&plan, Consistency::Eventual, &envelope).await;
    let (events, seen) = read.expect("a read");
    assert!(stack.wire.is_spent());
    let slot = seen.prefix(&BoundaryId::tag("bookId", "b")).map_or(0, |prefix| prefix.slot);
    let counted = match seen.of(&BoundaryId::tag("readerId", "r")) {
        Some(Extent::Fence { counts, .. }) => counts["Noted"],
        other => panic!("{other:?}"),
    };
    // Unseen events prevent an append.
    let append = Append {
        events: events![noted("b", "r", "4")],
        seen: Some(&seen),
        record: None,
        envelope: &envelope,
    };
    match log.append(append).await {
        Ok(_) => assert_eq!(slot, 3),
        Err(LogError::Conflict(_)) => assert!(slot < 3),
        Err(error) => panic!("{error:?}"),
    }
    stack.check_fences().await;
    (slot, counted, events.len())
}

#[tokio::test]
async fn nothing_beyond_a_gap_is_seen() {
    // A stale read of the partition leaves a gap, even if the reader's index shows the event. Events after the gap do
    // not count.
    assert_eq!(seen_through(vec![without(2)]).await, (1, 1, 1));
    assert_eq!(seen_through(vec![until(1)]).await, (0, 0, 0));
    assert_eq!(seen_through(vec![without(2), without(2)]).await, (1, 1, 1));
    assert_eq!(seen_through(vec![stale(), without(1)]).await, (0, 0, 0));
    assert_eq!(seen_through(vec![until(2), without(2)]).await, (1, 1, 1));
    // A stale index shows less than the partition.
    assert_eq!(seen_through(vec![until(4), stale()]).await, (3, 3, 3));
}

#[tokio::test]
async fn a_gap_between_two_pages_is_one_too() {
    let stack = Stack::start(catalog()).await;
    for note in ["1", "2", "3"] {
        stack.seed(events![noted("b", "r", note)]).await;
    }
    let plan = plan(&stack, &[&[("bookId", "b")]]);
    // Each page has one item, and the second page has lost it.
    stack.wire.inject("Query", 0, Fault::page(1));
    stack.wire.inject("Query", 0, without(2));
    let read = stack.log().read(&plan, Consistency::Eventual, &envelope()).try_collect().await;
    let read: Vec<SequencedEvent> = read.expect("a read");
    assert_eq!(read.iter().map(|event| event.slot).collect::<Vec<_>>(), [1]);
}

#[tokio::test]
async fn a_put_into_an_unread_partition_with_a_lost_answer_keeps_its_slot() {
    let late = Fault::Stray(Duration::from_millis(5));
    for fault in [Fault::LostBefore, Fault::LostAfter, late] {
        for event in [NewEvent::from(renamed("x")), ordered("o1").into()] {
            let stack = shop().await;
            stack.wire.inject("PutItem", 0, fault.clone());
            stack.wire.inject("TransactWriteItems", 0, fault.clone());
            let appended = append(&stack.log(), vec![event], &envelope()).await;
            assert_eq!(committed(appended)[0].slot, 1, "{fault:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
            stack.check_fences().await;
            let items = stack.items().await.into_iter();
            assert_eq!(items.filter(|item| item.contains_key("event")).count(), 1, "{fault:?}");
        }
    }
}

#[tokio::test]
async fn a_taken_slot_of_an_unread_partition_moves_the_put_without_a_new_decision() {
    let stack = shop().await;
    let ahead = stack.seed(events![renamed("1"), renamed("2"), renamed("3")]).await;
    stack.wire.forget();
    // The pair is read by its composite. The end of the product's partition is read next, and lags.
    stack.wire.inject("Query", 1, stale());
    let slow = stack.log_at(&Clock::fixed(NOW_MS - 30_000));
    let (product_id, order_id) = (id("p1"), id("o1"));
    let command = RecordDemand::Record { product_id, order_id };
    let decisions = ringfence_core::Decisions::new(0);
    let envelope = envelope();
    let handled =
        ringfence_core::handle(&slow, &stack.catalog, &decisions, &command, &envelope).await;
    assert_eq!(handled.expect("it is accepted").attempts, 1);
    let exchanges = stack.wire.take();
    let expected = ["Query", "Query", "TransactWriteItems", "Query", "TransactWriteItems"];
    assert_eq!(operations(&exchanges), expected);
    let ends: Vec<_> = requests(&exchanges, "Query")
        .into_iter()
        .map(|query| (query["ScanIndexForward"].clone(), query["ConsistentRead"].clone()))
        .collect();
    let end = |strong: bool| (false.into(), strong.into());
    assert_eq!(ends[1..], [end(false), end(true)]);
    let events: Vec<_> = stack.log().scan().try_collect().await.expect("a scan");
    let demand = events.iter().find(|event| event.event_type == "DemandRecorded");
    let demand = demand.expect("it is there");
    assert_eq!(demand.slot, 4);
    assert!(demand.at > ahead[2].at);
    stack.check_fences().await;
}

/// The last events of the partition have another type than the decision reads, and are later than the clock.
#[tokio::test]
async fn a_read_by_tag_finds_the_end_of_its_partition_for_every_type() {
    #[derive(Event)]
    struct Joined {
        #[tag(partition, cross_partition)]
        guest_id: String,
    }
    let named = |name: &'static str, strong: bool| {
        let mut schema = EventSchema { name: name.into(), ..Joined::SCHEMA };
        schema.tags.to_mut().iter_mut().for_each(|tag| tag.strong = strong);
        schema
    };
    for strong in [false, true] {
        let schemas = [named("Joined", strong), named("Greeted", strong)];
        let stack = Stack::start(Catalog::new("guests", schemas)).await;
        let joined = || NewEvent::from(Joined { guest_id: "g".to_owned() });
        let greeted = || NewEvent { event_type: "Greeted".into(), ..joined() };
        stack.seed(vec![joined(), greeted(), greeted()]).await;
        stack.wire.forget();
        let items = vec![QueryItem { tags: joined().tags, types: vec!["Joined".into()] }];
        let plan = Plan::new(&Query { items }, &stack.catalog).expect("a route");
        let (log, envelope) = (stack.log_at(&Clock::fixed(NOW_MS - 30_000)), envelope());
        let read = log.read_with_seen(&plan, Consistency::Eventual, &envelope).await;
        let (_, seen) = read.expect("a read");
        let append =
            Append { events: vec![joined()], seen: Some(&seen), record: None, envelope: &envelope };
        assert_eq!(committed(log.append(append).await)[0].slot, 4, "{strong}");
        assert_eq!(operations(&stack.wire.take()), ["Query", "TransactWriteItems"], "{strong}");
        stack.check_fences().await;
    }
}

#[tokio::test]
async fn several_events_take_the_next_slots_and_count_their_followers() {
    let stack = shop().await;
    stack.seed(events![renamed("1")]).await;
    let stocked = |product| ProductStocked { product_id: id(product) };
    let appended =
        stack.seed(events![renamed("2"), stocked("p2"), renamed("3"), stocked("p1")]).await;
    let places =
        appended.iter().map(|e| (e.partition.as_str(), e.slot, e.rest, e.at - appended[0].at));
    let places: Vec<_> = places.collect();
    let expected = [
        ("productId:p1", 2, 2, 0),
        ("productId:p2", 1, 0, 1),
        ("productId:p1", 3, 1, 2),
        ("productId:p1", 4, 0, 3),
    ];
    assert_eq!(places, expected);
    stack.check_fences().await;
}

fn rename(name: &str) -> ChangeProductName {
    ChangeProductName { product_id: id("p1"), name: name.to_owned() }
}

#[tokio::test]
async fn after_a_conflict_the_tail_is_read_and_folded_on_top() {
    let stack = shop().await;
    let added = ProductAdded { product_id: id("p1"), name: "0".to_owned() };
    stack.seed(events![added, renamed("1"), renamed("2")]).await;
    let stocked = ProductStocked { product_id: id("p1") };
    // The first read misses an event: another name, or a type that the decision does not read.
    for (missed, accepted) in [(NewEvent::from(renamed("lamp")), false), (stocked.into(), true)] {
        let slot = stack.seed(vec![missed]).await[0].slot;
        stack.wire.forget();
        stack.wire.inject("Query", 0, until(slot));
        let handled = stack.run(&rename("lamp")).await.expect("it is accepted");
        let exchanges = stack.wire.take();
        assert_eq!(tails(&exchanges), [("productId:p1".to_owned(), (slot - 1).to_string())]);
        assert_eq!(handled.attempts, 2);
        let last = exchanges.last().map_or("", |exchange| &*exchange.operation);
        // If the product has the name already, the strong read of the tail shows it at that moment. Otherwise the
        // decision repeats and puts its event at the next slot.
        assert_eq!(last, if accepted { "PutItem" } else { "Query" });
        stack.seed(events![renamed("other")]).await;
    }
    stack.check_fences().await;
}

fn stocked(product: &str) -> ProductStocked {
    ProductStocked { product_id: id(product) }
}

fn listed(product: &str) -> ProductListed {
    ProductListed { product_id: id(product) }
}

fn place(order: &str) -> PlaceOrder {
    let product_ids = vec![id("p1"), id("p2")];
    PlaceOrder { order_id: id(order), product_ids, paid: true }
}

fn order_listed(order: &str) -> OrderListed {
    OrderListed { order_id: id(order), product_ids: vec![id("p1"), id("p2")] }
}

/// Runs an order whose read of the product `p1` ends before this slot. Returns how often it was decided, and which
/// tails were read.
async fn order<S: Slice>(stack: &Stack, command: S, slot: u64) -> (u32, Vec<(String, String)>) {
    stack.wire.forget();
    // The partitions are read in the order of their names: the order, then the products.
    stack.wire.inject("Query", 1, until(slot));
    let handled = stack.accept(command).await;
    assert!(stack.wire.is_spent());
    (handled.attempts, tails(&stack.wire.take()))
}

#[tokio::test]
async fn a_conflict_on_one_of_several_partitions_reads_the_tail_of_that_one() {
    let stack = shop().await;
    stack.seed(events![stocked("p1"), stocked("p2")]).await;
    stack.seed(events![renamed("x")]).await;
    let (attempts, tails) = order(&stack, place("o1"), 2).await;
    assert_eq!((attempts, tails), (2, vec![("productId:p1".to_owned(), "1".to_owned())]));
    stack.check_fences().await;
}

#[tokio::test]
async fn other_events_of_a_partition_do_not_disturb_a_decision_on_its_fenced_types() {
    let stack = shop().await;
    stack.seed(events![listed("p1"), listed("p2")]).await;
    stack.seed(events![renamed("x")]).await;
    assert_eq!(order(&stack, order_listed("o1"), 2).await, (1, vec![]));
    // One of the types that it reads does disturb it.
    stack.seed(events![listed("p1")]).await;
    let (attempts, tails) = order(&stack, order_listed("o2"), 3).await;
    assert_eq!((attempts, tails), (2, vec![("productId:p1".to_owned(), "2".to_owned())]));
    stack.check_fences().await;
}

#[tokio::test]
async fn a_rejection_on_fenced_types_looks_at_their_fences() {
    let stack = shop().await;
    stack.seed(events![listed("p1"), renamed("x")]).await;
    stack.wire.forget();
    assert_eq!(code(&stack.run(&order_listed("o1")).await), "ProductsNotAvailable");
    let exchanges = stack.wire.take();
    assert_eq!(operations(&exchanges), ["Query", "Query", "Query", "TransactGetItems"]);
    let gets = &exchanges[3].request["TransactItems"];
    let keys = gets.as_array().expect("gets").iter().map(|get| {
        let key = &get["Get"]["Key"];
        (
            key["id"]["S"].as_str().unwrap_or_default(),
            key["position"]["N"].as_str().unwrap_or_default(),
        )
    });
    let expected = [("orderId:o1", "1"), ("fence#productId:p1", "0"), ("fence#productId:p2", "0")];
    assert_eq!(keys.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_rejection_based_on_half_of_an_append_is_never_returned() {
    let stack = shop().await;
    let added = ProductAdded { product_id: id("p1"), name: "lamp".to_owned() };
    stack.seed(events![added, renamed("lantern")]).await;
    stack.wire.forget();
    // If the second event of the append is missing, the product already has that name.
    stack.wire.inject("Query", 0, until(2));
    let handled = stack.run(&rename("lamp")).await.expect("it is accepted");
    assert_eq!(handled.attempts, 2);
    // A strong read of the next slot could miss the second event as well; a transaction can't.
    let expected = ["Query", "TransactGetItems", "Query", "PutItem"];
    assert_eq!(operations(&stack.wire.take()), expected);
    // At the end of an append, the strong read is enough.
    assert_eq!(code(&stack.run(&add()).await), "ProductAlreadyExists");
    assert_eq!(operations(&stack.wire.take()), ["Query", "GetItem"]);
}

#[tokio::test]
async fn a_lost_slot_is_named_and_hides_what_follows() {
    let stack = Stack::start(catalog()).await;
    for book in ["b", "c"] {
        for note in ["1", "2", "3"] {
            let old = stack.log_of(&before::catalog(), &stack.clock);
            let [book_id, reader_id, note] = [book, "r", note].map(str::to_owned);
            let note = before::Noted { book_id, reader_id, note };
            committed(append(&old, events![note], &envelope()).await);
        }
    }
    let old = before::catalog();
    let items = stack.items().await;
    let second = items.iter().find(|item| {
        item["id"].as_s().is_ok_and(|id| id == "bookId:b")
            && item["position"].as_n().is_ok_and(|position| position == "2")
    });
    let second = second.expect("the second note");
    unindexed::delete(&stack, second).await;
    let gaps = [(BoundaryId::tag("bookId", "b"), 2)].into();
    let log = stack.log_of(&old, &stack.clock);
    let in_its_place = ["id", "position"].map(|name| (name.to_owned(), second[name].clone()));
    for no_event in [None, Some(in_its_place)] {
        if let Some(item) = no_event {
            let put = stack.client.put_item().table_name(crate::stack::TABLE);
            put.set_item(Some(item.into())).send().await.expect("it is put");
        }
        for report in [
            log.verify_fences(&crate::verify::OPTIONS).await,
            log.repair_fences(&crate::verify::OPTIONS).await,
        ] {
            let report = report.expect("a report");
            assert_eq!((&report.gaps, report.in_order(), report.events), (&gaps, false, 5));
            assert_eq!((report.differences.len(), report.broken.len()), (0, 0));
        }
    }
    unindexed::delete(&stack, second).await;
    let plan = plan(&stack, &[&[("bookId", "b")]]);
    let read = log.read(&plan, Consistency::Strong, &envelope()).try_collect().await;
    let read: Vec<SequencedEvent> = read.expect("a read");
    assert_eq!(read.len(), 1);
}
