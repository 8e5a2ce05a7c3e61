//! Facts that the cases of several slices begin with.

use ringfence::kit::id;

use crate::{CheckedOut, ItemAdded, ItemRemoved};

/// `quantity` lamps are put into `cart-1`.
#[must_use]
pub fn lamps(quantity: u32) -> ItemAdded {
    ItemAdded { cart_id: id("cart-1"), product_id: id("lamp"), quantity }
}

/// All lamps are taken out of `cart-1`.
#[must_use]
pub fn no_lamps() -> ItemRemoved {
    ItemRemoved { cart_id: id("cart-1"), product_id: id("lamp") }
}

/// Customer `ada` checks out `cart-1`, which has this many lamps.
#[must_use]
pub fn checked_out(lamps: u32) -> CheckedOut {
    let items = [(id("lamp"), lamps)].into();
    CheckedOut { cart_id: id("cart-1"), customer_id: id("ada"), items }
}
