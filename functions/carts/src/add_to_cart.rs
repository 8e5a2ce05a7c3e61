//! AddToCart: puts units of a product into a cart.
//!
//! A cart begins with its first product, so there is no command that creates one.

use crate::{
    Cart, CartEvent, CartId, Carts, PRODUCTS_MAX, ProductId, Rejection, check_quantity, facts,
};
use ringfence::prelude::*;

/// Puts units of a product into a cart.
#[derive(Clone, Debug, Command)]
pub struct AddToCart {
    pub cart_id: CartId,
    pub product_id: ProductId,
    /// Added to the units in the cart.
    pub quantity: u32,
}

impl Slice for AddToCart {
    const NAME: &'static str = "add-to-cart";
    type Context = Carts;
    type State = Cart;
    type Writes = CartEvent;
    type Rejection = Rejection;

    fn decide(&self, cart: &Cart, _: &CommandContext) -> Result<Vec<CartEvent>, Rejection> {
        let Self { product_id, quantity, .. } = self.clone();
        cart.check_open()?;
        let there = cart.items.get(&product_id).copied();
        check_quantity(&product_id, quantity)?;
        check_quantity(&product_id, there.unwrap_or(0).saturating_add(quantity))?;
        if there.is_none() && cart.items.len() >= PRODUCTS_MAX {
            return Err(Rejection::TooManyProducts);
        }
        Ok(vec![CartEvent::ItemAdded { product_id, quantity }])
    }

    fn cases() -> Vec<Case<Self>> {
        let add = |quantity| AddToCart { cart_id: id("cart-1"), product_id: id("lamp"), quantity };
        let out_of_range =
            |quantity| Rejection::QuantityOutOfRange { product_id: id("lamp"), quantity };
        let others = |products| {
            let other =
                |n| CartEvent::ItemAdded { product_id: id(&format!("product-{n}")), quantity: 1 };
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
}

impl StreamSlice for AddToCart {
    fn stream_id(&self) -> String {
        self.cart_id.to_string()
    }
}
