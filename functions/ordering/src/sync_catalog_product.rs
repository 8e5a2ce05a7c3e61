//! SyncCatalogProduct: copies a product's name and price from the catalog.
//!
//! An automation: a product added to the catalog leads to its command.

use crate::{CatalogProductSynced, Money, Ordering, ProductId, ProductName};
use catalog::{ProductAdded, ProductCatalog};
use ringfence::prelude::*;
use serde::Deserialize;

/// Copies a product from the catalog.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct SyncCatalogProduct {
    #[tag(partition)]
    pub product_id: ProductId,
    pub name: ProductName,
    pub price: Money,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    CatalogProductSynced { name: String, price: Money },
}

/// What ordering knows of the product.
#[derive(Default)]
pub struct Synced {
    known: Option<(String, Money)>,
}

impl State for Synced {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        let Consumed::CatalogProductSynced { name, price } = event;
        Synced { known: Some((name, price)) }
    }
}

impl Slice for SyncCatalogProduct {
    const NAME: &'static str = "sync-catalog-product";
    const REACTS_TO: &'static [Cause] = &[Cause::of::<ProductAdded>(ProductCatalog::NAME)];
    const SCOPES: &'static [&'static str] = &["catalog/write"];
    type Context = Ordering;
    type State = Synced;
    type Writes = CatalogProductSynced;
    type Rejection = Never;

    fn decide(
        &self,
        state: &Synced,
        _: &CommandContext,
    ) -> Result<Vec<CatalogProductSynced>, Never> {
        let Self { product_id, name, price } = self.clone();
        let name = String::from(name);
        match &state.known {
            Some(known) if *known == (name.clone(), price.clone()) => Ok(vec![]),
            _ => Ok(vec![CatalogProductSynced { product_id, name, price }]),
        }
    }

    fn react(event: &Current<'_, TopicEvent>) -> Result<Vec<Self>, serde_json::Error> {
        let Product { product_id, name, price } = Product::deserialize(&event.data)?;
        Ok(vec![Self { product_id, name, price }])
    }

    fn cases() -> Vec<Case<Self>> {
        let synced = |product, name: &str, price| CatalogProductSynced {
            product_id: id(product),
            name: name.to_owned(),
            price: Money::new(price, "EUR"),
        };
        let sync = |name: &str, price| SyncCatalogProduct {
            product_id: id("lamp"),
            name: id(name),
            price: Money::new(price, "EUR"),
        };
        let lamp = || synced("lamp", "Lamp", 1_250);
        vec![
            given([]).when(sync("Lamp", 1_250)).then([lamp()]),
            given(events![lamp()]).when(sync("Lamp", 1_250)).then_nothing(),
            given(events![lamp()]).when(sync("Lamp", 990)).then([synced("lamp", "Lamp", 990)]),
            given(events![lamp()])
                .when(sync("Light", 1_250))
                .then([synced("lamp", "Light", 1_250)]),
            given(events![synced("desk", "Lamp", 1_250)]).when(sync("Lamp", 1_250)).then([lamp()]),
            given(events![lamp(), synced("lamp", "Lamp", 990)])
                .when(sync("Lamp", 1_250))
                .then([lamp()]),
        ]
    }
}

/// What this context reads of a product added to the catalog.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Product {
    product_id: ProductId,
    name: ProductName,
    price: Money,
}
