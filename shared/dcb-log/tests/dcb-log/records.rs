//! Commands with an idempotency key take effect once. Their record is in their events or in an item. Imported events
//! enter once.

use std::time::Duration;

use futures::future::join_all;
use ringfence_aws::wire::{Exchange, Fault};
use ringfence_aws::{Item, seed_thread};
use ringfence_core::kit::id;
use ringfence_core::{
    Context, Decisions, Envelope, FilingError, HandleError, Handled, KEY_KEPT_SECONDS, LogError,
    NewEvent, Outcome, Slice, events, handle, reaction_key,
};
use ringfence_dcb_log::Imported;
use tokio::time::sleep;

use crate::faults::{order, renamed, stale};
use crate::listing::StockProduct;
use crate::reads::{catalog, noted, plan, read};
use crate::shop::{AddProduct, ChangeProductName, RecordDemand, Shop};
use crate::stack::{NOW_MS, Stack, code, envelope};
use crate::unindexed;
use crate::weather::Slow;

async fn shop() -> Stack {
    Stack::start(Shop::catalog()).await
}

/// The events are the record, because the product's partition is read.
fn add(product: &str) -> AddProduct {
    AddProduct { product_id: id(product), name: "Lamp".to_owned() }
}

fn rename(name: &str) -> ChangeProductName {
    ChangeProductName { product_id: id("p1"), name: name.to_owned() }
}

/// An item is the record: the event is in a pair's partition, and the product's partition is not read.
fn record(order: &str) -> RecordDemand {
    RecordDemand::Record { product_id: id("p1"), order_id: id(order) }
}

fn revoke(order: &str) -> RecordDemand {
    RecordDemand::Revoke { product_id: id("p1"), order_id: id(order) }
}

fn with_key(key: &str) -> Envelope {
    Envelope { idempotency_key: Some(key.to_owned()), ..envelope() }
}

async fn run<S: Slice>(stack: &Stack, command: &S, key: &str) -> Result<Handled, HandleError> {
    stack.run_with(command, &with_key(key)).await
}

/// Runs a command that appends one event.
async fn accept<S: Slice>(stack: &Stack, command: &S, key: &str) -> Handled {
    let handled = run(stack, command, key).await.expect("an answer");
    let Outcome::Accepted(events) = &handled.outcome else { panic!("{handled:?}") };
    assert_eq!(events.len(), 1);
    handled
}

fn is_reused(end: Result<Handled, HandleError>) -> bool {
    matches!(end, Err(HandleError::Log(LogError::KeyReused(reused))) if reused.key == "k")
}

#[tokio::test]
async fn a_repeat_gets_the_events_of_the_first_run_despite_later_events() {
    let stack = shop().await;
    let first = accept(&stack, &add("p1"), "k").await;
    assert!(!first.repeated);
    stack.accept(rename("Lantern")).await;
    let again = accept(&stack, &add("p1"), "k").await;
    assert_eq!(again, Handled { repeated: true, written: vec![], ..first });
    assert_eq!(stack.count("ProductAdded").await, 1);
    assert_eq!(code(&stack.run(&add("p1")).await), "ProductAlreadyExists");

    let first = accept(&stack, &record("o1"), "k").await;
    assert!(!first.repeated);
    // If the pair is recorded, the command would append nothing without its key; if it is revoked, one event.
    for _ in 0..2 {
        let again = accept(&stack, &record("o1"), "k").await;
        assert_eq!(again, Handled { repeated: true, written: vec![], ..first.clone() });
        stack.accept(revoke("o1")).await;
    }
    assert_eq!(stack.count("DemandRecorded").await, 1);
    stack.check_fences().await;
}

#[tokio::test]
async fn a_command_that_appended_nothing_is_decided_again() {
    let stack = shop().await;
    assert_eq!(code(&run(&stack, &rename("Lantern"), "k").await), "ProductNotFound");
    stack.accept(add("p1")).await;
    assert!(!accept(&stack, &rename("Lantern"), "k").await.repeated);

    let nothing = run(&stack, &revoke("o1"), "k").await.expect("nothing to revoke");
    assert_eq!((nothing.outcome, nothing.repeated), (Outcome::Accepted(vec![]), false));
    stack.accept(record("o1")).await;
    assert!(!accept(&stack, &revoke("o1"), "k").await.repeated);
}

#[tokio::test]
async fn another_command_under_the_key_is_refused_in_its_scope() {
    let stack = shop().await;
    accept(&stack, &add("p1"), "k").await;
    assert!(is_reused(
        run(&stack, &AddProduct { name: "Chair".to_owned(), ..add("p1") }, "k").await
    ));
    // The scope of a record in events is the partitions that the decision reads.
    assert!(!accept(&stack, &add("p2"), "k").await.repeated);
    assert_eq!(stack.count("ProductAdded").await, 2);

    accept(&stack, &record("o1"), "k").await;
    // The scope of an item is the slice, for commands that append and commands that do not.
    for other in [record("o2"), revoke("o2")] {
        assert!(is_reused(run(&stack, &other, "k").await));
    }
    assert_eq!(stack.count("DemandRecorded").await, 1);
}

#[tokio::test]
async fn keys_do_not_run_into_each_other() {
    let stack = shop().await;
    for (n, key) in ["a#b", "a", "a%23b", "a:b", "🦀\0"].into_iter().enumerate() {
        assert!(!accept(&stack, &rename_after(&stack, n).await, key).await.repeated, "{key}");
        assert!(!accept(&stack, &record(&format!("o{n}")), key).await.repeated, "{key}");
    }
}

/// A new name for an existing product.
async fn rename_after(stack: &Stack, n: usize) -> ChangeProductName {
    if n == 0 {
        stack.accept(add("p1")).await;
    }
    rename(&format!("Lamp {n}"))
}

#[tokio::test]
async fn a_record_counts_until_dynamodb_deletes_it_for_every_clock() {
    const AHEAD_MS: u64 = NOW_MS + 2 * KEY_KEPT_SECONDS * 1_000;
    let stack = shop().await;
    let first = accept(&stack, &record("o1"), "k").await;
    stack.clock.set(AHEAD_MS);
    let repeat = || Handled { repeated: true, written: vec![], ..first.clone() };
    // First an answer that appends nothing, then an append. The answer's record is read strongly, because a replica
    // may lag.
    stack.wire.forget();
    assert_eq!(accept(&stack, &record("o1"), "k").await, repeat());
    let is_record = |get: &Exchange| {
        get.request["Key"]["id"]["S"].as_str().is_some_and(|id| id.starts_with("command#"))
    };
    let gets = stack.take("GetItem").into_iter().filter(is_record);
    assert_eq!(gets.map(|get| get.request["ConsistentRead"] == true).collect::<Vec<_>>(), [true]);
    stack.accept(revoke("o1")).await;
    assert_eq!(accept(&stack, &record("o1"), "k").await, repeat());
    // A writer whose clock is behind keeps the record as long as the times of its events require.
    stack.clock.set(AHEAD_MS - 30_000);
    accept(&stack, &record("o1"), "l").await;
    let is_item = |item: &Item| item["id"].as_s().is_ok_and(|id| id.ends_with("#l"));
    let item = stack.items().await.into_iter().find(is_item).expect("the command's item");
    let expires = item["expiresAt"].as_n().expect("a number").parse::<u64>().expect("seconds");
    assert_eq!(expires, AHEAD_MS / 1_000 + KEY_KEPT_SECONDS);
    unindexed::delete(&stack, &item).await;
    stack.accept(revoke("o1")).await;
    assert!(!accept(&stack, &record("o1"), "l").await.repeated);
    // A reaction to an event may be repeated at any time.
    let reaction = reaction_key("orderId:o2/1", "productId:p1");
    accept(&stack, &record("o2"), &reaction).await;
    let is_item = |item: &Item| {
        item["id"].as_s().is_ok_and(|id| id.starts_with("command#") && id.contains("reaction"))
    };
    let item = stack.items().await.into_iter().find(is_item).expect("the reaction's item");
    assert_eq!(item.get("expiresAt"), None);
}

#[tokio::test]
async fn an_event_that_the_decision_does_not_consume_is_a_record_as_well() {
    let stack = shop().await;
    stack.accept(add("p1")).await;
    let stock = StockProduct { product_id: id("p1") };
    let first = accept(&stack, &stock, "k").await;
    assert_eq!(
        accept(&stack, &stock, "k").await,
        Handled { repeated: true, written: vec![], ..first }
    );
    // Also in a tail, and even if the first read shows nothing.
    stack.wire.inject("Query", 0, stale());
    let late = run(&stack, &stock, "k").await.expect("an answer");
    assert_eq!((late.repeated, late.attempts), (true, 2));
    assert_eq!(stack.count("ProductStocked").await, 1);
}

#[tokio::test]
async fn an_index_that_hides_the_key_of_an_event_hides_no_record() {
    let stack = shop().await;
    let first = accept(&stack, &order("o1"), "k").await;
    // The partition lags behind the index of the customer.
    stack.wire.inject("Query", 0, stale());
    let again = accept(&stack, &order("o1"), "k").await;
    let conflicts = again.conflicts.clone();
    assert_eq!(again, Handled { repeated: true, written: vec![], attempts: 2, conflicts, ..first });
}

/// Runs the commands with these keys on one handler that keeps its decisions, and then on another one. Returns which
/// commands are repeats.
async fn warm<S: Slice>(stack: &Stack, commands: &[(&S, Option<&str>)]) -> Vec<bool> {
    let (log, decisions) = (stack.log(), Decisions::new(10));
    let mut repeated = Vec::new();
    for (command, key) in commands {
        let envelope = key.map_or_else(envelope, with_key);
        let handled = handle(&log, &stack.catalog, &decisions, *command, &envelope).await;
        repeated.push(handled.expect("an answer").repeated);
    }
    repeated
}

#[tokio::test]
async fn a_warm_handler_takes_no_repeat_for_a_new_command() {
    let stack = shop().await;
    stack.accept(add("p1")).await;
    let (lamp, torch, stock) =
        (rename("Lantern"), rename("Torch"), StockProduct { product_id: id("p1") });
    let (one, two) = (Some("k1"), Some("k2"));
    let renames = [(&lamp, one), (&torch, two), (&lamp, one), (&torch, None), (&torch, two)];
    assert_eq!(warm(&stack, &renames).await, [false, false, true, false, true]);
    assert_eq!(stack.count("ProductNameChanged").await, 2);
    // After a conflict, the handler reads the events that another handler has appended.
    let stocks = [(&stock, one), (&stock, two), (&stock, None), (&stock, one), (&stock, two)];
    assert_eq!(warm(&stack, &stocks[..1]).await, [false]);
    assert_eq!(warm(&stack, &stocks).await, [true, false, false, true, true]);
    let (first, second) = (record("o1"), record("o2"));
    let records = [(&first, one), (&second, two), (&first, one), (&second, None), (&second, two)];
    assert_eq!(warm(&stack, &records).await, [false, false, true, false, true]);
    stack.check_fences().await;
}

#[tokio::test]
async fn a_repeat_on_a_warm_handler_that_has_not_seen_the_first_run_finds_it_in_the_tail() {
    let stack = shop().await;
    stack.accept(add("p1")).await;
    let (log, decisions) = (stack.log(), Decisions::new(10));
    let rename = async |name: &str, envelope: &Envelope| {
        let handled = handle(&log, &stack.catalog, &decisions, &rename(name), envelope).await;
        handled.expect("an answer")
    };
    rename("Torch", &envelope()).await;
    let first = accept(&stack, &self::rename("Lantern"), "k").await;
    let again = rename("Lantern", &with_key("k")).await;
    let conflicts = again.conflicts.clone();
    assert_eq!(again, Handled { repeated: true, written: vec![], attempts: 2, conflicts, ..first });
    // The same holds if the command would have nothing to change.
    stack.seed(events![renamed("Torch")]).await;
    rename("Torch", &envelope()).await;
    let first = accept(&stack, &self::rename("Lamp"), "k2").await;
    stack.seed(events![renamed("Torch")]).await;
    let again = rename("Lamp", &with_key("k2")).await;
    assert_eq!(again.outcome, first.outcome);
    assert!(again.repeated);
}

/// Runs all copies at once. They get one answer, and one of them takes effect.
async fn race<S: Slice>(stack: &Stack, command: &S, copies: usize, event_type: &str) {
    seed_thread(1);
    stack.wire.direct(Slow::new(1));
    let ends = join_all((0..copies).map(|_| run(stack, command, "k"))).await;
    let ends: Vec<Handled> = ends.into_iter().map(|end| end.expect("accepted")).collect();
    assert!(ends.iter().all(|end| end.outcome == ends[0].outcome), "{ends:?}");
    assert_eq!(ends.iter().filter(|end| !end.repeated).count(), 1, "{ends:?}");
    assert!(stack.wire.is_spent());
    assert_eq!(stack.count(event_type).await, 1);
    stack.check_fences().await;
}

#[tokio::test(start_paused = true)]
async fn one_of_sixteen_copies_takes_effect_and_all_get_its_answer() {
    let stack = shop().await;
    race(&stack, &add("p1"), 16, "ProductAdded").await;
    race(&stack, &record("o1"), 16, "DemandRecorded").await;
}

#[tokio::test(start_paused = true)]
async fn eight_copies_with_lost_answers_take_effect_once_and_all_get_its_answer() {
    for operation in ["PutItem", "TransactWriteItems"] {
        let stack = shop().await;
        // These requests get no answer, and some of them take effect.
        for (pass, fault) in [(0, Fault::LostAfter), (2, Fault::LostBefore), (3, Fault::LostAfter)]
        {
            stack.wire.inject(operation, pass, fault);
        }
        match operation {
            "PutItem" => race(&stack, &add("p1"), 8, "ProductAdded").await,
            _ => race(&stack, &record("o1"), 8, "DemandRecorded").await,
        }
    }
}

#[tokio::test]
async fn a_repeat_after_a_crash_finds_what_took_effect() {
    let stack = shop().await;
    let written = async |event_type| {
        while stack.count(event_type).await == 0 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    // Each request takes effect, and the process ends before the answer arrives.
    let late = Fault::Late(Duration::from_secs(60));
    let (add, record) = (add("p1"), record("o1"));
    stack.wire.inject("PutItem", 0, late.clone());
    tokio::select! {
        answer = run(&stack, &add, "k") => panic!("it does not crash: {answer:?}"),
        () = written("ProductAdded") => {}
    }
    assert!(accept(&stack, &add, "k").await.repeated);
    stack.wire.inject("TransactWriteItems", 0, late);
    tokio::select! {
        answer = run(&stack, &record, "k") => panic!("it does not crash: {answer:?}"),
        () = written("DemandRecorded") => {}
    }
    assert!(accept(&stack, &record, "k").await.repeated);
    let counts = (stack.count("ProductAdded").await, stack.count("DemandRecorded").await);
    assert_eq!(counts, (1, 1));
}

#[tokio::test]
async fn a_repeat_after_the_tokens_ten_minutes_takes_no_effect() {
    const LATER_MS: u64 = NOW_MS + 11 * 60_000;
    let stack = shop().await;
    // The same requests are sent again, and DynamoDB no longer knows the token of the transaction.
    stack.wire.inject("PutItem", 0, Fault::LostAfter);
    let added = accept(&stack, &add("p1"), "k").await;
    stack.wire.inject("TransactWriteItems", 0, Fault::LostAfter);
    stack.wire.inject("TransactWriteItems", 0, Fault::without_token());
    let recorded = accept(&stack, &record("o1"), "k").await;
    assert!(stack.wire.is_spent() && !added.repeated && !recorded.repeated);
    // The same commands again, by writers that do not know about the first ones.
    stack.clock.set(LATER_MS);
    assert_eq!(
        accept(&stack, &add("p1"), "k").await,
        Handled { repeated: true, written: vec![], ..added }
    );
    assert_eq!(
        accept(&stack, &record("o1"), "k").await,
        Handled { repeated: true, written: vec![], ..recorded }
    );
    let counts = (stack.count("ProductAdded").await, stack.count("DemandRecorded").await);
    assert_eq!(counts, (1, 1));
    stack.check_fences().await;
}

#[tokio::test]
async fn checking_whether_an_event_can_be_imported_sends_no_request() {
    let stack = Stack::start(catalog()).await;
    let log = stack.log();
    stack.wire.forget();
    let importable = |event_id: &str, event_type: &str, note: &str| {
        let event_type = event_type.to_owned().into();
        let event = NewEvent { event_type, ..NewEvent::from(noted("b", "r", note)) };
        log.importable(event_id, event, &envelope())
    };
    let event = importable("old#1", "Noted", "old").expect("it can");
    assert_eq!((event.slot, event.rest, event.at), (1, 0, NOW_MS));
    let unknown = importable("old#1", "Lost", "old");
    assert!(matches!(unknown, Err(LogError::Filing(FilingError::UnknownType(_)))), "{unknown:?}");
    for (event_id, note) in
        [("x".repeat(2_100), "old".to_owned()), ("x".to_owned(), "x".repeat(400_000))]
    {
        let too_large = importable(&event_id, "Noted", &note);
        assert!(matches!(too_large, Err(LogError::Limit(_))), "{too_large:?}");
    }
    assert!(stack.wire.take().is_empty());
}

#[tokio::test]
async fn an_event_is_imported_once_and_filed_like_any_other() {
    let stack = Stack::start(catalog()).await;
    let log = stack.log();
    let event = || NewEvent::from(noted("b", "r", "old"));
    let first = log.import("old#1", event(), &envelope()).await.expect("an import");
    let Imported::Now(imported) = first else { panic!("{first:?}") };
    let again = log.import("old#1", event(), &envelope()).await.expect("an import");
    assert_eq!(again, Imported::Before);

    let fences = stack.items().await.into_iter().filter(|item| item.contains_key("cnt#Noted"));
    let counts = fences.map(|fence| fence["cnt#Noted"].as_n().expect("a number").clone());
    assert_eq!(counts.collect::<Vec<_>>(), ["1", "1"]);
    let read = read(&stack, &plan(&stack, &[&[("bookId", "b")]])).await.expect("a read");
    assert_eq!(read, [imported]);
    let items = stack.items().await;
    let event_id = items.iter().find_map(|item| item.get("eventId")).expect("it is kept");
    assert_eq!(event_id.as_s().expect("a text"), "old#1");
}
