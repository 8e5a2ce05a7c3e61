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
        list.slice::<offer_product::OfferProduct>()
            .slice::<take_order::TakeOrder>()
            .slice::<ship_order::ShipOrder>()
            .view::<views::orders::Orders>();
    }
}

#[test]
fn the_cases_of_shop_hold() {
    ringfence_stack::check_cases_in_memory::<Shop>();
}
