//! Facts and rejections that the cases of several slices share.

use ringfence::kit::id;

use crate::{CustomerEvent, NotActive, WELCOME_POINTS};

/// A customer is registered as Ada with the address `ada@example.com`.
#[must_use]
pub fn registered() -> CustomerEvent {
    let (name, email) = ("Ada".to_owned(), id("ada@example.com"));
    CustomerEvent::CustomerRegistered { name, email, points: WELCOME_POINTS }
}

/// The rejection for a customer that does not exist.
#[must_use]
pub fn missing(customer: &str) -> NotActive {
    NotActive::CustomerNotFound { customer_id: id(customer) }
}

/// The rejection for a customer that is deactivated.
#[must_use]
pub fn inactive(customer: &str) -> NotActive {
    NotActive::CustomerInactive { customer_id: id(customer) }
}
