//! The events and the value types.

use std::borrow::Cow;

pub use catalog::{Money, OrderId, ProductId};
use ringfence::{Event, TagValue};

/// How long a price that was replaced can still be ordered at, in milliseconds: ten minutes.
pub const GRACE_MS: u64 = 10 * 60 * 1_000;

/// A product at the price that the customer saw.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Line {
    pub product_id: ProductId,
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
    #[tag(partition)]
    pub order_id: OrderId,
    #[tag(key = "productId")]
    pub lines: Vec<Line>,
}
