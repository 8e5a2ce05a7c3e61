//! AddProduct: adds a product, once.

use crate::{ProductAdded, ProductId, ProductName, Shop};
use ringfence::prelude::*;
use serde::Serialize;

/// Adds a product.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct AddProduct {
    #[tag(partition)]
    pub product_id: ProductId,
    pub name: ProductName,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    ProductAdded,
}

#[derive(Default)]
pub struct Product {
    added: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    #[error("product {product_id} exists already")]
    ProductExists { product_id: ProductId },
}

impl State for Product {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        match event {
            Consumed::ProductAdded => Product { added: true },
        }
    }
}

impl Slice for AddProduct {
    const NAME: &'static str = "add-product";
    type Context = Shop;
    type State = Product;
    type Writes = ProductAdded;
    type Rejection = Rejection;

    fn decide(&self, state: &Product, _: &CommandContext) -> Result<Vec<ProductAdded>, Rejection> {
        let Self { product_id, name } = self.clone();
        if state.added {
            return Err(Rejection::ProductExists { product_id });
        }
        Ok(vec![ProductAdded { product_id, name: name.into() }])
    }

    fn cases() -> Vec<Case<Self>> {
        let add = || AddProduct { product_id: id("mug"), name: id("Mug") };
        let added = |of| ProductAdded { product_id: id(of), name: "Mug".to_owned() };
        let exists = Rejection::ProductExists { product_id: id("mug") };
        vec![
            given([]).when(add()).then([added("mug")]),
            given(events![added("cup")]).when(add()).then([added("mug")]),
            given(events![added("mug")]).when(add()).then_rejected(exists),
        ]
    }
}
