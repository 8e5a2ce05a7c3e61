//! PlaceOrder: orders a product that exists.
//!
//! The decision reads two things, the order and the product, so its boundary is both.

use crate::{OrderId, OrderPlaced, ProductId, Shop};
use ringfence::prelude::*;
use serde::Serialize;

/// Orders a product.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct PlaceOrder {
    pub order_id: OrderId,
    pub product_id: ProductId,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    ProductAdded,
    OrderPlaced,
}

#[derive(Default)]
pub struct State {
    exists: bool,
    placed: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    #[error("product {product_id} does not exist")]
    ProductNotFound { product_id: ProductId },
}

impl Slice for PlaceOrder {
    const NAME: &'static str = "place-order";
    type Context = Shop;
    type State = State;
    type Writes = OrderPlaced;
    type Rejection = Rejection;

    fn decide(&self, state: &State, _: &CommandContext) -> Result<Vec<OrderPlaced>, Rejection> {
        let Self { order_id, product_id } = self.clone();
        match state {
            State { placed: true, .. } => Ok(vec![]),
            State { exists: false, .. } => Err(Rejection::ProductNotFound { product_id }),
            State { .. } => Ok(vec![OrderPlaced { order_id, product_id }]),
        }
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::ProductAdded;

        let place = || PlaceOrder { order_id: id("o1"), product_id: id("mug") };
        let placed = |of| OrderPlaced { order_id: id(of), product_id: id("mug") };
        let added = |of| ProductAdded { product_id: id(of), name: "Mug".to_owned() };
        let missing = || Rejection::ProductNotFound { product_id: id("mug") };
        vec![
            given(events![added("mug")]).when(place()).then([placed("o1")]),
            given(events![added("mug"), placed("o2")]).when(place()).then([placed("o1")]),
            given(events![added("mug"), placed("o1")]).when(place()).then_nothing(),
            given(events![added("cup")]).when(place()).then_rejected(missing()),
            given([]).when(place()).then_rejected(missing()),
        ]
    }
}

impl DcbSlice for PlaceOrder {
    type Reads = Consumed;

    fn evolve(state: State, event: Consumed) -> State {
        match event {
            Consumed::ProductAdded => State { exists: true, ..state },
            Consumed::OrderPlaced => State { placed: true, ..state },
        }
    }
}
