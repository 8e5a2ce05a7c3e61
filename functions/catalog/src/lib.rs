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

pub use events::*;

ringfence::context! {
    pub ProductCatalog, "catalog" on Dcb;
    slice add_product::AddProduct;
    slice change_product_name::ChangeProductName;
    slice change_product_price::ChangeProductPrice;
    slice record_product_demand::RecordProductDemand;
    view views::catalog_products::CatalogProducts;
    view views::product_demand::ProductDemand;
}
