//! OfferProduct: offers a product, once.

use crate::{ProductId, ProductName, ProductOffered, Shop};
use ringfence::prelude::*;
use serde::Serialize;

/// Offers a product.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct OfferProduct {
    #[tag(partition)]
    pub product_id: ProductId,
    pub name: ProductName,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    ProductOffered,
}

#[derive(Default)]
pub struct Product {
    offered: bool,
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
            Consumed::ProductOffered => Product { offered: true },
        }
    }
}

impl Slice for OfferProduct {
    const NAME: &'static str = "offer-product";
    const SCOPES: &'static [&'static str] = &["shop/write"];
    type Context = Shop;
    type State = Product;
    type Writes = ProductOffered;
    type Rejection = Rejection;

    fn decide(
        &self,
        state: &Product,
        _: &CommandContext,
    ) -> Result<Vec<ProductOffered>, Rejection> {
        let Self { product_id, name } = self.clone();
        if state.offered {
            return Err(Rejection::ProductExists { product_id });
        }
        Ok(vec![ProductOffered { product_id, name: name.into() }])
    }

    fn cases() -> Vec<Case<Self>> {
        let offer = || OfferProduct { product_id: id("mug"), name: id("Mug") };
        let offered = |of| ProductOffered { product_id: id(of), name: "Mug".to_owned() };
        let exists = Rejection::ProductExists { product_id: id("mug") };
        vec![
            given([]).when(offer()).then([offered("mug")]),
            given(events![offered("cup")]).when(offer()).then([offered("mug")]),
            given(events![offered("mug")]).when(offer()).then_rejected(exists),
        ]
    }
}
