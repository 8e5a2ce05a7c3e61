//! __Reactor__: sends a webhook after __article__ __Event__.
//!
//! A message has the form that its receiver was promised. It is not the event, so an event can change while its message
//! stays.

use std::error::Error;

use crate::{__Context__, __Id__};
use ringfence::effect::{Webhook, WebhookConfig};
use ringfence::function::Variables;
use ringfence::prelude::*;
use ringfence::reactor::{Delivery, Failed, InDoubt, Reactor, Starts, kit::ReactorCase};
use ringfence::rfc3339;
use serde::Serialize;

pub struct __Reactor__(Webhook);

/// What it reads.
#[derive(Reads)]
pub enum Consumed {
    __Event__ {
        __mark__
        __id__: __Id__,
        #[time]
        at_ms: u64,
    },
}

/// A message, in the form that Standard Webhooks recommends.
#[derive(Debug, PartialEq, Serialize)]
pub struct Message {
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// RFC 3339, UTC, milliseconds.
    pub timestamp: String,
    pub data: Data,
}

/// What the receiver learns of the event.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Data {
    pub __id__: __Id__,
}

impl Reactor for __Reactor__ {
    const NAME: &'static str = "__reactor__";
    const STARTS: Starts = Starts::Now;
    /// The receiver knows a repeat by `webhook-id`.
    const IN_DOUBT: InDoubt = InDoubt::Repeat;
    type Context = __Context__;
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
        let Consumed::__Event__ { __id__, at_ms } = event;
        let data = Data { __id__: __id__.clone() };
        vec![Message { kind: "__kind__", timestamp: rfc3339(*at_ms), data }]
    }

    async fn run(&self, message: &Message, delivery: &Delivery<'_>) -> Result<(), Failed> {
        let body = serde_json::to_string(message).map_err(|error| Failed::for_good(&error))?;
        self.0.send(&body, delivery).await
    }

    fn cases() -> Vec<ReactorCase<Message>> {
        use ringfence::reactor::kit::when;

        let (timestamp, data) = (rfc3339(ringfence::kit::BEGIN_MS), Data { __id__: id("one") });
        let message = Message { kind: "__kind__", timestamp, data };
        vec![when(crate::__Event__ { __fields__ }).then([message])]
    }
}
