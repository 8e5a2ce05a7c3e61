//! RefundPayment: sends the money of a cancelled order back, once.
//!
//! An automation: an order that is cancelled leads to its command.

use crate::{OrderId, Payment, PaymentRefunded, Payments};
use ordering::{OrderCancelled, Ordering};
use ringfence::prelude::*;
use serde::Deserialize;

/// Sends the money of a cancelled order back.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct RefundPayment {
    #[tag(partition)]
    pub order_id: OrderId,
}

impl Slice for RefundPayment {
    const NAME: &'static str = "refund-payment";
    const REACTS_TO: &'static [Cause] = &[Cause::of::<OrderCancelled>(Ordering::NAME)];
    const SCOPES: &'static [&'static str] = &["payments/write"];
    type Context = Payments;
    type State = Payment;
    type Writes = PaymentRefunded;
    type Rejection = Never;

    fn decide(&self, payment: &Payment, _: &CommandContext) -> Result<Vec<PaymentRefunded>, Never> {
        let order_id = self.order_id.clone();
        Ok(match payment {
            Payment {
                requested: Some(amount),
                received: true,
                cancelled: true,
                refunded: false,
            } => {
                vec![PaymentRefunded { order_id, amount: amount.clone() }]
            }
            _ => vec![],
        })
    }

    fn react(event: &Current<'_, TopicEvent>) -> Result<Vec<Self>, serde_json::Error> {
        let Order { order_id } = Order::deserialize(&event.data)?;
        Ok(vec![Self { order_id }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::{Money, PaymentReceived, PaymentRequested};

        let amount = || Money::new(2_500, "EUR");
        let requested = || PaymentRequested { order_id: id("o1"), amount: amount() };
        let received = || PaymentReceived { order_id: id("o1"), amount: amount() };
        let refunded = || PaymentRefunded { order_id: id("o1"), amount: amount() };
        let cancelled = || OrderCancelled { order_id: id("o1"), product_ids: vec![id("lamp")] };
        let refund = || RefundPayment { order_id: id("o1") };
        vec![
            given(events![requested(), received(), cancelled()]).when(refund()).then([refunded()]),
            given(events![requested(), received(), cancelled(), refunded()])
                .when(refund())
                .then_nothing(),
            given(events![requested(), received()]).when(refund()).then_nothing(),
            given(events![requested(), cancelled()]).when(refund()).then_nothing(),
            given(events![cancelled()]).when(refund()).then_nothing(),
        ]
    }
}

/// What this context reads of an order that is cancelled.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    order_id: OrderId,
}
