//! TakeOrder: takes an order for products that exist.
//!
//! The decision reads the order and each product, so its boundary is all of them.

use crate::{OrderId, OrderTaken, ProductId, Shop};
use ringfence::prelude::*;
use serde::Serialize;

/// Takes an order.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct TakeOrder {
    #[tag(partition)]
    pub order_id: OrderId,
    pub product_ids: Vec<ProductId>,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    ProductOffered { product_id: ProductId },
    OrderTaken,
}

#[derive(Default)]
pub struct Order {
    products: Vec<ProductId>,
    taken: bool,
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
            Consumed::ProductOffered { product_id } => self.products.push(product_id),
            Consumed::OrderTaken => self.taken = true,
        }
        self
    }
}

impl Slice for TakeOrder {
    const NAME: &'static str = "take-order";
    const SCOPES: &'static [&'static str] = &["shop/write"];
    type Context = Shop;
    type State = Order;
    type Writes = OrderTaken;
    type Rejection = Rejection;

    fn decide(&self, state: &Order, _: &CommandContext) -> Result<Vec<OrderTaken>, Rejection> {
        let Self { order_id, product_ids } = self.clone();
        if product_ids.is_empty() {
            return Err(Rejection::OrderIsEmpty);
        }
        if state.taken {
            return Ok(vec![]);
        }
        match product_ids.iter().find(|product_id| !state.products.contains(product_id)) {
            Some(missing) => Err(Rejection::ProductNotFound { product_id: missing.clone() }),
            None => Ok(vec![OrderTaken { order_id, product_ids }]),
        }
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::ProductOffered;

        let ids = |products: &[&str]| products.iter().map(|product| id(product)).collect();
        let take = |products| TakeOrder { order_id: id("o1"), product_ids: ids(products) };
        let taken = |of| OrderTaken { order_id: id(of), product_ids: ids(&["mug"]) };
        let offered = |of| ProductOffered { product_id: id(of), name: "Mug".to_owned() };
        let missing = |of| Rejection::ProductNotFound { product_id: id(of) };
        vec![
            given(events![offered("mug")]).when(take(&["mug"])).then([taken("o1")]),
            given(events![offered("mug"), taken("o2")]).when(take(&["mug"])).then([taken("o1")]),
            given(events![offered("mug"), taken("o1")]).when(take(&["mug"])).then_nothing(),
            given(events![offered("mug")])
                .when(take(&["mug", "cup"]))
                .then_rejected(missing("cup")),
            given([]).when(take(&["mug"])).then_rejected(missing("mug")),
            given([]).when(take(&[])).then_rejected(Rejection::OrderIsEmpty),
        ]
    }
}
