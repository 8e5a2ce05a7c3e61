//! PlaceOrder: orders products that exist.
//!
//! The decision reads the order and each product, so its boundary is all of them.

use crate::{OrderId, OrderPlaced, ProductId, Shop};
use ringfence::prelude::*;
use serde::Serialize;

/// Orders products.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct PlaceOrder {
    #[tag(partition)]
    pub order_id: OrderId,
    pub product_ids: Vec<ProductId>,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    ProductAdded { product_id: ProductId },
    OrderPlaced,
}

#[derive(Default)]
pub struct Order {
    products: Vec<ProductId>,
    placed: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    #[error("an order needs a product")]
    OrderIsEmpty,
    #[error("product {product_id} does not exist")]
    ProductNotFound { product_id: ProductId },
}

impl State for Order {
    type Reads = Consumed;

    fn evolve(mut self, event: Consumed) -> Self {
        match event {
            Consumed::ProductAdded { product_id } => self.products.push(product_id),
            Consumed::OrderPlaced => self.placed = true,
        }
        self
    }
}

impl Slice for PlaceOrder {
    const NAME: &'static str = "place-order";
    type Context = Shop;
    type State = Order;
    type Writes = OrderPlaced;
    type Rejection = Rejection;

    fn decide(&self, state: &Order, _: &CommandContext) -> Result<Vec<OrderPlaced>, Rejection> {
        let Self { order_id, product_ids } = self.clone();
        if product_ids.is_empty() {
            return Err(Rejection::OrderIsEmpty);
        }
        if state.placed {
            return Ok(vec![]);
        }
        match product_ids.iter().find(|product_id| !state.products.contains(product_id)) {
            Some(missing) => Err(Rejection::ProductNotFound { product_id: missing.clone() }),
            None => Ok(vec![OrderPlaced { order_id, product_ids }]),
        }
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::ProductAdded;

        let ids = |products: &[&str]| products.iter().map(|product| id(product)).collect();
        let place = |products| PlaceOrder { order_id: id("o1"), product_ids: ids(products) };
        let placed = |of| OrderPlaced { order_id: id(of), product_ids: ids(&["mug"]) };
        let added = |of| ProductAdded { product_id: id(of), name: "Mug".to_owned() };
        let missing = |of| Rejection::ProductNotFound { product_id: id(of) };
        vec![
            given(events![added("mug")]).when(place(&["mug"])).then([placed("o1")]),
            given(events![added("mug"), placed("o2")]).when(place(&["mug"])).then([placed("o1")]),
            given(events![added("mug"), placed("o1")]).when(place(&["mug"])).then_nothing(),
            given(events![added("mug")]).when(place(&["mug", "cup"])).then_rejected(missing("cup")),
            given([]).when(place(&["mug"])).then_rejected(missing("mug")),
            given([]).when(place(&[])).then_rejected(Rejection::OrderIsEmpty),
        ]
    }
}
