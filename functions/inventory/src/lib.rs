//! The stock of products: which units are reserved, for which order, and for how long.
//!
//! One of the three contexts of the process in `docs/processes.md`. It reads the other two's events of an order, and
//! they react to its own.

mod events;
pub mod receive_stock;
pub mod release_stock;
pub mod reserve_stock;

use ordering::Ordering;
use payments::Payments;
use ringfence::prelude::*;

pub use events::*;

ringfence::context! {
    pub Inventory, "inventory" on Dcb;
    reads Ordering;
    reads Payments;
    slice receive_stock::ReceiveStock;
    slice release_stock::ReleaseStock;
    due release_stock::ReleaseStock;
    slice reserve_stock::ReserveStock;
}
