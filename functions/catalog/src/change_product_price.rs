//! ChangeProductPrice: changes a product's price.

use crate::{Money, ProductAdded, ProductCatalog, ProductId, ProductPriceChanged};
use ringfence::prelude::*;
use serde::Serialize;

/// Changes a product's price.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct ChangeProductPrice {
    #[tag(partition)]
    pub product_id: ProductId,
    pub price: Money,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    ProductAdded { price: Money },
    ProductPriceChanged { price: Money },
}

/// The product's price, once it is in the catalog.
#[ringfence::value]
#[derive(Default)]
pub struct Product {
    price: Option<Money>,
}

/// Why a price is not changed.
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
            Consumed::ProductAdded { price } | Consumed::ProductPriceChanged { price } => {
                Product { price: Some(price) }
            }
        }
    }
}

impl Slice for ChangeProductPrice {
    const NAME: &'static str = "change-product-price";
    const SCOPES: &'static [&'static str] = &["catalog/write"];
    type Context = ProductCatalog;
    type State = Product;
    type Writes = ProductPriceChanged;
    type Rejection = Rejection;

    fn decide(
        &self,
        state: &Product,
        _: &CommandContext,
    ) -> Result<Vec<ProductPriceChanged>, Rejection> {
        let Self { product_id, price } = self.clone();
        match &state.price {
            None => Err(Rejection::ProductNotFound { product_id }),
            Some(current) if *current == price => Ok(vec![]),
            Some(_) => Ok(vec![ProductPriceChanged { product_id, price }]),
        }
    }

    fn cases() -> Vec<Case<Self>> {
        let (old, new) = (Money::new(1_250, "EUR"), Money::new(1_250, "USD"));
        let added = ProductAdded {
            product_id: id("lamp"),
            name: "Lamp".to_owned(),
            description: String::new(),
            price: old.clone(),
        };
        let change =
            |price: &Money| ChangeProductPrice { product_id: id("lamp"), price: price.clone() };
        let changed =
            |price: &Money| ProductPriceChanged { product_id: id("lamp"), price: price.clone() };
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
