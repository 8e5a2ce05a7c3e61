//! The catalog of products: what the shop sells.

pub mod add_product;
pub mod change_product_name;
pub mod change_product_price;
mod events;
pub mod record_product_demand;
pub mod views {
    //! The read models.

    pub mod catalog_products;
    pub mod product_demand;
}

use ringfence::prelude::*;
use ringfence_stack::{MemberList, Members, Visitor};

pub use events::*;

pub struct ProductCatalog;

impl Context for ProductCatalog {
    const NAME: &'static str = "catalog";
    type Log = Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        ringfence_stack::catalog::<Self>()
    }
}

impl Members for ProductCatalog {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.slice::<add_product::AddProduct>()
            .slice::<change_product_name::ChangeProductName>()
            .slice::<change_product_price::ChangeProductPrice>()
            .slice::<record_product_demand::RecordProductDemand>()
            .view::<views::catalog_products::CatalogProducts>()
            .view::<views::product_demand::ProductDemand>();
    }
}

#[test]
fn the_cases_of_catalog_hold() {
    ringfence_stack::check_cases_in_memory::<ProductCatalog>();
}
