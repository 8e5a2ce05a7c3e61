//! Snapshots in the table: their costs and savings, and the reads when they can't be used.

use std::time::Duration;

use futures::TryStreamExt;
use futures::future::join_all;
use ringfence_aws::wire::Fault;
use ringfence_aws::{Clock, Item, seed_thread};
use ringfence_core::kit::id;
use ringfence_core::{
    Context, Decisions, Envelope, EventLog, Handled, MemoryLog, Query, QueryItem,
    SNAPSHOT_BYTES_MAX, Tag, handle, prelude::*,
};
use serde::{Deserialize, Serialize};

use crate::faults::stale;
use crate::prices::{computed, cost};
use crate::shop::{
    ChangeProductName, CustomerId, Named, OrderId, ProductAdded, ProductId, ProductNameChanged,
    ProductOrdered, Shop,
};
use crate::stack::{NOW_MS, Stack, code};
use crate::weather::Slow;

/// Returns the names that a product has had, in fold order.
#[derive(Clone, Debug, PartialEq, Command)]
struct TellNames {
    product_ids: Vec<ProductId>,
}

#[derive(Debug, Serialize, thiserror::Error)]
#[error("{code}")]
struct Told {
    code: String,
}

/// The names of a product, in fold order.
#[derive(Default, Serialize, Deserialize)]
struct Names(Vec<String>);

impl State for Names {
    const SNAPSHOTS: Option<Snapshots<Self>> = Some(Snapshots::every(3));
    type Reads = Named;

    fn evolve(mut self, event: Named) -> Self {
        let (Named::ProductAdded { name } | Named::ProductNameChanged { name }) = event;
        self.0.push(name);
        self
    }
}

impl Slice for TellNames {
    const NAME: &'static str = "tell-names";
    type Context = Shop;
    type State = Names;
    type Writes = ProductNameChanged;
    type Rejection = Told;

    fn decide(
        &self,
        Names(names): &Names,
        _: &CommandContext,
    ) -> Result<Vec<ProductNameChanged>, Told> {
        Err(Told { code: names.join(" ") })
    }
}

/// Renames a product that has many names.
#[derive(Clone, Debug, PartialEq, Command)]
struct Rename {
    #[tag(partition)]
    product_id: ProductId,
    name: String,
}

/// How many names a product has had.
#[derive(Default, Serialize, Deserialize)]
struct Renamed(u32);

impl State for Renamed {
    const SNAPSHOTS: Option<Snapshots<Self>> = Some(Snapshots::every(100));
    type Reads = Named;

    fn evolve(self, _: Named) -> Self {
        Self(self.0 + 1)
    }
}

impl Slice for Rename {
    const NAME: &'static str = "rename";
    type Context = Shop;
    type State = Renamed;
    type Writes = ProductNameChanged;
    type Rejection = Never;

    fn decide(&self, _: &Renamed, _: &CommandContext) -> Result<Vec<ProductNameChanged>, Never> {
        let Self { product_id, name } = self.clone();
        Ok(vec![ProductNameChanged { product_id, name }])
    }
}

/// Returns the quantities in an order and of a customer: a partition, and a boundary with a fence.
#[derive(Clone, Debug, PartialEq, Command)]
struct TellOrdered {
    #[tag(partition)]
    order_id: OrderId,
    #[tag(cross_partition)]
    customer_id: CustomerId,
}

#[derive(Reads)]
enum Ordered {
    ProductOrdered { quantity: u32 },
}

/// The quantities, in fold order.
#[derive(Default, Serialize, Deserialize)]
struct Quantities(Vec<String>);

impl State for Quantities {
    const SNAPSHOTS: Option<Snapshots<Self>> = Some(Snapshots::every(2));
    type Reads = Ordered;

    fn evolve(mut self, event: Ordered) -> Self {
        let Ordered::ProductOrdered { quantity } = event;
        self.0.push(quantity.to_string());
        self
    }
}

impl Slice for TellOrdered {
    const NAME: &'static str = "tell-ordered";
    type Context = Shop;
    type State = Quantities;
    type Writes = ProductNameChanged;
    type Rejection = Told;

    fn decide(
        &self,
        Quantities(quantities): &Quantities,
        _: &CommandContext,
    ) -> Result<Vec<ProductNameChanged>, Told> {
        Err(Told { code: quantities.join(" ") })
    }

    fn query(_: &[ringfence_core::TagSchema], tags: Vec<Tag>, _: &Catalog) -> Query {
        let of = |tag| QueryItem { tags: vec![tag], types: vec!["ProductOrdered".into()] };
        Query { items: tags.into_iter().map(of).collect() }
    }
}

/// Names a product after the number of its names so far.
#[derive(Clone, Debug, PartialEq, Command)]
struct Number {
    #[tag(partition)]
    product_id: ProductId,
}

/// The same, kept after each event.
#[derive(Default, Serialize, Deserialize)]
struct Numbered(u32);

impl State for Numbered {
    const SNAPSHOTS: Option<Snapshots<Self>> = Some(Snapshots::every(1));
    type Reads = Named;

    fn evolve(self, _: Named) -> Self {
        Self(self.0 + 1)
    }
}

impl Slice for Number {
    const NAME: &'static str = "number";
    type Context = Shop;
    type State = Numbered;
    type Writes = ProductNameChanged;
    type Rejection = Never;

    fn decide(
        &self,
        Numbered(names): &Numbered,
        _: &CommandContext,
    ) -> Result<Vec<ProductNameChanged>, Never> {
        let (product_id, name) = (self.product_id.clone(), names.to_string());
        Ok(vec![ProductNameChanged { product_id, name }])
    }
}

async fn name(stack: &Stack, product: &str, names: &[&str]) {
    for (n, name) in names.iter().enumerate() {
        let (product_id, name) = (id(product), (*name).to_owned());
        let event: NewEvent = match n {
            0 => ProductAdded { product_id, name }.into(),
            _ => ProductNameChanged { product_id, name }.into(),
        };
        stack.seed(vec![event]).await;
    }
}

fn tell() -> TellNames {
    TellNames { product_ids: vec![id("p1"), id("p2")] }
}

/// The operations since the last call.
fn operations(stack: &Stack) -> String {
    let names = stack.wire.take().into_iter().map(|exchange| exchange.operation);
    names.collect::<Vec<_>>().join(" ")
}

/// Waits until a sent snapshot has arrived. It is kept for ninety days.
async fn kept(stack: &Stack) {
    let is_snapshot = |item: &Item| item["id"].as_s().is_ok_and(|id| id.starts_with("snapshot#"));
    for _ in 0..10_000 {
        if let Some(item) = stack.items().await.into_iter().find(is_snapshot) {
            let expires = (stack.clock.now_ms() / 1_000 + 90 * 24 * 3_600).to_string();
            assert_eq!(item["expiresAt"].as_n(), Ok(&expires));
            stack.wire.forget();
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("no snapshot");
}

#[tokio::test]
async fn an_append_to_a_hundred_events_costs_two_half_units_of_reading_with_a_snapshot() {
    let stack = Stack::start(Shop::catalog()).await;
    let pad = "x".repeat(350);
    let names: Vec<String> = (0..101).map(|n| format!("{n}{pad}")).collect();
    name(&stack, "p1", &names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let rename = |name: &str| Rename { product_id: id("p1"), name: name.to_owned() };
    stack.wire.forget();
    stack.accept(rename("Lamp")).await;
    kept(&stack).await;
    stack.accept(rename("Torch")).await;
    let exchanges = stack.wire.take();
    let found = computed(&stack, &exchanges).await;
    assert_eq!(found, cost((2, 1.0), (1, 1.0)));
    found.is_documented("the same, of a slice that keeps [snapshots](slices.md#snapshots)");
    let read = exchanges.iter().map(|exchange| &*exchange.operation).collect::<Vec<_>>();
    assert_eq!(read, ["GetItem", "Query", "PutItem"]);
    // With a key, the record is in the event.
    let keyed = Envelope { idempotency_key: Some("key".to_owned()), ..crate::stack::envelope() };
    let (catalog, torch) = (&stack.catalog, rename("Lantern"));
    let handled = handle(&stack.log(), catalog, &Decisions::new(0), &torch, &keyed).await;
    assert!(!handled.expect("an outcome").repeated);
    assert_eq!(computed(&stack, &stack.wire.take()).await, cost((2, 1.0), (1, 1.0)));
    // The same slice has another snapshot for another product.
    name(&stack, "p2", &["Desk"]).await;
    stack.wire.forget();
    stack.accept(Rename { product_id: id("p2"), name: "Table".to_owned() }).await;
    assert_eq!(operations(&stack), "GetItem Query PutItem");
}

#[tokio::test]
async fn events_after_a_snapshot_are_folded_on_top_if_they_come_last() {
    let stack = Stack::start(Shop::catalog()).await;
    name(&stack, "p1", &["a", "b"]).await;
    stack.clock.set(NOW_MS + 10_000);
    name(&stack, "p2", &["c", "d"]).await;
    assert_eq!(code(&stack.run(&tell()).await), "a b c d");
    kept(&stack).await;
    assert_eq!(code(&stack.run(&tell()).await), "a b c d");
    assert_eq!(operations(&stack), "GetItem Query Query TransactGetItems");
    // The clock of this writer is behind, so its event belongs before the other product's events.
    let behind = stack.log_at(&Clock::fixed(NOW_MS + 5_000));
    let rename = ChangeProductName { product_id: id("p1"), name: "e".to_owned() };
    let (catalog, envelope) = (&stack.catalog, crate::stack::envelope());
    let decisions = ringfence_core::Decisions::new(0);
    let handled = ringfence_core::handle(&behind, catalog, &decisions, &rename, &envelope).await;
    assert!(matches!(handled, Ok(Handled { attempts: 1, .. })), "{handled:?}");
    stack.wire.forget();
    assert_eq!(code(&stack.run(&tell()).await), "a b e c d");
    let again = "GetItem Query Query Query Query TransactGetItems";
    assert_eq!(operations(&stack).trim_end_matches(" PutItem"), again);
}

#[tokio::test]
async fn a_snapshot_that_is_not_kept_changes_no_result() {
    let stack = Stack::start(Shop::catalog()).await;
    name(&stack, "p1", &["a", "b", "c", "d"]).await;
    stack.wire.forget();
    stack.wire.inject("PutItem", 0, Fault::error("ValidationException"));
    assert_eq!(code(&stack.run(&tell()).await), "a b c d");
    while !stack.wire.is_spent() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    stack.wire.forget();
    assert_eq!(code(&stack.run(&tell()).await), "a b c d");
    let read = operations(&stack);
    assert!(read.starts_with("GetItem Query Query TransactGetItems"), "{read}");
    kept(&stack).await;
}

#[tokio::test]
async fn the_longest_snapshot_is_kept_and_a_longer_one_is_not() {
    let stack = Stack::start(Shop::catalog()).await;
    let (log, memory) = (stack.log(), MemoryLog::new(Shop::catalog().expect("it is valid")));
    let logs: [&dyn EventLog; 2] = [&log, &memory];
    stack.wire.inject("PutItem", 1, Fault::error("ValidationException"));
    for log in logs {
        for bytes in [SNAPSHOT_BYTES_MAX + 1, SNAPSHOT_BYTES_MAX] {
            log.keep_snapshot("snapshot#tell#0".to_owned(), "x".repeat(bytes));
        }
    }
    kept(&stack).await;
    for log in logs {
        let envelope = crate::stack::envelope();
        let kept = log.snapshot("snapshot#tell#0", &envelope).await.expect("it is read");
        assert_eq!(kept.map(|text| text.len()), Some(SNAPSHOT_BYTES_MAX));
    }
    assert!(!stack.wire.is_spent(), "the longer one was sent");
}

#[tokio::test]
async fn everything_is_read_if_the_log_lacks_the_snapshots_last_event() {
    let stack = Stack::start(Shop::catalog()).await;
    name(&stack, "p1", &["a", "b", "c", "d"]).await;
    assert_eq!(code(&stack.run(&tell()).await), "a b c d");
    kept(&stack).await;
    // A restore has lost the last event, and another event has its slot.
    let last = stack.items().await.into_iter().find(|item| {
        item.get("event").is_some() && item["position"].as_n().is_ok_and(|slot| slot == "4")
    });
    let key = last.expect("the last event").into_iter();
    let key = key.filter(|(name, _)| name == "id" || name == "position").collect();
    let delete = stack.client.delete_item().table_name(crate::stack::TABLE).set_key(Some(key));
    delete.send().await.expect("it is deleted");
    assert_eq!(code(&stack.run(&tell()).await), "a b c");
    stack.clock.set(NOW_MS + 10_000);
    stack.accept(ChangeProductName { product_id: id("p1"), name: "e".to_owned() }).await;
    assert_eq!(code(&stack.run(&tell()).await), "a b c e");
    stack.check_fences().await;
}

/// Reads and snapshots are stale now and then.
#[tokio::test(start_paused = true)]
async fn concurrent_handlers_see_everything_committed_before_they_start() {
    seed_thread(1);
    let stack = Stack::start(Shop::catalog()).await;
    stack.wire.direct(Slow::new(1));
    for pass in [2, 3, 5, 8, 13, 21] {
        stack.wire.inject("Query", pass, stale());
    }
    let handler = async || {
        for _ in 0..6 {
            stack.accept(Number { product_id: id("p1") }).await;
        }
    };
    join_all((0..4).map(|_| handler())).await;
    assert!(stack.wire.is_spent());
    let read = stack.log().scan().try_collect::<Vec<_>>().await.expect("every event");
    assert_eq!(read.len(), 24);
    for event in read {
        assert_eq!(event.data["name"], (event.slot - 1).to_string());
    }
    assert!(stack.items().await.iter().any(|item| item.contains_key("snapshot")));
}

/// The customer's last event is in the order that is read, but is not the order's last event.
#[tokio::test]
async fn a_snapshot_is_used_if_a_partition_has_the_last_event_of_another_boundary() {
    let stack = Stack::start(Shop::catalog()).await;
    let order = async |order: &str, customer: &str, quantity| {
        let (order_id, customer_id) = (id(order), id(customer));
        let ordered = ProductOrdered { order_id, customer_id, product_id: id("p1"), quantity };
        stack.seed(vec![ordered.into()]).await;
    };
    order("o3", "c1", 0).await;
    order("o2", "c1", 1).await;
    order("o1", "c1", 2).await;
    order("o1", "c2", 3).await;
    let tell = TellOrdered { order_id: id("o1"), customer_id: id("c1") };
    assert_eq!(code(&stack.run(&tell).await), "0 1 2 3");
    kept(&stack).await;
    assert_eq!(code(&stack.run(&tell).await), "0 1 2 3");
    let exchanges = stack.wire.take();
    let sent: Vec<_> = exchanges.iter().map(|exchange| &*exchange.operation).collect();
    assert_eq!(sent, ["GetItem", "Query", "Query", "TransactGetItems"]);
    // Of the order it reads the last event that the snapshot knows. Of the customer it also reads the event of the
    // millisecond before, because the position of an index item has a fraction.
    assert_eq!([&exchanges[1].answer["Count"], &exchanges[2].answer["Count"]], [1, 2]);
    order("o4", "c1", 4).await;
    assert_eq!(code(&stack.run(&tell).await), "0 1 2 3 4");
}
