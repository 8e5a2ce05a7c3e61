//! Facts that the cases of several slices begin with.

use ringfence::kit::id;

use crate::CartEvent;

/// So many lamps are put in.
#[must_use]
pub fn lamps(quantity: u32) -> CartEvent {
    CartEvent::ItemAdded { product_id: id("lamp"), quantity }
}

/// Customer `ada` checks cart `cart-1` out, which has so many lamps.
#[must_use]
pub fn checked_out(lamps: u32) -> CartEvent {
    let items = [(id("lamp"), lamps)].into();
    CartEvent::CheckedOut { cart_id: id("cart-1"), customer_id: id("ada"), items }
}
