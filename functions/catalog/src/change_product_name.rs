//! ChangeProductName: changes a product's name.

use crate::{Money, ProductAdded, ProductCatalog, ProductId, ProductName, ProductNameChanged};
use ringfence::prelude::*;
use serde::Serialize;

/// Changes a product's name.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct ChangeProductName {
    #[tag(partition)]
    pub product_id: ProductId,
    pub name: ProductName,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    ProductAdded { name: String },
    ProductNameChanged { name: String },
}

/// The product's name, once it is in the catalog.
#[ringfence::value]
#[derive(Default)]
pub struct Product {
    name: Option<String>,
}

/// Why a name is not changed.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    #[error("product {product_id} is not in the catalog")]
    ProductNotFound { product_id: ProductId },
}

impl State for Product {
    // Each order records its demand in the product's partition.
    const SNAPSHOTS: Option<Snapshots<Self>> = Some(Snapshots::every(100));
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        match event {
            Consumed::ProductAdded { name } | Consumed::ProductNameChanged { name } => {
                Product { name: Some(name) }
            }
        }
    }
}

impl Slice for ChangeProductName {
    const NAME: &'static str = "change-product-name";
    const SCOPES: &'static [&'static str] = &["catalog/write"];
    type Context = ProductCatalog;
    type State = Product;
    type Writes = ProductNameChanged;
    type Rejection = Rejection;

    fn decide(
        &self,
        state: &Product,
        _: &CommandContext,
    ) -> Result<Vec<ProductNameChanged>, Rejection> {
        let Self { product_id, name } = self.clone();
        let name = name.into();
        match &state.name {
            None => Err(Rejection::ProductNotFound { product_id }),
            Some(current) if *current == name => Ok(vec![]),
            Some(_) => Ok(vec![ProductNameChanged { product_id, name }]),
        }
    }

    fn cases() -> Vec<Case<Self>> {
        let (old, new) = ("Lamp".to_owned(), "Desk lamp".to_owned());
        let added = ProductAdded {
            product_id: id("lamp"),
            name: old.clone(),
            description: String::new(),
            price: Money::new(1_250, "EUR"),
        };
        let change = |name: &str| ChangeProductName { product_id: id("lamp"), name: id(name) };
        let changed =
            |name: &String| ProductNameChanged { product_id: id("lamp"), name: name.clone() };
        let missing = Rejection::ProductNotFound { product_id: id("lamp") };
        vec![
            given([]).when(change(&new)).then_rejected(missing),
            given(events![added.clone()]).when(change(&new)).then([changed(&new)]),
            given(events![added.clone()]).when(change(&old)).then_nothing(),
            given(events![added.clone(), changed(&new)]).when(change(&new)).then_nothing(),
            given(events![added, changed(&new)]).when(change(&old)).then([changed(&old)]),
        ]
    }
}
