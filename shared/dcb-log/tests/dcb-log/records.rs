//! Commands with an idempotency key take effect once; imported events enter once.

use futures::future::join_all;
use ringfence::kit::id;
use ringfence::{
    DcbContext, Envelope, FilingError, HandleError, Handled, LogError, NewEvent, Outcome,
};
use ringfence_dcb_log::{COMMAND_KEPT_SECONDS, Imported};
use ringfence_dynamo::wire::Fault;

use crate::reads::{catalog, noted, plan, read};
use crate::shop::{AddProduct, OrderProduct, Shop};
use crate::stack::{NOW_MS, Stack, code, envelope};

async fn shop() -> Stack {
    Stack::start(Shop::catalog()).await
}

fn add(product: &str) -> AddProduct {
    AddProduct { product_id: id(product), name: "Lamp".to_owned() }
}

async fn run(stack: &Stack, product: &str, key: &str) -> Result<Handled, HandleError> {
    let envelope = Envelope { idempotency_key: Some(key.to_owned()), ..envelope() };
    stack.run_with(&add(product), &envelope).await
}

#[tokio::test]
async fn an_accepted_command_is_answered_again_as_it_was() {
    let stack = shop().await;
    let first = run(&stack, "p1", "k").await.expect("accepted");
    assert!(!first.repeated);
    assert!(matches!(&first.outcome, Outcome::Accepted(events) if events.len() == 1));
    let again = run(&stack, "p1", "k").await.expect("accepted");
    assert_eq!(again, Handled { repeated: true, ..first });
    assert_eq!(stack.count("ProductAdded").await, 1);
    // Without the key the same command is refused.
    assert_eq!(code(&stack.run(&add("p1")).await), "ProductAlreadyExists");
}

#[tokio::test]
async fn a_refusal_is_answered_again_as_it_was() {
    let stack = shop().await;
    stack.accept(add("p1")).await;
    let first = run(&stack, "p1", "k").await;
    assert_eq!(code(&first), "ProductAlreadyExists");
    let again = run(&stack, "p1", "k").await.expect("rejected");
    assert!(again.repeated);
    assert_eq!(again.outcome, first.expect("rejected").outcome);
}

#[tokio::test]
async fn another_command_under_the_key_is_refused() {
    let stack = shop().await;
    run(&stack, "p1", "k").await.expect("accepted");
    let other = run(&stack, "p2", "k").await.expect_err("the key is taken");
    assert!(matches!(other, HandleError::Log(LogError::KeyReused(reused)) if reused.key == "k"));
    assert_eq!(stack.count("ProductAdded").await, 1);
}

#[tokio::test]
async fn keys_do_not_run_into_each_other() {
    let stack = shop().await;
    for (n, key) in ["a#b", "a", "a%23b", "a:b", "🦀\0"].into_iter().enumerate() {
        let handled = run(&stack, &format!("p{n}"), key).await.expect("accepted");
        assert!(!handled.repeated, "{key}");
    }
}

#[tokio::test]
async fn a_record_past_its_time_no_longer_counts() {
    let stack = shop().await;
    run(&stack, "p1", "k").await.expect("accepted");
    stack.clock.set(NOW_MS + COMMAND_KEPT_SECONDS * 1_000);
    assert!(run(&stack, "p1", "k").await.expect("accepted").repeated);
    stack.clock.set(NOW_MS + (COMMAND_KEPT_SECONDS + 1) * 1_000);
    assert_eq!(code(&run(&stack, "p1", "k").await), "ProductAlreadyExists");
}

#[tokio::test]
async fn an_outcome_whose_answer_was_lost_is_recorded_once() {
    let stack = shop().await;
    stack.accept(add("p1")).await;
    stack.wire.inject("PutItem", 0, Fault::LostAfter);
    let first = run(&stack, "p1", "k").await;
    assert_eq!(code(&first), "ProductAlreadyExists");
    assert!(!first.expect("rejected").repeated);
}

#[tokio::test]
async fn one_of_sixteen_copies_takes_effect_and_all_get_its_answer() {
    let stack = shop().await;
    let ends = join_all((0..16).map(|_| run(&stack, "p1", "k"))).await;
    let ends: Vec<Handled> = ends.into_iter().map(|end| end.expect("accepted")).collect();
    assert!(ends.iter().all(|end| end.outcome == ends[0].outcome), "{ends:?}");
    assert_eq!(ends.iter().filter(|end| !end.repeated).count(), 1, "{ends:?}");
    assert_eq!(stack.count("ProductAdded").await, 1);
}

#[tokio::test]
async fn eight_copies_with_lost_answers_take_effect_once_and_all_get_its_answer() {
    let stack = shop().await;
    // Whoever sends these transactions hears nothing of them, and three of them take effect.
    for (pass, fault) in [(0, Fault::LostAfter), (2, Fault::LostBefore), (3, Fault::LostAfter)] {
        stack.wire.inject("TransactWriteItems", pass, fault);
    }
    let ends = join_all((0..8).map(|_| run(&stack, "p1", "k"))).await;
    let ends: Vec<Handled> = ends.into_iter().map(|end| end.expect("accepted")).collect();
    assert!(ends.iter().all(|end| end.outcome == ends[0].outcome), "{ends:?}");
    assert_eq!(ends.iter().filter(|end| !end.repeated).count(), 1, "{ends:?}");
    assert!(stack.wire.is_spent());
    assert_eq!(stack.count("ProductAdded").await, 1);
    stack.check_fences().await;
}

#[tokio::test]
async fn a_repeat_after_the_tokens_ten_minutes_takes_no_effect() {
    const LATER_MS: u64 = NOW_MS + 11 * 60_000;
    let stack = shop().await;
    // The same transaction again, whose token the store no longer knows.
    stack.wire.inject("TransactWriteItems", 0, Fault::LostAfter);
    stack.wire.inject("TransactWriteItems", 0, Fault::without_token());
    let first = run(&stack, "p1", "k").await.expect("accepted");
    assert!(stack.wire.is_spent() && !first.repeated);
    assert_eq!(stack.count("ProductAdded").await, 1);
    // The same command again, by a writer that knows nothing of the first.
    stack.clock.set(LATER_MS);
    let again = run(&stack, "p1", "k").await.expect("accepted");
    assert_eq!(again, Handled { repeated: true, ..first });
    // And without a record, the answer lost again: the event's `appendId` tells that it is there.
    stack.wire.inject("TransactWriteItems", 0, Fault::LostAfter);
    stack.wire.inject("TransactWriteItems", 0, Fault::without_token());
    let (order_id, customer_id, product_id) = (id("o"), id("c"), id("p1"));
    let order = OrderProduct { order_id, customer_id, product_id, quantity: 1 };
    assert_eq!(stack.accept(order).await.attempts, 1);
    assert!(stack.wire.is_spent());
    assert_eq!(stack.count("ProductOrdered").await, 1);
    stack.check_fences().await;
}

#[tokio::test]
async fn a_key_refuses_another_payload_also_when_the_first_was_refused() {
    let stack = shop().await;
    stack.accept(add("p1")).await;
    assert_eq!(code(&run(&stack, "p1", "k").await), "ProductAlreadyExists");
    for product in ["p1", "p2"] {
        let other = AddProduct { name: "Chair".to_owned(), ..add(product) };
        let envelope = Envelope { idempotency_key: Some("k".to_owned()), ..envelope() };
        let other = stack.run_with(&other, &envelope).await.expect_err("the key is taken");
        assert!(
            matches!(other, HandleError::Log(LogError::KeyReused(reused)) if reused.key == "k")
        );
    }
    assert_eq!(stack.count("ProductAdded").await, 1);
}

#[tokio::test]
async fn a_record_makes_a_put_a_transaction_of_four_units_and_a_refusal_a_put_of_one() {
    let stack = shop().await;
    for (extra, product) in [(4.0, "p1"), (1.0, "p1")] {
        let log = stack.log();
        let key = Some(format!("k{extra}"));
        let envelope = Envelope { idempotency_key: key, ..envelope() };
        let decisions = ringfence::Decisions::new(0);
        let command = add(product);
        let end = ringfence::handle(&log, &stack.catalog, &decisions, &command, &envelope).await;
        end.expect("an outcome");
        let usage = log.meter().snapshot();
        assert!((usage.tables.write - extra).abs() < f64::EPSILON, "{usage:?}");
    }
}

#[tokio::test]
async fn whether_an_event_can_be_imported_is_known_without_a_request() {
    let stack = Stack::start(catalog()).await;
    let log = stack.log();
    let _ = stack.wire.take();
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
async fn an_event_is_imported_once_and_filed_as_every_other() {
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
