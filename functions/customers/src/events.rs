//! The events and the value types.

use ringfence::{Text, id_type};
use serde::{Deserialize, Serialize};

use crate::Email;

id_type!(CustomerId, "names a customer");

/// The name of a customer, as a command gives it.
pub type CustomerName = Text<200>;

/// What a new customer begins with.
pub const WELCOME_POINTS: u64 = 100;

/// What happens to a customer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "payload", rename_all_fields = "camelCase")]
pub enum CustomerEvent {
    /// The first event.
    CustomerRegistered {
        /// What the customer is called.
        name: String,
        /// Where the customer is reached.
        email: Email,
        /// The welcome.
        points: u64,
    },
    /// Another name.
    CustomerRenamed {
        /// From now on.
        name: String,
    },
    /// Another address.
    EmailChanged {
        /// From now on.
        email: Email,
    },
    /// Points went to another customer, whose [`CustomerEvent::PointsReceived`] is in the same
    /// group.
    PointsSent {
        /// Who has them now.
        to: CustomerId,
        /// How many.
        points: u64,
    },
    /// Points came from another customer.
    PointsReceived {
        /// Who had them.
        from: CustomerId,
        /// How many.
        points: u64,
    },
    /// The last event.
    CustomerDeactivated,
}

/// A customer as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Customer {
    /// What the customer is called.
    pub name: String,
    /// Where the customer is reached.
    pub email: Option<Email>,
    /// Loyalty points.
    pub points: u64,
    /// Whether anything may still happen to it.
    pub active: bool,
}

/// Why nothing can happen to a customer.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum NotActive {
    /// There is no such customer.
    #[error("customer {customer_id} does not exist")]
    CustomerNotFound { customer_id: CustomerId },
    /// Nothing happens to the customer any more.
    #[error("customer {customer_id} is deactivated")]
    CustomerInactive { customer_id: CustomerId },
}

/// The customer, if something may still happen to it.
///
/// # Errors
/// There is none, or it is deactivated.
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
