//! The events and the value types.

use ringfence::{Event, Text, id_type};

id_type!(ProductId, "names a product");
id_type!(OrderId, "names an order");

/// The name of a product, as a command gives it.
pub type ProductName = Text<200>;

/// A product can be ordered from now on.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct ProductOffered {
    #[tag(partition)]
    pub product_id: ProductId,
    pub name: String,
}

/// An order was taken.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct OrderTaken {
    #[tag(partition)]
    pub order_id: OrderId,
    /// Payload only, because no decision reads orders by their products.
    #[tag(skip)]
    pub product_ids: Vec<ProductId>,
}

/// An order is on its way.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct OrderShipped {
    #[tag(partition)]
    pub order_id: OrderId,
}
