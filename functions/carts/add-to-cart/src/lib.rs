//! AddToCart: a customer puts units of a product into a cart.
//!
//! A cart begins with its first product; nothing creates it.

use ringfence::{Context, kit::id};
use ringfence_carts::{
    Cart, CartId, Event, PRODUCTS_MAX, ProductId, Rejection, check_quantity, facts,
};
use ringfence_document_log::Command;
use ringfence_document_log::kit::{Case, given};
use serde::{Deserialize, Serialize};

/// Puts units of a product into a cart.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AddToCart {
    /// The cart.
    pub cart_id: CartId,
    /// The product.
    pub product_id: ProductId,
    /// How many more.
    pub quantity: u32,
}

impl Command for AddToCart {
    const NAME: &'static str = "add-to-cart";
    type Decider = Cart;
    type Rejection = Rejection;

    fn stream_id(&self) -> String {
        self.cart_id.to_string()
    }

    fn decide(&self, cart: &Cart, _context: &Context) -> Result<Vec<Event>, Rejection> {
        let Self { product_id, quantity, .. } = self.clone();
        cart.check_open()?;
        let there = cart.items.get(&product_id).copied();
        check_quantity(&product_id, quantity)?;
        check_quantity(&product_id, there.unwrap_or(0).saturating_add(quantity))?;
        if there.is_none() && cart.items.len() >= PRODUCTS_MAX {
            return Err(Rejection::TooManyProducts);
        }
        Ok(vec![Event::ItemAdded { product_id, quantity }])
    }
}

/// The rules, as cases.
#[must_use]
pub fn cases() -> Vec<Case<AddToCart>> {
    let add = |quantity| AddToCart { cart_id: id("cart-1"), product_id: id("lamp"), quantity };
    let out_of_range =
        |quantity| Rejection::QuantityOutOfRange { product_id: id("lamp"), quantity };
    let others = |products| {
        let other = |n| Event::ItemAdded { product_id: id(&format!("product-{n}")), quantity: 1 };
        (0..products).map(other).collect::<Vec<_>>()
    };
    vec![
        given([]).when(add(2)).then([facts::lamps(2)]),
        given([facts::lamps(98)]).when(add(1)).then([facts::lamps(1)]),
        given([facts::lamps(98)]).when(add(2)).then_rejected(out_of_range(100)),
        given([facts::lamps(1)]).when(add(u32::MAX)).then_rejected(out_of_range(u32::MAX)),
        given([]).when(add(0)).then_rejected(out_of_range(0)),
        given(others(PRODUCTS_MAX - 1)).when(add(1)).then([facts::lamps(1)]),
        given(others(PRODUCTS_MAX)).when(add(1)).then_rejected(Rejection::TooManyProducts),
        given([facts::lamps(1)].into_iter().chain(others(PRODUCTS_MAX - 1)))
            .when(add(1))
            .then([facts::lamps(1)]),
        given([facts::lamps(1), facts::checked_out(1)])
            .when(add(1))
            .then_rejected(Rejection::CartCheckedOut),
    ]
}

#[test]
fn rules_hold() {
    ringfence_document_log::kit::check_in_memory(&cases());
}
