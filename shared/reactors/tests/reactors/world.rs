//! The tables, a log, an indexer, and a receiver that keeps what arrives.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use futures::future::LocalBoxFuture;
use ringfence_aws::wire::Wire;
use ringfence_aws::{Clock, Retry, seed_thread};
use ringfence_core::{
    Append, Appended, BoundaryId, Catalog, CatalogError, Context, Envelope, Event, EventLog, Lane,
    NewEvent, Reads, SequencedEvent, id_type, kit::id,
};
use ringfence_dcb_log::DcbLog;
use ringfence_feed::{Index, Indexer};
use ringfence_lambda::Variables;
use ringfence_local::engine::Engine;
use ringfence_reactors::{
    Delivery, Failed, Handler, InDoubt, Lanes, Outside, ParkedLane, RanLanes, Reactor,
    ReactorError, ReactorTable, Starts,
};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::sleep;

/// 2024-06-23T00:00:00Z.
pub(crate) const NOW_MS: u64 = 1_719_100_800_000;
/// Longer than all events of a test take.
pub(crate) const LONG: Duration = Duration::from_secs(60);
pub(crate) const NAME: &str = "post";

id_type!(OrderId, "names an order");
id_type!(CustomerId, "names a customer");

/// Letters are to be sent for an order.
#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct Asked {
    #[tag(partition)]
    pub(crate) order_id: OrderId,
    pub(crate) customer_id: CustomerId,
    pub(crate) letters: u32,
    pub(crate) text: String,
}

/// Nobody reads it here.
#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct Noted {
    #[tag(partition)]
    pub(crate) order_id: OrderId,
}

#[derive(Reads)]
pub(crate) enum Consumed {
    Asked { letters: u32 },
}

pub(crate) struct Orders;

impl Context for Orders {
    const NAME: &'static str = "orders";
    type Log = ringfence_dcb_log::Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(Self::NAME, [Asked::SCHEMA, Noted::SCHEMA])
    }
}

pub(crate) fn asked(order: &str, letters: u32) -> NewEvent {
    Asked { order_id: id(order), customer_id: id("c"), letters, text: String::new() }.into()
}

/// The receiver. It recognizes repeats by their keys.
#[derive(Clone, Default)]
pub(crate) struct Receiver(pub(crate) Arc<Mutex<Sent>>);

#[derive(Default)]
pub(crate) struct Sent {
    /// Every letter that has arrived, also again: its lane, its key, and the event with the number of the letter.
    pub(crate) all: Vec<(BoundaryId, String, String)>,
    /// The failures of the next letters of an event; `None` lets one arrive.
    pub(crate) failures: BTreeMap<String, Vec<Option<Failed>>>,
    /// How long it takes to send a letter.
    pub(crate) takes: Duration,
    /// The event whose letters end the process.
    pub(crate) deadly: Option<String>,
    /// Is notified when the process ends.
    pub(crate) death: Arc<Notify>,
}

impl Receiver {
    /// The letters of a lane in the order in which they arrived first.
    pub(crate) fn letters(&self, lane: &str) -> Vec<String> {
        let (sent, mut keys) = (self.0.lock().unwrap(), BTreeSet::new());
        let of_lane =
            sent.all.iter().filter(|(of, key, _)| of.as_str() == lane && keys.insert(key.clone()));
        of_lane.map(|(.., letter)| letter.clone()).collect()
    }

    /// How many letters have arrived, also again.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().all.len()
    }

    pub(crate) fn fail<F: Into<Option<Failed>>>(
        &self,
        event: &str,
        failures: impl IntoIterator<Item = F>,
    ) {
        let failures = failures.into_iter().map(Into::into);
        self.0.lock().unwrap().failures.entry(event.to_owned()).or_default().extend(failures);
    }
}

/// Sends letters; in doubt it asks a person if `PARKS`, and repeats itself otherwise.
pub(crate) struct Post<const PARKS: bool>(pub(crate) Receiver);

impl<const PARKS: bool> Reactor for Post<PARKS> {
    const NAME: &'static str = NAME;
    const LANE: Lane = Lane::Partition;
    const STARTS: Starts = Starts::Beginning;
    const IN_DOUBT: InDoubt = if PARKS { InDoubt::Park } else { InDoubt::Repeat };
    type Context = Orders;
    type Reads = Consumed;
    type Effect = u32;
    type Config = ();

    fn config(_: &mut Variables) {}

    async fn open((): ()) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Ok(Self(Receiver::default()))
    }

    fn plan(Consumed::Asked { letters }: &Consumed) -> Vec<u32> {
        (0..*letters).collect()
    }

    async fn run(&self, letter: &u32, delivery: &Delivery<'_>) -> Result<(), Failed> {
        let (failure, takes) = {
            let mut sent = self.0.0.lock().unwrap();
            let failures = sent.failures.get_mut(&delivery.event().id());
            let failure = failures.filter(|of| !of.is_empty()).map(|of| of.remove(0));
            (failure.flatten(), sent.takes)
        };
        sleep(takes).await;
        let is_deadly = {
            let sent = self.0.0.lock().unwrap();
            let is_deadly = sent.deadly.as_deref() == Some(&*delivery.event().id());
            if is_deadly {
                sent.death.notify_one();
            }
            is_deadly
        };
        if is_deadly {
            std::future::pending::<()>().await;
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        let event = delivery.event();
        let lane = Self::LANE.of(event);
        let arrived = (lane, delivery.key(), format!("{}/{letter}", event.id()));
        self.0.0.lock().unwrap().all.push(arrived);
        Ok(())
    }
}

/// The reactor that repeats itself in doubt. It keeps receipts only if `RECEIPTS`.
pub(crate) struct Bare<const RECEIPTS: bool>(Outside<Post<false>>, pub(crate) Starts);

impl<const RECEIPTS: bool> Handler for Bare<RECEIPTS> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn handles(&self, event: &SequencedEvent) -> bool {
        self.0.handles(event)
    }

    fn lane(&self, event: &SequencedEvent) -> BoundaryId {
        self.0.lane(event)
    }

    fn starts(&self) -> Starts {
        self.1
    }

    fn in_doubt(&self) -> InDoubt {
        self.0.in_doubt()
    }

    fn keeps_receipts(&self) -> bool {
        RECEIPTS
    }

    fn plan(&self, event: &SequencedEvent) -> Result<usize, Failed> {
        self.0.plan(event)
    }

    fn carry_out<'a>(&'a self, delivery: Delivery<'a>) -> LocalBoxFuture<'a, Result<(), Failed>> {
        self.0.carry_out(delivery)
    }
}

pub(crate) struct World {
    pub(crate) wire: Wire,
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) log: DcbLog,
    pub(crate) indexer: Indexer,
    pub(crate) index: Index,
    pub(crate) receiver: Receiver,
    engine: Engine,
    views: String,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        seed_thread(seed);
        let engine = Engine::memory().unwrap();
        engine.create_table(&table(("id", "S"), ("position", "N")), "events").unwrap();
        engine.create_table(&table(("p", "S"), ("i", "N")), "index").unwrap();
        let (wire, store) = (Wire::default(), engine.clone());
        let client = wire
            .client_of(Arc::new(move |operation: &str, body: &[u8]| store.call(operation, body)));
        let clock = Clock::running(NOW_MS);
        let catalog = || Orders::catalog().unwrap();
        let log = || DcbLog::new(client.clone(), "events", catalog(), clock.clone());
        let indexer = Indexer::new([log().into()], client.clone(), "index");
        let index = Index::new(client.clone(), "index", [log().into()]);
        let (receiver, views) = (Receiver::default(), String::new());
        let client = client.clone();
        let mut world =
            Self { log: log(), wire, client, clock, indexer, index, receiver, engine, views };
        world.begin_again(0);
        world
    }

    /// From now on the reactor has done nothing yet, and nothing has arrived.
    pub(crate) fn begin_again(&mut self, n: usize) {
        self.views = format!("views-{n}");
        self.engine.create_table(&table(("view", "S"), ("id", "S")), &self.views).unwrap();
        self.receiver = Receiver::default();
    }

    /// Appends the events, each in a transaction, and indexes them. Forgets the requests.
    pub(crate) async fn publish(
        &self,
        events: impl IntoIterator<Item = NewEvent>,
    ) -> Vec<SequencedEvent> {
        let mut published = Vec::new();
        for event in events {
            let envelope = Envelope::default();
            let append =
                Append { events: vec![event], seen: None, record: None, envelope: &envelope };
            match self.log.append(append).await {
                Ok(Appended::Committed(events)) => published.extend(events),
                other => panic!("not committed: {other:?}"),
            }
        }
        let partitions = published.iter().map(|event| event.partition.clone());
        for (partition, outcome) in self.indexer.index(partitions, Retry::default()).await {
            outcome.unwrap_or_else(|error| panic!("{partition}: {error}"));
        }
        self.wire.forget();
        published
    }

    pub(crate) fn table(&self) -> ReactorTable {
        self.table_at(&self.clock)
    }

    pub(crate) fn table_at(&self, clock: &Clock) -> ReactorTable {
        ReactorTable::new(self.client.clone(), &self.views, clock.clone())
    }

    /// A function of the reactor, with this clock.
    pub(crate) fn function<const PARKS: bool>(&self, clock: &Clock) -> Lanes<Outside<Post<PARKS>>> {
        let handler = Outside::new(Post(self.receiver.clone())).unwrap();
        Lanes { handler, index: self.index.clone(), table: self.table_at(clock) }
    }

    /// A function of the reactor that repeats itself in doubt, with receipts, or without them as ordered automations
    /// have none.
    pub(crate) fn bare<const RECEIPTS: bool>(&self) -> Lanes<Bare<RECEIPTS>> {
        let Lanes { handler, index, table } = self.function::<false>(&self.clock);
        Lanes { handler: Bare(handler, Starts::Beginning), index, table }
    }

    /// A run whose process may end; then there is no answer.
    pub(crate) async fn run_that_may_die<const RECEIPTS: bool>(&self) -> Option<RanLanes> {
        let (lanes, death) =
            (self.bare::<RECEIPTS>(), self.receiver.0.lock().unwrap().death.clone());
        tokio::select! {
            biased;
            () = death.notified() => None,
            ran = lanes.run(LONG) => Some(ran.unwrap()),
        }
    }

    /// A run of the reactor that repeats itself in doubt.
    pub(crate) async fn run(&self) -> Result<RanLanes, ReactorError> {
        self.function::<false>(&self.clock).run(LONG).await
    }

    /// A run of the reactor that asks a person in doubt.
    pub(crate) async fn run_parking(&self) -> Result<RanLanes, ReactorError> {
        self.function::<true>(&self.clock).run(LONG).await
    }

    pub(crate) async fn parked(&self) -> Vec<ParkedLane> {
        self.table().parked(NAME).await.unwrap()
    }

    /// Lets time pass.
    pub(crate) fn wait(&self, time: Duration) {
        self.clock.set(self.clock.now_ms() + u64::try_from(time.as_millis()).unwrap());
    }
}

fn table(hash: (&str, &str), range: (&str, &str)) -> serde_json::Value {
    json!({
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [
            { "AttributeName": hash.0, "KeyType": "HASH" },
            { "AttributeName": range.0, "KeyType": "RANGE" },
        ],
        "AttributeDefinitions": [
            { "AttributeName": hash.0, "AttributeType": hash.1 },
            { "AttributeName": range.0, "AttributeType": range.1 },
        ],
    })
}
