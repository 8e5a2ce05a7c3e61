//! Carts at the price that was on display: the DCB specification's dynamic product price.

mod events;
pub mod order_products;

use catalog::ProductCatalog;
use ringfence::prelude::*;

pub use events::*;

ringfence::context! {
    pub Pricing, "pricing" on Dcb;
    reads ProductCatalog;
    slice order_products::OrderProducts;
}
