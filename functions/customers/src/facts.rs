//! What cases of this context state again and again.

use ringfence::kit::id;

use crate::{CustomerEvent, NotActive, WELCOME_POINTS};

/// The customer is there, as Ada with the address `ada@example.com`.
#[must_use]
pub fn registered() -> CustomerEvent {
    let (name, email) = ("Ada".to_owned(), id("ada@example.com"));
    CustomerEvent::CustomerRegistered { name, email, points: WELCOME_POINTS }
}

/// There is no such customer.
#[must_use]
pub fn missing(customer: &str) -> NotActive {
    NotActive::CustomerNotFound { customer_id: id(customer) }
}

/// The customer is deactivated.
#[must_use]
pub fn inactive(customer: &str) -> NotActive {
    NotActive::CustomerInactive { customer_id: id(customer) }
}
