//! The shop: products, and the orders for them.

mod events;
pub mod offer_product;
pub mod ship_order;
pub mod take_order;
pub mod views {
    //! The read models.

    pub mod orders;
}

use ringfence::prelude::*;

pub use events::*;

ringfence::context! {
    /// The context.
    pub Shop, "shop" on Dcb;
    slice offer_product::OfferProduct;
    slice take_order::TakeOrder;
    slice ship_order::ShipOrder;
    view views::orders::Orders;
}
