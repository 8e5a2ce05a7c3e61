//! Exact requests and units of a command: on a cold and a warm handler, without and with an idempotency key.
//!
//! Payloads have 500 bytes, ids at most 12, and the metadata is the metadata of a traced command. So an event's item
//! has at most 1,024 bytes. The units are computed from the documented sizes of the items, and agree with the
//! emulator's figures.

use std::sync::Arc;

use ringfence_aws::item_bytes;
use ringfence_aws::wire::Fault;
use ringfence_core::kit::id;
use ringfence_core::{Context, Decisions, Envelope, NewEvent, Slice, handle};
use ringfence_dcb_log::DcbLog;
use tokio::sync::Barrier;

use crate::prices::{Cost, computed, cost, metered};
use crate::shop::{
    AddProduct, ChangeProductName, FindPair, ListProduct, OrderListed, OrderProduct, PlaceOrder,
    ProductAdded, ProductListed, ProductNameChanged, ProductOrdered, ProductStocked, RecordDemand,
    Shop,
};
use crate::stack::{Stack, append, committed, envelope};

/// JSON bytes of a payload.
const PAYLOAD_BYTES: usize = 500;
/// The largest item of an event that takes one unit to write outside a transaction.
const EVENT_ITEM_BYTES_MAX: usize = 1_024;

/// The event with a payload of [`PAYLOAD_BYTES`].
fn padded(event: impl Into<NewEvent>) -> NewEvent {
    let mut event = event.into();
    event.data["note"] = "".into();
    let missing = PAYLOAD_BYTES - event.data.to_string().len();
    event.data["note"] = "x".repeat(missing).into();
    event
}

/// A command whose cost is measured, and the events before it.
struct Case<S: Slice> {
    given: Vec<NewEvent>,
    /// A command of the same query that warms the handler.
    before: Option<S>,
    command: S,
    /// How many reads must run at once.
    reads: usize,
    /// Whether the command has an idempotency key.
    key: bool,
}

impl<S: Slice + Clone> Case<S> {
    fn new(given: impl IntoIterator<Item = NewEvent>, command: S, reads: usize) -> Self {
        Self { given: given.into_iter().collect(), before: None, command, reads, key: false }
    }

    fn warm(self, before: S) -> Self {
        Self { before: Some(before), reads: 0, ..self }
    }

    fn with_key(self) -> Self {
        Self { key: true, ..self }
    }

    async fn cost(self) -> Cost {
        let stack = Stack::start(S::Context::catalog()).await;
        for event in self.given {
            stack.seed(vec![event]).await;
        }
        let decisions = Decisions::new(1);
        let run = async |log: &DcbLog, command: &S, key: Option<String>| {
            let envelope = Envelope { idempotency_key: key, ..envelope() };
            let handled = handle(log, &stack.catalog, &decisions, command, &envelope).await;
            assert_eq!(handled.expect("an outcome").attempts, 1);
        };
        if let Some(before) = &self.before {
            run(&stack.log(), before, None).await;
        }
        stack.wire.forget();
        let barrier = Arc::new(Barrier::new(self.reads));
        for _ in 0..self.reads {
            stack.wire.inject("Query", 0, Fault::Meet(barrier.clone()));
        }
        let log = stack.log();
        run(&log, &self.command, self.key.then(|| "key".to_owned())).await;
        assert!(stack.wire.is_spent(), "fewer reads than expected");
        measured(&stack, &log).await
    }
}

/// The cost of the log's requests since the last call. Computed and metered costs must be equal.
async fn measured(stack: &Stack, log: &DcbLog) -> Cost {
    let exchanges = stack.wire.take();
    let events = stack.items().await.into_iter().filter(|item| item.contains_key("event"));
    for bytes in events.map(|item| item_bytes(&item)) {
        assert!(bytes <= EVENT_ITEM_BYTES_MAX, "an event of {bytes} bytes");
    }
    let computed = computed(stack, &exchanges).await;
    assert_eq!(computed, metered(&log.meter().snapshot()), "computed, metered");
    computed
}

fn add() -> AddProduct {
    let mut command = AddProduct { product_id: id("product-0001"), name: String::new() };
    let empty = serde_json::to_string(&command).expect("JSON").len();
    command.name = "x".repeat(PAYLOAD_BYTES - empty);
    command
}

#[tokio::test]
async fn create_one_entity() {
    let add = || Case::new([], add(), 1);
    assert_eq!(add().cost().await, cost((1, 0.5), (1, 1.0)));
    assert_eq!(add().with_key().cost().await, cost((1, 0.5), (1, 1.0)));
    add().cost().await.is_documented("create an entity");
}

const PRODUCTS: [&str; 2] = ["product-0001", "product-0002"];

fn place(paid: bool) -> PlaceOrder {
    let (order_id, product_ids) = (id("order-000001"), PRODUCTS.map(id).to_vec());
    PlaceOrder { order_id, product_ids, paid }
}

fn stocked() -> impl Iterator<Item = NewEvent> {
    PRODUCTS.into_iter().map(|product| padded(ProductStocked { product_id: id(product) }))
}

#[tokio::test]
async fn place_an_order_of_two_products() {
    let place_order = || Case::new(stocked(), place(true), 3);
    assert_eq!(place_order().cost().await, cost((3, 1.5), (1, 6.0)));
    assert_eq!(place_order().with_key().cost().await, cost((3, 1.5), (1, 6.0)));
    place_order().cost().await.is_documented("place an order with two products, which are checked");
    let warm = || place_order().warm(place(false));
    assert_eq!(warm().cost().await, cost((0, 0.0), (1, 6.0)));
    assert_eq!(warm().with_key().cost().await, cost((0, 0.0), (1, 6.0)));
}

#[tokio::test]
async fn place_an_order_of_two_products_whose_fences_are_checked() {
    let listed = || {
        let listed = |product| padded(ProductListed { product_id: id(product) });
        PRODUCTS.into_iter().map(listed)
    };
    let order =
        || OrderListed { order_id: id("order-000001"), product_ids: PRODUCTS.map(id).into() };
    let order = || Case::new(listed(), order(), 3);
    assert_eq!(order().cost().await, cost((3, 1.5), (1, 6.0)));
    assert_eq!(order().with_key().cost().await, cost((3, 1.5), (1, 6.0)));
    // Their append pays for it: the event and its fence, in a transaction.
    let list = || Case::new([], ListProduct { product_id: id("product-0001") }, 1);
    assert_eq!(list().cost().await, cost((1, 0.5), (1, 4.0)));
    assert_eq!(list().with_key().cost().await, cost((1, 0.5), (1, 4.0)));
}

#[tokio::test]
async fn record_one_pair_that_is_read_as_a_composite() {
    let record =
        || RecordDemand::Record { product_id: id("product-0001"), order_id: id("order-000001") };
    let revoke =
        || RecordDemand::Revoke { product_id: id("product-0001"), order_id: id("order-000001") };
    let record = || Case::new([], record(), 1);
    let expected = |reads, write| {
        let index_write = vec![("tag_composite".to_owned(), 1.0)];
        Cost { index_write, ..cost(reads, (1, write)) }
    };
    // Besides, the append looks for the last slot of the product's partition, which no read covers. So the record is
    // an item.
    assert_eq!(record().cost().await, expected((2, 1.0), 4.0));
    assert_eq!(record().with_key().cost().await, expected((2, 1.0), 6.0));
    record()
        .cost()
        .await
        .is_documented("record a pair in the partition of one of the two (composite tag)");
    assert_eq!(record().warm(revoke()).cost().await, expected((1, 0.5), 4.0));
    assert_eq!(record().warm(revoke()).with_key().cost().await, expected((1, 0.5), 6.0));
}

#[tokio::test]
async fn record_one_pair_that_is_the_partition() {
    let find = |fits| FindPair { product_id: id(PRODUCTS[0]), other_id: id(PRODUCTS[1]), fits };
    let pair = || Case::new([], find(true), 1);
    assert_eq!(pair().cost().await, cost((1, 0.5), (1, 1.0)));
    assert_eq!(pair().with_key().cost().await, cost((1, 0.5), (1, 1.0)));
    pair().cost().await.is_documented("record a pair that is the partition");
    assert_eq!(pair().warm(find(false)).cost().await, cost((0, 0.0), (1, 1.0)));
    assert_eq!(pair().warm(find(false)).with_key().cost().await, cost((0, 0.0), (1, 1.0)));
}

#[tokio::test]
async fn cap_over_fifty_events_of_other_partitions() {
    let given = || {
        (0..50).map(|n| {
            padded(ProductOrdered {
                order_id: id(&format!("order-{n:06}")),
                customer_id: id("customer-001"),
                product_id: id("product-0002"),
                quantity: 1,
            })
        })
    };
    let order = |quantity| OrderProduct {
        order_id: id("order-999999"),
        customer_id: id("customer-001"),
        product_id: id("product-0001"),
        quantity,
    };
    let cap = || Case::new(given(), order(1), 2);
    let expected = |reads, write| {
        let index_write = vec![("tag_customerId".to_owned(), 1.0)];
        Cost { index_write, ..cost(reads, (1, write)) }
    };
    assert_eq!(cap().cost().await, expected((2, 4.5), 4.0));
    assert_eq!(cap().with_key().cost().await, expected((2, 4.5), 4.0));
    cap().cost().await.is_documented("order under a cap, 50 prior events in other partitions");
    // A rejected quantity leaves the handler warm.
    assert_eq!(cap().warm(order(11)).cost().await, expected((0, 0.0), 4.0));
    assert_eq!(cap().warm(order(11)).with_key().cost().await, expected((0, 0.0), 4.0));
}

/// A product with a hundred events. The last one names it `Lamp 99`.
fn hundred() -> impl Iterator<Item = NewEvent> {
    let product = || id("product-0001");
    let added = padded(ProductAdded { product_id: product(), name: "Lamp".to_owned() });
    let renamed = (1..100).map(move |n| {
        padded(ProductNameChanged { product_id: product(), name: format!("Lamp {n}") })
    });
    std::iter::once(added).chain(renamed)
}

fn rename(name: &str) -> ChangeProductName {
    ChangeProductName { product_id: id("product-0001"), name: name.to_owned() }
}

#[tokio::test]
async fn append_to_an_entity_of_a_hundred_events() {
    let append = || Case::new(hundred(), rename("Lantern"), 1);
    assert_eq!(append().cost().await, cost((1, 10.5), (1, 1.0)));
    assert_eq!(append().with_key().cost().await, cost((1, 10.5), (1, 1.0)));
    append().cost().await.is_documented("append to an entity of 100 events");
    assert_eq!(append().warm(rename("Lamp 99")).cost().await, cost((0, 0.0), (1, 1.0)));
    let warm = append().warm(rename("Lamp 99")).with_key();
    assert_eq!(warm.cost().await, cost((0, 0.0), (1, 1.0)));
}

#[tokio::test]
async fn a_rejection_costs_a_look_at_its_boundaries() {
    let there = || padded(ProductAdded { product_id: id("product-0001"), name: "Lamp".to_owned() });
    // One partition: a strong read of the next slot.
    let rejected = || Case::new([there()], add(), 1);
    assert_eq!(rejected().cost().await, cost((2, 1.5), (0, 0.0)));
    assert_eq!(rejected().with_key().cost().await, cost((2, 1.5), (0, 0.0)));
    assert_eq!(rejected().warm(add()).cost().await, cost((1, 1.0), (0, 0.0)));
    // Three: a transaction.
    let rejected = || Case::new(stocked(), place(false), 3);
    assert_eq!(rejected().cost().await, cost((4, 7.5), (0, 0.0)));
    assert_eq!(rejected().with_key().cost().await, cost((4, 7.5), (0, 0.0)));
    assert_eq!(rejected().warm(place(false)).cost().await, cost((1, 6.0), (0, 0.0)));
    // A pair: a transaction; with a key also a strong read of the item.
    let pair = || (id("product-0001"), id("order-000001"));
    let revoke = || {
        let (product_id, order_id) = pair();
        Case::new([], RecordDemand::Revoke { product_id, order_id }, 1)
    };
    assert_eq!(revoke().cost().await, cost((2, 2.5), (0, 0.0)));
    assert_eq!(revoke().with_key().cost().await, cost((3, 3.5), (0, 0.0)));
}

#[tokio::test]
async fn a_repeat_costs_as_much_as_a_rejection() {
    let stack = Stack::start(Shop::catalog()).await;
    let envelope = Envelope { idempotency_key: Some("key".to_owned()), ..envelope() };
    let (log, decisions) = (stack.log(), Decisions::new(1));
    let run = async |repeated| {
        stack.wire.forget();
        let handled = handle(&log, &stack.catalog, &decisions, &add(), &envelope).await;
        assert_eq!(handled.expect("an outcome").repeated, repeated);
    };
    run(false).await;
    for _ in 0..2 {
        // A warm handler also reads the events, because they are the answer.
        run(true).await;
        assert_eq!(computed(&stack, &stack.wire.take()).await, cost((2, 1.5), (0, 0.0)));
    }
}

#[tokio::test]
async fn an_append_to_an_unread_partition_looks_for_its_last_slot() {
    let stack = Stack::start(Shop::catalog()).await;
    for event in hundred() {
        stack.seed(vec![event]).await;
    }
    stack.wire.forget();
    let log = stack.log();
    let event = padded(ProductStocked { product_id: id("product-0001") });
    let appended = committed(append(&log, vec![event], &envelope()).await);
    assert_eq!(appended[0].slot, 101);
    assert_eq!(measured(&stack, &log).await, cost((1, 0.5), (1, 1.0)));
}

#[tokio::test]
async fn a_conflict_costs_the_refused_write_and_the_tail() {
    let stack = Stack::start(Shop::catalog()).await;
    for event in hundred() {
        stack.seed(vec![event]).await;
    }
    let (log, decisions) = (stack.log(), Decisions::new(1));
    let run = async |log: &DcbLog, name: &str| {
        let handled = handle(log, &stack.catalog, &decisions, &rename(name), &envelope()).await;
        handled.expect("it is accepted").attempts
    };
    assert_eq!(run(&stack.log(), "Lamp 99").await, 1);
    let product_id = id("product-0001");
    stack.seed(vec![padded(ProductNameChanged { product_id, name: "Torch".to_owned() })]).await;
    stack.wire.forget();
    assert_eq!(run(&log, "Lantern").await, 2);
    let exchanges = stack.wire.take();
    let operations: Vec<_> = exchanges.iter().map(|e| e.operation.as_str()).collect();
    assert_eq!(operations, ["PutItem", "Query", "PutItem"]);
    // A refused put costs as much as a successful one.
    let put = computed(&stack, &exchanges).await;
    assert_eq!((&put, &metered(&log.meter().snapshot())), (&cost((1, 1.0), (2, 2.0)), &put));

    // So does a transaction.
    for event in stocked() {
        stack.seed(vec![event]).await;
    }
    let (log, decisions) = (stack.log(), Decisions::new(1));
    let run = async |log: &DcbLog, paid: bool| {
        let handled = handle(log, &stack.catalog, &decisions, &place(paid), &envelope()).await;
        handled.expect("an outcome").attempts
    };
    assert_eq!(run(&stack.log(), false).await, 1);
    stack.seed(stocked().take(1).collect()).await;
    stack.wire.forget();
    assert_eq!(run(&log, true).await, 2);
    assert_eq!(measured(&stack, &log).await, cost((1, 1.0), (2, 12.0)));
}
