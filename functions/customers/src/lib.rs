//! Customers and their loyalty points: each customer is one stream of events on the aggregate log.
//!
//! Only a transfer of points concerns two customers. It names both, so both are read and written in one append, and no
//! decision needs the DCB log.

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

use ringfence_aggregate_log::Aggregates;

pub use email::{EMAIL_BYTES_MAX, Email, EmailError};
pub use events::*;

ringfence::context! {
    pub Customers, "customers" on Aggregates;
    slice change_customer_email::ChangeCustomerEmail;
    slice deactivate_customer::DeactivateCustomer;
    slice register_customer::RegisterCustomer;
    slice rename_customer::RenameCustomer;
    slice transfer_points::TransferPoints;
    view views::customers::Customers;
}
