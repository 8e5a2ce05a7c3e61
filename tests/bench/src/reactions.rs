//! The work after an append: events are published, indexed, replayed, folded into views.

use std::time::Duration;

use futures::TryStreamExt;
use ordering::views::orders::Orders;
use ordering::{CustomerId, OrderId, OrderPlaced};
use ringfence_aws::{Clock, Retry};
use ringfence_core::kit::id;
use ringfence_core::{BoundaryId, Catalogs, NewEvent, rfc3339};
use ringfence_dcb_log::DcbLog;
use ringfence_feed::{Checkpoint, Index, Indexer, Until};
use ringfence_services::topic::TopicEntry;
use ringfence_views::{Definition, Generation, Projector, Ran};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::bare::{Stored, Tag};
use crate::commands::{NOW_MS, append};
use crate::measure::{Case, Side, runtime};
use crate::store::{EVENTS, INDEX, Store, VIEWS};
use crate::{BARE, OURS};

/// Pages of the index for a replay. Each has as many orders as one transaction takes.
const PAGES: usize = 4;
/// Events of a page, each of another partition.
const PAGE_EVENTS: usize = 100;
/// Orders appended in one transaction.
const APPENDED: usize = 100;
/// Deliveries of publish-events.
const RECORDS: &str = include_str!("../../../events/publish-events/stream.json");

/// An order with two products, about 700 bytes as an item.
pub(crate) fn order(number: usize) -> NewEvent {
    let (order_id, customer_id): (OrderId, CustomerId) =
        (id(&format!("order-{number:06}")), id("customer-001"));
    let product_ids = vec![id("product-0001"), id("product-0002")];
    OrderPlaced { order_id, customer_id, product_ids, quantities: [].into() }.into()
}

/// The DCB log on a store.
pub(crate) fn log(store: &Store) -> DcbLog {
    let catalog = stack::stack().catalog;
    DcbLog::new(store.client(), EVENTS, catalog, Clock::fixed(NOW_MS))
}

pub(crate) async fn append_all(log: &DcbLog, events: Vec<NewEvent>) -> Vec<BoundaryId> {
    let mut partitions = Vec::new();
    for chunk in events.chunks(APPENDED) {
        partitions.extend(append(log, chunk.to_vec()).await.into_iter().map(|e| e.partition));
    }
    partitions
}

pub(crate) async fn index(indexer: &Indexer, partitions: &[BoundaryId]) {
    let outcomes = indexer.index(partitions.iter().cloned(), Retry::default()).await;
    assert!(outcomes.values().all(Result::is_ok), "{outcomes:?}");
}

/// A stack with [`PAGES`] pages in its index.
fn indexed(runtime: &Runtime) -> (Store, usize) {
    let store = Store::new();
    let events = PAGES * PAGE_EVENTS;
    runtime.block_on(async {
        let partitions = append_all(&log(&store), (0..events).map(order).collect()).await;
        let indexer = Indexer::new([log(&store).into()], store.client(), INDEX);
        for page in partitions.chunks(PAGE_EVENTS) {
            index(&indexer, page).await;
        }
    });
    (store, events)
}

/// From the record of an order to its entry on the bus.
pub(crate) fn publish() -> Case {
    let batch: Value = serde_json::from_str(RECORDS).expect("a sample is JSON");
    let record = batch["Records"][0].clone();
    let by_hand = record.clone();
    let catalog = stack::stack().catalog;
    let entry = TopicEntry::of_record(&record, &[ringfence_dcb_log::SOURCE].into(), &catalog)
        .remove(0)
        .expect("an event");
    let same: Value = serde_json::from_str(&entry.detail).expect("a detail is JSON");
    let bare: Value = serde_json::from_str(&detail(&record)).expect("a detail is JSON");
    assert_eq!(same, bare, "the two sides publish different things");
    let ours = Side::pure(move || {
        let entry = TopicEntry::of_record(&record, &[ringfence_dcb_log::SOURCE].into(), &catalog)
            .remove(0)
            .expect("an event");
        std::hint::black_box(entry);
    });
    let bare = Side::pure(move || {
        std::hint::black_box(detail(&by_hand));
    });
    Case { sides: vec![(OURS, ours), (BARE, bare)], unit: "event", units: 1 }
}

/// An event for consumers.
#[derive(Serialize)]
struct Detail {
    id: String,
    #[serde(rename = "type")]
    event_type: String,
    partition: String,
    slot: u64,
    #[serde(rename = "recordedAt")]
    recorded_at: String,
    tags: Vec<Tag>,
    data: Value,
    meta: Meta,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    #[serde(skip_serializing_if = "Option::is_none")]
    causation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
}

/// The handwritten transform, for an event type whose metadata is known.
fn detail(record: &Value) -> String {
    let image = serde_dynamo::Item::deserialize(&record["dynamodb"]["NewImage"]).expect("an image");
    let event: Stored = serde_dynamo::from_item(image).expect("an event");
    let Stored { causation_id, command_id, correlation_id, traceparent, .. } = event;
    let detail = Detail {
        id: format!("{}/{}", event.id, event.position),
        event_type: event.event,
        partition: event.id,
        slot: event.position,
        recorded_at: rfc3339(event.at),
        tags: event.tags,
        data: event.data,
        meta: Meta { causation_id, command_id, correlation_id, traceparent },
    };
    serde_json::to_string(&detail).expect("a detail is a map with text keys")
}

/// New events of 100 partitions: read, validated, indexed.
pub(crate) fn index_events() -> Case {
    let (store, runtime) = (Store::new(), runtime());
    let partitions = (0..PAGE_EVENTS).map(order).collect();
    let partitions = runtime.block_on(append_all(&log(&store), partitions));
    let (units, of) = (partitions.len(), store.clone());
    let ours = Side::on(&store, move || {
        // If it remembered the end of the index, it would refuse the same answers a second time.
        let indexer = Indexer::new([log(&of).into()], of.client(), INDEX);
        runtime.block_on(index(&indexer, &partitions));
    });
    Case { sides: vec![(OURS, ours)], unit: "event", units }
}

/// The feed from the first event to the present.
pub(crate) fn replay() -> Case {
    let runtime = runtime();
    let (store, events) = indexed(&runtime);
    let reader = Index::new(store.client(), INDEX, [log(&store).into()]);
    let ours = Side::on(&store, move || {
        let count = async |read, entry| {
            std::hint::black_box(entry);
            Ok(read + 1)
        };
        let read =
            async { reader.read(Checkpoint::START, Until::Present).try_fold(0, count).await };
        assert_eq!(runtime.block_on(read).expect("the feed"), events);
    });
    Case { sides: vec![(OURS, ours)], unit: "event", units: events }
}

/// The view `orders` from the first event to the present: every event makes a row.
pub(crate) fn project() -> Case {
    folded(|runtime, projector, view, events| {
        let mut ran = Ran::default();
        let run = projector.run(view, Generation::first(view), Duration::from_secs(600), &mut ran);
        runtime.block_on(run).expect("it is projected");
        assert_eq!((ran.present, ran.rows), (true, events as u64), "{ran:?}");
    })
}

/// A rebuild of it.
pub(crate) fn rebuild() -> Case {
    folded(|runtime, projector, view, _| {
        runtime.block_on(projector.rebuild(view, &|_| {})).expect("it is rebuilt");
    })
}

fn folded(work: fn(&Runtime, &Projector, &Definition, usize)) -> Case {
    let runtime = runtime();
    let (store, events) = indexed(&runtime);
    let index = Index::new(store.client(), INDEX, [log(&store).into()]);
    let projector =
        Projector::new(store.client(), index, VIEWS, Catalogs::default(), Clock::fixed(NOW_MS));
    let view = Definition::of::<Orders>();
    let ours = Side::on(&store, move || work(&runtime, &projector, &view, events));
    Case { sides: vec![(OURS, ours)], unit: "event", units: events }
}
