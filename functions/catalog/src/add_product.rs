//! AddProduct: adds a product to the catalog, once.

use crate::{Description, Money, ProductAdded, ProductCatalog, ProductId, ProductName};
use ringfence::prelude::*;
use serde::Serialize;

/// Adds a product.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct AddProduct {
    #[tag(partition)]
    pub product_id: ProductId,
    pub name: ProductName,
    pub description: Description,
    pub price: Money,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    ProductAdded,
}

/// Whether the product is there.
#[derive(Default)]
pub struct Product {
    added: bool,
}

/// Why a product is not added.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    #[error("product {product_id} is already in the catalog")]
    ProductAlreadyExists { product_id: ProductId },
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
    const SCOPES: &'static [&'static str] = &["catalog/write"];
    type Context = ProductCatalog;
    type State = Product;
    type Writes = ProductAdded;
    type Rejection = Rejection;

    fn decide(&self, state: &Product, _: &CommandContext) -> Result<Vec<ProductAdded>, Rejection> {
        let Self { product_id, name, description, price } = self.clone();
        if state.added {
            return Err(Rejection::ProductAlreadyExists { product_id });
        }
        let (name, description) = (name.into(), description.into());
        Ok(vec![ProductAdded { product_id, name, description, price }])
    }

    fn cases() -> Vec<Case<Self>> {
        let price = Money::new(1_250, "EUR");
        let (name, description) = (id("Lamp"), id("Gives light"));
        let add = AddProduct { product_id: id("lamp"), name, description, price };
        let AddProduct { product_id, name, description, price } = add.clone();
        let (name, description) = (name.into(), description.into());
        let added = ProductAdded { product_id, name, description, price };
        let other = ProductAdded { product_id: id("desk"), ..added.clone() };
        let exists = Rejection::ProductAlreadyExists { product_id: id("lamp") };
        vec![
            given([]).when(add.clone()).then([added.clone()]),
            given(events![other]).when(add.clone()).then([added.clone()]),
            given(events![added]).when(add).then_rejected(exists),
        ]
    }
}
