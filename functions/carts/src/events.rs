//! The events and the value types.

use std::collections::BTreeMap;

pub use catalog::ProductId;
use ringfence::{Event, id_type};

id_type!(CartId, "names a cart");
id_type!(CustomerId, "names a customer");

#[derive(Clone, Debug, PartialEq, Event)]
pub struct ItemAdded {
    #[tag(partition)]
    pub cart_id: CartId,
    #[tag(skip)]
    pub product_id: ProductId,
    /// Added to the units in the cart.
    pub quantity: u32,
}

#[derive(Clone, Debug, PartialEq, Event)]
pub struct QuantityChanged {
    #[tag(partition)]
    pub cart_id: CartId,
    #[tag(skip)]
    pub product_id: ProductId,
    pub quantity: u32,
}

#[derive(Clone, Debug, PartialEq, Event)]
pub struct ItemRemoved {
    #[tag(partition)]
    pub cart_id: CartId,
    #[tag(skip)]
    pub product_id: ProductId,
}

/// The cart becomes an order. The event has all that an order needs, so its readers need no other
/// event. They need the cart's id as well, so it is in the payload: its tag is computed.
#[derive(Clone, Debug, PartialEq, Event)]
#[tag(partition, key = "cartId", value = cart_id)]
pub struct CheckedOut {
    #[tag(skip)]
    pub cart_id: CartId,
    #[tag(skip)]
    pub customer_id: CustomerId,
    /// Units by product, at least one.
    pub items: BTreeMap<ProductId, u32>,
}
