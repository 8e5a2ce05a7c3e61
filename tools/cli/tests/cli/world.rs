//! A stack for the tests: tables, bus, queue, bucket, and the command.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, LazyLock};

use aws_sdk_dynamodb::Client;
use ringfence_aggregate_log::AggregateTable;
use ringfence_aws::{Clock, Retry, wire::Wire};
use ringfence_core::{
    Append, Appended, BoundaryId, Context, Envelope, EventLog, Metadata, NewEvent, SequencedEvent,
    events, kit::id,
};
use ringfence_dcb_log::DcbLog;
use ringfence_document_log::{DocumentLog, DynamoStore, TipLimits};
use ringfence_feed::OpenSource;
use ringfence_feed::{Checkpoints, Indexer, Partition};
use ringfence_local::{
    buckets::Buckets,
    bus::Buses,
    destinations::Destinations,
    embedded::Embedded,
    environment::Environment,
    inbox::Inbox,
    invoke::{Invoke, InvokeError},
    notices::{Notice, Notices},
    queues::Queues,
    services::{self, Services},
    template::{Model, QueueResource, Template},
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::broadcast::Receiver;

use ringfence_programs::shop::{OrderId, ProductCatalog, ProductDemandRecorded, ProductId};

pub(crate) const EVENTS: &str = "events";
pub(crate) const INDEX: &str = "index";
pub(crate) const VIEWS: &str = "views";
pub(crate) const AGGREGATES: &str = "aggregates";
pub(crate) const DOCUMENTS: &str = "documents";
pub(crate) const QUEUE: &str = "dead";
/// The queue of commands.
pub(crate) const COMMANDS: &str = "commands";
pub(crate) const BUCKET: &str = "lost";
/// Amazon's roots. A program that loads all roots of the machine takes twice the time.
const ROOTS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/aws/src/trust/amazon.pem");
/// The local SQS identifies a queue by the last part of its URL.
const QUEUE_URL: &str = "https://sqs.invalid/000000000000/dead";

static TEMPLATE: LazyLock<Template> = LazyLock::new(|| Template::of_stack().unwrap());

/// No rule invokes a function here.
struct Nobody;

impl Invoke for Nobody {
    async fn invoke(&self, function: &str, _payload: &Value) -> Result<Value, InvokeError> {
        Err(InvokeError::Unknown { function: function.to_owned() })
    }
}

pub(crate) struct World {
    pub(crate) dynamo: Embedded,
    pub(crate) client: Client,
    pub(crate) log: DcbLog,
    pub(crate) queues: Queues,
    pub(crate) buckets: Buckets,
    topic: Receiver<Notice>,
    pub(crate) services: String,
    /// The working directory of commands.
    pub(crate) folder: TempDir,
}

impl World {
    pub(crate) async fn start() -> Self {
        let dynamo = Embedded::start().await.unwrap();
        for (id, name) in [
            ("EventTable", EVENTS),
            ("AggregateTable", AGGREGATES),
            ("DocumentTable", DOCUMENTS),
            ("IndexTable", INDEX),
            ("ViewTable", VIEWS),
        ] {
            dynamo.create_table(&TEMPLATE.table(id).unwrap(), name).unwrap();
        }
        let client = Wire::default().client(dynamo.endpoint());
        let log = log(&client, Clock::system());
        let folder = tempfile::tempdir().unwrap();
        let dead_letters = QueueResource::named(QUEUE.to_owned());
        let commands = QueueResource { is_fifo: true, ..QueueResource::named(COMMANDS.to_owned()) };
        let queues = Queues::of_template(&[dead_letters, commands]);
        let buckets = Buckets::new(folder.path().to_owned(), vec![BUCKET.to_owned()]);
        let notices = Notices::default();
        let topic = notices.watch();
        let services = serve(&queues, &buckets, notices).await;
        Self { dynamo, client, log, queues, buckets, topic, services, folder }
    }

    /// The command with the environment of the stack.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = ringfence();
        command.args(arguments).stdin(Stdio::null()).current_dir(self.folder.path());
        command.envs([
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
            ("AWS_REGION", "eu-west-1"),
            ("AWS_CA_BUNDLE", ROOTS),
            ("AWS_ENDPOINT_URL_DYNAMODB", self.dynamo.endpoint()),
            ("AWS_ENDPOINT_URL_EVENTBRIDGE", &self.services),
            ("AWS_ENDPOINT_URL_SQS", &self.services),
            ("AWS_ENDPOINT_URL_S3", &self.services),
            ("AWS_ENDPOINT_URL_CLOUDFORMATION", &self.services),
            ("AWS_ENDPOINT_URL_CLOUDWATCH", &self.services),
            ("EVENT_TABLE", EVENTS),
            ("INDEX_TABLE", INDEX),
            ("VIEW_TABLE", VIEWS),
            ("AGGREGATE_TABLE", AGGREGATES),
            ("DOCUMENT_TABLE", DOCUMENTS),
            ("EVENT_BUS", "topic"),
            ("RULES_ARE_OFF", "true"),
            ("COMMAND_QUEUE_URL", &format!("{}/0/{COMMANDS}", self.services)),
        ]);
        command
    }

    /// Runs the command. Returns its status and its output.
    pub(crate) fn run(&self, arguments: &[&str]) -> (i32, String) {
        let Output { status, stdout, stderr } = self.command(arguments).output().unwrap();
        let stderr = String::from_utf8(stderr).unwrap();
        let status = status.code().unwrap();
        assert!(status != 2, "{arguments:?}: {stderr}");
        (status, String::from_utf8(stdout).unwrap())
    }

    /// Runs the command with `--json`.
    pub(crate) fn json(&self, arguments: &[&str]) -> (i32, Value) {
        let (status, printed) = self.run(&[arguments, &["--json"]].concat());
        (status, serde_json::from_str(&printed).unwrap())
    }

    /// Runs a command that fails, and returns its error.
    pub(crate) fn error(&self, arguments: &[&str]) -> String {
        self.error_at(self.dynamo.endpoint(), arguments)
    }

    /// Does so with another endpoint of DynamoDB.
    pub(crate) fn error_at(&self, endpoint: &str, arguments: &[&str]) -> String {
        let mut command = self.command(arguments);
        command.env("AWS_ENDPOINT_URL_DYNAMODB", endpoint);
        let Output { status, stderr, .. } = command.output().unwrap();
        let stderr = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(2), "{arguments:?}: {stderr}");
        stderr
    }

    pub(crate) async fn append(&self, events: Vec<NewEvent>) -> Vec<SequencedEvent> {
        self.append_with(events, Metadata::default()).await
    }

    pub(crate) async fn append_with(
        &self,
        events: Vec<NewEvent>,
        metadata: Metadata,
    ) -> Vec<SequencedEvent> {
        let envelope = Envelope { metadata, ..Envelope::default() };
        let append = Append { events, seen: None, record: None, envelope: &envelope };
        match self.log.append(append).await.unwrap() {
            Appended::Committed(events) => events,
            Appended::Repeated(_) => unreachable!("without a record"),
        }
    }

    /// Records later events so long ago.
    pub(crate) fn at(&mut self, ago_ms: u64) {
        self.log = log(&self.client, Clock::fixed(Clock::system().now_ms() - ago_ms));
    }

    /// Appends an order's demand for a product.
    pub(crate) async fn demand(&self, product: &str, order: &str) -> SequencedEvent {
        self.append(demand(product, order)).await.remove(0)
    }

    /// The logs, which have the events of the index.
    pub(crate) fn bodies(&self) -> [OpenSource; 3] {
        let aggregates = AggregateTable::new(self.client.clone(), AGGREGATES, Clock::system());
        [log(&self.client, Clock::system()).into(), aggregates.into(), self.documents().into()]
    }

    pub(crate) async fn index(&self, partitions: &[&BoundaryId]) {
        self.index_all(partitions.iter().map(|id| BoundaryId::clone(id).into())).await;
    }

    pub(crate) async fn index_all(&self, partitions: impl IntoIterator<Item = Partition>) {
        let indexer = Indexer::new(self.bodies(), self.client.clone(), INDEX);
        for (_, outcome) in indexer.index(partitions, Retry::default()).await {
            outcome.unwrap();
        }
    }

    /// Appends it, and indexes it.
    pub(crate) async fn indexed_demand(&self, product: &str, order: &str) -> SequencedEvent {
        let event = self.demand(product, order).await;
        self.index(&[&event.partition]).await;
        event
    }

    pub(crate) fn checkpoints(&self) -> Checkpoints {
        Checkpoints::new(self.client.clone(), VIEWS)
    }

    /// The new events on the bus since the last call.
    pub(crate) fn on_the_bus(&mut self) -> Vec<Arc<Value>> {
        let mut events = Vec::new();
        while let Ok(notice) = self.topic.try_recv() {
            match notice {
                Notice::Event(event) => events.push(event),
                Notice::Mail(_) | Notice::Webhook(_) => {}
                Notice::Trouble(trouble) => panic!("{trouble}"),
            }
        }
        events
    }

    pub(crate) fn queue_url(&self) -> String {
        format!("{}/000000000000/{QUEUE}", self.services)
    }

    /// The records of events in the stream.
    pub(crate) fn records(&self) -> Vec<Value> {
        let mut records = self.records_of(EVENTS);
        records.retain(|record| record["dynamodb"]["NewImage"]["event"].is_object());
        records
    }

    /// The records in a table's stream.
    pub(crate) fn records_of(&self, table: &str) -> Vec<Value> {
        self.dynamo.stream(table).unwrap().read().unwrap()
    }

    pub(crate) fn documents(&self) -> DocumentLog<DynamoStore> {
        let store = DynamoStore::new(self.client.clone(), DOCUMENTS);
        let limits = TipLimits { events_max: Some(2), ..TipLimits::default() };
        DocumentLog::new(store, Clock::system()).with_limits(limits)
    }
}

pub(crate) fn log(client: &Client, clock: Clock) -> DcbLog {
    DcbLog::new(client.clone(), EVENTS, ProductCatalog::catalog().unwrap(), clock)
}

pub(crate) fn demand(product: &str, order: &str) -> Vec<NewEvent> {
    let (product_id, order_id): (ProductId, OrderId) = (id(product), id(order));
    events![ProductDemandRecorded { product_id, order_id }]
}

/// The outputs of the stack.
fn outputs() -> BTreeMap<String, String> {
    let outputs = [
        ("EventTableName", EVENTS),
        ("IndexTableName", INDEX),
        ("ViewTableName", VIEWS),
        ("AggregateTableName", AGGREGATES),
        ("DocumentTableName", DOCUMENTS),
        ("EventTopicName", "topic"),
        ("AutomationsDeadLettersUrl", QUEUE_URL),
        ("PublishEventsFailedBatchesName", BUCKET),
    ];
    outputs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

async fn serve(queues: &Queues, buckets: &Buckets, notices: Notices) -> String {
    let model = Model { buses: vec!["topic".to_owned()], ..Model::default() };
    let destinations = Destinations { queues: queues.clone(), buckets: buckets.clone() };
    let router = services::router(Services {
        bus: Buses::new(&model, Arc::new(Nobody), destinations, notices),
        queues: queues.clone(),
        buckets: buckets.clone(),
        inbox: Inbox::new(&PathBuf::from("nowhere"), Notices::default()).unwrap(),
        parameters: Environment::default(),
        api: String::new(),
        outputs: outputs(),
        starts: vec![Clock::system().now_ms()],
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

/// The command line of the stack.
pub(crate) fn ringfence() -> Command {
    Command::new(env!("CARGO_BIN_EXE_ringfence-of-a-shop"))
}
