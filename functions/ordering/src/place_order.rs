//! PlaceOrder: places an order for products that ordering knows.
//!
//! The boundary is the order (placed once) and each of its products (still known at the commit).
//!
//! It is also an automation: a cart that is checked out leads to an order under the cart's id. Nobody
//! waits for that answer. A rejection, for example of a product that ordering does not know, is written to
//! the function's log, and the cart stays closed. To order it anyway, send this command with the
//! products that are available.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use crate::{CustomerId, OrderId, OrderPlaced, Ordering, ProductId};
use ringfence::prelude::*;
use serde::{Deserialize, Serialize};

/// Places an order.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct PlaceOrder {
    #[tag(partition)]
    pub order_id: OrderId,
    /// Payload only, because no decision reads by it.
    #[tag(skip)]
    pub customer_id: CustomerId,
    pub product_ids: Vec<ProductId>,
    /// How many units, if the customer says so. Each such product is in `product_ids` exactly once.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quantities: BTreeMap<ProductId, NonZeroU32>,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    OrderPlaced,
    CatalogProductSynced { product_id: ProductId },
}

/// Whether the order is there, and which products ordering knows.
#[derive(Default)]
pub struct Placing {
    placed: bool,
    known: BTreeSet<ProductId>,
}

/// Why an order is not placed.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    #[error("order {order_id} is already placed")]
    OrderAlreadyPlaced { order_id: OrderId },
    #[error("the caller is not the customer {customer_id}")]
    NotTheCustomer { customer_id: CustomerId },
    #[error("order {order_id} has no products")]
    OrderIsEmpty { order_id: OrderId },
    #[error("order {order_id} has a quantity of {product_id}, but does not name it exactly once")]
    QuantityUnclear { order_id: OrderId, product_id: ProductId },
    /// Ordering does not know these products.
    #[error("not available: {}", list(missing))]
    ProductsNotAvailable { missing: Vec<ProductId> },
}

fn list(products: &[ProductId]) -> String {
    products.iter().map(ProductId::to_string).collect::<Vec<_>>().join(", ")
}

impl State for Placing {
    type Reads = Consumed;

    fn evolve(mut self, event: Consumed) -> Self {
        match event {
            Consumed::OrderPlaced => self.placed = true,
            Consumed::CatalogProductSynced { product_id } => {
                self.known.insert(product_id);
            }
        }
        self
    }
}

impl Slice for PlaceOrder {
    const NAME: &'static str = "place-order";
    const REACTS_TO: &'static [Cause] = &[Cause::named("carts", "CheckedOut")];
    const SCOPES: &'static [&'static str] = &["ordering/write"];
    type Context = Ordering;
    type State = Placing;
    type Writes = OrderPlaced;
    type Rejection = Rejection;

    fn decide(
        &self,
        state: &Placing,
        context: &CommandContext,
    ) -> Result<Vec<OrderPlaced>, Rejection> {
        let Self { order_id, customer_id, product_ids, quantities } = self.clone();
        if context.is_other_person(&customer_id) {
            return Err(Rejection::NotTheCustomer { customer_id });
        }
        if state.placed {
            return Err(Rejection::OrderAlreadyPlaced { order_id });
        }
        if product_ids.is_empty() {
            return Err(Rejection::OrderIsEmpty { order_id });
        }
        let once = |product| product_ids.iter().filter(|named| *named == product).count() == 1;
        if let Some(product_id) = quantities.keys().find(|product| !once(*product)).cloned() {
            return Err(Rejection::QuantityUnclear { order_id, product_id });
        }
        let unknown = |product: &&ProductId| !state.known.contains(*product);
        let missing: BTreeSet<_> = product_ids.iter().filter(unknown).cloned().collect();
        if !missing.is_empty() {
            let missing = missing.into_iter().collect();
            return Err(Rejection::ProductsNotAvailable { missing });
        }
        Ok(vec![OrderPlaced { order_id, customer_id, product_ids, quantities }])
    }

    fn react(event: &Current<'_, TopicEvent>) -> Result<Vec<Self>, serde_json::Error> {
        let CheckedOut { cart_id, customer_id, items } = CheckedOut::deserialize(&event.data)?;
        let product_ids = items.keys().cloned().collect();
        Ok(vec![Self { order_id: cart_id, customer_id, product_ids, quantities: items }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::{CatalogProductSynced, Money};

        let synced = |product| CatalogProductSynced {
            product_id: id(product),
            name: "Lamp".to_owned(),
            price: Money::new(1_250, "EUR"),
        };
        let ids =
            |products: &[&str]| products.iter().map(|product| id(product)).collect::<Vec<_>>();
        let units = |units: &[(&str, u32)]| {
            let of = |(product, n): &(&str, u32)| Some((id(product), NonZeroU32::new(*n)?));
            units.iter().filter_map(of).collect::<BTreeMap<_, _>>()
        };
        let place = |order, products| PlaceOrder {
            order_id: id(order),
            customer_id: id("c1"),
            product_ids: ids(products),
            quantities: units(&[]),
        };
        let placed = |order, products| OrderPlaced {
            order_id: id(order),
            customer_id: id("c1"),
            product_ids: ids(products),
            quantities: units(&[]),
        };
        let unclear =
            |product| Rejection::QuantityUnclear { order_id: id("o1"), product_id: id(product) };
        let missing = |products| Rejection::ProductsNotAvailable { missing: ids(products) };
        vec![
            given(events![synced("p1"), synced("p2")])
                .when(place("o1", &["p1", "p2"]))
                .then([placed("o1", &["p1", "p2"])]),
            given(events![synced("p1")])
                .when(place("o1", &["p1"]))
                .by("jwt:main:c1")
                .then([placed("o1", &["p1"])]),
            given(events![synced("p1")])
                .when(place("o1", &["p1"]))
                .by("jwt:main:c2")
                .then_rejected(Rejection::NotTheCustomer { customer_id: id("c1") }),
            given([]).when(place("o1", &["p1"])).then_rejected(missing(&["p1"])),
            given(events![synced("p1")])
                .when(place("o1", &["p3", "p1", "p2"]))
                .then_rejected(missing(&["p2", "p3"])),
            given(events![synced("p1"), placed("o1", &["p1"])])
                .when(place("o1", &["p1"]))
                .then_rejected(Rejection::OrderAlreadyPlaced { order_id: id("o1") }),
            // Another order of the same product does not matter, nor does a second sync.
            given(events![synced("p1"), placed("o1", &["p1"]), synced("p1")])
                .when(place("o2", &["p1"]))
                .then([placed("o2", &["p1"])]),
            given([])
                .when(place("o1", &[]))
                .then_rejected(Rejection::OrderIsEmpty { order_id: id("o1") }),
            given(events![synced("p1")])
                .when(place("o1", &["p1", "p1"]))
                .then([placed("o1", &["p1", "p1"])]),
            given(events![synced("p1"), synced("p2")])
                .when(PlaceOrder { quantities: units(&[("p2", 3)]), ..place("o1", &["p1", "p2"]) })
                .then([OrderPlaced {
                    quantities: units(&[("p2", 3)]),
                    ..placed("o1", &["p1", "p2"])
                }]),
            given(events![synced("p1"), synced("p2")])
                .when(PlaceOrder { quantities: units(&[("p2", 3)]), ..place("o1", &["p1"]) })
                .then_rejected(unclear("p2")),
            given(events![synced("p1")])
                .when(PlaceOrder { quantities: units(&[("p1", 3)]), ..place("o1", &["p1", "p1"]) })
                .then_rejected(unclear("p1")),
        ]
    }
}

/// What this context reads of a cart that is checked out.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CheckedOut {
    cart_id: OrderId,
    customer_id: CustomerId,
    items: BTreeMap<ProductId, NonZeroU32>,
}

#[test]
fn a_cart_that_is_checked_out_becomes_an_order_with_its_quantities() {
    let sample = include_str!("../../../events/place-order/eventbridge.json");
    let sample: serde_json::Value = serde_json::from_str(sample).expect("JSON");
    let mut event = TopicEvent::deserialize(&sample["detail"]).expect("an event of the topic");
    let order = PlaceOrder {
        order_id: id("cart-7"),
        customer_id: id("customer-1"),
        product_ids: vec![id("lamp-1")],
        quantities: [(id("lamp-1"), NonZeroU32::MIN.saturating_add(1))].into(),
    };
    let react = |event: &TopicEvent| {
        PlaceOrder::react(&PlaceOrder::REACTS_TO[0].current(event).expect("version 1"))
    };
    assert_eq!(react(&event).expect("a cart"), vec![order]);
    event.data["items"]["desk-1"] = 0.into();
    assert!(react(&event).is_err(), "a quantity of 0 is refused");
}

#[test]
fn an_order_without_quantities_is_stored_without_the_field() {
    let data = serde_json::json!({ "orderId": "o1", "customerId": "c1", "productIds": ["p1"] });
    let placed =
        OrderPlaced::deserialize(&data).expect("an order from before there were quantities");
    assert!(placed.quantities.is_empty());
    assert_eq!(serde_json::to_value(&placed).expect("JSON"), data);
}
