//! Carts at the price that was on display: the DCB specification's dynamic product price.

mod events;
pub mod order_products;

use catalog::ProductCatalog;
use ringfence::prelude::*;
use ringfence_stack::{MemberList, Members, Visitor};

pub use events::*;

pub struct Pricing;

impl Context for Pricing {
    const NAME: &'static str = "pricing";
    type Log = Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        ringfence_stack::catalog::<Self>()
    }
}

impl Members for Pricing {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.reads::<ProductCatalog>().slice::<order_products::OrderProducts>();
    }
}

#[test]
fn the_cases_of_pricing_hold() {
    ringfence_stack::check_cases_in_memory::<Pricing>();
}
