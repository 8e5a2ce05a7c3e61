//! The events and the value types.

use ringfence::{Text, id_type};
use serde::{Deserialize, Serialize};

use crate::Email;

id_type!(CustomerId, "names a customer");

/// The name of a customer, as a command gives it.
pub type CustomerName = Text<200>;

/// The points that a new customer gets.
pub const WELCOME_POINTS: u64 = 100;

/// The events of a customer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "payload", rename_all_fields = "camelCase")]
pub enum CustomerEvent {
    CustomerRegistered {
        name: String,
        email: Email,
        points: u64,
    },
    CustomerRenamed {
        name: String,
    },
    EmailChanged {
        email: Email,
    },
    /// Points went to another customer, whose [`CustomerEvent::PointsReceived`] is in the same
    /// group.
    PointsSent {
        to: CustomerId,
        points: u64,
    },
    PointsReceived {
        from: CustomerId,
        points: u64,
    },
    CustomerDeactivated,
}

/// A customer as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Customer {
    pub name: String,
    pub email: Option<Email>,
    pub points: u64,
    /// False once the customer is deactivated.
    pub active: bool,
}

/// Why a customer can't be changed.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum NotActive {
    #[error("customer {customer_id} does not exist")]
    CustomerNotFound { customer_id: CustomerId },
    #[error("customer {customer_id} is deactivated")]
    CustomerInactive { customer_id: CustomerId },
}

/// The customer, if it exists and is active.
///
/// # Errors
/// The customer does not exist, or is deactivated.
pub fn active<'c>(
    id: &CustomerId,
    customer: &'c Option<Customer>,
) -> Result<&'c Customer, NotActive> {
    let customer_id = id.clone();
    match customer {
        None => Err(NotActive::CustomerNotFound { customer_id }),
        Some(customer) if !customer.active => Err(NotActive::CustomerInactive { customer_id }),
        Some(customer) => Ok(customer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_stored_under_their_names() {
        let email = "ada@example.com".parse::<Email>().expect("an address");
        let event = CustomerEvent::EmailChanged { email };
        let json = serde_json::to_value(event).expect("JSON");
        let expected = serde_json::json!({
            "type": "EmailChanged", "payload": { "email": "ada@example.com" },
        });
        assert_eq!(json, expected);
        let json = serde_json::to_value(CustomerEvent::CustomerDeactivated).expect("JSON");
        assert_eq!(json, serde_json::json!({ "type": "CustomerDeactivated" }));
    }
}
