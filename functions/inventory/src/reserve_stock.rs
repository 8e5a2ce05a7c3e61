//! ReserveStock: reserves the units of an order for fifteen minutes, all of them or none.
//!
//! The boundary is the order, which is reserved once and not after it is cancelled, and the stock of each of its
//! products. So two orders can't get the last unit of a product, and an order of three products needs no compensation
//! between them.
//!
//! An automation: an order that is placed leads to its command. If the order is cancelled first, the decision sees it,
//! in whichever order the bus delivers the two events. An order without any product that ever arrived takes no part.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use crate::{Inventory, Item, KEPT_MINUTES, OrderId, ProductId, StockMissing, StockReserved};
use ordering::{OrderPlaced, Ordering};
use ringfence::prelude::*;
use serde::Deserialize;

/// Reserves the units of an order.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct ReserveStock {
    #[tag(partition)]
    pub order_id: OrderId,
    #[tag(cross_partition, key = "stock")]
    pub items: Vec<Item>,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    OrderCancelled,
    StockMissing,
    StockReceived { product_id: ProductId, units: NonZeroU32 },
    StockReserved { order_id: OrderId, items: Vec<Item> },
    StockReleased { items: Vec<Item> },
}

/// How many units of each product are free, and the state of the order.
#[derive(Default)]
pub struct Stock {
    free: BTreeMap<ProductId, i64>,
    reserved: BTreeSet<OrderId>,
    /// Cancelled, or without units.
    given_up: bool,
}

/// What the decision writes.
#[derive(Writes)]
pub enum Written {
    Reserved(StockReserved),
    Missing(StockMissing),
}

impl Stock {
    fn add(&mut self, product_id: ProductId, units: i64) {
        *self.free.entry(product_id).or_default() += units;
    }
}

impl State for Stock {
    type Reads = Consumed;

    fn evolve(mut self, event: Consumed) -> Self {
        match event {
            Consumed::OrderCancelled | Consumed::StockMissing => self.given_up = true,
            Consumed::StockReceived { product_id, units } => {
                self.add(product_id, units.get().into())
            }
            Consumed::StockReserved { order_id, items } => {
                items
                    .into_iter()
                    .for_each(|item| self.add(item.product_id, -i64::from(item.units.get())));
                self.reserved.insert(order_id);
            }
            Consumed::StockReleased { items } => {
                items
                    .into_iter()
                    .for_each(|item| self.add(item.product_id, item.units.get().into()));
            }
        }
        self
    }
}

impl Slice for ReserveStock {
    const NAME: &'static str = "reserve-stock";
    const REACTS_TO: &'static [Cause] = &[Cause::of::<OrderPlaced>(Ordering::NAME)];
    const SCOPES: &'static [&'static str] = &["inventory/write"];
    type Context = Inventory;
    type State = Stock;
    type Writes = Written;
    type Rejection = Never;

    fn decide(&self, stock: &Stock, _: &CommandContext) -> Result<Vec<Written>, Never> {
        let Self { order_id, items } = self.clone();
        let has_stock = items.iter().any(|item| stock.free.contains_key(&item.product_id));
        if stock.given_up || stock.reserved.contains(&order_id) || !has_stock {
            return Ok(vec![]);
        }
        let mut asked: BTreeMap<&ProductId, i64> = BTreeMap::new();
        for Item { product_id, units } in &items {
            *asked.entry(product_id).or_default() += i64::from(units.get());
        }
        let free = |product| stock.free.get(product).copied().unwrap_or(0);
        let missing = asked.into_iter().filter(|(product, units)| free(product) < *units);
        let product_ids: Vec<_> = missing.map(|(product, _)| product.clone()).collect();
        Ok(vec![match product_ids.is_empty() {
            true => Written::Reserved(StockReserved { order_id, items, minutes: KEPT_MINUTES }),
            false => Written::Missing(StockMissing { order_id, product_ids }),
        }])
    }

    fn react(event: &Current<'_, TopicEvent>) -> Result<Vec<Self>, serde_json::Error> {
        let Order { order_id, product_ids, quantities } = Order::deserialize(&event.data)?;
        let mut units: BTreeMap<ProductId, NonZeroU32> = BTreeMap::new();
        for product in product_ids {
            // A product that is named more than once has no quantity.
            let first = quantities.get(&product).copied().unwrap_or(NonZeroU32::MIN);
            let more = |units: &mut NonZeroU32| *units = units.saturating_add(1);
            units.entry(product).and_modify(more).or_insert(first);
        }
        let item = |(product_id, units)| Item { product_id, units };
        Ok(vec![Self { order_id, items: units.into_iter().map(item).collect() }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::{StockReceived, StockReleased};
        use ordering::OrderCancelled;

        let received = |delivery, product, units| StockReceived {
            delivery_id: id(delivery),
            product_id: id(product),
            units: id(units),
        };
        let item = |product, units| Item { product_id: id(product), units: id(units) };
        let reserve = |order, items| ReserveStock { order_id: id(order), items };
        let reserved =
            |order, items| StockReserved { order_id: id(order), items, minutes: KEPT_MINUTES };
        let released = |order, items| StockReleased { order_id: id(order), items };
        let missing = |order, products: &[&str]| StockMissing {
            order_id: id(order),
            product_ids: products.iter().map(|product| id(product)).collect(),
        };
        let cancelled = || OrderCancelled { order_id: id("o1"), product_ids: vec![id("lamp")] };
        let lamps = |units| vec![item("lamp", units)];
        let stocked = || given(events![received("d1", "lamp", "2"), received("d2", "desk", "1")]);
        let taken = || stocked().and(events![reserved("o2", lamps("1"))]);
        vec![
            stocked()
                .when(reserve("o1", lamps("2")))
                .then([Written::Reserved(reserved("o1", lamps("2")))]),
            stocked().when(reserve("o1", vec![item("lamp", "1"), item("desk", "1")])).then([
                Written::Reserved(reserved("o1", vec![item("lamp", "1"), item("desk", "1")])),
            ]),
            // All units or none.
            stocked()
                .when(reserve("o1", vec![item("lamp", "1"), item("desk", "2")]))
                .then([Written::Missing(missing("o1", &["desk"]))]),
            // Two lines of one product count together.
            stocked()
                .when(reserve("o1", vec![item("lamp", "2"), item("lamp", "1")]))
                .then([Written::Missing(missing("o1", &["lamp"]))]),
            // Units of another order are not free until they are released.
            taken()
                .when(reserve("o1", lamps("1")))
                .then([Written::Reserved(reserved("o1", lamps("1")))]),
            taken()
                .when(reserve("o1", lamps("2")))
                .then([Written::Missing(missing("o1", &["lamp"]))]),
            taken()
                .and(events![released("o2", lamps("1"))])
                .when(reserve("o1", lamps("2")))
                .then([Written::Reserved(reserved("o1", lamps("2")))]),
            // Once, and not again after a release.
            stocked()
                .and(events![reserved("o1", lamps("1"))])
                .when(reserve("o1", lamps("1")))
                .then_nothing(),
            stocked()
                .and(events![reserved("o1", lamps("1")), released("o1", lamps("1"))])
                .when(reserve("o1", lamps("1")))
                .then_nothing(),
            stocked()
                .and(events![missing("o1", &["lamp"]), received("d3", "lamp", "9")])
                .when(reserve("o1", lamps("3")))
                .then_nothing(),
            // The cancellation was handled before the order.
            stocked().and(events![cancelled()]).when(reserve("o1", lamps("1"))).then_nothing(),
            // Products that never arrived: an order of these alone takes no part; beside others they are missing.
            given([]).when(reserve("o1", lamps("1"))).then_nothing(),
            stocked()
                .when(reserve("o1", vec![item("lamp", "1"), item("chair", "1")]))
                .then([Written::Missing(missing("o1", &["chair"]))]),
        ]
    }
}

/// What this context reads of an order.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    order_id: OrderId,
    product_ids: Vec<ProductId>,
    #[serde(default)]
    quantities: BTreeMap<ProductId, NonZeroU32>,
}

#[test]
fn an_order_is_reserved_with_its_quantities_and_each_mention_counts() {
    let sample = include_str!("../../../events/reserve-stock/eventbridge.json");
    let sample: serde_json::Value = serde_json::from_str(sample).expect("JSON");
    let event = TopicEvent::deserialize(&sample["detail"]).expect("an event of the topic");
    let event = ReserveStock::REACTS_TO[0].current(&event).expect("version 1");
    let item = |product, units| Item { product_id: id(product), units: id(units) };
    let items = vec![item("desk-1", "2"), item("lamp-1", "3")];
    let command = ReserveStock { order_id: id("order-2"), items };
    assert_eq!(ReserveStock::react(&event).expect("an order"), vec![command]);
}
