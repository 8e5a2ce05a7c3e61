//! SubmitOrder: a form is sent, and only once becomes an order.
//!
//! The DCB specification's record duplication: the form's token is a boundary of its own, so the
//! second sending is refused whatever order id it brings.

use ringfence::prelude::*;
use ringfence_ordering::{OrderId, OrderSubmitted, SubmissionId};
use serde::Serialize;

/// Submits an order.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct SubmitOrder {
    /// The order; its id is made anew with each sending, so no decision asks for it.
    #[tag(skip)]
    pub order_id: OrderId,
    /// The form's token.
    #[tag(cross_partition)]
    pub submission_id: SubmissionId,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    /// The form was sent before.
    OrderSubmitted,
}

/// Whether the form was sent.
#[derive(Default)]
pub struct State {
    sent: bool,
}

/// Why there is no order.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code")]
pub enum Rejection {
    /// The form was sent before.
    #[error("re-submission")]
    Resubmission,
}

impl Slice for SubmitOrder {
    const NAME: &'static str = "submit-order";
    const CONTEXT: &'static str = "ordering";
    type Reads = Consumed;
    type State = State;
    type Writes = OrderSubmitted;
    type Rejection = Rejection;

    fn catalog() -> Result<Catalog, CatalogError> {
        ringfence_ordering::catalog()
    }

    fn evolve(_: State, event: Consumed) -> State {
        let Consumed::OrderSubmitted = event;
        State { sent: true }
    }

    fn decide(
        state: &State,
        command: &Self,
        _: &Context,
    ) -> Result<Vec<OrderSubmitted>, Rejection> {
        let Self { order_id, submission_id } = command.clone();
        if state.sent {
            return Err(Rejection::Resubmission);
        }
        Ok(vec![OrderSubmitted { order_id, submission_id }])
    }
}

/// The rules, as cases: the published ones.
pub fn cases() -> Vec<Case<SubmitOrder>> {
    let submitted = |order, token| OrderSubmitted { order_id: id(order), submission_id: id(token) };
    let submit = |order, token| SubmitOrder { order_id: id(order), submission_id: id(token) };
    let first = || given(events![submitted("o12345", "t11111")]);
    vec![
        first().when(submit("o54321", "t11111")).then_rejected(Rejection::Resubmission),
        first().when(submit("o54321", "t22222")).then([submitted("o54321", "t22222")]),
        given([]).when(submit("o12345", "t11111")).then([submitted("o12345", "t11111")]),
        // The same sending again.
        first().when(submit("o12345", "t11111")).then_rejected(Rejection::Resubmission),
    ]
}

#[test]
fn rules_hold() {
    ringfence::kit::check_in_memory(cases());
}
