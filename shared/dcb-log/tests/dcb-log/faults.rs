//! Faults that no emulator makes: contention, throttling, lost answers.

use ringfence_aws::Clock;
use ringfence_aws::wire::{Exchange, Fault};
use ringfence_core::kit::id;
use ringfence_core::{
    Append, Context, Envelope, EventLog, LogError, NewEvent, Plan, Query, QueryItem, Slice,
    StoreError, events,
};
use serde_json::{Value, json};

use crate::reads::seen;
use crate::shop::{AddProduct, OrderProduct, ProductNameChanged, ProductOrdered, Shop};
use crate::stack::{NOW_MS, Stack, append, committed, envelope};

/// The operation that appends one event and nothing else.
const PUT: &str = "PutItem";
/// The operation of all other appends.
pub(crate) const TRANSACTION: &str = "TransactWriteItems";

pub(crate) async fn shop() -> Stack {
    Stack::start(Shop::catalog()).await
}

pub(crate) fn add() -> AddProduct {
    AddProduct { product_id: id("p1"), name: "Lamp".to_owned() }
}

pub(crate) fn renamed(name: &str) -> ProductNameChanged {
    ProductNameChanged { product_id: id("p1"), name: name.to_owned() }
}

/// An order of the customer `c1`; the customer's fence counts it.
pub(crate) fn ordered(order: &str) -> ProductOrdered {
    let (order_id, customer_id, product_id) = (id(order), id("c1"), id("p1"));
    ProductOrdered { order_id, customer_id, product_id, quantity: 1 }
}

pub(crate) fn order(order: &str) -> OrderProduct {
    let (order_id, customer_id, product_id) = (id(order), id("c1"), id("p1"));
    OrderProduct { order_id, customer_id, product_id, quantity: 1 }
}

/// A page without items, as from a replica that does not have them yet.
pub(crate) fn stale() -> Fault {
    Fault::Answer(200, json!({ "Items": [], "Count": 0, "ScannedCount": 0 }))
}

pub(crate) fn requests(exchanges: &[Exchange], operation: &str) -> Vec<Value> {
    let of = exchanges.iter().filter(|exchange| exchange.operation == operation);
    of.map(|exchange| exchange.request.clone()).collect()
}

/// Faults after which the same request is sent again, be it a put or a transaction.
fn transient() -> Vec<Fault> {
    vec![
        Fault::error("ThrottlingException"),
        Fault::error("ProvisionedThroughputExceededException"),
        Fault::error("TransactionInProgressException"),
        Fault::error("InternalServerError"),
        Fault::LostBefore,
        Fault::LostAfter,
    ]
}

/// The command is sent twice, identically, and decided once.
async fn is_sent_again<S: Slice>(command: S, operation: &str, fault: Fault) {
    let stack = shop().await;
    stack.wire.inject(operation, 0, fault.clone());
    let handled = stack.accept(command).await;
    assert_eq!((handled.attempts, handled.repeated), (1, false), "{fault:?}");
    let exchanges = stack.wire.take();
    let sent = requests(&exchanges, operation);
    assert_eq!(sent.len(), 2, "{fault:?}");
    assert_eq!(sent[0], sent[1], "{fault:?}");
    let reads = requests(&exchanges, "Query");
    assert!(reads.iter().all(|read| read["ConsistentRead"] == false), "{fault:?}");
    let events = stack.items().await.into_iter().filter(|item| item.contains_key("event"));
    assert_eq!(events.count(), 1, "{fault:?}");
}

#[tokio::test]
async fn the_identical_request_is_sent_again_without_a_new_decision() {
    for fault in transient() {
        is_sent_again(add(), PUT, fault.clone()).await;
        is_sent_again(order("o1"), TRANSACTION, fault).await;
    }
    is_sent_again(add(), PUT, Fault::error("TransactionConflictException")).await;
    for reasons in [
        ["None", "TransactionConflict"],
        ["ThrottlingError", "None"],
        ["ProvisionedThroughputExceeded", "TransactionConflict"],
    ] {
        is_sent_again(order("o1"), TRANSACTION, Fault::cancelled(&reasons)).await;
    }
}

/// How often an append is sent at most.
const SENDS_MAX: u32 = 12;
const SENDS: usize = SENDS_MAX as usize;

/// Sends one append through these faults. Its decision has read the event's partition. Returns the error, and how
/// often the append was sent.
async fn fails(
    event: NewEvent,
    operation: &str,
    faults: Vec<Fault>,
    deadline_ms: Option<u64>,
) -> (LogError, usize) {
    let stack = shop().await;
    faults.into_iter().for_each(|fault| stack.wire.inject(operation, 0, fault));
    let types = vec![event.event_type.clone()];
    let items = vec![QueryItem { tags: event.tags[..1].to_vec(), types }];
    let plan = Plan::new(&Query { items }, &stack.catalog).expect("a route");
    let envelope = Envelope { deadline_ms, ..envelope() };
    let seen = seen(&plan, &[]);
    let append =
        Append { events: vec![event], seen: Some(&seen), record: None, envelope: &envelope };
    let appended = stack.log().append(append).await;
    let events = stack.items().await.into_iter().filter(|item| item.contains_key("event"));
    assert_eq!(events.count(), 0);
    (appended.expect_err("it never succeeds"), stack.take(operation).len())
}

#[tokio::test(start_paused = true)]
async fn exhausted_attempts_report_whether_the_outcome_is_known() {
    let conflict = Fault::cancelled(&["TransactionConflict", "None"]);
    let cancelled = Fault::cancelled(&["None", "ThrottlingError"]);
    let throttling = Fault::error("ThrottlingException");
    for (event, operation, conflict, cancelled) in [
        (
            renamed("x").into(),
            PUT,
            Fault::error("TransactionConflictException"),
            throttling.clone(),
        ),
        (NewEvent::from(ordered("o1")), TRANSACTION, conflict, cancelled),
    ] {
        let many = |fault: Fault| vec![fault; SENDS];
        let mut once_lost = many(throttling.clone());
        once_lost[3] = Fault::LostBefore;
        let fails = |faults| fails(event.clone(), operation, faults, None);
        let (contention, throttled, cancelled, unknown, once_lost) = tokio::join!(
            fails(many(conflict)),
            fails(many(throttling.clone())),
            fails(many(cancelled)),
            fails(many(Fault::error("InternalServerError"))),
            fails(once_lost),
        );
        assert!(
            matches!(
                contention,
                (LogError::Store(StoreError::Contention { attempts: SENDS_MAX, .. }), SENDS)
            ),
            "{contention:?}"
        );
        for throttled in [throttled, cancelled] {
            assert!(
                matches!(
                    throttled,
                    (LogError::Store(StoreError::Throttled { attempts: SENDS_MAX }), SENDS)
                ),
                "{throttled:?}"
            );
        }
        for unknown in [unknown, once_lost] {
            assert!(
                matches!(
                    unknown,
                    (
                        LogError::Store(StoreError::OutcomeUnknown { attempts: SENDS_MAX, .. }),
                        SENDS
                    )
                ),
                "{unknown:?}"
            );
        }
    }
}

/// The transaction was not judged: others held the event's slot, and the fence counts more than was seen.
fn unjudged() -> Fault {
    let fence = json!({ "cnt#ProductOrdered": { "N": "1" }, "head": { "N": "1" } });
    let reasons = json!([
        { "Code": "TransactionConflict" },
        { "Code": "ConditionalCheckFailed", "Item": fence },
    ]);
    let kind = "TransactionCanceledException";
    Fault::Answer(400, json!({ "__type": kind, "CancellationReasons": reasons }))
}

#[tokio::test]
async fn an_unknown_outcome_is_not_decided_again_until_our_put_was_judged() {
    // With the token, and after the ten minutes for which DynamoDB knows it.
    for without_token in [false, true] {
        let stack = shop().await;
        stack.wire.inject(TRANSACTION, 0, Fault::LostAfter);
        stack.wire.inject(TRANSACTION, 0, unjudged());
        if without_token {
            stack.wire.inject(TRANSACTION, 0, Fault::without_token());
        }
        let handled = stack.accept(order("o1")).await;
        assert!(stack.wire.is_spent());
        assert_eq!((handled.attempts, handled.repeated), (1, false));
        let sent = requests(&stack.wire.take(), TRANSACTION);
        assert_eq!(sent.len(), 3);
        assert!(sent.iter().all(|request| *request == sent[0]));
        assert_eq!(stack.count("ProductOrdered").await, 1);
        stack.check_fences().await;
    }
    // Without a lost answer, the same reasons are a conflict, because the append can't be in the log.
    let stack = shop().await;
    stack.seed(events![ordered("o0")]).await;
    (0..2).for_each(|_| stack.wire.inject("Query", 0, stale()));
    stack.wire.inject(TRANSACTION, 0, unjudged());
    assert_eq!(stack.accept(order("o1")).await.attempts, 2);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_stays_unknown_if_no_later_send_was_judged() {
    for last in [unjudged(), Fault::error("ThrottlingException")] {
        let mut faults = vec![Fault::LostBefore, unjudged()];
        faults.resize(SENDS, last);
        let failed = fails(ordered("o1").into(), TRANSACTION, faults, None).await;
        assert!(
            matches!(
                failed,
                (LogError::Store(StoreError::OutcomeUnknown { attempts: SENDS_MAX, .. }), SENDS)
            ),
            "{failed:?}"
        );
    }
}

#[tokio::test]
async fn an_unknown_outcome_is_settled_by_a_later_refusal() {
    let stack = shop().await;
    // The head of the fence is ahead of the next writer's clock.
    let fast = stack.log_at(&Clock::fixed(NOW_MS + 10_000));
    committed(append(&fast, events![ordered("o1")], &envelope()).await);
    // The first send gets no answer. The second send, of the same transaction, is refused because of the head, so the
    // first one failed as well. The third send, a new transaction, is refused.
    stack.wire.inject(TRANSACTION, 0, Fault::LostBefore);
    stack.wire.inject(TRANSACTION, 2, Fault::error("AccessDeniedException"));
    let failed = append(&stack.log(), events![ordered("o2")], &envelope()).await;
    assert!(stack.wire.is_spent());
    assert!(matches!(failed, Err(LogError::Store(StoreError::Failed { .. }))), "{failed:?}");
}

#[tokio::test]
async fn no_wait_crosses_the_deadline_of_a_command() {
    let conflict = Fault::cancelled(&["TransactionConflict", "None"]);
    let fails = |fault| fails(ordered("o1").into(), TRANSACTION, vec![fault], Some(NOW_MS));
    let failed = fails(conflict).await;
    assert!(
        matches!(failed, (LogError::Store(StoreError::Contention { attempts: 1, .. }), 1)),
        "{failed:?}"
    );
    let failed = fails(Fault::LostBefore).await;
    assert!(
        matches!(failed, (LogError::Store(StoreError::OutcomeUnknown { attempts: 1, .. }), 1)),
        "{failed:?}"
    );
}

#[tokio::test]
async fn a_request_that_can_never_succeed_is_sent_once() {
    let refused = ["ValidationException", "AccessDeniedException"].map(Fault::error);
    let cancelled = ["ItemCollectionSizeLimitExceeded", "ValidationError"];
    let cancelled = cancelled.map(|code| Fault::cancelled(&[code, "None"]));
    let put = refused.clone().map(|fault| (NewEvent::from(renamed("x")), PUT, fault));
    let transaction = refused.into_iter().chain(cancelled);
    let transaction = transaction.map(|fault| (ordered("o1").into(), TRANSACTION, fault));
    for (event, operation, fault) in put.into_iter().chain(transaction) {
        let failed = fails(event, operation, vec![fault.clone()], None).await;
        assert!(
            matches!(failed, (LogError::Store(StoreError::Failed { .. }), 1)),
            "{fault:?}: {failed:?}"
        );
    }
}

#[tokio::test]
async fn a_clock_behind_the_fence_is_raised_without_deciding_again() {
    let stack = shop().await;
    let ahead = stack.seed(events![ordered("o1")]).await;
    stack.wire.forget();
    let slow = stack.log_at(&Clock::fixed(NOW_MS - 30_000));
    let behind = committed(append(&slow, events![ordered("o2")], &envelope()).await);
    assert!(ahead[0].at < behind[0].at);
    let sent = requests(&stack.wire.take(), TRANSACTION);
    let [refused, accepted] = &sent[..] else { panic!("{} requests", sent.len()) };
    assert_ne!(refused["ClientRequestToken"], accepted["ClientRequestToken"]);
    // The writer remembers the head, so its next time needs no second request.
    committed(append(&slow, events![ordered("o3")], &envelope()).await);
    assert_eq!(stack.take(TRANSACTION).len(), 1);
    // A taken slot does not make it forget the head.
    let slow = stack.log_at(&Clock::fixed(NOW_MS - 30_000));
    stack.wire.inject(TRANSACTION, 1, Fault::cancelled(&["ConditionalCheckFailed", "None"]));
    committed(append(&slow, events![ordered("o4")], &envelope()).await);
    assert_eq!(stack.take(TRANSACTION).len(), 3);
}

#[tokio::test]
async fn one_fence_far_ahead_does_not_move_the_others() {
    let stack = shop().await;
    stack.seed(events![ordered("o1"), renamed("first")]).await;
    let early_ms = NOW_MS - 3_600_000;
    let slow = stack.log_at(&Clock::fixed(early_ms));
    for event in [NewEvent::from(ordered("o2")), renamed("second").into()] {
        let behind = committed(append(&slow, vec![event], &envelope()).await);
        assert!(behind[0].at > NOW_MS);
        let other = ProductNameChanged { product_id: id("p2"), name: "Desk".to_owned() };
        let other = committed(append(&slow, events![other], &envelope()).await);
        assert!(other[0].at <= early_ms + 1, "{:?}", other[0].at);
    }
}
