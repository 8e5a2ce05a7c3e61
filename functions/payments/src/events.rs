//! The events and the value types.

pub use ordering::{Item, Money, OrderId, ProductId};
use ringfence::Event;

/// A customer is asked to pay an order.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct PaymentRequested {
    #[tag(partition)]
    pub order_id: OrderId,
    pub amount: Money,
}

/// The customer has paid.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct PaymentReceived {
    #[tag(partition)]
    pub order_id: OrderId,
    pub amount: Money,
}

/// The customer gets the money back.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct PaymentRefunded {
    #[tag(partition)]
    pub order_id: OrderId,
    pub amount: Money,
}
