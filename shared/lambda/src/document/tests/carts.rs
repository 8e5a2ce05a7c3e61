//! Carts, each a stream of the document log.

use std::collections::BTreeMap;

use ringfence::{id_type, prelude::*};
use ringfence_document_log::{Access, DocumentContext, Documents};
use serde::{Deserialize, Serialize};

id_type!(CartId, "names a cart");
id_type!(ProductId, "names a product");
id_type!(CustomerId, "names a customer");

/// Units of one product in a cart.
const QUANTITY_MAX: u32 = 99;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all_fields = "camelCase")]
pub(crate) enum CartEvent {
    ItemAdded { product_id: ProductId, quantity: u32 },
    CheckedOut { cart_id: CartId, customer_id: CustomerId, items: BTreeMap<ProductId, u32> },
    CartSnapshot(BTreeMap<ProductId, u32>),
}

pub(crate) struct Carts;

impl Context for Carts {
    const NAME: &'static str = "carts";
    type Log = Documents;
    type Event = CartEvent;
}

impl StreamContext for Carts {
    type State = BTreeMap<ProductId, u32>;

    fn evolve(mut items: Self::State, event: CartEvent) -> Self::State {
        match event {
            CartEvent::ItemAdded { product_id, quantity } => {
                *items.entry(product_id).or_default() += quantity;
            }
            CartEvent::CheckedOut { .. } => {}
            CartEvent::CartSnapshot(snapshot) => return snapshot,
        }
        items
    }
}

impl DocumentContext for Carts {
    fn access() -> Access<Self> {
        Access::Snapshot {
            is_origin: |event| matches!(event, CartEvent::CartSnapshot(_)),
            to_snapshot: |items| CartEvent::CartSnapshot(items.clone()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub(crate) enum Rejection {
    #[error("{quantity} units of product {product_id}; at most {QUANTITY_MAX} are possible")]
    QuantityOutOfRange { product_id: ProductId, quantity: u32 },
}

#[derive(Clone, Debug, Command)]
pub(crate) struct AddToCart {
    cart_id: CartId,
    product_id: ProductId,
    quantity: u32,
}

impl Slice for AddToCart {
    const NAME: &'static str = "add-to-cart";
    type Context = Carts;
    type State = BTreeMap<ProductId, u32>;
    type Writes = CartEvent;
    type Rejection = Rejection;

    fn decide(&self, items: &Self::State, _: &CommandContext) -> Result<Vec<CartEvent>, Rejection> {
        let Self { product_id, quantity, .. } = self.clone();
        let sum = items.get(&product_id).unwrap_or(&0) + quantity;
        if sum > QUANTITY_MAX {
            return Err(Rejection::QuantityOutOfRange { product_id, quantity: sum });
        }
        Ok(vec![CartEvent::ItemAdded { product_id, quantity }])
    }
}

impl StreamSlice for AddToCart {
    fn stream_id(&self) -> String {
        self.cart_id.to_string()
    }
}

#[derive(Clone, Debug, Command)]
pub(crate) struct CheckOut {
    cart_id: CartId,
    customer_id: CustomerId,
}

impl Slice for CheckOut {
    const NAME: &'static str = "check-out";
    type Context = Carts;
    type State = BTreeMap<ProductId, u32>;
    type Writes = CartEvent;
    type Rejection = Never;

    fn decide(&self, items: &Self::State, _: &CommandContext) -> Result<Vec<CartEvent>, Never> {
        let Self { cart_id, customer_id } = self.clone();
        Ok(vec![CartEvent::CheckedOut { cart_id, customer_id, items: items.clone() }])
    }
}

impl StreamSlice for CheckOut {
    fn stream_id(&self) -> String {
        self.cart_id.to_string()
    }
}
