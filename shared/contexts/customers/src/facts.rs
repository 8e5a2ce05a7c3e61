//! What cases of this context state again and again.

use ringfence::kit::id;
use ringfence_aggregate_log::kit::{Fact, fact};

use crate::{CustomerEvent, Customers, NotActive, WELCOME_POINTS};

/// The customer is there, as Ada with the address `ada@example.com`.
#[must_use]
pub fn registered(customer: &str) -> Fact {
    let (name, email) = ("Ada".to_owned(), id("ada@example.com"));
    happened(customer, CustomerEvent::CustomerRegistered { name, email, points: WELCOME_POINTS })
}

/// Nothing happens to the customer any more.
#[must_use]
pub fn deactivated(customer: &str) -> Fact {
    happened(customer, CustomerEvent::CustomerDeactivated)
}

/// This happened to the customer.
#[must_use]
pub fn happened(customer: &str, event: CustomerEvent) -> Fact {
    fact::<Customers>(customer, event)
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
