//! SyncCatalogProduct: ordering learns what the catalog sells.
//!
//! An automation: a product added to the catalog leads to its command.

use ringfence::prelude::*;
use ringfence_ordering::{CatalogProductSynced, Money, ProductId, ProductName};
use serde::Deserialize;

/// Takes over what the catalog says of a product.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct SyncCatalogProduct {
    /// The product.
    #[tag(partition)]
    pub product_id: ProductId,
    /// What customers call it.
    pub name: ProductName,
    /// What one unit costs.
    pub price: Money,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    /// What was known before.
    CatalogProductSynced {
        /// The name.
        name: String,
        /// The price.
        price: Money,
    },
}

/// What ordering knows of the product.
#[derive(Default)]
pub struct State {
    known: Option<(String, Money)>,
}

impl Slice for SyncCatalogProduct {
    const NAME: &'static str = "sync-catalog-product";
    const CONTEXT: &'static str = "ordering";
    type Reads = Consumed;
    type State = State;
    type Writes = CatalogProductSynced;
    type Rejection = Never;

    fn catalog() -> Result<Catalog, CatalogError> {
        ringfence_ordering::catalog()
    }

    fn evolve(_state: State, event: Consumed) -> State {
        let Consumed::CatalogProductSynced { name, price } = event;
        State { known: Some((name, price)) }
    }

    fn decide(
        state: &State,
        command: &Self,
        _context: &Context,
    ) -> Result<Vec<CatalogProductSynced>, Never> {
        let Self { product_id, name, price } = command.clone();
        let name = String::from(name);
        match &state.known {
            Some(known) if *known == (name.clone(), price.clone()) => Ok(vec![]),
            _ => Ok(vec![CatalogProductSynced { product_id, name, price }]),
        }
    }

    fn react(event: &TopicEvent) -> Result<Option<Vec<Self>>, serde_json::Error> {
        if event.event_type != "ProductAdded" {
            return Ok(None);
        }
        let Product { product_id, name, price } = Product::deserialize(&event.data)?;
        Ok(Some(vec![Self { product_id, name, price }]))
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

/// The rules, as cases.
pub fn cases() -> Vec<Case<SyncCatalogProduct>> {
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
        given(events![lamp()]).when(sync("Light", 1_250)).then([synced("lamp", "Light", 1_250)]),
        given(events![synced("desk", "Lamp", 1_250)]).when(sync("Lamp", 1_250)).then([lamp()]),
        given(events![lamp(), synced("lamp", "Lamp", 990)])
            .when(sync("Lamp", 1_250))
            .then([lamp()]),
    ]
}

#[test]
fn rules_hold() {
    ringfence::kit::check_in_memory(cases());
}
