//! Carts: what a customer is about to order. A decision concerns one cart, so each is a stream of the
//! document log, and its state is written as a snapshot with every append.

pub mod add_to_cart;
mod cart;
pub mod change_quantity;
pub mod check_out;
mod events;
pub mod facts;
pub mod remove_from_cart;

use ringfence_document_log::Documents;

pub use cart::*;
pub use events::*;

ringfence::context! {
    pub Carts, "carts" on Documents<Cart>;
    slice add_to_cart::AddToCart;
    slice change_quantity::ChangeQuantity;
    slice check_out::CheckOut;
    slice remove_from_cart::RemoveFromCart;
}
