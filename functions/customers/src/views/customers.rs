//! customers: who is registered, how they are reached, and their points. One row for each customer,
//! from the streams of the aggregate log.

use crate::{CustomerId, Email};
use ringfence::prelude::*;
use ringfence_views::View;
use serde::{Deserialize, Serialize};

#[derive(Debug)]
pub struct Customers;

/// What the view reads.
#[derive(Reads)]
pub enum Consumed {
    CustomerRegistered {
        #[stream]
        customer_id: CustomerId,
        name: String,
        email: Email,
        points: u64,
    },
    CustomerRenamed {
        #[stream]
        customer_id: CustomerId,
        name: String,
    },
    EmailChanged {
        #[stream]
        customer_id: CustomerId,
        email: Email,
    },
    PointsSent {
        #[stream]
        customer_id: CustomerId,
        points: u64,
    },
    PointsReceived {
        #[stream]
        customer_id: CustomerId,
        points: u64,
    },
    CustomerDeactivated {
        #[stream]
        customer_id: CustomerId,
    },
}

/// A customer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Customer {
    pub name: String,
    pub email: Email,
    pub points: u64,
    /// False once the customer is deactivated.
    pub active: bool,
}

impl View for Customers {
    const NAME: &'static str = "customers";
    const STREAMS: &'static [&'static str] = &[crate::Customers::NAME];
    type Reads = Consumed;
    type Row = Customer;

    fn rows(event: &Consumed) -> Vec<String> {
        match event {
            Consumed::CustomerRegistered { customer_id, .. }
            | Consumed::CustomerRenamed { customer_id, .. }
            | Consumed::EmailChanged { customer_id, .. }
            | Consumed::PointsSent { customer_id, .. }
            | Consumed::PointsReceived { customer_id, .. }
            | Consumed::CustomerDeactivated { customer_id } => vec![customer_id.to_string()],
        }
    }

    fn evolve(row: Option<Customer>, _id: &str, event: &Consumed) -> Option<Customer> {
        if let Consumed::CustomerRegistered { name, email, points, .. } = event {
            let (name, email, points) = (name.clone(), email.clone(), *points);
            return Some(Customer { name, email, points, active: true });
        }
        let row = row?;
        let points = row.points;
        Some(match event {
            Consumed::CustomerRegistered { .. } => row,
            Consumed::CustomerRenamed { name, .. } => Customer { name: name.clone(), ..row },
            Consumed::EmailChanged { email, .. } => Customer { email: email.clone(), ..row },
            Consumed::PointsSent { points: sent, .. } => {
                Customer { points: points.saturating_sub(*sent), ..row }
            }
            Consumed::PointsReceived { points: received, .. } => {
                Customer { points: points.saturating_add(*received), ..row }
            }
            Consumed::CustomerDeactivated { .. } => Customer { active: false, ..row },
        })
    }
}

#[test]
fn a_row_shows_all_changes_of_a_customer() {
    use crate::{CustomerEvent, WELCOME_POINTS};
    use ringfence_views::kit::given;

    let registered = |name: &str| CustomerEvent::CustomerRegistered {
        name: name.to_owned(),
        email: id("ada@example.com"),
        points: WELCOME_POINTS,
    };
    let customer = |name: &str, email, points, active| Customer {
        name: name.to_owned(),
        email: id(email),
        points,
        active,
    };
    given([])
        .of_aggregate::<crate::Customers>("ada", [registered("Ada")])
        .of_aggregate::<crate::Customers>("bob", [registered("Bob")])
        .of_aggregate::<crate::Customers>(
            "ada",
            [
                CustomerEvent::PointsSent { to: id("bob"), points: 30 },
                CustomerEvent::CustomerRenamed { name: "Ada L.".to_owned() },
                CustomerEvent::EmailChanged { email: id("l@example.com") },
            ],
        )
        .of_aggregate::<crate::Customers>(
            "bob",
            [CustomerEvent::PointsReceived { from: id("ada"), points: 30 }],
        )
        .of_aggregate::<crate::Customers>("bob", [CustomerEvent::CustomerDeactivated])
        .then::<Customers>([
            ("ada", customer("Ada L.", "l@example.com", 70, true)),
            ("bob", customer("Bob", "ada@example.com", 130, false)),
        ]);
}

#[test]
fn events_of_the_same_type_in_other_streams_are_ignored() {
    use crate::CustomerEvent;
    use ringfence_aggregate_log::{AggregateContext, Aggregates};
    use ringfence_views::kit::given;

    /// Another context, with event types of the same names.
    struct Others;

    impl Context for Others {
        const NAME: &'static str = "others";
        type Log = Aggregates;
        type Event = CustomerEvent;
    }

    impl AggregateContext for Others {}

    impl StreamContext for Others {
        type State = ();

        fn evolve((): (), _: CustomerEvent) {}
    }

    let renamed = CustomerEvent::CustomerRenamed { name: "Eve".to_owned() };
    let event = CustomerEvent::CustomerRegistered {
        name: "Eve".to_owned(),
        email: id("eve@example.com"),
        points: 0,
    };
    given([]).of_aggregate::<Others>("eve", [event, renamed]).then::<Customers>([]);
}
