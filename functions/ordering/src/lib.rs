//! Ordering: what customers buy.

pub mod cancel_order;
pub mod confirm_order;
mod events;
pub mod notify_partner;
pub mod order_product;
pub mod place_order;
pub mod submit_order;
pub mod sync_catalog_product;
pub mod views {
    //! The read models.

    pub mod customer_order_counts;
    pub mod orders;
}

use ringfence::prelude::*;

pub use events::*;

ringfence::context! {
    pub Ordering, "ordering" on Dcb;
    slice cancel_order::CancelOrder;
    slice order_product::OrderProduct;
    slice place_order::PlaceOrder;
    slice submit_order::SubmitOrder;
    slice sync_catalog_product::SyncCatalogProduct;
    reactor confirm_order::ConfirmOrder;
    reactor notify_partner::NotifyPartner;
    view views::orders::Orders;
    view views::customer_order_counts::CustomerOrderCounts;
}
