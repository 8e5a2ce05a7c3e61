//! OrderProduct: orders units of one product, within a limit per customer over all orders.
//!
//! The example of a cross-partition tag: each order is in another partition, and the limit counts all orders of a
//! customer.

use std::collections::BTreeMap;

use crate::{CustomerId, OrderId, Ordering, ProductId, ProductOrdered};
use ringfence::prelude::*;
use serde::Serialize;

/// How many units of one product a customer may order over all orders.
pub const UNITS_MAX: u64 = 10;

/// Orders units of a product.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct OrderProduct {
    #[tag(partition)]
    pub order_id: OrderId,
    #[tag(cross_partition)]
    pub customer_id: CustomerId,
    /// Payload only: the fold selects the product among the customer's orders.
    #[tag(skip)]
    pub product_id: ProductId,
    pub quantity: u32,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    ProductOrdered { order_id: OrderId, product_id: ProductId, quantity: u32 },
}

/// The customer's orders, and the order with this id, even if another customer placed it.
#[derive(Default)]
pub struct Orders {
    ordered: BTreeMap<OrderId, (ProductId, u32)>,
}

/// Why units are not ordered.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    #[error("order {order_id} is already placed")]
    OrderAlreadyPlaced { order_id: OrderId },
    #[error("the caller is not the customer {customer_id}")]
    NotTheCustomer { customer_id: CustomerId },
    #[error("quantity is 0; order at least 1")]
    InvalidQuantity,
    #[error("product {product_id}: at most {limit} a customer, {ordered} already ordered")]
    LimitExceeded { product_id: ProductId, ordered: u64, limit: u64 },
}

impl State for Orders {
    type Reads = Consumed;

    fn evolve(mut self, event: Consumed) -> Self {
        let Consumed::ProductOrdered { order_id, product_id, quantity } = event;
        self.ordered.insert(order_id, (product_id, quantity));
        self
    }
}

impl Slice for OrderProduct {
    const NAME: &'static str = "order-product";
    const SCOPES: &'static [&'static str] = &["ordering/write"];
    type Context = Ordering;
    type State = Orders;
    type Writes = ProductOrdered;
    type Rejection = Rejection;

    fn decide(
        &self,
        state: &Orders,
        context: &CommandContext,
    ) -> Result<Vec<ProductOrdered>, Rejection> {
        let Self { order_id, customer_id, product_id, quantity } = self.clone();
        if context.is_other_person(&customer_id) {
            return Err(Rejection::NotTheCustomer { customer_id });
        }
        if state.ordered.contains_key(&order_id) {
            return Err(Rejection::OrderAlreadyPlaced { order_id });
        }
        if quantity == 0 {
            return Err(Rejection::InvalidQuantity);
        }
        let same = state.ordered.values().filter(|(product, _)| *product == product_id);
        let ordered = same.map(|(_, quantity)| u64::from(*quantity)).sum();
        if ordered + u64::from(quantity) > UNITS_MAX {
            return Err(Rejection::LimitExceeded { product_id, ordered, limit: UNITS_MAX });
        }
        Ok(vec![ProductOrdered { order_id, customer_id, product_id, quantity }])
    }

    fn cases() -> Vec<Case<Self>> {
        let ordered = |order, customer, product, quantity| ProductOrdered {
            order_id: id(order),
            customer_id: id(customer),
            product_id: id(product),
            quantity,
        };
        let order = |order, quantity| OrderProduct {
            order_id: id(order),
            customer_id: id("c1"),
            product_id: id("p1"),
            quantity,
        };
        let exceeded =
            |ordered| Rejection::LimitExceeded { product_id: id("p1"), ordered, limit: UNITS_MAX };
        let placed = || Rejection::OrderAlreadyPlaced { order_id: id("o1") };
        vec![
            given([]).when(order("o1", 1)).by("jwt:main:c1").then([ordered("o1", "c1", "p1", 1)]),
            given([])
                .when(order("o1", 1))
                .by("jwt:main:c2")
                .then_rejected(Rejection::NotTheCustomer { customer_id: id("c1") }),
            given([]).when(order("o1", 10)).then([ordered("o1", "c1", "p1", 10)]),
            given([]).when(order("o1", 11)).then_rejected(exceeded(0)),
            given([]).when(order("o1", 0)).then_rejected(Rejection::InvalidQuantity),
            case("the tenth unit in three orders")
                .given(events![ordered("o1", "c1", "p1", 6), ordered("o2", "c1", "p1", 3)])
                .when(order("o3", 1))
                .then([ordered("o3", "c1", "p1", 1)]),
            case("the eleventh unit in three orders")
                .given(events![ordered("o1", "c1", "p1", 6), ordered("o2", "c1", "p1", 3)])
                .when(order("o3", 2))
                .then_rejected(exceeded(9)),
            case("another customer and another product do not count")
                .given(events![ordered("o1", "c2", "p1", 9), ordered("o2", "c1", "p2", 9)])
                .when(order("o3", 10))
                .then([ordered("o3", "c1", "p1", 10)]),
            given(events![ordered("o1", "c1", "p1", 1)])
                .when(order("o1", 1))
                .then_rejected(placed()),
            given(events![ordered("o1", "c2", "p1", 1)])
                .when(order("o1", 1))
                .then_rejected(placed()),
        ]
    }
}
