//! Carts: what a customer is about to order. A decision concerns one cart, so each is a stream of the
//! document log, and its state is written as a snapshot with every append.

pub mod add_to_cart;
mod cart;
pub mod change_quantity;
pub mod check_out;
mod events;
pub mod facts;
pub mod remove_from_cart;

use ringfence::prelude::*;
use ringfence_document_log::Documents;
use ringfence_stack::{MemberList, Members, Visitor};

pub use cart::*;
pub use events::*;

pub struct Carts;

impl Context for Carts {
    const NAME: &'static str = "carts";
    type Log = Documents<Cart>;

    fn catalog() -> Result<Catalog, CatalogError> {
        ringfence_stack::catalog::<Self>()
    }
}

impl Members for Carts {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.slice::<add_to_cart::AddToCart>()
            .slice::<change_quantity::ChangeQuantity>()
            .slice::<check_out::CheckOut>()
            .slice::<remove_from_cart::RemoveFromCart>();
    }
}

#[test]
fn the_cases_of_carts_hold() {
    ringfence_stack::check_cases_in_memory::<Carts>();
}
