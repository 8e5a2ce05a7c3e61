//! Customers and their loyalty points: each customer is one stream of events on the aggregate log.
//!
//! Only a transfer of points concerns two customers. It names both, so one group of events is enough
//! and no decision needs the DCB log.

pub mod change_customer_email;
pub mod deactivate_customer;
mod email;
mod events;
pub mod facts;
pub mod register_customer;
pub mod rename_customer;
pub mod transfer_points;
pub mod views {
    //! The read models.

    pub mod customers;
}

use ringfence::prelude::*;
use ringfence_aggregate_log::{AggregateContext, Aggregates};
use ringfence_stack::{List, Members, Visitor};

pub use email::{EMAIL_BYTES_MAX, Email, EmailError};
pub use events::*;

pub struct Customers;

impl Context for Customers {
    const NAME: &'static str = "customers";
    type Log = Aggregates;
    type Event = CustomerEvent;
}

impl AggregateContext for Customers {}

impl StreamContext for Customers {
    /// `None` before the first event.
    type State = Option<Customer>;

    fn evolve(customer: Option<Customer>, event: CustomerEvent) -> Option<Customer> {
        let nobody = Customer { name: String::new(), email: None, points: 0, active: true };
        let customer = customer.unwrap_or(nobody);
        Some(match event {
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
        })
    }
}

impl Members for Customers {
    fn list(list: &mut List<impl Visitor>) {
        list.slice::<change_customer_email::ChangeCustomerEmail>()
            .slice::<deactivate_customer::DeactivateCustomer>()
            .slice::<register_customer::RegisterCustomer>()
            .slice::<rename_customer::RenameCustomer>()
            .slice::<transfer_points::TransferPoints>()
            .view::<views::customers::Customers>();
    }
}
