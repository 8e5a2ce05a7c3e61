//! The stock of products: which units are reserved, for which order, and for how long.
//!
//! One of the three contexts of the process in `docs/processes.md`. It reads what the other two have recorded of an
//! order, and they react to its events.

mod events;
pub mod receive_stock;
pub mod release_stock;
pub mod reserve_stock;

use ordering::Ordering;
use payments::Payments;
use ringfence::prelude::*;
use ringfence_stack::{MemberList, Members, Visitor};

pub use events::*;

pub struct Inventory;

impl Context for Inventory {
    const NAME: &'static str = "inventory";
    type Log = Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        ringfence_stack::catalog::<Self>()
    }
}

impl Members for Inventory {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.reads::<Ordering>()
            .reads::<Payments>()
            .slice::<receive_stock::ReceiveStock>()
            .slice::<release_stock::ReleaseStock>()
            .due::<release_stock::ReleaseStock>()
            .slice::<reserve_stock::ReserveStock>();
    }
}

#[test]
fn the_cases_of_inventory_hold() {
    ringfence_stack::check_cases_in_memory::<Inventory>();
}
