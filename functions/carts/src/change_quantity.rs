//! ChangeQuantity: changes how many units of a product are in a cart.

use crate::{Cart, CartId, Carts, ProductId, QuantityChanged, Rejection, check_quantity, facts};
use ringfence::prelude::*;

/// Sets how many units of a product are in a cart.
#[derive(Clone, Debug, Command)]
pub struct ChangeQuantity {
    #[tag(partition)]
    pub cart_id: CartId,
    #[tag(skip)]
    pub product_id: ProductId,
    /// At least 1; `remove-from-cart` removes a product.
    pub quantity: u32,
}

impl Slice for ChangeQuantity {
    const NAME: &'static str = "change-quantity";
    type Context = Carts;
    type State = Cart;
    type Writes = QuantityChanged;
    type Rejection = Rejection;

    fn decide(&self, cart: &Cart, _: &CommandContext) -> Result<Vec<QuantityChanged>, Rejection> {
        let Self { cart_id, product_id, quantity } = self.clone();
        cart.check_open()?;
        check_quantity(&product_id, quantity)?;
        match cart.items.get(&product_id) {
            None => Err(Rejection::NotInCart { product_id }),
            Some(there) if *there == quantity => Ok(vec![]),
            Some(_) => Ok(vec![QuantityChanged { cart_id, product_id, quantity }]),
        }
    }

    fn cases() -> Vec<Case<Self>> {
        let change =
            |quantity| ChangeQuantity { cart_id: id("cart-1"), product_id: id("lamp"), quantity };
        let changed =
            |quantity| QuantityChanged { cart_id: id("cart-1"), product_id: id("lamp"), quantity };
        let out_of_range =
            |quantity| Rejection::QuantityOutOfRange { product_id: id("lamp"), quantity };
        let not_in_cart = || Rejection::NotInCart { product_id: id("lamp") };
        vec![
            given(events![facts::lamps(1)]).when(change(5)).then([changed(5)]),
            given(events![facts::lamps(5)]).when(change(5)).then_nothing(),
            given(events![facts::lamps(1), changed(5)]).when(change(5)).then_nothing(),
            given(events![facts::lamps(5)]).when(change(100)).then_rejected(out_of_range(100)),
            given(events![facts::lamps(5)]).when(change(0)).then_rejected(out_of_range(0)),
            given([]).when(change(5)).then_rejected(not_in_cart()),
            given(events![facts::lamps(5), facts::no_lamps()])
                .when(change(5))
                .then_rejected(not_in_cart()),
            given(events![facts::lamps(1), facts::checked_out(1)])
                .when(change(2))
                .then_rejected(Rejection::CartCheckedOut),
        ]
    }
}
