//! Carts at the price that was on display: the DCB specification's dynamic product price.

use std::borrow::Cow;

use ringfence::{Catalog, CatalogError, Event, TagValue};
pub use ringfence_catalog::{Money, OrderId, ProductId};
use serde::{Deserialize, Serialize};

/// How long a price that was replaced can still be ordered at, in milliseconds: ten minutes.
pub const GRACE_MS: u64 = 10 * 60 * 1_000;

/// A product at the price that the customer saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Line {
    /// The product.
    pub product_id: ProductId,
    /// What one unit costs.
    pub price: Money,
}

/// A line is tagged with its product.
impl TagValue for Line {
    fn tag_value(&self) -> Cow<'_, str> {
        self.product_id.tag_value()
    }
}

/// A cart is ordered at the prices on display.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct ProductsOrdered {
    /// The order.
    #[tag(partition)]
    pub order_id: OrderId,
    /// Its products and prices.
    #[tag(key = "productId")]
    pub lines: Vec<Line>,
}

/// Every event of this context; prices are events of the catalog context.
pub fn catalog() -> Result<Catalog, CatalogError> {
    Catalog::new("pricing", [ProductsOrdered::SCHEMA])
}
