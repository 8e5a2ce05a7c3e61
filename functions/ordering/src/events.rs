//! The events and the value types.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

pub use catalog::{Money, ProductId, ProductName};
use ringfence::{Event, TagValue, id_type};

id_type!(OrderId, "names an order");
id_type!(CustomerId, "names a customer");
id_type!(SubmissionId, "names one sending of a form: a token that the form contains");

/// Units of a product, as the contexts that carry out an order name them.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Item {
    pub product_id: ProductId,
    pub units: NonZeroU32,
}

/// An item is tagged with its product.
impl TagValue for Item {
    fn tag_value(&self) -> Cow<'_, str> {
        self.product_id.tag_value()
    }
}

/// A product of the catalog is copied to ordering, for the first time or after a change. Orders depend on it, and not
/// on the product's other events. Each order adds such an event. Fifty orders a second of one product need sixteen
/// copies of its fence; a product seldom changes.
#[derive(Clone, Debug, PartialEq, Event)]
#[event(fenced, copies = 16)]
pub struct CatalogProductSynced {
    #[tag(partition)]
    pub product_id: ProductId,
    pub name: String,
    pub price: Money,
}

/// A customer orders products.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct OrderPlaced {
    #[tag(partition)]
    pub order_id: OrderId,
    /// Payload only, because no decision reads by it.
    #[tag(skip)]
    pub customer_id: CustomerId,
    pub product_ids: Vec<ProductId>,
    /// The units of a product, if the customer gave a number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quantities: BTreeMap<ProductId, NonZeroU32>,
}

/// An order is cancelled.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct OrderCancelled {
    #[tag(partition)]
    pub order_id: OrderId,
    pub product_ids: Vec<ProductId>,
}

/// A customer orders some units of one product.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct ProductOrdered {
    #[tag(partition)]
    pub order_id: OrderId,
    /// The limit counts all orders of a customer, so decisions read by it across partitions.
    #[tag(cross_partition)]
    pub customer_id: CustomerId,
    /// Payload only, because no decision reads by it.
    #[tag(skip)]
    pub product_id: ProductId,
    /// At least 1.
    pub quantity: u32,
}

/// An order form is submitted. A form that is sent twice is one order.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct OrderSubmitted {
    #[tag(partition)]
    pub order_id: OrderId,
    /// Payload only, because no decision reads by it.
    #[tag(skip)]
    pub customer_id: CustomerId,
    #[tag(cross_partition, strong)]
    pub submission_id: SubmissionId,
}
