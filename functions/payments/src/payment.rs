//! The payment of an order: the state of all slices of payments.

use crate::Money;
use ringfence::prelude::*;

/// Decisions about a payment read these events, all in the order's partition. So if a payment and a cancellation meet,
/// one comes first, and the decision about the other sees it.
#[derive(Reads)]
pub enum Consumed {
    OrderCancelled,
    PaymentRequested { amount: Money },
    PaymentReceived,
    PaymentRefunded,
}

/// The payment of an order.
#[derive(Default)]
pub struct Payment {
    pub(crate) requested: Option<Money>,
    pub(crate) received: bool,
    pub(crate) refunded: bool,
    pub(crate) cancelled: bool,
}

impl State for Payment {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        match event {
            Consumed::OrderCancelled => Self { cancelled: true, ..self },
            Consumed::PaymentRequested { amount } => Self { requested: Some(amount), ..self },
            Consumed::PaymentReceived => Self { received: true, ..self },
            Consumed::PaymentRefunded => Self { refunded: true, ..self },
        }
    }
}
