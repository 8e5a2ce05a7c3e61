//! CancelOrder: cancels an order.
//!
//! It is also an automation: it cancels an order whose units are missing, or were released because it was not paid in
//! time. If the units were released because the order is cancelled, nothing changes.

use crate::{CustomerId, OrderCancelled, OrderId, Ordering, ProductId};
use ringfence::prelude::*;
use serde::{Deserialize, Serialize};

/// Cancels an order.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct CancelOrder {
    #[tag(partition)]
    pub order_id: OrderId,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    OrderPlaced { customer_id: CustomerId, product_ids: Vec<ProductId> },
    OrderCancelled,
}

/// The status of the order.
#[derive(Default)]
pub enum Order {
    #[default]
    Unknown,
    Placed {
        customer_id: CustomerId,
        product_ids: Vec<ProductId>,
    },
    Cancelled {
        customer_id: CustomerId,
    },
}

/// Why an order is not cancelled.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    #[error("order {order_id} does not exist")]
    OrderNotFound { order_id: OrderId },
}

impl State for Order {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        match (event, self) {
            (Consumed::OrderPlaced { customer_id, product_ids }, _) => {
                Order::Placed { customer_id, product_ids }
            }
            (Consumed::OrderCancelled, Order::Placed { customer_id, .. }) => {
                Order::Cancelled { customer_id }
            }
            (Consumed::OrderCancelled, order) => order,
        }
    }
}

impl Slice for CancelOrder {
    const NAME: &'static str = "cancel-order";
    const REACTS_TO: &'static [Cause] =
        &[Cause::named("inventory", "StockMissing"), Cause::named("inventory", "StockReleased")];
    const SCOPES: &'static [&'static str] = &["ordering/write"];
    type Context = Ordering;
    type State = Order;
    type Writes = OrderCancelled;
    type Rejection = Rejection;

    fn decide(
        &self,
        state: &Order,
        context: &CommandContext,
    ) -> Result<Vec<OrderCancelled>, Rejection> {
        let order_id = self.order_id.clone();
        match state {
            Order::Unknown => Err(Rejection::OrderNotFound { order_id }),
            // A caller does not learn whether another customer has an order.
            Order::Placed { customer_id, .. } | Order::Cancelled { customer_id }
                if context.is_other_person(customer_id) =>
            {
                Err(Rejection::OrderNotFound { order_id })
            }
            Order::Cancelled { .. } => Ok(vec![]),
            Order::Placed { product_ids, .. } => {
                Ok(vec![OrderCancelled { order_id, product_ids: product_ids.clone() }])
            }
        }
    }

    fn react(event: &Current<'_, TopicEvent>) -> Result<Vec<Self>, serde_json::Error> {
        let Unsupplied { order_id } = Unsupplied::deserialize(&event.data)?;
        Ok(vec![Self { order_id }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::OrderPlaced;

        let placed = |order| OrderPlaced {
            order_id: id(order),
            customer_id: id("c1"),
            product_ids: vec![id("p1"), id("p2")],
            quantities: [].into(),
        };
        let cancelled =
            || OrderCancelled { order_id: id("o1"), product_ids: vec![id("p1"), id("p2")] };
        let cancel = || CancelOrder { order_id: id("o1") };
        let missing = || Rejection::OrderNotFound { order_id: id("o1") };
        vec![
            given([]).when(cancel()).then_rejected(missing()),
            given(events![placed("o2")]).when(cancel()).then_rejected(missing()),
            given(events![placed("o1")]).when(cancel()).then([cancelled()]),
            given(events![placed("o1"), cancelled()]).when(cancel()).then_nothing(),
            given(events![placed("o1")]).when(cancel()).by("jwt:main:c1").then([cancelled()]),
            given(events![placed("o1")]).when(cancel()).by("jwt:main:c2").then_rejected(missing()),
            given(events![placed("o1")])
                .when(cancel())
                .by("jwt:partner:c1")
                .then_rejected(missing()),
            given(events![placed("o1"), cancelled()])
                .when(cancel())
                .by("jwt:main:c2")
                .then_rejected(missing()),
            given(events![placed("o1")]).when(cancel()).by("client:main:till").then([cancelled()]),
        ]
    }
}

/// What this context reads of an order that inventory does not supply.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Unsupplied {
    order_id: OrderId,
}
