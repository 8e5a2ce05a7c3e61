//! The tables of a part, with limits, and clients whose requests take time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::wire::{Backend, Capacity, Director, Fault, Limits, Wire};
use ringfence_aws::{Clock, Item, Random, Retry};
use ringfence_core::{Append, Appended, BoundaryId, Context, Envelope, EventLog};
use ringfence_dcb_log::DcbLog;
use ringfence_feed::{Index, Indexer, Notification};
use ringfence_local::engine::Engine;
use ringfence_log::Sources;
use serde_json::Value;

use crate::contention::{takes, usual};
use crate::market::{Market, OrderPlaced};
use crate::table::{NOW_MS, TABLE, tables};

/// The size of an event's item in bytes, about.
pub(super) const EVENT_BYTES: usize = 1_000;

/// Delays requests as the network and DynamoDB do.
struct Line(Mutex<Random>);

impl Director for Line {
    fn faults(&self, operation: &str, _: &Value) -> Vec<Fault> {
        let random = &mut self.0.lock().unwrap_or_else(PoisonError::into_inner);
        vec![Fault::Delay(Duration::from_millis(takes(random, usual(operation))))]
    }

    fn carried_out(&self, _: &str, _: &Value, _: u16) {}
}

pub(super) struct World {
    engine: Backend,
    pub(super) capacity: Capacity,
    pub(super) clock: Clock,
    /// Pages of the index that were put, and those that came second. A throttled put is neither.
    pub(super) pages: Arc<[AtomicU64; 2]>,
    /// The item of an event.
    pub(super) event: Item,
}

impl World {
    pub(super) async fn new() -> Self {
        Self::with(Limits::default()).await
    }

    pub(super) async fn with(limits: Limits) -> Self {
        let engine = Engine::memory().expect("a database in memory");
        tables(&engine, &Market::catalog().expect("free of contradictions"));
        let pages: Arc<[AtomicU64; 2]> = Arc::default();
        let counts = pages.clone();
        let engine: Backend = Arc::new(move |operation: &str, body: &[u8]| {
            let answer = engine.call(operation, body);
            let is_page = || {
                let request: Value = serde_json::from_slice(body).unwrap_or_default();
                request["TableName"] == "index"
            };
            if operation == "PutItem" && is_page() {
                counts[usize::from(answer.0 != 200)].fetch_add(1, Ordering::Relaxed);
            }
            answer
        });
        let capacity = Capacity::new(engine.clone(), limits);
        let clock = Clock::running(NOW_MS);
        let mut this = Self { engine, capacity, clock, pages, event: Item::new() };
        this.event = this.one_event().await;
        this
    }

    /// A client without limits and delays.
    pub(super) fn calm(&self) -> Client {
        Wire::default().client_of(self.engine.clone())
    }

    /// The client of a function, and its wire.
    pub(super) fn client(&self, n: u64) -> (Client, Wire) {
        let wire = Wire::default();
        let random = Mutex::new(Random::new(&[n, 7]));
        wire.direct(Arc::new(Line(random)));
        (wire.client_of(self.capacity.backend()), wire)
    }

    fn log(&self, client: &Client) -> DcbLog {
        let catalog = Market::catalog().expect("free of contradictions");
        DcbLog::new(client.clone(), TABLE, catalog, self.clock.clone())
    }

    pub(super) fn indexer(&self, client: &Client) -> Indexer {
        Indexer::new([self.log(client).into()], client.clone(), "index").clocked(self.clock.clone())
    }

    async fn one_event(&self) -> Item {
        let (calm, order_id) = (self.calm(), ringfence_core::kit::id("o"));
        let product_ids = vec![ringfence_core::kit::id(&"x".repeat(36)); EVENT_BYTES / 45];
        let events = vec![OrderPlaced { order_id, product_ids }.into()];
        let envelope = Envelope::default();
        let append = Append { events, seen: None, record: None, envelope: &envelope };
        let appended = self.log(&calm).append(append).await;
        let Ok(Appended::Committed(events)) = appended else { panic!("{appended:?}") };
        let key = key(&events[0].partition, events[0].slot);
        let found = calm.get_item().table_name(TABLE).set_key(Some(key)).send().await;
        found.expect("an answer").item.expect("an event")
    }

    /// An event of the partition of an order.
    fn image(&self, order: &str, slot: u64) -> Item {
        let mut image = self.event.clone();
        image.extend(key(&BoundaryId::tag("orderId", order), slot));
        if let Some(AttributeValue::M(data)) = image.get_mut("data") {
            data.insert("orderId".to_owned(), AttributeValue::S(order.to_owned()));
        }
        image
    }

    pub(super) fn notification(&self, order: &str, slot: u64) -> Notification {
        let notification = Notification::of_image(&sources(), self.image(order, slot));
        notification.expect("an image").expect("an event")
    }

    /// An index of so many events, each of another order.
    pub(super) async fn indexed(&self, events: u64) -> Index {
        let calm = self.calm();
        let indexer = self.indexer(&calm);
        for first in (0..events).step_by(100) {
            let mut batch = Vec::new();
            for n in first..first + 100 {
                let order = format!("o{n}");
                let put = calm.put_item().table_name(TABLE);
                put.set_item(Some(self.image(&order, 1))).send().await.expect("an event");
                batch.push(self.notification(&order, 1));
            }
            for (_, outcome) in indexer.index(batch, Retry::default()).await {
                outcome.expect("nothing disturbs the indexer");
            }
        }
        let client = self.client(1).0;
        let log = self.log(&client);
        Index::new(client, "index", [log.into()])
    }
}

pub(super) fn sources() -> Sources {
    [ringfence_dcb_log::SOURCE].into()
}

fn key(partition: &BoundaryId, slot: u64) -> Item {
    Item::from([
        ("id".to_owned(), AttributeValue::S(partition.to_string())),
        ("position".to_owned(), AttributeValue::N(slot.to_string())),
    ])
}
