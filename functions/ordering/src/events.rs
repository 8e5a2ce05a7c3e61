//! The events and the value types.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

pub use catalog::{Money, ProductId, ProductName};
use ringfence::{Event, id_type};

id_type!(OrderId, "names an order");
id_type!(CustomerId, "names a customer");
id_type!(SubmissionId, "names one sending of a form: a token that the form brings along");

/// Ordering knows a product of the catalog, or knows something new of it.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct CatalogProductSynced {
    #[tag(partition)]
    pub product_id: ProductId,
    /// What customers call it.
    pub name: String,
    /// What one unit costs.
    pub price: Money,
}

/// A customer orders products.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct OrderPlaced {
    #[tag(partition)]
    pub order_id: OrderId,
    /// Who ordered; no decision asks for it.
    #[tag(skip)]
    pub customer_id: CustomerId,
    /// What was ordered.
    pub product_ids: Vec<ProductId>,
    /// Units of products, where the customer said how many.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quantities: BTreeMap<ProductId, NonZeroU32>,
}

/// An order is withdrawn.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct OrderCancelled {
    #[tag(partition)]
    pub order_id: OrderId,
    /// What it was for.
    pub product_ids: Vec<ProductId>,
}

/// A customer orders some units of one product.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct ProductOrdered {
    #[tag(partition)]
    pub order_id: OrderId,
    /// Who ordered. The cap counts over all orders of a customer, so it is read across partitions.
    #[tag(cross_partition)]
    pub customer_id: CustomerId,
    /// Of what; payload, because no decision asks for it by index.
    #[tag(skip)]
    pub product_id: ProductId,
    /// How many units, at least 1.
    pub quantity: u32,
}

/// A form with an order is sent. Sent twice, it is still one order.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct OrderSubmitted {
    #[tag(partition)]
    pub order_id: OrderId,
    /// The form's token.
    #[tag(cross_partition, strong)]
    pub submission_id: SubmissionId,
}
