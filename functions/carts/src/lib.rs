//! Carts: what a customer is about to order. A decision concerns one cart, so each is a stream of the
//! document log, and its state is written as a snapshot with every append.

pub mod add_to_cart;
pub mod change_quantity;
pub mod check_out;
mod events;
pub mod facts;
pub mod remove_from_cart;

use ringfence::prelude::*;
use ringfence_document_log::{Access, DocumentContext, Documents};
use ringfence_stack::{List, Members, Visitor};

pub use events::*;

pub struct Carts;

impl Context for Carts {
    const NAME: &'static str = "carts";
    type Log = Documents;
    type Event = CartEvent;
}

impl StreamContext for Carts {
    type State = Cart;

    fn evolve(mut cart: Cart, event: CartEvent) -> Cart {
        match event {
            CartEvent::ItemAdded { product_id, quantity } => {
                *cart.items.entry(product_id).or_default() += quantity;
            }
            CartEvent::QuantityChanged { product_id, quantity } => {
                cart.items.insert(product_id, quantity);
            }
            CartEvent::ItemRemoved { product_id } => {
                cart.items.remove(&product_id);
            }
            CartEvent::CheckedOut { customer_id, .. } => cart.checked_out_by = Some(customer_id),
            CartEvent::CartSnapshot(snapshot) => return snapshot,
        }
        cart
    }
}

impl DocumentContext for Carts {
    /// A cart is read from its newest snapshot.
    fn access() -> Access<Self> {
        Access::Snapshot {
            is_origin: |event| matches!(event, CartEvent::CartSnapshot(_)),
            to_snapshot: |cart| CartEvent::CartSnapshot(cart.clone()),
        }
    }
}

impl Members for Carts {
    fn list(list: &mut List<impl Visitor>) {
        list.slice::<add_to_cart::AddToCart>()
            .slice::<change_quantity::ChangeQuantity>()
            .slice::<check_out::CheckOut>()
            .slice::<remove_from_cart::RemoveFromCart>();
    }
}
