//! ShipOrder: sends an order on its way.
//!
//! An automation: an order that was placed leads to its command.

use crate::{OrderId, OrderPlaced, OrderShipped, Shop};
use ringfence::prelude::*;
use serde::Deserialize;

/// Ships an order.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct ShipOrder {
    #[tag(partition)]
    pub order_id: OrderId,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    OrderPlaced,
    OrderShipped,
}

/// Where the order is.
#[derive(Default)]
pub enum Order {
    #[default]
    Nowhere,
    Placed,
    Shipped,
}

impl State for Order {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        match event {
            Consumed::OrderPlaced => Order::Placed,
            Consumed::OrderShipped => Order::Shipped,
        }
    }
}

impl Slice for ShipOrder {
    const NAME: &'static str = "ship-order";
    const REACTS_TO: &'static [Cause] =
        &[Cause { context: Shop::NAME, event_type: OrderPlaced::NAME }];
    type Context = Shop;
    type State = Order;
    type Writes = OrderShipped;
    type Rejection = Never;

    fn decide(&self, state: &Order, _: &CommandContext) -> Result<Vec<OrderShipped>, Never> {
        match state {
            Order::Placed => Ok(vec![OrderShipped { order_id: self.order_id.clone() }]),
            Order::Nowhere | Order::Shipped => Ok(vec![]),
        }
    }

    fn react(event: &TopicEvent) -> Result<Vec<Self>, serde_json::Error> {
        let Placed { order_id } = Placed::deserialize(&event.data)?;
        Ok(vec![Self { order_id }])
    }

    fn cases() -> Vec<Case<Self>> {
        let ship = || ShipOrder { order_id: id("o1") };
        let placed = |of| OrderPlaced { order_id: id(of), product_ids: vec![id("mug")] };
        let shipped = || OrderShipped { order_id: id("o1") };
        vec![
            given(events![placed("o1")]).when(ship()).then([shipped()]),
            given(events![placed("o1"), shipped()]).when(ship()).then_nothing(),
            given(events![placed("o2")]).when(ship()).then_nothing(),
        ]
    }
}

/// What the slice reads of an order that was placed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Placed {
    order_id: OrderId,
}
