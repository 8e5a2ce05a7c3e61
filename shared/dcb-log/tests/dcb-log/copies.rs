//! Copies of a fence: announced appends, checks of one copy, writers that die, and builds with other numbers.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::wire::{Fault, Wire};
use ringfence_aws::{Clock, Item};
use ringfence_core::kit::id;
use ringfence_core::{
    Append, Catalog, CommandContext, Consistency, Context, Decisions, Envelope, EventLog,
    EventSchema, HandleError, Handled, LogError, Plan, Query, QueryItem, Seen, StoreError, Tag,
    events, handle,
};
use ringfence_dcb_log::{DcbLog, Imported};

use crate::prices::{cost, metered};
use crate::shop::{OrderListed, OrderPlaced, ProductListed, Shop};
use crate::stack::{NOW_MS, Stack, append, committed, envelope};
use crate::verify::{repair, verify};

mod damaged;

/// The shop with so many copies of the fences of its products.
fn shop(copies: u16) -> Catalog {
    let catalog = Shop::catalog().expect("free of contradictions");
    let copied = |schema: &EventSchema| match schema.fenced {
        true => EventSchema { copies, ..schema.clone() },
        false => schema.clone(),
    };
    Catalog::new(Shop::NAME, catalog.schemas().map(copied)).expect("free of contradictions")
}

async fn stack(copies: u16) -> Stack {
    Stack::start(Ok(shop(copies))).await
}

fn listed() -> ProductListed {
    ProductListed { product_id: id("p1") }
}

async fn list(log: &DcbLog) -> u64 {
    committed(append(log, events![listed()], &envelope()).await).remove(0).slot
}

async fn order(log: &DcbLog, catalog: &Catalog, order: &str) -> Result<Handled, HandleError> {
    let order = OrderListed { order_id: id(order), product_ids: vec![id("p1")] };
    handle(log, catalog, &Decisions::new(0), &order, &envelope()).await
}

/// The fence of the product, and its open copies: each with its counted events.
async fn counts(stack: &Stack) -> Vec<(u64, u64)> {
    let number = |item: &Item, name: &str| {
        let number = item.get(name).and_then(|value| value.as_n().ok());
        number.map_or(0, |number| number.parse().expect("an integer"))
    };
    let is_fence = AttributeValue::S("fence#productId:p1".to_owned());
    let items = stack.items().await.into_iter();
    let items = items.filter(|item| item["id"] == is_fence);
    let open = items.filter(|it| it.contains_key("open") || number(it, "position") == 0);
    let mut counts: Vec<_> =
        open.map(|item| (number(&item, "position"), number(&item, "cnt#ProductListed"))).collect();
    counts.sort_unstable();
    counts
}

#[tokio::test]
async fn a_check_costs_what_it_costs_without_copies_and_an_append_one_unit_more_for_each() {
    let stack = stack(4).await;
    let log = stack.log();
    list(&log).await;
    let of_list = stack.log();
    list(&of_list).await;
    // Its partition's end is looked up; then it announces, puts four copies and appends.
    assert_eq!(metered(&of_list.meter().snapshot()), cost((1, 0.5), (6, 9.0)));
    let of_order = stack.log();
    order(&of_order, &stack.catalog, "o1").await.expect("it is placed");
    assert_eq!(metered(&of_order.meter().snapshot()), cost((2, 1.0), (1, 4.0)));
    assert_eq!(counts(&stack).await, [(0, 2), (1, 2), (2, 2), (3, 2), (4, 2)]);
    stack.check_fences().await;
    assert!(verify(&stack).await.in_order());
}

#[tokio::test]
async fn builds_with_other_copies_and_without_them_work_side_by_side() {
    let stack = stack(4).await;
    let catalogs = [0, 2, 4, 9].map(shop);
    let logs = || catalogs.iter().map(|catalog| (stack.log_of(catalog, &stack.clock), catalog));
    // The first one makes no copies, and the second one two. Nobody changes that, also not the first one again.
    for (n, (log, _)) in (1..).zip(logs().chain(logs())) {
        assert_eq!(list(&log).await, n);
        let copies = if n == 1 { 0 } else { 2 };
        let expected: Vec<_> = (0..=copies).map(|place| (place, n)).collect();
        assert_eq!(counts(&stack).await, expected);
        for (m, (log, catalog)) in logs().enumerate() {
            let placed = order(&log, catalog, &format!("o{n}-{m}")).await.expect("an answer");
            assert_eq!(placed.attempts, 1);
        }
    }
    // A repair gives the fence the copies of its build: more, fewer, none, and again some.
    for copies in [9, 3, 0, 4] {
        let catalog = shop(copies);
        let log = stack.log_of(&catalog, &stack.clock);
        let report = log.repair_fences(&crate::verify::OPTIONS).await.expect("a report");
        assert!(report.in_order() && report.mended.is_empty(), "{report:?}");
        let expected: Vec<_> = (0..=u64::from(copies)).map(|place| (place, 8)).collect();
        assert_eq!(counts(&stack).await, expected);
        for (m, (log, catalog)) in logs().enumerate() {
            let placed = order(&log, catalog, &format!("o{copies}-{m}-again")).await;
            assert_eq!(placed.expect("an answer").attempts, 1);
        }
    }
    stack.check_fences().await;
}

/// A writer that stops at its `nth` write, for good.
async fn die(stack: &Stack, nth: usize) {
    let wire = Wire::default();
    let dead = stack.log_through(&wire, &stack.catalog);
    let writes = ["UpdateItem", "PutItem", "PutItem", "TransactWriteItems"];
    let pass = writes[..nth].iter().filter(|it| **it == writes[nth]).count();
    wire.inject(writes[nth], pass, Fault::Delay(Duration::from_secs(3_600)));
    let append = append(&dead, events![listed()], &envelope()).await;
    panic!("it is never over: {append:?}");
}

#[tokio::test(start_paused = true)]
async fn a_dead_writer_holds_others_up_for_ten_seconds() {
    for (nth, by_writer) in (1..4).flat_map(|nth| [(nth, true), (nth, false)]) {
        let mut stack = stack(2).await;
        list(&stack.log()).await;
        let dead = tokio::time::timeout(Duration::from_millis(100), die(&stack, nth));
        dead.await.expect_err("it waits");
        let at = format!("dead at write {nth}, writer {by_writer}");
        // For ten seconds nobody takes over. A check of a copy that was not put yet still goes on.
        let early = stack.log();
        if by_writer {
            let early = append(&early, events![listed()], &envelope()).await;
            let error = early.expect_err("it waits");
            let contended = matches!(error, LogError::Store(StoreError::Contention { .. }));
            assert!(contended, "{at}: {error:?}");
        }
        assert_eq!(verify(&stack).await.differences, [], "{at}: an announcement is under way");
        stack.clock = Clock::fixed(NOW_MS + 10_001);
        let late = stack.log();
        if by_writer {
            assert_eq!(list(&late).await, 2, "{at}");
        }
        for n in 0..8 {
            let placed = order(&late, &stack.catalog, &format!("o{n}")).await;
            assert_eq!(placed.unwrap_or_else(|e| panic!("{at}: {e:?}")).attempts, 1, "{at}");
        }
        let all = if by_writer { 2 } else { 1 };
        let levelled = counts(&stack).await;
        assert!(levelled.iter().all(|(_, count)| *count == all), "{at}: {levelled:?}");
        assert!(repair(&stack).await.in_order(), "{at}");
        stack.check_fences().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_announcement_by_a_clock_that_is_far_ahead_holds_nobody_up() {
    let mut stack = stack(2).await;
    stack.clock = Clock::fixed(NOW_MS + 86_400_000);
    let dead = tokio::time::timeout(Duration::from_millis(100), die(&stack, 3));
    dead.await.expect_err("it waits");
    stack.clock = Clock::fixed(NOW_MS);
    assert_eq!(list(&stack.log()).await, 1);
    stack.check_fences().await;
}

/// The clock of an import shows the times of its events.
#[tokio::test(start_paused = true)]
async fn an_import_goes_on_after_one_that_died_while_it_announced() {
    let mut stack = stack(2).await;
    stack.clock = Clock::fixed(NOW_MS - 1_000_000);
    let import = async |wire: &Wire, now_ms: u64| {
        let log = stack.log_through(wire, &stack.catalog);
        let context = CommandContext { now_ms, ..CommandContext::default() };
        let envelope = Envelope { context, ..envelope() };
        log.import("old#1", listed().into(), &envelope).await
    };
    let wire = Wire::default();
    wire.inject("PutItem", 0, Fault::Delay(Duration::from_secs(3_600)));
    let dead = tokio::time::timeout(Duration::from_millis(100), import(&wire, NOW_MS));
    dead.await.expect_err("it waits");
    let imported = import(&Wire::default(), NOW_MS + 10_001).await;
    assert!(matches!(imported, Ok(Imported::Now(_))), "{imported:?}");
    stack.check_fences().await;
}

#[tokio::test(start_paused = true)]
async fn what_comes_late_changes_nothing() {
    let stack = stack(2).await;
    list(&stack.log()).await;
    // An append takes twenty seconds. Meanwhile an order levels the copies, or another writer takes over.
    for (n, by_order) in [(2, true), (3, false)] {
        let wire = Wire::default();
        let slow = stack.log_through(&wire, &stack.catalog);
        wire.inject("TransactWriteItems", 0, Fault::Delay(Duration::from_secs(20)));
        let other = async {
            tokio::time::sleep(Duration::from_secs(11)).await;
            let log = stack.log_at(&Clock::fixed(NOW_MS + n * 60_000));
            match by_order {
                true => drop(order(&log, &stack.catalog, "o1").await.expect("it is placed")),
                false => assert_eq!(list(&log).await, n),
            }
        };
        let (last, ()) = tokio::join!(list(&slow), other);
        let again = wire.take().into_iter().filter(|it| it.operation == "UpdateItem").count();
        assert_eq!((last, again), (n + u64::from(!by_order), 2), "it announces again");
        assert_eq!(counts(&stack).await, [(0, last), (1, last), (2, last)]);
    }
    // The put of a copy comes when the fence counts more.
    let wire = Wire::default();
    let log = stack.log_through(&wire, &stack.catalog);
    wire.inject("PutItem", 0, Fault::Stray(Duration::from_secs(60)));
    assert_eq!((list(&log).await, list(&stack.log()).await), (5, 6));
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(counts(&stack).await, [(0, 6), (1, 6), (2, 6)]);
    stack.check_fences().await;
}

/// What a decision has seen that reads only whether the product is listed.
async fn seen(stack: &Stack, product: &str) -> Seen {
    let tags = vec![Tag::new("productId", product)];
    let query = Query { items: vec![QueryItem { tags, types: vec!["ProductListed".into()] }] };
    let plan = Plan::new(&query, &stack.catalog).expect("a route");
    let read = stack.log().read_with_seen(&plan, Consistency::Strong, &envelope()).await;
    read.expect("a read").1
}

#[tokio::test]
async fn a_check_of_a_copy_that_is_not_there_checks_the_fence() {
    let stack = stack(2).await;
    let (log, envelope, seen) = (stack.log(), envelope(), seen(&stack, "p1").await);
    let place = async |order| {
        let events = events![OrderPlaced { order_id: id(order), product_ids: vec![] }];
        let append = Append { events, seen: Some(&seen), record: None, envelope: &envelope };
        log.append(append).await
    };
    stack.wire.forget();
    committed(place("o1").await);
    // It is the same append, so only one of the two can take effect.
    let sent = stack.take("TransactWriteItems");
    let [by_copy, by_fence] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(by_copy.request["TransactItems"][0], by_fence.request["TransactItems"][0]);
    assert_ne!(by_copy.request["ClientRequestToken"], by_fence.request["ClientRequestToken"]);
    list(&stack.log_of(&shop(0), &stack.clock)).await;
    let error = place("o2").await.expect_err("the product is listed");
    assert!(matches!(error, LogError::Conflict(_)), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_gives_up_levels_the_copies() {
    let stack = stack(2).await;
    list(&stack.log()).await;
    let wire = Wire::default();
    let log = stack.log_through(&wire, &stack.catalog);
    let refused = Fault::cancelled(&["None", "ValidationError"]);
    wire.inject("TransactWriteItems", 0, refused);
    append(&log, events![listed()], &envelope()).await.expect_err("it is refused");
    assert_eq!(counts(&stack).await, [(0, 1), (1, 1), (2, 1)]);
    assert_eq!(order(&stack.log(), &stack.catalog, "o1").await.expect("it is placed").attempts, 1);
}

#[tokio::test(start_paused = true)]
async fn an_order_without_an_answer_is_decided_once_whatever_the_fence_says() {
    let stack = stack(2).await;
    list(&stack.log()).await;
    drop(tokio::time::timeout(Duration::from_millis(100), die(&stack, 3)).await);
    // Its first send comes late, the second one meets the dead writer's copy, and it reads the fence after all that.
    let wire = Wire::default();
    wire.inject("TransactWriteItems", 0, Fault::Stray(Duration::from_secs(5)));
    wire.inject("GetItem", 0, Fault::Delay(Duration::from_secs(9)));
    let log = stack.log_through(&wire, &stack.catalog);
    let others = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let late = stack.log_at(&Clock::fixed(NOW_MS + 20_000));
        for n in 0..2 {
            order(&late, &stack.catalog, &format!("level{n}")).await.expect("it is placed");
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(list(&late).await, 2);
    };
    let (placed, ()) = tokio::join!(order(&log, &stack.catalog, "o1"), others);
    assert_eq!(placed.expect("it is placed").attempts, 1);
    assert_eq!(stack.count("OrderListed").await + stack.count("OrderPlaced").await, 3);
    stack.check_fences().await;
}

#[tokio::test(start_paused = true)]
async fn a_check_that_may_not_look_or_level_checks_the_fence_itself() {
    for (lost, ends, denied) in [
        (false, true, "GetItem"),
        (false, true, "UpdateItem"),
        (true, true, "GetItem"),
        (true, false, "GetItem"),
    ] {
        let mut stack = stack(2).await;
        list(&stack.log()).await;
        drop(tokio::time::timeout(Duration::from_millis(100), die(&stack, 3)).await);
        stack.clock = Clock::fixed(NOW_MS + 20_000);
        let wire = Wire::default();
        let log = stack.log_through(&wire, &stack.catalog);
        if lost {
            wire.inject("TransactWriteItems", 0, Fault::LostBefore);
        }
        wire.inject(denied, 0, Fault::error("AccessDeniedException"));
        if !ends {
            let held = Fault::cancelled(&["TransactionConflict"; 2]);
            (0..20).for_each(|n| wire.inject("TransactWriteItems", 2 + n, held.clone()));
        }
        // The fence itself tells that nothing has changed.
        let placed = order(&log, &stack.catalog, "o1").await;
        match ends {
            true => assert_eq!(placed.expect("it is placed").attempts, 1, "lost {lost}"),
            false => {
                let error = placed.expect_err("others hold the fence");
                let unknown = StoreError::OutcomeUnknown { attempts: 0, source: "".into() };
                let HandleError::Log(LogError::Store(error)) = error else { panic!("{error:?}") };
                let kind = std::mem::discriminant(&error);
                assert_eq!(kind, std::mem::discriminant(&unknown), "{error:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_announced_appends_that_check_each_other_do_not_wait() {
    let stack = stack(2).await;
    let listed = |product: &str| ProductListed { product_id: id(product) };
    append(&stack.log(), events![listed("p1"), listed("p2")], &envelope()).await.expect("both");
    let list = async |product: &str, other: &str| {
        let (wire, seen) = (Wire::default(), seen(&stack, other).await);
        wire.inject("TransactWriteItems", 0, Fault::Delay(Duration::from_secs(1)));
        let log = stack.log_through(&wire, &stack.catalog);
        let (events, envelope) = (events![listed(product)], envelope());
        let append = Append { events, seen: Some(&seen), record: None, envelope: &envelope };
        let appended = log.append(append).await.map(drop);
        (appended, wire.take().iter().filter(|it| it.operation == "TransactWriteItems").count())
    };
    let (first, second) = tokio::join!(list("p1", "p2"), list("p2", "p1"));
    let mut ends = [first, second];
    ends.sort_by_key(|(appended, _)| appended.is_err());
    assert!(matches!(ends, [(Ok(()), 1), (Err(LogError::Conflict(_)), 1)]), "{ends:?}");
    assert!(verify(&stack).await.in_order());
}

#[tokio::test(start_paused = true)]
async fn a_change_that_waits_for_another_conflicts_before_it_puts_copies() {
    let stack = stack(2).await;
    let slow = Wire::default();
    slow.inject("TransactWriteItems", 0, Fault::Delay(Duration::from_secs(1)));
    let first = stack.log_through(&slow, &stack.catalog);
    let wire = Wire::default();
    let second = async {
        // It reads the partition to which it writes.
        let seen = seen(&stack, "p1").await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let (events, envelope) = (events![listed()], envelope());
        let append = Append { events, seen: Some(&seen), record: None, envelope: &envelope };
        stack.log_through(&wire, &stack.catalog).append(append).await
    };
    let (slot, second) = tokio::join!(list(&first), second);
    assert_eq!(slot, 1);
    assert!(matches!(second, Err(LogError::Conflict(_))), "{second:?}");
    let sent = wire.take();
    assert!(sent.iter().all(|it| ["UpdateItem", "GetItem"].contains(&&*it.operation)), "{sent:?}");
    assert_eq!(counts(&stack).await, [(0, 1), (1, 1), (2, 1)]);
}

#[tokio::test(start_paused = true)]
async fn an_announcement_without_an_answer_is_ended() {
    let stack = stack(2).await;
    list(&stack.log()).await;
    let wire = Wire::default();
    wire.inject("UpdateItem", 0, Fault::LostAfter);
    wire.inject("UpdateItem", 1, Fault::error("ValidationException"));
    let log = stack.log_through(&wire, &stack.catalog);
    append(&log, events![listed()], &envelope()).await.expect_err("it is refused");
    // Nobody has to wait until it can be taken over.
    assert_eq!(list(&stack.log()).await, 2);
}
