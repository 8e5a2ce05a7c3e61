//! OrderProducts: orders a cart at the prices that the customer saw.
//!
//! A new price is valid at once. The price that it replaces stays valid for ten minutes.

use std::collections::BTreeMap;

use crate::{GRACE_MS, Line, Money, OrderId, Pricing, ProductId, ProductsOrdered};
use ringfence::prelude::*;
use serde::Serialize;

/// Orders a cart.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct OrderProducts {
    #[tag(partition)]
    pub order_id: OrderId,
    #[tag(key = "productId")]
    pub lines: Vec<Line>,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    ProductAdded {
        product_id: ProductId,
        price: Money,
        /// Since when, in milliseconds since 1970.
        #[time]
        at_ms: u64,
    },
    ProductPriceChanged {
        product_id: ProductId,
        price: Money,
        /// Since when, in milliseconds since 1970.
        #[time]
        at_ms: u64,
    },
    ProductsOrdered,
}

/// Each product's prices and the times from which they are valid, the latest last.
#[derive(Default)]
pub struct Prices {
    prices: BTreeMap<ProductId, Vec<(u64, Money)>>,
    ordered: bool,
}

/// Why nothing is ordered.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    #[error("the cart is empty")]
    EmptyCart,
    #[error("order {order_id} was already placed")]
    OrderExists { order_id: OrderId },
    /// The product never had the price, or has had another one for more than ten minutes.
    #[error("invalid price for product {product_id}")]
    InvalidPrice { product_id: ProductId },
}

impl Prices {
    /// Whether the line's price is the product's price, or was within the time of grace.
    fn is_valid(&self, line: &Line, now_ms: u64) -> bool {
        let prices = self.prices.get(&line.product_id).map_or(&[][..], Vec::as_slice);
        let recent = |(at_ms, _): &&(u64, Money)| now_ms.saturating_sub(*at_ms) <= GRACE_MS;
        let old = prices.iter().rfind(|price| !recent(price));
        prices.iter().filter(recent).chain(old).any(|(_, price)| *price == line.price)
    }
}

impl State for Prices {
    type Reads = Consumed;

    fn evolve(mut self, event: Consumed) -> Self {
        match event {
            Consumed::ProductAdded { product_id, price, at_ms }
            | Consumed::ProductPriceChanged { product_id, price, at_ms } => {
                self.prices.entry(product_id).or_default().push((at_ms, price));
            }
            Consumed::ProductsOrdered => self.ordered = true,
        }
        self
    }
}

impl Slice for OrderProducts {
    const NAME: &'static str = "order-products";
    const SCOPES: &'static [&'static str] = &["ordering/write"];
    type Context = Pricing;
    type State = Prices;
    type Writes = ProductsOrdered;
    type Rejection = Rejection;

    fn decide(
        &self,
        state: &Prices,
        context: &CommandContext,
    ) -> Result<Vec<ProductsOrdered>, Rejection> {
        let Self { order_id, lines } = self.clone();
        if state.ordered {
            return Err(Rejection::OrderExists { order_id });
        }
        if lines.is_empty() {
            return Err(Rejection::EmptyCart);
        }
        if let Some(line) = lines.iter().find(|line| !state.is_valid(line, context.now_ms)) {
            return Err(Rejection::InvalidPrice { product_id: line.product_id.clone() });
        }
        Ok(vec![ProductsOrdered { order_id, lines }])
    }

    /// The published cases, then exact limits and large carts.
    fn cases() -> Vec<Case<Self>> {
        use catalog::{ProductAdded, ProductPriceChanged};
        use ringfence::NewEvent;

        const MINUTE_MS: u64 = 60 * 1_000;
        let euro = |amount| Money::new(amount, "EUR");
        let added = |product: &str, amount| ProductAdded {
            product_id: id(product),
            name: "Lamp".to_owned(),
            description: String::new(),
            price: euro(amount),
        };
        let changed =
            |product, amount| ProductPriceChanged { product_id: id(product), price: euro(amount) };
        let line = |product: &str, amount| Line { product_id: id(product), price: euro(amount) };
        let order = |lines: Vec<Line>| OrderProducts { order_id: id("o1"), lines };
        let ordered = |lines: Vec<Line>| [ProductsOrdered { order_id: id("o1"), lines }];
        let p1 = |amount| vec![line("p1", amount)];
        let invalid = |product| Rejection::InvalidPrice { product_id: id(product) };
        let at_123 = || given(events![added("p1", 123)]);
        let old = || at_123().wait(20 * MINUTE_MS);
        let changing = || at_123().wait(11 * MINUTE_MS).and(events![changed("p1", 134)]);
        let many = || (0..90).map(|n| format!("p{n}"));
        let of_many = || many().map(|product| line(&product, 5)).collect::<Vec<_>>();
        vec![
            at_123().when(order(p1(100))).then_rejected(invalid("p1")),
            at_123().when(order(p1(123))).then(ordered(p1(123))),
            old().when(order(p1(100))).then_rejected(invalid("p1")),
            at_123()
                .and(events![changed("p1", 134)])
                .wait(20 * MINUTE_MS)
                .when(order(p1(123)))
                .then_rejected(invalid("p1")),
            old().when(order(p1(123))).then(ordered(p1(123))),
            changing().wait(9 * MINUTE_MS).when(order(p1(123))).then(ordered(p1(123))),
            changing().wait(9 * MINUTE_MS).when(order(p1(134))).then(ordered(p1(134))),
            changing()
                .wait(MINUTE_MS)
                .and(events![added("p2", 321)])
                .wait(8 * MINUTE_MS)
                .when(order(vec![line("p1", 123), line("p2", 321)]))
                .then(ordered(vec![line("p1", 123), line("p2", 321)])),
            // Ten minutes, to the millisecond.
            changing().wait(GRACE_MS).when(order(p1(123))).then(ordered(p1(123))),
            changing().wait(GRACE_MS + 1).when(order(p1(123))).then_rejected(invalid("p1")),
            // Two changes within the time of grace: all three prices were on display.
            changing()
                .wait(MINUTE_MS)
                .and(events![changed("p1", 145)])
                .when(order(vec![line("p1", 123), line("p1", 134), line("p1", 145)]))
                .then(ordered(vec![line("p1", 123), line("p1", 134), line("p1", 145)])),
            // A price counts for its product only, and an unknown product has no price.
            at_123()
                .and(events![added("p2", 321)])
                .when(order(vec![line("p1", 123), line("p2", 123)]))
                .then_rejected(invalid("p2")),
            given([]).when(order(p1(123))).then_rejected(invalid("p1")),
            given(many().map(|product| NewEvent::from(added(&product, 5))))
                .when(order(of_many()))
                .then(ordered(of_many())),
            given([]).when(order(vec![])).then_rejected(Rejection::EmptyCart),
            at_123()
                .and(ordered(p1(123)).map(NewEvent::from))
                .when(order(p1(123)))
                .then_rejected(Rejection::OrderExists { order_id: id("o1") }),
        ]
    }
}
