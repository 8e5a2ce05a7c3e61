//! orders: products, customer and status of each order. One row for each order.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use crate::{CustomerId, Money, OrderId, ProductId};
use ringfence::view::{RowRule, View};
use ringfence::{prelude::*, rfc3339};

#[derive(Debug)]
pub struct Orders;

/// What the view reads: every event that places or cancels an order.
#[derive(Reads)]
pub enum Consumed {
    OrderPlaced {
        order_id: OrderId,
        customer_id: CustomerId,
        product_ids: Vec<ProductId>,
        /// Products without a quantity are not in it.
        #[serde(default)]
        quantities: BTreeMap<ProductId, NonZeroU32>,
        #[time]
        at_ms: u64,
    },
    ProductOrdered {
        order_id: OrderId,
        customer_id: CustomerId,
        product_id: ProductId,
        quantity: u32,
        #[time]
        at_ms: u64,
    },
    ProductsOrdered {
        order_id: OrderId,
        lines: Vec<Line>,
        #[time]
        at_ms: u64,
    },
    OrderSubmitted {
        order_id: OrderId,
        customer_id: CustomerId,
        #[time]
        at_ms: u64,
    },
    OrderCancelled {
        order_id: OrderId,
        #[time]
        at_ms: u64,
    },
}

/// A product of an order.
#[ringfence::value]
#[derive(Clone, Debug)]
pub struct Line {
    pub product_id: ProductId,
    /// `None` if the event has no quantity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<u32>,
    /// The price of one unit; `None` if the event has no price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Money>,
}

/// The status of an order.
#[ringfence::value]
#[derive(Clone, Copy, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Placed,
    Cancelled,
}

/// An order.
#[ringfence::value]
#[derive(Debug)]
pub struct Order {
    /// `None` if no event names the customer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer_id: Option<CustomerId>,
    pub lines: Vec<Line>,
    pub status: Status,
    /// RFC 3339, UTC, milliseconds.
    pub placed_at: String,
    /// `None` if the order is not cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_at: Option<String>,
}

impl Order {
    fn placed(at_ms: u64) -> Self {
        let (status, placed_at) = (Status::Placed, rfc3339(at_ms));
        Self { customer_id: None, lines: Vec::new(), status, placed_at, cancelled_at: None }
    }
}

impl View for Orders {
    const NAME: &'static str = "orders";
    const SCOPES: &'static [&'static str] = &["ordering/read"];
    /// A customer sees its own orders. Staff, programs and those who sign with IAM see all.
    const VISIBLE: Option<RowRule<Order>> = Some(|_, order, principal| {
        let is_own = |customer: &CustomerId| principal.is_person(customer);
        principal.kind != PrincipalKind::Jwt
            || principal.may_use(&["ordering/all"])
            || order.customer_id.as_ref().is_some_and(is_own)
    });
    const VERSION: u32 = 1;
    type Reads = Consumed;
    type Row = Order;

    fn rows(event: &Consumed) -> Vec<String> {
        match event {
            Consumed::OrderPlaced { order_id, .. }
            | Consumed::ProductOrdered { order_id, .. }
            | Consumed::ProductsOrdered { order_id, .. }
            | Consumed::OrderSubmitted { order_id, .. }
            | Consumed::OrderCancelled { order_id, .. } => vec![order_id.to_string()],
        }
    }

    fn evolve(row: Option<Order>, _id: &str, event: &Consumed) -> Option<Order> {
        let (at_ms, customer_id, lines) = match event {
            Consumed::OrderCancelled { at_ms, .. } => {
                let (status, cancelled_at) = (Status::Cancelled, Some(rfc3339(*at_ms)));
                return row.map(|row| Order { status, cancelled_at, ..row });
            }
            Consumed::OrderPlaced { at_ms, customer_id, product_ids, quantities, .. } => {
                let units = |id: &_| quantities.get(id).copied().map(NonZeroU32::get);
                let line = |id: &ProductId| line(id, units(id));
                (at_ms, Some(customer_id), product_ids.iter().map(line).collect())
            }
            Consumed::ProductOrdered { at_ms, customer_id, product_id, quantity, .. } => {
                (at_ms, Some(customer_id), vec![line(product_id, Some(*quantity))])
            }
            Consumed::ProductsOrdered { at_ms, lines, .. } => (at_ms, None, lines.clone()),
            Consumed::OrderSubmitted { at_ms, customer_id, .. } => {
                (at_ms, Some(customer_id), Vec::new())
            }
        };
        let mut order = row.unwrap_or_else(|| Order::placed(*at_ms));
        match (&order.customer_id, customer_id) {
            // Another customer has used the id of this order, and must not see it.
            (Some(owner), Some(other)) if owner != other => return Some(order),
            (None, _) => order.customer_id = customer_id.cloned(),
            _ => {}
        }
        order.lines.extend(lines);
        Some(order)
    }
}

fn line(product_id: &ProductId, quantity: Option<u32>) -> Line {
    Line { product_id: product_id.clone(), quantity, price: None }
}

#[test]
fn a_row_shows_the_lines_and_the_status_of_an_order() {
    use crate::{OrderCancelled, OrderPlaced, OrderSubmitted, ProductOrdered};
    use pricing::ProductsOrdered;
    use ringfence::view::kit::given;

    let order = |customer: Option<&str>, lines, placed: &str, cancelled: Option<&str>| Order {
        customer_id: customer.map(id),
        lines,
        status: if cancelled.is_some() { Status::Cancelled } else { Status::Placed },
        placed_at: placed.to_owned(),
        cancelled_at: cancelled.map(str::to_owned),
    };
    let (first, then) = ("2024-06-23T00:00:00.000Z", "2024-06-23T00:00:01.500Z");
    let price = Money::new(300, "EUR");
    let priced = pricing::Line { product_id: id("p1"), price: price.clone() };
    given(events![OrderPlaced {
        order_id: id("o1"),
        customer_id: id("c1"),
        product_ids: vec![id("p1"), id("p2")],
        quantities: [(id("p2"), NonZeroU32::MIN)].into(),
    }])
    .wait(1_500)
    .and(events![
        OrderCancelled { order_id: id("o1"), product_ids: vec![id("p1"), id("p2")] },
        ProductOrdered {
            order_id: id("o2"),
            customer_id: id("c2"),
            product_id: id("p1"),
            quantity: 3,
        },
        ProductsOrdered { order_id: id("o3"), lines: vec![priced] },
        OrderSubmitted { order_id: id("o4"), customer_id: id("c1"), submission_id: id("s1") },
        // The id of the first customer's order.
        OrderSubmitted { order_id: id("o1"), customer_id: id("c2"), submission_id: id("s2") },
    ])
    .then::<Orders>([
        (
            "o1",
            order(
                Some("c1"),
                vec![line(&id("p1"), None), line(&id("p2"), Some(1))],
                first,
                Some(then),
            ),
        ),
        ("o2", order(Some("c2"), vec![line(&id("p1"), Some(3))], then, None)),
        ("o3", order(None, vec![Line { price: Some(price), ..line(&id("p1"), None) }], then, None)),
        ("o4", order(Some("c1"), Vec::new(), then, None)),
    ]);
}

#[test]
fn cancelling_an_unknown_order_makes_no_row() {
    use crate::OrderCancelled;
    use ringfence::view::kit::given;

    given(events![OrderCancelled { order_id: id("o1"), product_ids: vec![] }]).then::<Orders>([]);
}

#[test]
fn a_customer_sees_its_own_orders_and_staff_and_programs_see_all() {
    use crate::OrderPlaced;
    use pricing::ProductsOrdered;
    use ringfence::view::kit::given;

    let placed = |order: &str, customer: &str| OrderPlaced {
        order_id: id(order),
        customer_id: id(customer),
        product_ids: vec![],
        quantities: BTreeMap::new(),
    };
    let facts = || {
        // The last order has no known customer.
        let nameless = ProductsOrdered { order_id: id("o3"), lines: vec![] };
        given(events![placed("o1", "ada"), placed("o2", "eve"), nameless])
    };
    facts().then_visible::<Orders>("jwt:main:ada", ["o1"]);
    facts().then_visible::<Orders>("jwt:main:bob", []);
    facts().then_visible::<Orders>("jwt:partner:ada", []);
    let staff = Principal::from("jwt:main:bob").with_scopes(["ordering/all"]);
    for all in [staff, "client:main:billing".into(), "iam:role/billing".into()] {
        facts().then_visible::<Orders>(all, ["o1", "o2", "o3"]);
    }
}
