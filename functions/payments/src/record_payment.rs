//! RecordPayment: records that a customer has paid. The provider of payments says so.
//!
//! A payment that arrived is a fact, so it is not rejected. If the order is cancelled by then, the same decision sends
//! the money back. It does not reserve again: the customer and other contexts know that the order is cancelled, and a
//! second reservation could fail.

use crate::{OrderId, Payment, PaymentReceived, PaymentRefunded, Payments};
use ringfence::prelude::*;
use serde::Serialize;

/// Records that an order is paid.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct RecordPayment {
    #[tag(partition)]
    pub order_id: OrderId,
}

/// What the decision writes.
#[derive(Writes)]
pub enum Written {
    Received(PaymentReceived),
    Refunded(PaymentRefunded),
}

/// Why no payment is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    #[error("no payment of order {order_id} was requested")]
    PaymentNotRequested { order_id: OrderId },
}

impl Slice for RecordPayment {
    const NAME: &'static str = "record-payment";
    const SCOPES: &'static [&'static str] = &["payments/write"];
    type Context = Payments;
    type State = Payment;
    type Writes = Written;
    type Rejection = Rejection;

    fn decide(&self, payment: &Payment, _: &CommandContext) -> Result<Vec<Written>, Rejection> {
        let order_id = self.order_id.clone();
        let Some(amount) = payment.requested.clone() else {
            return Err(Rejection::PaymentNotRequested { order_id });
        };
        if payment.received {
            return Ok(vec![]);
        }
        let refunded = PaymentRefunded { order_id: order_id.clone(), amount: amount.clone() };
        let received = PaymentReceived { order_id, amount };
        Ok(match payment.cancelled {
            true => vec![Written::Received(received), Written::Refunded(refunded)],
            false => vec![Written::Received(received)],
        })
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::{Money, PaymentRequested};
        use ordering::OrderCancelled;

        let amount = || Money::new(2_500, "EUR");
        let requested = |order| PaymentRequested { order_id: id(order), amount: amount() };
        let received = || PaymentReceived { order_id: id("o1"), amount: amount() };
        let refunded = || PaymentRefunded { order_id: id("o1"), amount: amount() };
        let cancelled = || OrderCancelled { order_id: id("o1"), product_ids: vec![id("lamp")] };
        let record = || RecordPayment { order_id: id("o1") };
        let not_requested = || Rejection::PaymentNotRequested { order_id: id("o1") };
        vec![
            given(events![requested("o1")]).when(record()).then([Written::Received(received())]),
            given(events![requested("o1"), received()]).when(record()).then_nothing(),
            // It comes too late.
            given(events![requested("o1"), cancelled()])
                .when(record())
                .then([Written::Received(received()), Written::Refunded(refunded())]),
            given(events![requested("o1"), cancelled(), received(), refunded()])
                .when(record())
                .then_nothing(),
            given([]).when(record()).then_rejected(not_requested()),
            given(events![requested("o2")]).when(record()).then_rejected(not_requested()),
        ]
    }
}
