//! SubmitOrder: submits an order form, which counts once.
//!
//! The DCB specification's record duplication: the form's token is a boundary, so a second sending is rejected even
//! with another order id.

use crate::{CustomerId, OrderId, OrderSubmitted, Ordering, SubmissionId};
use ringfence::prelude::*;
use serde::Serialize;

/// Submits an order.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct SubmitOrder {
    /// Each sending of the form has a new order id, so no decision reads by it.
    #[tag(skip)]
    pub order_id: OrderId,
    /// Payload only, because no decision reads by it.
    #[tag(skip)]
    pub customer_id: CustomerId,
    #[tag(cross_partition)]
    pub submission_id: SubmissionId,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    OrderSubmitted,
}

/// Whether the form was sent.
#[derive(Default)]
pub struct Form {
    sent: bool,
}

/// Why an order is not submitted.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    #[error("the caller is not the customer {customer_id}")]
    NotTheCustomer { customer_id: CustomerId },
    #[error("re-submission")]
    Resubmission,
}

impl State for Form {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        let Consumed::OrderSubmitted = event;
        Form { sent: true }
    }
}

impl Slice for SubmitOrder {
    const NAME: &'static str = "submit-order";
    const SCOPES: &'static [&'static str] = &["ordering/write"];
    type Context = Ordering;
    type State = Form;
    type Writes = OrderSubmitted;
    type Rejection = Rejection;

    fn decide(
        &self,
        state: &Form,
        context: &CommandContext,
    ) -> Result<Vec<OrderSubmitted>, Rejection> {
        let Self { order_id, customer_id, submission_id } = self.clone();
        if context.is_other_person(&customer_id) {
            return Err(Rejection::NotTheCustomer { customer_id });
        }
        if state.sent {
            return Err(Rejection::Resubmission);
        }
        Ok(vec![OrderSubmitted { order_id, customer_id, submission_id }])
    }

    /// The published cases, and who the caller is.
    fn cases() -> Vec<Case<Self>> {
        let submitted = |order, token| OrderSubmitted {
            order_id: id(order),
            customer_id: id("c1"),
            submission_id: id(token),
        };
        let submit = |order, token| SubmitOrder {
            order_id: id(order),
            customer_id: id("c1"),
            submission_id: id(token),
        };
        let first = || given(events![submitted("o12345", "t11111")]);
        vec![
            first().when(submit("o54321", "t11111")).then_rejected(Rejection::Resubmission),
            first().when(submit("o54321", "t22222")).then([submitted("o54321", "t22222")]),
            given([]).when(submit("o12345", "t11111")).then([submitted("o12345", "t11111")]),
            given([])
                .when(submit("o12345", "t11111"))
                .by("jwt:main:c1")
                .then([submitted("o12345", "t11111")]),
            given([])
                .when(submit("o12345", "t11111"))
                .by("jwt:main:c2")
                .then_rejected(Rejection::NotTheCustomer { customer_id: id("c1") }),
            // The same sending again.
            first().when(submit("o12345", "t11111")).then_rejected(Rejection::Resubmission),
        ]
    }
}
