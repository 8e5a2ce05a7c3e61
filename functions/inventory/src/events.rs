//! The events and the value types.

use std::num::NonZeroU32;

pub use ordering::{Item, OrderId, ProductId};
use ringfence::{Event, id_type};

id_type!(DeliveryId, "names a delivery to the warehouse");

/// How many minutes the units of an order are kept while it is not paid.
pub const KEPT_MINUTES: u32 = 15;

/// Units of a product arrive.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct StockReceived {
    #[tag(partition)]
    pub delivery_id: DeliveryId,
    #[tag(cross_partition, strong, key = "stock")]
    pub product_id: ProductId,
    pub units: NonZeroU32,
}

/// All units of an order are reserved.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct StockReserved {
    #[tag(partition)]
    pub order_id: OrderId,
    #[tag(cross_partition, strong, key = "stock")]
    pub items: Vec<Item>,
    /// How long they are kept for an order that is not paid. The event has it because it is a promise, which stays if
    /// the shop promises another time tomorrow.
    pub minutes: u32,
}

/// Nothing is reserved for an order, because units of some products are missing.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct StockMissing {
    #[tag(partition)]
    pub order_id: OrderId,
    /// Payload only, because no decision reads by it.
    #[tag(skip)]
    pub product_ids: Vec<ProductId>,
}

/// The units of an order are free again.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct StockReleased {
    #[tag(partition)]
    pub order_id: OrderId,
    #[tag(cross_partition, strong, key = "stock")]
    pub items: Vec<Item>,
}
