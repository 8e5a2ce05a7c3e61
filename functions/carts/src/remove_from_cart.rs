//! RemoveFromCart: removes a product from a cart.

use crate::{Cart, CartId, Carts, ItemAdded, ItemRemoved, ProductId, Rejection, facts};
use ringfence::prelude::*;

/// Removes all units of a product.
#[derive(Clone, Debug, Command)]
pub struct RemoveFromCart {
    #[tag(partition)]
    pub cart_id: CartId,
    #[tag(skip)]
    pub product_id: ProductId,
}

impl Slice for RemoveFromCart {
    const NAME: &'static str = "remove-from-cart";
    type Context = Carts;
    type State = Cart;
    type Writes = ItemRemoved;
    type Rejection = Rejection;

    fn decide(&self, cart: &Cart, _: &CommandContext) -> Result<Vec<ItemRemoved>, Rejection> {
        cart.check_open()?;
        let Self { cart_id, product_id } = self.clone();
        match cart.items.contains_key(&product_id) {
            true => Ok(vec![ItemRemoved { cart_id, product_id }]),
            false => Ok(vec![]),
        }
    }

    fn cases() -> Vec<Case<Self>> {
        let remove = || RemoveFromCart { cart_id: id("cart-1"), product_id: id("lamp") };
        let desk = ItemAdded { cart_id: id("cart-1"), product_id: id("desk"), quantity: 1 };
        vec![
            given(events![facts::lamps(3)]).when(remove()).then([facts::no_lamps()]),
            given([]).when(remove()).then_nothing(),
            given(events![desk]).when(remove()).then_nothing(),
            given(events![facts::lamps(1), facts::no_lamps()]).when(remove()).then_nothing(),
            given(events![facts::lamps(1), facts::no_lamps(), facts::lamps(1)])
                .when(remove())
                .then([facts::no_lamps()]),
            given(events![facts::lamps(1), facts::checked_out(1)])
                .when(remove())
                .then_rejected(Rejection::CartCheckedOut),
        ]
    }
}
