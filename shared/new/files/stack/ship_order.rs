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
pub enum State {
    #[default]
    Nowhere,
    Placed,
    Shipped,
}

impl Slice for ShipOrder {
    const NAME: &'static str = "ship-order";
    const REACTS_TO: &'static [Cause] =
        &[Cause { context: Shop::NAME, event_type: OrderPlaced::NAME }];
    type Context = Shop;
    type State = State;
    type Writes = OrderShipped;
    type Rejection = Never;

    fn decide(&self, state: &State, _: &CommandContext) -> Result<Vec<OrderShipped>, Never> {
        match state {
            State::Placed => Ok(vec![OrderShipped { order_id: self.order_id.clone() }]),
            State::Nowhere | State::Shipped => Ok(vec![]),
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

impl DcbSlice for ShipOrder {
    type Reads = Consumed;

    fn evolve(_state: State, event: Consumed) -> State {
        match event {
            Consumed::OrderPlaced => State::Placed,
            Consumed::OrderShipped => State::Shipped,
        }
    }
}

/// What the slice reads of an order that was placed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Placed {
    order_id: OrderId,
}
