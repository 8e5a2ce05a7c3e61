//! RemoveFromCart: removes a product from a cart.

use crate::{Cart, CartEvent, CartId, Carts, ProductId, Rejection, facts};
use ringfence::prelude::*;

/// Removes all units of a product.
#[derive(Clone, Debug, Command)]
pub struct RemoveFromCart {
    pub cart_id: CartId,
    pub product_id: ProductId,
}

impl Slice for RemoveFromCart {
    const NAME: &'static str = "remove-from-cart";
    type Context = Carts;
    type State = Cart;
    type Writes = CartEvent;
    type Rejection = Rejection;

    fn decide(&self, cart: &Cart, _: &CommandContext) -> Result<Vec<CartEvent>, Rejection> {
        cart.check_open()?;
        match cart.items.contains_key(&self.product_id) {
            true => Ok(vec![CartEvent::ItemRemoved { product_id: self.product_id.clone() }]),
            false => Ok(vec![]),
        }
    }

    fn cases() -> Vec<Case<Self>> {
        let remove = || RemoveFromCart { cart_id: id("cart-1"), product_id: id("lamp") };
        let removed = || CartEvent::ItemRemoved { product_id: id("lamp") };
        let desk = || CartEvent::ItemAdded { product_id: id("desk"), quantity: 1 };
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
}

impl StreamSlice for RemoveFromCart {
    fn stream_id(&self) -> String {
        self.cart_id.to_string()
    }
}
