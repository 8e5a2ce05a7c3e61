//! The shop: products, and the orders for them.

mod events;
pub mod views {
    //! The read models.

    pub mod orders;
}

use ringfence::prelude::*;
use ringfence_stack::{MemberList, Members, Visitor};

pub use events::*;

/// The context.
pub struct Shop;

impl Context for Shop {
    const NAME: &'static str = "shop";
    type Log = Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        ringfence_stack::catalog::<Self>()
    }
}


impl Members for Shop {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.view::<views::orders::Orders>();
    }
}
