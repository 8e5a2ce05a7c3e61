//! AddProduct: a product joins the catalog, once.

use ringfence::prelude::*;
use ringfence_catalog::{Description, Money, ProductAdded, ProductId, ProductName};
use serde::Serialize;

/// Adds a product.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct AddProduct {
    /// The product.
    #[tag(partition)]
    pub product_id: ProductId,
    /// What customers call it.
    pub name: ProductName,
    /// What customers read of it.
    pub description: Description,
    /// What one unit costs.
    pub price: Money,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    /// The product is there.
    ProductAdded,
}

/// Whether the product is there.
#[derive(Default)]
pub struct State {
    added: bool,
}

/// Why a product is not added.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    /// An id names one product.
    #[error("product {product_id} is already in the catalog")]
    ProductAlreadyExists {
        /// The product.
        product_id: ProductId,
    },
}

impl Slice for AddProduct {
    const NAME: &'static str = "add-product";
    const CONTEXT: &'static str = "catalog";
    type Reads = Consumed;
    type State = State;
    type Writes = ProductAdded;
    type Rejection = Rejection;

    fn catalog() -> Result<Catalog, CatalogError> {
        ringfence_catalog::catalog()
    }

    fn evolve(_state: State, event: Consumed) -> State {
        match event {
            Consumed::ProductAdded => State { added: true },
        }
    }

    fn decide(
        state: &State,
        command: &Self,
        _context: &Context,
    ) -> Result<Vec<ProductAdded>, Rejection> {
        let Self { product_id, name, description, price } = command.clone();
        if state.added {
            return Err(Rejection::ProductAlreadyExists { product_id });
        }
        let (name, description) = (name.into(), description.into());
        Ok(vec![ProductAdded { product_id, name, description, price }])
    }
}

/// The rules, as cases.
pub fn cases() -> Vec<Case<AddProduct>> {
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

#[test]
fn rules_hold() {
    ringfence::kit::check_in_memory(cases());
}
