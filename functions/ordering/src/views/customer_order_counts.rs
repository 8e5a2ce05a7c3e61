//! customer-order-counts: how many orders a customer has placed. One row for each customer.

use crate::CustomerId;
use ringfence::view::{RowRule, View};
use ringfence::{prelude::*, rfc3339};

#[derive(Debug)]
pub struct CustomerOrderCounts;

/// What the view reads: the events that say who orders. A cancellation does not.
#[derive(Reads)]
pub enum Consumed {
    OrderPlaced {
        customer_id: CustomerId,
        #[time]
        at_ms: u64,
    },
    ProductOrdered {
        customer_id: CustomerId,
        #[time]
        at_ms: u64,
    },
}

/// A customer's orders.
#[ringfence::value]
#[derive(Debug)]
pub struct Counts {
    /// Orders that the customer placed, including those that were cancelled.
    pub orders: u64,
    /// Time of the latest order: RFC 3339, UTC, milliseconds.
    pub last_at: String,
}

impl View for CustomerOrderCounts {
    const NAME: &'static str = "customer-order-counts";
    /// The rule of the view `orders`.
    const VISIBLE: Option<RowRule<Counts>> = Some(|customer, _, principal| {
        principal.kind != PrincipalKind::Jwt || principal.is_person(&customer)
    });
    type Reads = Consumed;
    type Row = Counts;

    fn rows(event: &Consumed) -> Vec<String> {
        match event {
            Consumed::OrderPlaced { customer_id, .. }
            | Consumed::ProductOrdered { customer_id, .. } => vec![customer_id.to_string()],
        }
    }

    fn evolve(row: Option<Counts>, _id: &str, event: &Consumed) -> Option<Counts> {
        let (Consumed::OrderPlaced { at_ms, .. } | Consumed::ProductOrdered { at_ms, .. }) = event;
        let at = rfc3339(*at_ms);
        Some(match row {
            None => Counts { orders: 1, last_at: at },
            // Each order is in another partition, so a later one may be indexed first.
            Some(row) => Counts { orders: row.orders + 1, last_at: at.max(row.last_at) },
        })
    }
}

#[test]
fn orders_are_counted_by_customer() {
    use crate::{OrderPlaced, ProductOrdered};
    use ringfence::view::kit::given;

    let placed = |order, customer| OrderPlaced {
        order_id: id(order),
        customer_id: id(customer),
        product_ids: vec![id("p1")],
        quantities: [].into(),
    };
    let ordered = ProductOrdered {
        order_id: id("o3"),
        customer_id: id("c1"),
        product_id: id("p1"),
        quantity: 2,
    };
    let counts = |orders, last: &str| Counts { orders, last_at: last.to_owned() };
    given(events![placed("o1", "c1"), placed("o2", "c2")])
        .wait(2_000)
        .and(events![ordered])
        .then::<CustomerOrderCounts>([
        ("c1", counts(2, "2024-06-23T00:00:02.000Z")),
        ("c2", counts(1, "2024-06-23T00:00:00.000Z")),
    ]);
    let facts = || given(events![placed("o1", "c1"), placed("o2", "c2")]);
    facts().then_visible::<CustomerOrderCounts>("jwt:main:c1", ["c1"]);
    facts().then_visible::<CustomerOrderCounts>("client:main:till", ["c1", "c2"]);
}
