//! Payments: what customers are asked for, what they have paid, and what they got back.
//!
//! One of the three contexts of the process in `docs/processes.md`. The provider of payments acts on these events, and
//! its messages are commands here.

mod events;
mod payment;
pub mod record_payment;
pub mod refund_payment;
pub mod request_payment;
pub mod views {
    //! The read models.

    pub mod open_payments;
}

use ordering::Ordering;
use ringfence::prelude::*;

pub use events::*;
pub use payment::*;

ringfence::context! {
    pub Payments, "payments" on Dcb;
    reads Ordering;
    slice record_payment::RecordPayment;
    slice refund_payment::RefundPayment;
    slice request_payment::RequestPayment;
    view views::open_payments::OpenPayments;
}
