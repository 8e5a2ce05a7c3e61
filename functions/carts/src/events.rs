//! The events and the value types.

use std::collections::BTreeMap;

pub use catalog::ProductId;
use ringfence::id_type;
use serde::{Deserialize, Serialize};

id_type!(CartId, "names a cart");
id_type!(CustomerId, "names a customer");

/// Units of one product in a cart.
pub const QUANTITY_MAX: u32 = 99;
/// Different products in a cart, so that its snapshot and its order stay small.
pub const PRODUCTS_MAX: usize = 50;

/// What happens to a cart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all_fields = "camelCase")]
pub enum CartEvent {
    /// Units of a product are put in.
    ItemAdded {
        product_id: ProductId,
        /// How many more.
        quantity: u32,
    },
    /// There are to be so many units of a product.
    QuantityChanged {
        /// The product, which is in the cart.
        product_id: ProductId,
        /// How many.
        quantity: u32,
    },
    /// A product is taken out.
    ItemRemoved { product_id: ProductId },
    /// The cart is to become an order. It says all that an order needs, so that who hears of it reads
    /// nothing else.
    CheckedOut {
        cart_id: CartId,
        /// Who orders.
        customer_id: CustomerId,
        /// Units by product, at least one.
        items: BTreeMap<ProductId, u32>,
    },
    /// The state behind all events; an unfold, never an event.
    CartSnapshot(Cart),
}

/// A cart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cart {
    /// Units by product.
    pub items: BTreeMap<ProductId, u32>,
    /// Who has checked it out, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_out_by: Option<CustomerId>,
}

/// Why a cart stays as it is.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    /// It is on its way to an order.
    #[error("the cart is checked out")]
    CartCheckedOut,
    /// There is nothing in it to order.
    #[error("the cart is empty")]
    CartEmpty,
    /// Only what is in the cart has a quantity to change.
    #[error("product {product_id} is not in the cart")]
    NotInCart { product_id: ProductId },
    /// Too few or too many units.
    #[error("{quantity} units of product {product_id}; 1 to {QUANTITY_MAX} are possible")]
    QuantityOutOfRange {
        product_id: ProductId,
        /// How many there would be.
        quantity: u32,
    },
    /// Too many different products.
    #[error("the cart holds {PRODUCTS_MAX} products at most")]
    TooManyProducts,
}

impl Cart {
    /// Refuses what comes after the check-out.
    ///
    /// # Errors
    /// [`Rejection::CartCheckedOut`].
    pub fn check_open(&self) -> Result<(), Rejection> {
        if self.checked_out_by.is_some() { Err(Rejection::CartCheckedOut) } else { Ok(()) }
    }
}

/// Refuses a cart that would have so many units of the product.
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
