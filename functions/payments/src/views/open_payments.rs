//! open-payments: the orders that are not paid yet, with their amounts. One row for each order, which goes when the
//! payment comes or the order is cancelled.

use crate::{Money, OrderId};
use ringfence::view::View;
use ringfence::{prelude::*, rfc3339};

#[derive(Debug)]
pub struct OpenPayments;

/// What the view reads.
#[derive(Reads)]
pub enum Consumed {
    PaymentRequested {
        order_id: OrderId,
        amount: Money,
        #[time]
        at_ms: u64,
    },
    PaymentReceived {
        order_id: OrderId,
    },
    OrderCancelled {
        order_id: OrderId,
    },
}

/// A payment that has not come.
#[ringfence::value]
#[derive(Debug)]
pub struct OpenPayment {
    pub amount: Money,
    /// RFC 3339, UTC, milliseconds.
    pub requested_at: String,
}

impl View for OpenPayments {
    const NAME: &'static str = "open-payments";
    const SCOPES: &'static [&'static str] = &["payments/read"];
    type Reads = Consumed;
    type Row = OpenPayment;

    fn rows(event: &Consumed) -> Vec<String> {
        match event {
            Consumed::PaymentRequested { order_id, .. }
            | Consumed::PaymentReceived { order_id }
            | Consumed::OrderCancelled { order_id } => vec![order_id.to_string()],
        }
    }

    fn evolve(_: Option<OpenPayment>, _id: &str, event: &Consumed) -> Option<OpenPayment> {
        match event {
            Consumed::PaymentRequested { amount, at_ms, .. } => {
                Some(OpenPayment { amount: amount.clone(), requested_at: rfc3339(*at_ms) })
            }
            Consumed::PaymentReceived { .. } | Consumed::OrderCancelled { .. } => None,
        }
    }
}

#[test]
fn a_payment_is_open_until_it_comes_or_the_order_is_cancelled() {
    use crate::{PaymentReceived, PaymentRequested};
    use ordering::OrderCancelled;
    use ringfence::view::kit::given;

    let amount = || Money::new(2_500, "EUR");
    let requested = |order| PaymentRequested { order_id: id(order), amount: amount() };
    given(events![
        requested("o1"),
        requested("o2"),
        requested("o3"),
        PaymentReceived { order_id: id("o1"), amount: amount() },
        OrderCancelled { order_id: id("o2"), product_ids: vec![] },
    ])
    .then::<OpenPayments>([(
        "o3",
        OpenPayment { amount: amount(), requested_at: "2024-06-23T00:00:00.000Z".to_owned() },
    )]);
}
