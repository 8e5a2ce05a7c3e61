//! CheckOut: a customer orders what is in the cart.
//!
//! The order is placed by the ordering context when it hears of it, under the cart's id. The cart is
//! closed from here on, whatever ordering says.

use ringfence::{Context, kit::id};
use ringfence_carts::{Cart, CartId, CustomerId, Event, Rejection, facts};
use ringfence_document_log::Command;
use ringfence_document_log::kit::{Case, given};
use serde::{Deserialize, Serialize};

/// Makes the cart an order.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckOut {
    /// The cart.
    pub cart_id: CartId,
    /// Who orders.
    pub customer_id: CustomerId,
}

impl Command for CheckOut {
    const NAME: &'static str = "check-out";
    type Decider = Cart;
    type Rejection = Rejection;

    fn stream_id(&self) -> String {
        self.cart_id.to_string()
    }

    fn decide(&self, cart: &Cart, _context: &Context) -> Result<Vec<Event>, Rejection> {
        let Self { cart_id, customer_id } = self.clone();
        if cart.checked_out_by.as_ref() == Some(&customer_id) {
            return Ok(vec![]);
        }
        cart.check_open()?;
        if cart.items.is_empty() {
            return Err(Rejection::CartEmpty);
        }
        Ok(vec![Event::CheckedOut { cart_id, customer_id, items: cart.items.clone() }])
    }
}

/// The rules, as cases.
#[must_use]
pub fn cases() -> Vec<Case<CheckOut>> {
    let check_out = |customer| CheckOut { cart_id: id("cart-1"), customer_id: id(customer) };
    let removed = || Event::ItemRemoved { product_id: id("lamp") };
    vec![
        given([facts::lamps(1), facts::lamps(2)])
            .when(check_out("ada"))
            .then([facts::checked_out(3)]),
        given([]).when(check_out("ada")).then_rejected(Rejection::CartEmpty),
        given([facts::lamps(1), removed()])
            .when(check_out("ada"))
            .then_rejected(Rejection::CartEmpty),
        given([facts::lamps(1), facts::checked_out(1)]).when(check_out("ada")).then_nothing(),
        given([facts::lamps(1), facts::checked_out(1)])
            .when(check_out("bob"))
            .then_rejected(Rejection::CartCheckedOut),
    ]
}

#[test]
fn rules_hold() {
    ringfence_document_log::kit::check_in_memory(&cases());
}
