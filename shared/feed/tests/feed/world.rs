//! A log, an index, and what must hold for them.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use futures::TryStreamExt;
use ringfence_aggregate_log::{AggregateTable, event_of_image};
use ringfence_aws::wire::{Backend, Capacity, Director, Limits, Wire};
use ringfence_aws::{Clock, Item, Meter, Random, Retry, seed_thread};
use ringfence_core::kit::id;
use ringfence_core::{
    Append, Appended, BoundaryId, Catalog, Envelope, Event, EventLog, LogKind, NewEvent,
    SequencedEvent, id_type,
};
use ringfence_dcb_log::DcbLog;
use ringfence_document_log::{Direction, DocumentLog, DynamoStore, StreamName};
use ringfence_feed::{
    Checkpoint, EPOCH_ENTRIES_MAX, Entry, Index, Indexer, Notification, Partition, Sources, Until,
};
use ringfence_local::engine::Engine;
use ringfence_log::OpenSource;
use serde_json::json;

use crate::streams::{AGGREGATES, DOCUMENTS, aggregates, documents};

pub(crate) const EVENTS: &str = "events";
pub(crate) const INDEX: &str = "index";
pub(crate) const VIEWS: &str = "views";
/// The time at which every world begins: 2024-06-23T00:00:00Z.
pub(crate) const NOW_MS: u64 = 1_719_100_800_000;

id_type!(ThingId, "names a thing");
id_type!(LinkId, "names a link between things");

/// Something has happened to a thing.
#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct Changed {
    #[tag(partition)]
    pub(crate) thing_id: ThingId,
    pub(crate) note: String,
}

/// A thing has been linked: stored with the thing, counted by the link's fence too.
#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct Linked {
    #[tag(partition)]
    pub(crate) thing_id: ThingId,
    #[tag(cross_partition, strong)]
    pub(crate) link_id: LinkId,
}

/// A link has been made.
#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct LinkMade {
    #[tag(partition, cross_partition, strong)]
    pub(crate) link_id: LinkId,
}

/// Something without a tag.
#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct Noted {
    pub(crate) note: String,
}

pub(crate) fn catalog() -> Catalog {
    let schemas = [Changed::SCHEMA, Linked::SCHEMA, LinkMade::SCHEMA, Noted::SCHEMA];
    Catalog::new("things", schemas).expect("free of contradictions")
}

pub(crate) fn thing(n: u64) -> ThingId {
    id(&format!("t{n}"))
}

fn link(n: u64) -> LinkId {
    id(&format!("l{n}"))
}

pub(crate) fn changed(n: u64, note: &str) -> NewEvent {
    Changed { thing_id: thing(n), note: note.to_owned() }.into()
}

pub(crate) fn linked(n: u64, to: u64) -> NewEvent {
    Linked { thing_id: thing(n), link_id: link(to) }.into()
}

pub(crate) fn link_made(n: u64) -> NewEvent {
    LinkMade { link_id: link(n) }.into()
}

pub(crate) fn partition(event: &NewEvent) -> BoundaryId {
    catalog().filing(event).expect("it can be filed").partition
}

pub(crate) fn sources() -> Sources {
    [ringfence_dcb_log::SOURCE, ringfence_aggregate_log::SOURCE, ringfence_document_log::SOURCE]
        .into()
}

/// One of the events, at random.
pub(crate) fn any(random: &mut Random, things: u64) -> NewEvent {
    let (n, to) = (random.below(things), random.below(2));
    match random.below(8) {
        0..4 => changed(n, "x"),
        4..6 => linked(n, to),
        6 => link_made(to),
        _ => Noted { note: "x".to_owned() }.into(),
    }
}

/// Runs a test with a clock that moves only when everything waits, and with waits and ids from a seed.
pub(crate) fn run<T>(seed: u64, test: impl Future<Output = T>) -> T {
    seed_thread(seed);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build();
    runtime.expect("a runtime without input and output").block_on(test)
}

/// What a stream record shows of an event of the DCB log.
pub(crate) async fn record(world: &World, event: &SequencedEvent) -> Notification {
    let image = world.client.get_item().table_name(EVENTS).set_key(Some(event_key(event)));
    let image = image.send().await.expect("an answer").item.expect("an event");
    Notification::of_image(&sources(), image).expect("an image of the table").expect("an event")
}

/// The key of an event's item in the table of the DCB log.
pub(crate) fn event_key(event: &SequencedEvent) -> Item {
    Item::from([
        ("id".to_owned(), AttributeValue::S(event.partition.to_string())),
        ("position".to_owned(), AttributeValue::N(event.slot.to_string())),
    ])
}

/// The tables, and writers without faults.
pub(crate) struct World {
    engine: Engine,
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) log: DcbLog,
    pub(crate) aggregates: AggregateTable,
    pub(crate) documents: DocumentLog<DynamoStore>,
    pub(crate) epoch_entries: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        let engine = Engine::memory().expect("a database in memory");
        for (table, hash, (range, kind)) in [
            (EVENTS, "id", ("position", "N")),
            (AGGREGATES, "aggregateId", ("version", "N")),
            (DOCUMENTS, "p", ("i", "N")),
            (INDEX, "p", ("i", "N")),
            (VIEWS, "view", ("id", "S")),
        ] {
            engine.create_table(&definition(hash, range, kind), table).expect("a table");
        }
        let client = client_of(&engine, &Wire::default());
        let clock = Clock::running(NOW_MS);
        let log = DcbLog::new(client.clone(), EVENTS, catalog(), clock.clone());
        let aggregates = aggregates(client.clone(), &clock);
        let documents = documents(client.clone(), &clock);
        let epoch_entries = EPOCH_ENTRIES_MAX;
        Self { engine, client, clock, log, aggregates, documents, epoch_entries }
    }

    /// A further index table.
    pub(crate) fn add_index(&self, table: &str) {
        self.engine.create_table(&definition("p", "i", "N"), table).expect("a table");
    }

    /// A client whose requests `director` sees.
    pub(crate) fn directed(&self, director: std::sync::Arc<dyn Director>) -> Client {
        let wire = Wire::default();
        wire.direct(director);
        client_of(&self.engine, &wire)
    }

    /// The tables without a client.
    pub(crate) fn backend(&self) -> Backend {
        backend_of(&self.engine)
    }

    /// The tables with limits.
    pub(crate) fn limited(&self, limits: Limits) -> Capacity {
        Capacity::new(self.backend(), limits)
    }

    pub(crate) fn wired(&self, wire: &Wire) -> Client {
        client_of(&self.engine, wire)
    }

    pub(crate) fn indexer(&self, client: Client, table: &str) -> Indexer {
        self.metered(client, table).0
    }

    /// An indexer, and what counts its requests to the DCB log.
    pub(crate) fn metered(&self, client: Client, table: &str) -> (Indexer, Meter) {
        let (logs, meter) = self.logs(&client);
        let entries = self.epoch_entries.try_into().expect("entries of an epoch");
        let indexer = Indexer::new(logs, client, table).clocked(self.clock.clone());
        (indexer.epoch_entries(entries), meter)
    }

    /// The index as a reader has it.
    pub(crate) fn index(&self, client: Client) -> Index {
        let (logs, _) = self.logs(&client);
        Index::new(client, INDEX, logs)
    }

    /// The logs, and what counts requests to the DCB log.
    pub(crate) fn logs(&self, client: &Client) -> ([OpenSource; 3], Meter) {
        let log = DcbLog::new(client.clone(), EVENTS, catalog(), self.clock.clone());
        let meter = log.meter().clone();
        let aggregates = aggregates(client.clone(), &self.clock).into();
        ([log.into(), aggregates, documents(client.clone(), &self.clock).into()], meter)
    }

    /// Appends the events in one transaction; where they are.
    pub(crate) async fn append(&self, events: Vec<NewEvent>) -> Vec<SequencedEvent> {
        let envelope = Envelope::default();
        let append = Append { events, seen: None, record: None, envelope: &envelope };
        match self.log.append(append).await {
            Ok(Appended::Committed(events)) => events,
            other => panic!("not committed: {other:?}"),
        }
    }

    /// Indexes everything, without faults.
    pub(crate) async fn index_all(&self, table: &str) {
        let partitions: BTreeSet<_> = self.events().await.into_keys().collect();
        let indexer = self.indexer(self.client.clone(), table);
        for (partition, outcome) in indexer.index(partitions, Retry::default()).await {
            outcome.unwrap_or_else(|error| panic!("{partition}: {error:?}"));
        }
    }

    /// The events of the tables, by partition, in order.
    pub(crate) async fn events(&self) -> BTreeMap<Partition, Vec<SequencedEvent>> {
        let mut events: Vec<_> = self.log.scan().try_collect().await.expect("a scan");
        for item in self.items(AGGREGATES).await {
            events.push(event_of_image(item).expect("an event").into());
        }
        let envelope = Envelope::default();
        let heads = self.documents.streams(&envelope);
        for head in heads.try_collect::<Vec<_>>().await.expect("the streams") {
            let head = head.expect("an item of a stream");
            let (all, forward) = (0..head.version, Direction::Forward);
            let strong = ringfence_core::Consistency::Strong;
            let found = self.documents.read(&head.stream, all, forward, strong, &envelope);
            let found: Vec<_> = found.try_collect().await.expect("a stream");
            events.extend(found.iter().map(|event| event.fed(&head.stream).expect("readable")));
        }
        events.sort_by_key(|event| event.slot);
        by_partition(events)
    }

    /// What stream records show of a partition as it is now: each of its events, or the last append of a
    /// document.
    pub(crate) async fn records(&self, partition: &Partition) -> Vec<Notification> {
        let (table, key, id) = match partition.log {
            LogKind::Dcb => (EVENTS, "id", partition.to_string()),
            LogKind::Aggregates => (AGGREGATES, "aggregateId", partition.to_string()),
            LogKind::Documents => {
                let stream = StreamName::of_partition(&partition.id).expect("a stream");
                (DOCUMENTS, "p", stream.to_string())
            }
        };
        let query = self.client.query().table_name(table).key_condition_expression("#id = :id");
        let query = query.expression_attribute_names("#id", key);
        let query = query.expression_attribute_values(":id", AttributeValue::S(id));
        let items = query.send().await.expect("an answer").items.unwrap_or_default();
        let records = items
            .into_iter()
            .map(|image| Notification::of_image(&sources(), image).expect("a table"));
        records.flatten().collect()
    }

    pub(crate) async fn feed(&self, table: &str) -> Vec<Entry> {
        let (logs, _) = self.logs(&self.client);
        let index = Index::new(self.client.clone(), table, logs);
        let entries = index.read(Checkpoint::START, Until::Present);
        entries.try_collect().await.expect("the feed")
    }

    /// The checkpoints of an index, whether the logs have its events or not.
    pub(crate) async fn checkpoints(&self, table: &str) -> Vec<Checkpoint> {
        let index = Index::new(self.client.clone(), table, []);
        let steps = index.read_where(Checkpoint::START, Until::Present, |_| false);
        steps.map_ok(|step| step.checkpoint()).try_collect().await.expect("the feed")
    }

    /// Every event once, in the order of its partition, at checkpoints without gaps.
    pub(crate) async fn check(&self, table: &str) -> Vec<Entry> {
        let entries = self.feed(table).await;
        self.check_density(entries.iter().map(|entry| entry.checkpoint));
        let indexed = by_partition(entries.iter().map(|entry| entry.event.clone()));
        assert_eq!(indexed, self.events().await);
        entries
    }

    pub(crate) fn check_density(&self, checkpoints: impl IntoIterator<Item = Checkpoint>) {
        for (checkpoint, n) in checkpoints.into_iter().zip(0..) {
            let (epoch, offset) = (n / self.epoch_entries, n % self.epoch_entries);
            let behind = epoch * EPOCH_ENTRIES_MAX + offset + 1;
            assert_eq!(checkpoint.to_string(), behind.to_string(), "entry {n}");
        }
    }

    /// Every item of a table.
    pub(crate) async fn items(&self, table: &str) -> Vec<Item> {
        let pages = self.client.scan().table_name(table).into_paginator().items().send();
        pages.collect::<Result<_, _>>().await.expect("a scan")
    }
}

pub(crate) fn by_partition(
    events: impl IntoIterator<Item = SequencedEvent>,
) -> BTreeMap<Partition, Vec<SequencedEvent>> {
    let mut partitions: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for event in events {
        partitions.entry(Partition::of(&event)).or_default().push(event);
    }
    partitions
}

fn client_of(engine: &Engine, wire: &Wire) -> Client {
    wire.client_of(backend_of(engine))
}

fn backend_of(engine: &Engine) -> Backend {
    let engine = engine.clone();
    std::sync::Arc::new(move |operation: &str, body: &[u8]| engine.call(operation, body))
}

fn definition(hash: &str, range: &str, range_kind: &str) -> serde_json::Value {
    json!({
        "KeySchema": [
            { "AttributeName": hash, "KeyType": "HASH" },
            { "AttributeName": range, "KeyType": "RANGE" },
        ],
        "AttributeDefinitions": [
            { "AttributeName": hash, "AttributeType": "S" },
            { "AttributeName": range, "AttributeType": range_kind },
        ],
    })
}
