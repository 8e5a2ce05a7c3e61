//! RemoveFromCart: a customer takes a product out of a cart.

use ringfence::{Context, kit::id};
use ringfence_carts::{Cart, CartId, Event, ProductId, Rejection, facts};
use ringfence_document_log::Command;
use ringfence_document_log::kit::{Case, given};
use serde::{Deserialize, Serialize};

/// Takes a product out, however many units there are.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RemoveFromCart {
    /// The cart.
    pub cart_id: CartId,
    /// The product.
    pub product_id: ProductId,
}

impl Command for RemoveFromCart {
    const NAME: &'static str = "remove-from-cart";
    type Decider = Cart;
    type Rejection = Rejection;

    fn stream_id(&self) -> String {
        self.cart_id.to_string()
    }

    fn decide(&self, cart: &Cart, _context: &Context) -> Result<Vec<Event>, Rejection> {
        cart.check_open()?;
        match cart.items.contains_key(&self.product_id) {
            true => Ok(vec![Event::ItemRemoved { product_id: self.product_id.clone() }]),
            false => Ok(vec![]),
        }
    }
}

/// The rules, as cases.
#[must_use]
pub fn cases() -> Vec<Case<RemoveFromCart>> {
    let remove = || RemoveFromCart { cart_id: id("cart-1"), product_id: id("lamp") };
    let removed = || Event::ItemRemoved { product_id: id("lamp") };
    let desk = || Event::ItemAdded { product_id: id("desk"), quantity: 1 };
    vec![
        given([facts::lamps(3)]).when(remove()).then([removed()]),
        given([]).when(remove()).then_nothing(),
        given([desk()]).when(remove()).then_nothing(),
        given([facts::lamps(1), removed()]).when(remove()).then_nothing(),
        given([facts::lamps(1), removed(), facts::lamps(1)]).when(remove()).then([removed()]),
        given([facts::lamps(1), facts::checked_out(1)])
            .when(remove())
            .then_rejected(Rejection::CartCheckedOut),
    ]
}

#[test]
fn rules_hold() {
    ringfence_document_log::kit::check_in_memory(&cases());
}
