//! NotifyPartner: a webhook to a partner, such as a warehouse, when an order is placed or cancelled.
//!
//! A message has the form that the partner was promised. It is not the event, so an event can change while its message
//! stays.

use std::error::Error;

use crate::{OrderId, Ordering, ProductId};
use ringfence::effect::{Webhook, WebhookConfig};
use ringfence::function::Variables;
use ringfence::prelude::*;
use ringfence::reactor::{Delivery, Failed, InDoubt, Reactor, Starts, kit::ReactorCase};
use ringfence::rfc3339;
use serde::Serialize;

pub struct NotifyPartner(Webhook);

/// What it reads.
#[derive(Reads)]
pub enum Consumed {
    OrderPlaced {
        order_id: OrderId,
        product_ids: Vec<ProductId>,
        #[time]
        at_ms: u64,
    },
    OrderCancelled {
        order_id: OrderId,
        #[time]
        at_ms: u64,
    },
}

/// A message to the partner, in the form that Standard Webhooks recommends.
#[derive(Debug, PartialEq, Serialize)]
pub struct Message {
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// RFC 3339, UTC, milliseconds.
    pub timestamp: String,
    pub data: OrderData,
}

/// The partner's data of an order.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderData {
    pub order_id: OrderId,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub product_ids: Vec<ProductId>,
}

impl Reactor for NotifyPartner {
    const NAME: &'static str = "notify-partner";
    const STARTS: Starts = Starts::Now;
    /// The partner knows a repeat by `webhook-id`.
    const IN_DOUBT: InDoubt = InDoubt::Repeat;
    type Context = Ordering;
    type Reads = Consumed;
    type Effect = Message;
    type Config = WebhookConfig;

    fn config(variables: &mut Variables) -> WebhookConfig {
        Webhook::config(variables)
    }

    async fn open(config: WebhookConfig) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Webhook::open(config).await.map(Self)
    }

    fn plan(event: &Consumed) -> Vec<Message> {
        let (kind, at_ms, order_id, product_ids) = match event {
            Consumed::OrderPlaced { order_id, product_ids, at_ms } => {
                ("order.placed", *at_ms, order_id.clone(), product_ids.clone())
            }
            Consumed::OrderCancelled { order_id, at_ms } => {
                ("order.cancelled", *at_ms, order_id.clone(), vec![])
            }
        };
        let data = OrderData { order_id, product_ids };
        vec![Message { kind, timestamp: rfc3339(at_ms), data }]
    }

    async fn run(&self, message: &Message, delivery: &Delivery<'_>) -> Result<(), Failed> {
        let body = serde_json::to_string(message).map_err(|error| Failed::for_good(&error))?;
        self.0.send(&body, delivery).await
    }

    fn cases() -> Vec<ReactorCase<Message>> {
        use crate::{OrderCancelled, OrderPlaced};
        use ringfence::reactor::kit::when;

        let message = |kind, product_ids: &[&str]| Message {
            kind,
            timestamp: rfc3339(ringfence::kit::BEGIN_MS),
            data: OrderData {
                order_id: id("o1"),
                product_ids: product_ids.iter().map(|product| id(product)).collect(),
            },
        };
        let placed = OrderPlaced {
            order_id: id("o1"),
            customer_id: id("c1"),
            product_ids: vec![id("lamp")],
            quantities: [].into(),
        };
        vec![
            when(placed).then([message("order.placed", &["lamp"])]),
            when(OrderCancelled { order_id: id("o1"), product_ids: vec![id("lamp")] })
                .then([message("order.cancelled", &[])]),
        ]
    }
}

#[test]
fn a_message_has_the_form_that_the_partner_was_promised() {
    let event =
        Consumed::OrderPlaced { order_id: id("o1"), product_ids: vec![id("lamp")], at_ms: 0 };
    let [message] = &NotifyPartner::plan(&event)[..] else { panic!("one message") };
    let expected = serde_json::json!({
        "type": "order.placed",
        "timestamp": "1970-01-01T00:00:00.000Z",
        "data": { "orderId": "o1", "productIds": ["lamp"] },
    });
    assert_eq!(serde_json::to_value(message).expect("JSON"), expected);
}
