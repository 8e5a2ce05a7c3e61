//! customers: who is registered, how they are reached, and their points. One row for each customer,
//! from the streams of the aggregate log.

use crate::{CustomerId, Email};
use ringfence::view::{RowRule, View};
use ringfence::{Sealed, prelude::*};

#[derive(Debug)]
pub struct Customers;

/// What the view reads.
#[derive(Reads)]
pub enum Consumed {
    CustomerRegistered {
        #[stream]
        customer_id: CustomerId,
        name: Sealed<String>,
        email: Sealed<Email>,
        points: u64,
    },
    CustomerRenamed {
        #[stream]
        customer_id: CustomerId,
        name: Sealed<String>,
    },
    EmailChanged {
        #[stream]
        customer_id: CustomerId,
        email: Sealed<Email>,
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
#[ringfence::value]
#[derive(Debug)]
pub struct Customer {
    pub name: Sealed<String>,
    pub email: Sealed<Email>,
    pub points: u64,
    /// False once the customer is deactivated.
    pub active: bool,
}

impl View for Customers {
    const NAME: &'static str = "customers";
    /// A person sees its own row. Programs and those who sign with IAM see all.
    const VISIBLE: Option<RowRule<Customer>> = Some(|customer, _, principal| {
        principal.kind != PrincipalKind::Jwt || principal.is_person(&customer)
    });
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
    use crate::facts::{deactivated, registered};
    use crate::{CustomerRegistered, CustomerRenamed, EmailChanged, PointsReceived, PointsSent};
    use ringfence::{Personal, view::kit::given};

    let customer_id = || id("ada");
    let customer = |name: &str, email, points, active| Customer {
        name: Personal::from(name.to_owned()).into(),
        email: Personal::from(id::<Email>(email)).into(),
        points,
        active,
    };
    given([])
        .of_stream::<crate::Customers>("ada", events![registered("ada")])
        .of_stream::<crate::Customers>(
            "bob",
            events![CustomerRegistered { name: "Bob".to_owned().into(), ..registered("bob") }],
        )
        .of_stream::<crate::Customers>(
            "ada",
            events![
                PointsSent { customer_id: customer_id(), to: id("bob"), points: 30 },
                CustomerRenamed { customer_id: customer_id(), name: "Ada L.".to_owned().into() },
                EmailChanged {
                    customer_id: customer_id(),
                    email: id::<Email>("l@example.com").into(),
                },
            ],
        )
        .of_stream::<crate::Customers>(
            "bob",
            events![PointsReceived { customer_id: id("bob"), from: id("ada"), points: 30 }],
        )
        .of_stream::<crate::Customers>("bob", events![deactivated("bob")])
        .then::<Customers>([
            ("ada", customer("Ada L.", "l@example.com", 70, true)),
            ("bob", customer("Bob", "ada@example.com", 130, false)),
        ]);
    given([])
        .of_stream::<crate::Customers>("ada", events![registered("ada")])
        .of_stream::<crate::Customers>("bob", events![registered("bob")])
        .then_visible::<Customers>("jwt:main:ada", ["ada"]);
}

#[test]
fn events_of_the_same_type_in_other_streams_are_ignored() {
    use crate::CustomerRenamed;
    use crate::facts::registered;
    use ringfence::view::kit::given;

    let renamed = CustomerRenamed { customer_id: id("eve"), name: "Eve".to_owned().into() };
    let events = events![registered("eve"), renamed];
    given([]).stored("others#eve", events).then::<Customers>([]);
}
