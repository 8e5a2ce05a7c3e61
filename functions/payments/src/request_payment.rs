//! RequestPayment: asks the customer to pay an order, at the prices of this moment.
//!
//! An automation: an order whose units are reserved leads to its command.
//!
//! If the prices have no total, the command is rejected. Nothing else has to be done: the order is not paid, so its
//! reservation ends in time.

use std::collections::BTreeMap;

use crate::{Item, Money, OrderId, Payment, PaymentRequested, Payments, ProductId};
use ringfence::prelude::*;
use serde::{Deserialize, Serialize};

/// Asks the customer to pay an order.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct RequestPayment {
    #[tag(partition)]
    pub order_id: OrderId,
    #[tag(key = "productId")]
    pub items: Vec<Item>,
}

/// What the decision reads of products, besides the payment.
#[derive(Reads)]
pub enum Product {
    CatalogProductSynced { product_id: ProductId, price: Money },
}

/// The price of each product, as ordering knows it.
#[derive(Default)]
pub struct Prices(BTreeMap<ProductId, Money>);

/// Why no payment is requested.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    #[error(
        "order {order_id} has no total: a product has no price, the currencies differ, or the sum is above {}",
        u64::MAX
    )]
    NoTotal { order_id: OrderId },
}

impl Prices {
    fn total(&self, items: &[Item]) -> Option<Money> {
        let mut total: Option<Money> = None;
        for Item { product_id, units } in items {
            let price = self.0.get(product_id)?;
            let sum = total.unwrap_or_else(|| Money { amount: 0, ..price.clone() });
            if sum.currency != price.currency {
                return None;
            }
            let amount = price.amount.checked_mul(units.get().into())?.checked_add(sum.amount)?;
            total = Some(Money { amount, ..sum });
        }
        total
    }
}

impl State for Prices {
    type Reads = Product;

    fn evolve(mut self, event: Product) -> Self {
        let Product::CatalogProductSynced { product_id, price } = event;
        self.0.insert(product_id, price);
        self
    }
}

impl Slice for RequestPayment {
    const NAME: &'static str = "request-payment";
    const REACTS_TO: &'static [Cause] = &[Cause::named("inventory", "StockReserved")];
    const SCOPES: &'static [&'static str] = &["payments/write"];
    type Context = Payments;
    type State = (Payment, Prices);
    type Writes = PaymentRequested;
    type Rejection = Rejection;

    fn decide(
        &self,
        (payment, prices): &(Payment, Prices),
        _: &CommandContext,
    ) -> Result<Vec<PaymentRequested>, Rejection> {
        let order_id = self.order_id.clone();
        if payment.requested.is_some() || payment.cancelled {
            return Ok(vec![]);
        }
        match prices.total(&self.items) {
            Some(amount) => Ok(vec![PaymentRequested { order_id, amount }]),
            None => Err(Rejection::NoTotal { order_id }),
        }
    }

    fn react(event: &Current<'_, TopicEvent>) -> Result<Vec<Self>, serde_json::Error> {
        let Reserved { order_id, items } = Reserved::deserialize(&event.data)?;
        Ok(vec![Self { order_id, items }])
    }

    fn cases() -> Vec<Case<Self>> {
        use ordering::{CatalogProductSynced, OrderCancelled};

        let synced = |product, price| CatalogProductSynced {
            product_id: id(product),
            name: "Lamp".to_owned(),
            price,
        };
        let euro = |amount| Money::new(amount, "EUR");
        let item = |product, units| Item { product_id: id(product), units: id(units) };
        let request = |items| RequestPayment { order_id: id("o1"), items };
        let requested =
            |order, amount| PaymentRequested { order_id: id(order), amount: euro(amount) };
        let no_total = || Rejection::NoTotal { order_id: id("o1") };
        let lamp = || given(events![synced("lamp", euro(1_250))]);
        vec![
            lamp().when(request(vec![item("lamp", "2")])).then([requested("o1", 2_500)]),
            lamp()
                .and(events![synced("lamp", euro(990)), synced("desk", euro(24_900))])
                .when(request(vec![item("lamp", "3"), item("desk", "1")]))
                .then([requested("o1", 27_870)]),
            lamp()
                .and(events![requested("o2", 5)])
                .when(request(vec![item("lamp", "1")]))
                .then([requested("o1", 1_250)]),
            // Once, and not after the order is cancelled.
            lamp()
                .and(events![requested("o1", 5)])
                .when(request(vec![item("lamp", "1")]))
                .then_nothing(),
            lamp()
                .and(events![OrderCancelled { order_id: id("o1"), product_ids: vec![id("lamp")] }])
                .when(request(vec![item("lamp", "1")]))
                .then_nothing(),
            // Without a total.
            lamp()
                .and(events![synced("desk", Money::new(1, "USD"))])
                .when(request(vec![item("lamp", "1"), item("desk", "1")]))
                .then_rejected(no_total()),
            given([]).when(request(vec![item("lamp", "1")])).then_rejected(no_total()),
            given([]).when(request(vec![])).then_rejected(no_total()),
            given(events![synced("lamp", euro(u64::MAX))])
                .when(request(vec![item("lamp", "2")]))
                .then_rejected(no_total()),
            given(events![synced("lamp", euro(u64::MAX))])
                .when(request(vec![item("lamp", "1"), item("lamp", "1")]))
                .then_rejected(no_total()),
        ]
    }
}

/// What this context reads of units that are reserved.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reserved {
    order_id: OrderId,
    items: Vec<Item>,
}
