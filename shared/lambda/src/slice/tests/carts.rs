//! Carts, each a stream of the document log.

use std::collections::BTreeMap;

use ringfence_core::{id_type, prelude::*};
use ringfence_document_log::{AccessStrategy, Document, Documents, Snapshot};
use serde::Serialize;

id_type!(CartId, "names a cart");
id_type!(ProductId, "names a product");

/// Units of one product in a cart.
const QUANTITY_MAX: u32 = 99;

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct ItemAdded {
    #[tag(partition)]
    cart_id: CartId,
    #[tag(skip)]
    product_id: ProductId,
    quantity: u32,
}

pub(crate) struct Carts;

impl Context for Carts {
    const NAME: &'static str = "carts";
    type Log = Documents<Cart>;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(Self::NAME, [ItemAdded::SCHEMA])
    }
}

/// Units by product.
#[ringfence::value]
#[derive(Clone, Debug, Default)]
pub(crate) struct Cart(BTreeMap<ProductId, u32>);

#[derive(Reads)]
pub(crate) enum CartEvent {
    ItemAdded { product_id: ProductId, quantity: u32 },
}

impl State for Cart {
    type Reads = CartEvent;

    fn evolve(mut self, event: CartEvent) -> Self {
        let CartEvent::ItemAdded { product_id, quantity } = event;
        *self.0.entry(product_id).or_default() += quantity;
        self
    }
}

impl Document for Cart {
    const ACCESS: AccessStrategy<Self> = AccessStrategy::Snapshot(Snapshot::named("CartSnapshot"));
}

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub(crate) enum Rejection {
    #[error("{quantity} units of product {product_id}; at most {QUANTITY_MAX} are possible")]
    QuantityOutOfRange { product_id: ProductId, quantity: u32 },
}

#[derive(Clone, Debug, Command)]
pub(crate) struct AddToCart {
    #[tag(partition)]
    cart_id: CartId,
    #[tag(skip)]
    product_id: ProductId,
    quantity: u32,
}

impl Slice for AddToCart {
    const NAME: &'static str = "add-to-cart";
    type Context = Carts;
    type State = Cart;
    type Writes = ItemAdded;
    type Rejection = Rejection;

    fn decide(&self, Cart(items): &Cart, _: &CommandContext) -> Result<Vec<ItemAdded>, Rejection> {
        let Self { cart_id, product_id, quantity } = self.clone();
        let sum = items.get(&product_id).unwrap_or(&0) + quantity;
        if sum > QUANTITY_MAX {
            return Err(Rejection::QuantityOutOfRange { product_id, quantity: sum });
        }
        Ok(vec![ItemAdded { cart_id, product_id, quantity }])
    }
}
