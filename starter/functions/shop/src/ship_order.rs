//! ShipOrder: sends an order on its way.
//!
//! An automation: an order that was taken leads to its command.

use crate::{OrderId, OrderShipped, OrderTaken, Shop};
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
    OrderTaken,
    OrderShipped,
}

/// Where the order is.
#[derive(Default)]
pub enum Order {
    #[default]
    Nowhere,
    Taken,
    Shipped,
}

impl State for Order {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        match event {
            Consumed::OrderTaken => Order::Taken,
            Consumed::OrderShipped => Order::Shipped,
        }
    }
}

impl Slice for ShipOrder {
    const NAME: &'static str = "ship-order";
    const REACTS_TO: &'static [Cause] = &[Cause::of::<OrderTaken>(Shop::NAME)];
    const CALLERS: Callers = Callers::Nobody;
    type Context = Shop;
    type State = Order;
    type Writes = OrderShipped;
    type Rejection = Never;

    fn decide(&self, state: &Order, _: &CommandContext) -> Result<Vec<OrderShipped>, Never> {
        match state {
            Order::Taken => Ok(vec![OrderShipped { order_id: self.order_id.clone() }]),
            Order::Nowhere | Order::Shipped => Ok(vec![]),
        }
    }

    fn react(event: &Current<'_, TopicEvent>) -> Result<Vec<Self>, serde_json::Error> {
        let Taken { order_id } = Taken::deserialize(&event.data)?;
        Ok(vec![Self { order_id }])
    }

    fn cases() -> Vec<Case<Self>> {
        let ship = || ShipOrder { order_id: id("o1") };
        let taken = |of| OrderTaken { order_id: id(of), product_ids: vec![id("mug")] };
        let shipped = || OrderShipped { order_id: id("o1") };
        vec![
            given(events![taken("o1")]).when(ship()).then([shipped()]),
            given(events![taken("o1"), shipped()]).when(ship()).then_nothing(),
            given(events![taken("o2")]).when(ship()).then_nothing(),
        ]
    }
}

/// What the slice reads of an order that was taken.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Taken {
    order_id: OrderId,
}
