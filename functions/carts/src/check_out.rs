//! CheckOut: checks out a cart, which leads to an order.
//!
//! The ordering context reacts to the event and places the order under the cart's id. The cart stays
//! closed even if ordering rejects the order.

use crate::{Cart, CartId, Carts, CheckedOut, CustomerId, Rejection, facts};
use ringfence::prelude::*;

/// Checks out a cart.
#[derive(Clone, Debug, Command)]
pub struct CheckOut {
    #[tag(partition)]
    pub cart_id: CartId,
    #[tag(skip)]
    pub customer_id: CustomerId,
}

impl Slice for CheckOut {
    const NAME: &'static str = "check-out";
    type Context = Carts;
    type State = Cart;
    type Writes = CheckedOut;
    type Rejection = Rejection;

    fn decide(&self, cart: &Cart, context: &CommandContext) -> Result<Vec<CheckedOut>, Rejection> {
        let Self { cart_id, customer_id } = self.clone();
        if context.is_other_person(&customer_id) {
            return Err(Rejection::NotTheCustomer { customer_id });
        }
        if cart.checked_out_by.as_ref() == Some(&customer_id) {
            return Ok(vec![]);
        }
        cart.check_open()?;
        if cart.items.is_empty() {
            return Err(Rejection::CartEmpty);
        }
        Ok(vec![CheckedOut { cart_id, customer_id, items: cart.items.clone() }])
    }

    fn cases() -> Vec<Case<Self>> {
        let check_out = |customer| CheckOut { cart_id: id("cart-1"), customer_id: id(customer) };
        vec![
            given(events![facts::lamps(1), facts::lamps(2)])
                .when(check_out("ada"))
                .then([facts::checked_out(3)]),
            given(events![facts::lamps(1)])
                .when(check_out("ada"))
                .by("jwt:main:ada")
                .then([facts::checked_out(1)]),
            given(events![facts::lamps(1)])
                .when(check_out("ada"))
                .by("jwt:main:eve")
                .then_rejected(Rejection::NotTheCustomer { customer_id: id("ada") }),
            given([]).when(check_out("ada")).then_rejected(Rejection::CartEmpty),
            given(events![facts::lamps(1), facts::no_lamps()])
                .when(check_out("ada"))
                .then_rejected(Rejection::CartEmpty),
            given(events![facts::lamps(1), facts::checked_out(1)])
                .when(check_out("ada"))
                .then_nothing(),
            given(events![facts::lamps(1), facts::checked_out(1)])
                .when(check_out("bob"))
                .then_rejected(Rejection::CartCheckedOut),
        ]
    }
}
