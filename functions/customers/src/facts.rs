//! Facts and rejections that the cases of several slices share.

use ringfence::kit::id;

use crate::{CustomerDeactivated, CustomerRegistered, Email, NotActive, WELCOME_POINTS};

/// The customer is registered as Ada with the address `ada@example.com`.
#[must_use]
pub fn registered(customer: &str) -> CustomerRegistered {
    CustomerRegistered {
        customer_id: id(customer),
        name: "Ada".to_owned().into(),
        email: id::<Email>("ada@example.com").into(),
        points: WELCOME_POINTS,
    }
}

/// The customer is deactivated.
#[must_use]
pub fn deactivated(customer: &str) -> CustomerDeactivated {
    CustomerDeactivated { customer_id: id(customer) }
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
