//! Facts that the cases of several slices begin with.

use ringfence::kit::id;

use crate::CartEvent;

/// `quantity` lamps are put into the cart.
#[must_use]
pub fn lamps(quantity: u32) -> CartEvent {
    CartEvent::ItemAdded { product_id: id("lamp"), quantity }
}

/// Customer `ada` checks out `cart-1`, which has this many lamps.
#[must_use]
pub fn checked_out(lamps: u32) -> CartEvent {
    let items = [(id("lamp"), lamps)].into();
    CartEvent::CheckedOut { cart_id: id("cart-1"), customer_id: id("ada"), items }
}
