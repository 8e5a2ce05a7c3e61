//! AddToCart: puts units of a product into a cart.
//!
//! A cart begins with its first product, so there is no command that creates one.

use crate::{
    Cart, CartId, Carts, ItemAdded, PRODUCTS_MAX, ProductId, Rejection, check_quantity, facts,
};
use ringfence::prelude::*;

/// Puts units of a product into a cart.
#[derive(Clone, Debug, Command)]
pub struct AddToCart {
    #[tag(partition)]
    pub cart_id: CartId,
    #[tag(skip)]
    pub product_id: ProductId,
    /// Added to the units in the cart.
    pub quantity: u32,
}

impl Slice for AddToCart {
    const NAME: &'static str = "add-to-cart";
    type Context = Carts;
    type State = Cart;
    type Writes = ItemAdded;
    type Rejection = Rejection;

    fn decide(&self, cart: &Cart, _: &CommandContext) -> Result<Vec<ItemAdded>, Rejection> {
        let Self { cart_id, product_id, quantity } = self.clone();
        cart.check_open()?;
        let there = cart.items.get(&product_id).copied();
        check_quantity(&product_id, quantity)?;
        check_quantity(&product_id, there.unwrap_or(0).saturating_add(quantity))?;
        if there.is_none() && cart.items.len() >= PRODUCTS_MAX {
            return Err(Rejection::TooManyProducts);
        }
        Ok(vec![ItemAdded { cart_id, product_id, quantity }])
    }

    fn cases() -> Vec<Case<Self>> {
        let add = |quantity| AddToCart { cart_id: id("cart-1"), product_id: id("lamp"), quantity };
        let out_of_range =
            |quantity| Rejection::QuantityOutOfRange { product_id: id("lamp"), quantity };
        let other = |n| {
            let product_id = id(&format!("product-{n}"));
            NewEvent::from(ItemAdded { cart_id: id("cart-1"), product_id, quantity: 1 })
        };
        let others = |products| (0..products).map(other).collect::<Vec<_>>();
        vec![
            given([]).when(add(2)).then([facts::lamps(2)]),
            given(events![facts::lamps(98)]).when(add(1)).then([facts::lamps(1)]),
            given(events![facts::lamps(98)]).when(add(2)).then_rejected(out_of_range(100)),
            given(events![facts::lamps(1)])
                .when(add(u32::MAX))
                .then_rejected(out_of_range(u32::MAX)),
            given([]).when(add(0)).then_rejected(out_of_range(0)),
            given(others(PRODUCTS_MAX - 1)).when(add(1)).then([facts::lamps(1)]),
            given(others(PRODUCTS_MAX)).when(add(1)).then_rejected(Rejection::TooManyProducts),
            given(events![facts::lamps(1)])
                .and(others(PRODUCTS_MAX - 1))
                .when(add(1))
                .then([facts::lamps(1)]),
            given(events![facts::lamps(1), facts::checked_out(1)])
                .when(add(1))
                .then_rejected(Rejection::CartCheckedOut),
        ]
    }
}
