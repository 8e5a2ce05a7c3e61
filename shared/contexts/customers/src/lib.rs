//! Customers and their loyalty points: each customer is one stream of events on the aggregate log.
//!
//! Nothing here crosses customers but a transfer of points, which names both, so a group of events
//! is enough and no decision needs the DCB log.

use ringfence::id_type;
use ringfence_aggregate_log::{EventStore, Recorded};
use serde::{Deserialize, Serialize};

mod change_email;
mod deactivate;
mod email;
mod register;
mod rename;
mod transfer_points;

pub use change_email::ChangeEmail;
pub use deactivate::Deactivate;
pub use email::{EMAIL_BYTES_MAX, Email, EmailError};
pub use register::Register;
pub use rename::Rename;
pub use transfer_points::TransferPoints;

/// The cases of each command.
pub mod cases {
    pub use crate::change_email::cases as change_email;
    pub use crate::deactivate::cases as deactivate;
    pub use crate::register::cases as register;
    pub use crate::rename::cases as rename;
    pub use crate::transfer_points::cases as transfer_points;
}

id_type!(CustomerId, "names a customer");

/// What a new customer begins with.
pub const WELCOME_POINTS: u64 = 100;

/// What happens to a customer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    content = "payload",
    rename_all = "SCREAMING_SNAKE_CASE",
    rename_all_fields = "camelCase"
)]
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

/// The event store of customers.
pub struct Customers;

impl EventStore for Customers {
    const ID: &'static str = "CUSTOMERS";
    type Event = CustomerEvent;
    type Aggregate = Customer;

    fn reduce(customer: Option<Customer>, event: &Recorded<CustomerEvent>) -> Customer {
        let nobody = Customer { name: String::new(), email: None, points: 0, active: true };
        let customer = customer.unwrap_or(nobody);
        match event.event.clone() {
            CustomerEvent::CustomerRegistered { name, email, points } => {
                Customer { name, email: Some(email), points, active: true }
            }
            CustomerEvent::CustomerRenamed { name } => Customer { name, ..customer },
            CustomerEvent::EmailChanged { email } => Customer { email: Some(email), ..customer },
            CustomerEvent::PointsSent { points, .. } => {
                Customer { points: customer.points.saturating_sub(points), ..customer }
            }
            CustomerEvent::PointsReceived { points, .. } => {
                Customer { points: customer.points.saturating_add(points), ..customer }
            }
            CustomerEvent::CustomerDeactivated => Customer { active: false, ..customer },
        }
    }
}

/// Why a command on customers is refused.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    /// There is no such customer.
    #[error("customer {customer_id} does not exist")]
    CustomerNotFound {
        /// The customer.
        customer_id: CustomerId,
    },
    /// The customer exists, and is another.
    #[error("customer {customer_id} is registered already")]
    CustomerExists {
        /// The customer.
        customer_id: CustomerId,
    },
    /// Nothing happens to the customer any more.
    #[error("customer {customer_id} is deactivated")]
    CustomerInactive {
        /// The customer.
        customer_id: CustomerId,
    },
    /// The customer does not have so many.
    #[error("customer {customer_id} has {points} points")]
    TooFewPoints {
        /// The customer.
        customer_id: CustomerId,
        /// What it has.
        points: u64,
    },
    /// Points go from one customer to another.
    #[error("customer {customer_id} can't send points to itself")]
    SameCustomer {
        /// The customer.
        customer_id: CustomerId,
    },
}

/// The customer, if something may still happen to it.
fn active<'c>(id: &CustomerId, customer: Option<&'c Customer>) -> Result<&'c Customer, Rejection> {
    let customer_id = id.clone();
    match customer {
        None => Err(Rejection::CustomerNotFound { customer_id }),
        Some(customer) if !customer.active => Err(Rejection::CustomerInactive { customer_id }),
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
            "type": "EMAIL_CHANGED", "payload": { "email": "ada@example.com" },
        });
        assert_eq!(json, expected);
        let json = serde_json::to_value(CustomerEvent::CustomerDeactivated).expect("JSON");
        assert_eq!(json, serde_json::json!({ "type": "CUSTOMER_DEACTIVATED" }));
    }
}
