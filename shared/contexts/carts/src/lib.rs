//! Carts: what a customer is about to order. A decision concerns one cart, so each is a stream of the
//! document log, and its state is written as a snapshot with every append.

use std::collections::BTreeMap;

use ringfence::id_type;
pub use ringfence_catalog::ProductId;
use ringfence_document_log::{Access, Decider};
use serde::{Deserialize, Serialize};

id_type!(CartId, "names a cart");

/// Units of one product in a cart.
pub const QUANTITY_MAX: u32 = 99;
/// Different products in a cart, so that its snapshot and its order stay small.
pub const PRODUCTS_MAX: usize = 50;

/// What happens to a cart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all_fields = "camelCase")]
pub enum Event {
    /// Units of a product are put in.
    ItemAdded {
        /// The product.
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
    ItemRemoved {
        /// The product.
        product_id: ProductId,
    },
    /// The cart becomes an order.
    CheckedOut,
    /// The state behind all events; an unfold, never an event.
    CartSnapshot(Cart),
}

/// A cart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cart {
    /// Units by product.
    pub items: BTreeMap<ProductId, u32>,
    /// Whether it became an order.
    pub checked_out: bool,
}

impl Decider for Cart {
    const CATEGORY: &'static str = "Cart";
    type Event = Event;
    type State = Self;

    fn evolve(mut cart: Self, event: Event) -> Self {
        match event {
            Event::ItemAdded { product_id, quantity } => {
                *cart.items.entry(product_id).or_default() += quantity;
            }
            Event::QuantityChanged { product_id, quantity } => {
                cart.items.insert(product_id, quantity);
            }
            Event::ItemRemoved { product_id } => {
                cart.items.remove(&product_id);
            }
            Event::CheckedOut => cart.checked_out = true,
            Event::CartSnapshot(snapshot) => return snapshot,
        }
        cart
    }
}

/// A cart is read from its newest snapshot.
#[must_use]
pub fn access() -> Access<Cart> {
    Access::Snapshot {
        is_origin: |event| matches!(event, Event::CartSnapshot(_)),
        to_snapshot: |cart| Event::CartSnapshot(cart.clone()),
    }
}

/// Why a cart stays as it is.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    /// It is an order now.
    #[error("the cart is checked out")]
    CartCheckedOut,
    /// There is nothing in it to order.
    #[error("the cart is empty")]
    CartEmpty,
    /// Only what is in the cart has a quantity to change.
    #[error("product {product_id} is not in the cart")]
    NotInCart {
        /// The product.
        product_id: ProductId,
    },
    /// Too few or too many units.
    #[error("{quantity} units of product {product_id}; 1 to {QUANTITY_MAX} are possible")]
    QuantityOutOfRange {
        /// The product.
        product_id: ProductId,
        /// How many there would be.
        quantity: u32,
    },
    /// Too many different products.
    #[error("the cart holds {PRODUCTS_MAX} products at most")]
    TooManyProducts,
}

type Decision = Result<Vec<Event>, Rejection>;

impl Cart {
    /// Puts units of a product in.
    ///
    /// # Errors
    /// The cart is an order, or the quantity is out of range.
    pub fn add(&self, product_id: ProductId, quantity: u32) -> Decision {
        self.open()?;
        let there = self.items.get(&product_id).copied();
        in_range(&product_id, quantity)?;
        in_range(&product_id, there.unwrap_or(0).saturating_add(quantity))?;
        if there.is_none() && self.items.len() >= PRODUCTS_MAX {
            return Err(Rejection::TooManyProducts);
        }
        Ok(vec![Event::ItemAdded { product_id, quantity }])
    }

    /// Sets how many units of a product there are.
    ///
    /// # Errors
    /// The cart is an order, the product is not in it, or the quantity is out of range.
    pub fn change_quantity(&self, product_id: ProductId, quantity: u32) -> Decision {
        self.open()?;
        in_range(&product_id, quantity)?;
        match self.items.get(&product_id) {
            None => Err(Rejection::NotInCart { product_id }),
            Some(there) if *there == quantity => Ok(vec![]),
            Some(_) => Ok(vec![Event::QuantityChanged { product_id, quantity }]),
        }
    }

    /// Takes a product out.
    ///
    /// # Errors
    /// The cart is an order.
    pub fn remove(&self, product_id: ProductId) -> Decision {
        self.open()?;
        match self.items.contains_key(&product_id) {
            true => Ok(vec![Event::ItemRemoved { product_id }]),
            false => Ok(vec![]),
        }
    }

    /// Makes the cart an order.
    ///
    /// # Errors
    /// There is nothing in it.
    pub fn check_out(&self) -> Decision {
        match (self.checked_out, self.items.is_empty()) {
            (true, _) => Ok(vec![]),
            (false, true) => Err(Rejection::CartEmpty),
            (false, false) => Ok(vec![Event::CheckedOut]),
        }
    }

    fn open(&self) -> Result<(), Rejection> {
        if self.checked_out { Err(Rejection::CartCheckedOut) } else { Ok(()) }
    }
}

fn in_range(product_id: &ProductId, quantity: u32) -> Result<(), Rejection> {
    match quantity {
        1..=QUANTITY_MAX => Ok(()),
        _ => {
            let product_id = product_id.clone();
            Err(Rejection::QuantityOutOfRange { product_id, quantity })
        }
    }
}
