//! A cart and its rules. Each append stores it beside the events, and a decision reads the newest one.

use std::collections::BTreeMap;

use ringfence::prelude::*;
use ringfence_document_log::{AccessStrategy, Document, Snapshot};
use serde::Serialize;

use crate::{CustomerId, ProductId};

/// The most units of one product in a cart.
pub const QUANTITY_MAX: u32 = 99;
/// The most different products in a cart, so that its snapshot and its order stay small.
pub const PRODUCTS_MAX: usize = 50;

/// A cart.
#[ringfence::value]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cart {
    /// Units by product.
    pub items: BTreeMap<ProductId, u32>,
    /// `None` until the cart is checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_out_by: Option<CustomerId>,
}

/// The events from which a cart is folded.
#[derive(Reads)]
pub enum CartEvent {
    ItemAdded { product_id: ProductId, quantity: u32 },
    QuantityChanged { product_id: ProductId, quantity: u32 },
    ItemRemoved { product_id: ProductId },
    CheckedOut { customer_id: CustomerId },
}

impl State for Cart {
    type Reads = CartEvent;

    fn evolve(mut self, event: CartEvent) -> Self {
        match event {
            CartEvent::ItemAdded { product_id, quantity } => {
                *self.items.entry(product_id).or_default() += quantity;
            }
            CartEvent::QuantityChanged { product_id, quantity } => {
                self.items.insert(product_id, quantity);
            }
            CartEvent::ItemRemoved { product_id } => {
                self.items.remove(&product_id);
            }
            CartEvent::CheckedOut { customer_id } => self.checked_out_by = Some(customer_id),
        }
        self
    }
}

impl Document for Cart {
    const ACCESS: AccessStrategy<Self> = AccessStrategy::Snapshot(Snapshot::named("CartSnapshot"));
}

/// Why a cart is not changed.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    #[error("the cart is checked out")]
    CartCheckedOut,
    #[error("the caller is not the customer {customer_id}")]
    NotTheCustomer { customer_id: CustomerId },
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
    /// Rejects changes to a cart that is checked out.
    ///
    /// # Errors
    /// [`Rejection::CartCheckedOut`].
    pub fn check_open(&self) -> Result<(), Rejection> {
        if self.checked_out_by.is_some() { Err(Rejection::CartCheckedOut) } else { Ok(()) }
    }
}

/// Rejects a quantity outside of 1 to [`QUANTITY_MAX`].
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
