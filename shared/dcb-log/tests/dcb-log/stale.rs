//! Reads that no emulator makes: stale reads, lagging indexes, reads without an answer.

use ringfence_aws::wire::{Edit, Fault};
use ringfence_core::kit::id;
use ringfence_core::{Change, Envelope, EventLog, HandleError, LogError, StoreError, events};
use serde_json::json;

use crate::faults::{TRANSACTION, add, order, ordered, requests, shop, stale};
use crate::reads::{catalog, noted, plan, read, seen};
use crate::shop::{OrderProduct, PlaceOrder, ProductOrdered, ProductStocked, RecordDemand};
use crate::stack::{NOW_MS, Stack, code, envelope};
use crate::verify::Damage;

#[tokio::test]
async fn a_rejection_decided_on_a_stale_read_is_never_returned() {
    let stack = shop().await;
    stack.seed(events![ProductStocked { product_id: id("p1") }]).await;
    stack.wire.forget();
    // Both reads of the first decision: the order, which does not exist, and the product.
    stack.wire.inject("Query", 0, stale());
    stack.wire.inject("Query", 0, stale());
    let command = PlaceOrder { order_id: id("o1"), product_ids: vec![id("p1")], paid: true };
    let handled = stack.accept(command).await;
    assert_eq!(handled.attempts, 2);
    assert!(stack.wire.is_spent());
    // Only the new events are read, strongly: the product's partition after the last slot seen.
    let queries = requests(&stack.wire.take(), "Query");
    let strong: Vec<_> = queries.iter().filter(|query| query["ConsistentRead"] == true).collect();
    let [tail] = &strong[..] else { panic!("{strong:?}") };
    assert_eq!(tail["ExpressionAttributeValues"][":key"]["S"], "productId:p1");
    assert_eq!(queries.len(), 3);
}

#[tokio::test]
async fn a_no_op_decided_on_a_stale_read_is_never_returned() {
    let stack = shop().await;
    let (product_id, order_id) = (id("p1"), id("o1"));
    stack.accept(RecordDemand::Record { product_id, order_id }).await;
    stack.wire.inject("Query", 0, stale());
    let (product_id, order_id) = (id("p1"), id("o1"));
    assert_eq!(stack.accept(RecordDemand::Revoke { product_id, order_id }).await.attempts, 2);
    assert_eq!(stack.count("DemandRevoked").await, 1);
}

#[tokio::test]
async fn an_append_decided_on_a_stale_read_conflicts_and_is_decided_again() {
    let stack = shop().await;
    stack.accept(add()).await;
    stack.wire.inject("Query", 0, stale());
    let again = stack.run(&add()).await;
    assert_eq!(code(&again), "ProductAlreadyExists");
    assert_eq!(again.expect("it is rejected").attempts, 2);
    assert_eq!(stack.count("ProductAdded").await, 1);
}

#[tokio::test]
async fn a_lagging_index_is_waited_for() {
    let stack = shop().await;
    let (product_id, customer_id) = (id("p1"), id("c1"));
    let ordered = ProductOrdered { order_id: id("o1"), customer_id, product_id, quantity: 10 };
    stack.seed(events![ordered]).await;
    // The reads of two decisions. The order's partition is empty anyway.
    (0..4).for_each(|_| stack.wire.inject("Query", 0, stale()));
    stack.wire.forget();
    let (product_id, customer_id) = (id("p1"), id("c1"));
    let command = OrderProduct { order_id: id("o2"), customer_id, product_id, quantity: 1 };
    let end = stack.run(&command).await;
    assert_eq!(code(&end), "LimitExceeded");
    assert_eq!(end.expect("it is rejected").attempts, 3);
    // The second decision was not made, because the index did not show yet what the fence counts.
    assert_eq!(stack.take(TRANSACTION).len(), 1);
}

#[tokio::test]
async fn reads_are_sent_again_too() {
    let stack = shop().await;
    stack.accept(add()).await;
    for fault in [Fault::error("ThrottlingException"), Fault::LostBefore] {
        stack.wire.inject("Query", 0, fault);
    }
    stack.wire.inject("GetItem", 0, Fault::error("InternalServerError"));
    let end = stack.run(&add()).await;
    assert_eq!(code(&end), "ProductAlreadyExists");
    assert_eq!(end.expect("it is rejected").attempts, 1);
    stack.wire.inject("TransactGetItems", 0, Fault::cancelled(&["TransactionConflict", "None"]));
    let command = PlaceOrder { order_id: id("o1"), product_ids: vec![id("p2")], paid: true };
    let end = stack.run(&command).await;
    assert_eq!(code(&end), "ProductsNotAvailable");
    assert_eq!(end.expect("it is rejected").attempts, 1);
    assert!(stack.wire.is_spent());
}

#[tokio::test(start_paused = true)]
async fn a_read_without_any_answer_reports_that_nothing_was_written() {
    let stack = shop().await;
    (0..8).for_each(|_| stack.wire.inject("Query", 0, Fault::error("InternalServerError")));
    let end = stack.run(&add()).await.expect_err("no answer at all");
    assert!(
        matches!(
            end,
            HandleError::Log(LogError::Store(StoreError::Unavailable { attempts: 8, .. }))
        ),
        "{end:?}"
    );
    assert!(stack.wire.is_spent());
}

#[tokio::test]
async fn a_read_is_not_repeated_past_the_commands_deadline() {
    let stack = shop().await;
    let throttled = Fault::error("ThrottlingException");
    stack.wire.inject("Query", 0, throttled.clone());
    let deadline_ms = Some(NOW_MS);
    let end = stack.run_with(&add(), &Envelope { deadline_ms, ..envelope() }).await;
    let end = end.expect_err("no time is left");
    assert!(
        matches!(end, HandleError::Log(LogError::Store(StoreError::Throttled { attempts: 1 }))),
        "{end:?}"
    );
    assert_eq!(stack.take("Query").len(), 1);
}

#[tokio::test]
async fn a_failed_clause_fails_the_read() {
    let stack = Stack::start(catalog()).await;
    stack.seed(events![noted("b", "r", "one")]).await;
    stack.wire.inject("Query", 1, Fault::error("AccessDeniedException"));
    let plan = plan(&stack, &[&[("bookId", "b")], &[("readerId", "r")]]);
    let error = read(&stack, &plan).await.expect_err("one clause failed");
    assert!(matches!(error, LogError::Store(StoreError::Failed { .. })), "{error:?}");
}

#[tokio::test]
async fn a_hundred_boundaries_are_looked_at_together_and_more_are_refused() {
    let stack = Stack::start(catalog()).await;
    let books: Vec<String> = (0..101).map(|n| format!("b{n:03}")).collect();
    let clauses: Vec<_> = books.iter().map(|book| [("bookId", book.as_str())]).collect();
    let clauses: Vec<&[_]> = clauses.iter().map(|clause| &clause[..]).collect();
    let plans = [&clauses[1..], &clauses].map(|clauses| plan(&stack, clauses));
    let [hundred, more] = plans.map(|plan| seen(&plan, &[]));
    let (log, envelope) = (stack.log(), envelope());
    assert_eq!(log.verify(&hundred, &envelope).await.expect("a comparison"), None);
    stack.seed(events![noted("b100", "r", "one")]).await;
    let added = log.verify(&hundred, &envelope).await.expect("a comparison").expect("a conflict");
    assert_eq!(added.to_string(), "bookId:b100 has Noted in slot 1, which was free");
    assert_eq!(stack.take("TransactGetItems").len(), 2);
    let error = log.verify(&more, &envelope).await.expect_err("too many");
    assert!(matches!(error, LogError::Limit(_)), "{error:?}");
    assert!(stack.wire.take().is_empty(), "something was sent");
}

#[tokio::test]
async fn a_look_that_lacks_items_is_no_answer() {
    let stack = shop().await;
    let lacks = || Fault::Reply(Edit::new(|answer| answer["Responses"] = json!([])));
    stack.wire.inject("TransactGetItems", 0, lacks());
    let command = PlaceOrder { order_id: id("o1"), product_ids: vec![id("p1")], paid: true };
    let end = stack.run(&command).await.expect_err("nothing is known of the slots");
    let HandleError::Log(LogError::Store(StoreError::Failed { operation, source })) = end else {
        panic!("{end:?}")
    };
    assert_eq!((operation, &*source.to_string()), ("reading items", "0 answers to 2 keys"));
}

#[tokio::test]
async fn a_fence_that_counts_less_than_was_read_is_corrupt() {
    let stack = shop().await;
    stack.seed(events![ordered("o1")]).await;
    Damage::Delete.inflict(&stack, "customerId:c1").await;
    // As an append and as a rejection.
    for quantity in [1, 11] {
        let end = stack.run(&OrderProduct { quantity, ..order("o2") }).await;
        let Err(HandleError::Log(LogError::Corrupt(Change::Count { seen, found, .. }))) = end
        else {
            panic!("{end:?}")
        };
        assert_eq!((seen, found), (1, 0));
    }
}
