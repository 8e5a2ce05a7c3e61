//! The events and the value types.

use std::collections::BTreeMap;

pub use catalog::ProductId;
use ringfence::id_type;
use serde::{Deserialize, Serialize};

id_type!(CartId, "names a cart");
id_type!(CustomerId, "names a customer");

/// The most units of one product in a cart.
pub const QUANTITY_MAX: u32 = 99;
/// The most different products in a cart, so that its snapshot and its order stay small.
pub const PRODUCTS_MAX: usize = 50;

/// The events of a cart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all_fields = "camelCase")]
pub enum CartEvent {
    ItemAdded {
        product_id: ProductId,
        /// Added to the units in the cart.
        quantity: u32,
    },
    QuantityChanged {
        product_id: ProductId,
        quantity: u32,
    },
    ItemRemoved {
        product_id: ProductId,
    },
    /// The cart becomes an order. The event has all that an order needs, so its readers need no other
    /// event.
    CheckedOut {
        cart_id: CartId,
        customer_id: CustomerId,
        /// Units by product, at least one.
        items: BTreeMap<ProductId, u32>,
    },
    /// The state after all events. It is stored as an unfold, never as an event.
    CartSnapshot(Cart),
}

/// A cart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cart {
    /// Units by product.
    pub items: BTreeMap<ProductId, u32>,
    /// `None` until the cart is checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_out_by: Option<CustomerId>,
}

/// Why a cart is not changed.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    #[error("the cart is checked out")]
    CartCheckedOut,
    #[error("the cart is empty")]
    CartEmpty,
    #[error("product {product_id} is not in the cart")]
    NotInCart { product_id: ProductId },
    #[error("{quantity} units of product {product_id}; 1 to {QUANTITY_MAX} are possible")]
    QuantityOutOfRange { product_id: ProductId, quantity: u32 },
    #[error("the cart holds {PRODUCTS_MAX} products at most")]
    TooManyProducts,
}

impl Cart {
    /// Refuses changes to a cart that is checked out.
    ///
    /// # Errors
    /// [`Rejection::CartCheckedOut`].
    pub fn check_open(&self) -> Result<(), Rejection> {
        if self.checked_out_by.is_some() { Err(Rejection::CartCheckedOut) } else { Ok(()) }
    }
}

/// Refuses a quantity outside of 1 to [`QUANTITY_MAX`].
///
/// # Errors
/// [`Rejection::QuantityOutOfRange`].
pub fn check_quantity(product_id: &ProductId, quantity: u32) -> Result<(), Rejection> {
    match quantity {
        1..=QUANTITY_MAX => Ok(()),
        _ => {
            let product_id = product_id.clone();
            Err(Rejection::QuantityOutOfRange { product_id, quantity })
        }
    }
}
