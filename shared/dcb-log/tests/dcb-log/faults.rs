//! What no emulator does: contention, throttling, lost answers, stale reads, lagging indexes.

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence::kit::id;
use ringfence::{
    Conflict, DcbContext, Envelope, EventLog, HandleError, LogError, StoreError, events,
};
use ringfence_dynamo::Clock;
use ringfence_dynamo::wire::{Edit, Exchange, Fault};
use serde_json::{Value, json};

use crate::reads::{catalog, noted, plan, read, seen};
use crate::shop::{
    AddProduct, OrderProduct, PlaceOrder, ProductNameChanged, ProductOrdered, ProductStocked,
    RecordDemand, Shop,
};
use crate::stack::{NOW_MS, Stack, TABLE, append, code, committed, envelope};

const ADDED: &str = "TransactWriteItems";

async fn shop() -> Stack {
    Stack::start(Shop::catalog()).await
}

fn add() -> AddProduct {
    AddProduct { product_id: id("p1"), name: "Lamp".to_owned() }
}

fn renamed(name: &str) -> ProductNameChanged {
    ProductNameChanged { product_id: id("p1"), name: name.to_owned() }
}

/// A page without items, as a replica answers that has not heard of them.
fn stale() -> Fault {
    Fault::Answer(200, json!({ "Items": [], "Count": 0, "ScannedCount": 0 }))
}

fn requests(exchanges: &[Exchange], operation: &str) -> Vec<Value> {
    let of = exchanges.iter().filter(|exchange| exchange.operation == operation);
    of.map(|exchange| exchange.request.clone()).collect()
}

#[tokio::test]
async fn the_identical_transaction_is_sent_again_and_nothing_decided_again() {
    for fault in [
        Fault::cancelled(&["None", "TransactionConflict"]),
        Fault::cancelled(&["ThrottlingError", "None"]),
        Fault::cancelled(&["ProvisionedThroughputExceeded", "TransactionConflict"]),
        Fault::error("ThrottlingException"),
        Fault::error("ProvisionedThroughputExceededException"),
        Fault::error("TransactionInProgressException"),
        Fault::error("InternalServerError"),
        Fault::LostBefore,
        Fault::LostAfter,
    ] {
        let stack = shop().await;
        stack.wire.inject(ADDED, 0, fault.clone());
        let handled = stack.accept(add()).await;
        assert_eq!((handled.attempts, handled.repeated), (1, false), "{fault:?}");
        let exchanges = stack.wire.take();
        assert_eq!(requests(&exchanges, "Query").len(), 1, "{fault:?}");
        let sent = requests(&exchanges, ADDED);
        assert_eq!(sent.len(), 2, "{fault:?}");
        assert_eq!(sent[0], sent[1], "{fault:?}");
        assert_eq!(stack.count("ProductAdded").await, 1, "{fault:?}");
    }
}

/// Sends one append through these faults and returns how it failed.
async fn fails(faults: Vec<Fault>, deadline_ms: Option<u64>) -> (LogError, usize) {
    let stack = shop().await;
    faults.into_iter().for_each(|fault| stack.wire.inject(ADDED, 0, fault));
    let envelope = Envelope { deadline_ms, ..envelope() };
    let appended = append(&stack.log(), events![renamed("x")], &envelope).await;
    assert_eq!(stack.count("ProductNameChanged").await, 0);
    (appended.expect_err("it never succeeds"), stack.take(ADDED).len())
}

#[tokio::test]
async fn exhaustion_says_what_is_known() {
    let many = |fault: Fault| vec![fault; 8];
    let conflict = || Fault::cancelled(&["TransactionConflict"]);
    let mut once_lost = many(Fault::error("ThrottlingException"));
    once_lost[3] = Fault::LostBefore;
    let (contention, throttled, unknown, once_lost) = tokio::join!(
        fails(many(conflict()), None),
        fails(many(Fault::error("ThrottlingException")), None),
        fails(many(Fault::error("InternalServerError")), None),
        fails(once_lost, None),
    );
    assert!(
        matches!(contention, (LogError::Store(StoreError::Contention { attempts: 8, .. }), 8)),
        "{contention:?}"
    );
    assert!(
        matches!(throttled, (LogError::Store(StoreError::Throttled { attempts: 8 }), 8)),
        "{throttled:?}"
    );
    assert!(
        matches!(unknown, (LogError::Store(StoreError::OutcomeUnknown { attempts: 8, .. }), 8)),
        "{unknown:?}"
    );
    assert!(
        matches!(once_lost.0, LogError::Store(StoreError::OutcomeUnknown { attempts: 8, .. })),
        "{once_lost:?}"
    );
}

#[tokio::test]
async fn the_unknown_outcome_of_a_send_that_was_refused_since_is_not_reported() {
    let stack = shop().await;
    // The head of the fence lies ahead of the next writer's clock.
    let fast = stack.log_at(&Clock::fixed(NOW_MS + 10_000));
    committed(append(&fast, events![renamed("x")], &envelope()).await);
    // The first send gets no answer. The second, of the same transaction, is refused for the head,
    // and then the first has come to nothing as well. The third, a new transaction, is refused.
    stack.wire.inject(ADDED, 0, Fault::LostBefore);
    stack.wire.inject(ADDED, 2, Fault::error("AccessDeniedException"));
    let failed = append(&stack.log(), events![renamed("y")], &envelope()).await;
    assert!(stack.wire.is_spent());
    assert!(matches!(failed, Err(LogError::Store(StoreError::Failed { .. }))), "{failed:?}");
}

#[tokio::test]
async fn no_wait_crosses_the_deadline_of_a_command() {
    let conflict = Fault::cancelled(&["TransactionConflict"]);
    let failed = fails(vec![conflict], Some(NOW_MS)).await;
    assert!(
        matches!(failed, (LogError::Store(StoreError::Contention { attempts: 1, .. }), 1)),
        "{failed:?}"
    );
    let failed = fails(vec![Fault::LostBefore], Some(NOW_MS)).await;
    assert!(
        matches!(failed, (LogError::Store(StoreError::OutcomeUnknown { attempts: 1, .. }), 1)),
        "{failed:?}"
    );
}

#[tokio::test]
async fn what_can_never_succeed_is_sent_once() {
    for fault in [
        Fault::error("ValidationException"),
        Fault::error("AccessDeniedException"),
        Fault::cancelled(&["ItemCollectionSizeLimitExceeded"]),
        Fault::cancelled(&["ValidationError"]),
    ] {
        let failed = fails(vec![fault.clone()], None).await;
        assert!(
            matches!(failed, (LogError::Store(StoreError::Failed { .. }), 1)),
            "{fault:?}: {failed:?}"
        );
    }
}

#[tokio::test]
async fn a_clock_behind_the_fence_is_raised_without_deciding_again() {
    let stack = shop().await;
    let ahead = stack.seed(events![renamed("first")]).await;
    let _ = stack.wire.take();
    let slow = stack.log_at(&Clock::fixed(NOW_MS - 30_000));
    let behind = committed(append(&slow, events![renamed("second")], &envelope()).await);
    assert!(ahead[0].position < behind[0].position);
    let sent = requests(&stack.wire.take(), ADDED);
    let [refused, accepted] = &sent[..] else { panic!("{} requests", sent.len()) };
    assert_ne!(refused["ClientRequestToken"], accepted["ClientRequestToken"]);
    // The writer remembers: its next position needs no second request.
    committed(append(&slow, events![renamed("third")], &envelope()).await);
    assert_eq!(stack.take(ADDED).len(), 1);
}

#[tokio::test]
async fn one_fence_far_ahead_does_not_carry_the_others_with_it() {
    let stack = shop().await;
    stack.seed(events![renamed("first")]).await;
    let early_ms = NOW_MS - 3_600_000;
    let slow = stack.log_at(&Clock::fixed(early_ms));
    let behind = committed(append(&slow, events![renamed("second")], &envelope()).await);
    assert!(behind[0].position.ms() > NOW_MS);
    let other = ProductNameChanged { product_id: id("p2"), name: "Desk".to_owned() };
    let other = committed(append(&slow, events![other], &envelope()).await);
    assert!(other[0].position.ms() <= early_ms + 60_001, "{:?}", other[0].position);
}

#[tokio::test]
async fn a_rejection_decided_on_a_stale_read_is_never_answered() {
    let stack = shop().await;
    stack.seed(events![ProductStocked { product_id: id("p1") }]).await;
    // Both reads of the first decision: the order, which is not there, and the product.
    stack.wire.inject("Query", 0, stale());
    stack.wire.inject("Query", 0, stale());
    let command = PlaceOrder { order_id: id("o1"), product_ids: vec![id("p1")] };
    let handled = stack.accept(command).await;
    assert_eq!(handled.attempts, 2);
    assert!(stack.wire.is_spent());
    let queries = requests(&stack.wire.take(), "Query");
    let strong = queries.iter().filter(|query| query["ConsistentRead"] == true);
    assert_eq!((queries.len(), strong.count()), (4, 2), "the second reads are strong");
}

#[tokio::test]
async fn a_no_op_decided_on_a_stale_read_is_never_answered() {
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
    // Two decisions' worth of reads; the order's partition is empty anyway.
    (0..4).for_each(|_| stack.wire.inject("Query", 0, stale()));
    let _ = stack.wire.take();
    let (product_id, customer_id) = (id("p1"), id("c1"));
    let command = OrderProduct { order_id: id("o2"), customer_id, product_id, quantity: 1 };
    let end = stack.run(&command).await;
    assert_eq!(code(&end), "LimitExceeded");
    assert_eq!(end.expect("it is rejected").attempts, 3);
    // The second decision was not made: the index did not show yet what the fence counts.
    assert_eq!(stack.take(ADDED).len(), 1);
}

#[tokio::test]
async fn reads_are_sent_again_too() {
    let stack = shop().await;
    stack.accept(add()).await;
    for fault in [Fault::error("ThrottlingException"), Fault::LostBefore] {
        stack.wire.inject("Query", 0, fault);
    }
    stack.wire.inject("TransactGetItems", 0, Fault::cancelled(&["TransactionConflict"]));
    let end = stack.run(&add()).await;
    assert_eq!(code(&end), "ProductAlreadyExists");
    assert_eq!(end.expect("it is rejected").attempts, 1);
    assert!(stack.wire.is_spent());
}

#[tokio::test]
async fn a_read_without_any_answer_says_that_nothing_is_written() {
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
async fn more_fences_than_one_snapshot_holds_are_all_compared() {
    let stack = Stack::start(catalog()).await;
    let books: Vec<String> = (0..150).map(|n| format!("b{n:03}")).collect();
    let clauses: Vec<_> = books.iter().map(|book| [("bookId", book.as_str())]).collect();
    let clauses: Vec<&[_]> = clauses.iter().map(|clause| &clause[..]).collect();
    let plan = plan(&stack, &clauses);
    let seen = seen(&plan, &[]);
    let (log, envelope) = (stack.log(), envelope());
    assert_eq!(log.verify(&seen, &envelope).await.expect("a comparison"), None);
    stack.seed(events![noted("b149", "r", "one")]).await;
    let conflict = log.verify(&seen, &envelope).await.expect("a comparison").expect("a conflict");
    assert_eq!(conflict.to_string(), "bookId:b149 holds 1 Noted, seen 0");
    assert_eq!(stack.take("TransactGetItems").len(), 4);
}

#[tokio::test]
async fn a_snapshot_that_lacks_fences_is_no_answer() {
    let stack = shop().await;
    stack.accept(add()).await;
    let lacks = || Fault::Reply(Edit::new(|answer| answer["Responses"] = json!([])));
    stack.wire.inject("TransactGetItems", 0, lacks());
    let end = stack.run(&add()).await.expect_err("nothing is known of the fence");
    let HandleError::Log(LogError::Store(StoreError::Failed { operation, source })) = end else {
        panic!("{end:?}")
    };
    assert_eq!((operation, &*source.to_string()), ("reading items", "0 answers to 1 keys"));
}

#[tokio::test]
async fn a_fence_that_counts_less_than_was_read_is_corrupt() {
    let stack = shop().await;
    stack.accept(add()).await;
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let fence = stack.client.delete_item().table_name(TABLE);
    let fence = fence.key("id", text("fence#productId:p1")).key("position", text("FENCE"));
    fence.send().await.expect("a deletion, which no writer of this project makes");
    let end = stack.run(&add()).await.expect_err("the fence is gone");
    let HandleError::Log(LogError::Corrupt(Conflict { seen, found, .. })) = end else {
        panic!("{end:?}")
    };
    assert_eq!((seen, found), (1, 0));
}
