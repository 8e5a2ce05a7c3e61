//! orders: what was ordered, and whether it is on its way. One row an order.

use crate::{OrderId, ProductId};
use ringfence::prelude::*;
use ringfence::view::View;

/// The view.
#[derive(Debug)]
pub struct Orders;

/// What the view reads.
#[derive(Reads)]
pub enum Consumed {
    OrderTaken { order_id: OrderId, product_ids: Vec<ProductId> },
    OrderShipped { order_id: OrderId },
}

/// An order.
#[ringfence::value]
#[derive(Debug, PartialEq)]
pub struct Order {
    pub product_ids: Vec<ProductId>,
    pub shipped: bool,
}

impl View for Orders {
    const NAME: &'static str = "orders";
    const SCOPES: &'static [&'static str] = &["shop/read"];
    type Reads = Consumed;
    type Row = Order;

    fn rows(event: &Consumed) -> Vec<String> {
        match event {
            Consumed::OrderTaken { order_id, .. } | Consumed::OrderShipped { order_id } => {
                vec![order_id.to_string()]
            }
        }
    }

    fn evolve(row: Option<Order>, _id: &str, event: &Consumed) -> Option<Order> {
        match event {
            Consumed::OrderTaken { product_ids, .. } => {
                Some(Order { product_ids: product_ids.clone(), shipped: false })
            }
            Consumed::OrderShipped { .. } => row.map(|order| Order { shipped: true, ..order }),
        }
    }
}

#[test]
fn an_order_of_the_shop_is_shipped_after_it_was_taken() {
    use crate::{OrderShipped, OrderTaken};
    use ringfence::view::kit::given;

    let taken = |of| OrderTaken { order_id: id(of), product_ids: vec![id("mug")] };
    let order = |shipped| Order { product_ids: vec![id("mug")], shipped };
    given(events![taken("o1"), taken("o2"), OrderShipped { order_id: id("o1") }])
        .then::<Orders>([("o1", order(true)), ("o2", order(false))]);
}
