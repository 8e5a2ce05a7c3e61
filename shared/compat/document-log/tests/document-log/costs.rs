//! Exact requests and units of each operation, with the default Tip and with Equinox's.
//!
//! Payloads have 500 bytes of JSON and are not compressed; the snapshot has 500 bytes too. Units are
//! computed from the documented sizes of the items; the emulator's own figures agree.

use ringfence_aws::wire::Wire;
use ringfence_aws::{Units, item_bytes, read_units, transact_write_units, write_units};
use ringfence_core::{
    Catalog, CatalogError, Consistency, Context, Envelope, Event, Reads, State, events,
};
use ringfence_document_log::{
    AccessStrategy, Cache, Category, Document, Documents, DynamoStore, Encoding, Load, Snapshot,
    Store, TipLimits,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::stack::{in_process, log};
use crate::streams::image;

/// JSON bytes of a payload.
const PAYLOAD_BYTES: usize = 500;

struct Notes;

#[derive(Event)]
struct Noted {
    #[tag(partition)]
    note_id: String,
    text: String,
}

#[derive(Reads)]
enum Notable {
    Noted { text: String },
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Note {
    text: String,
}

impl Context for Notes {
    const NAME: &'static str = "Notes";
    type Log = Documents<Note>;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(Self::NAME, [Noted::SCHEMA])
    }
}

impl State for Note {
    type Reads = Notable;

    fn evolve(self, Notable::Noted { text }: Notable) -> Self {
        Self { text }
    }
}

impl Document for Note {}

fn text() -> String {
    "x".repeat(PAYLOAD_BYTES - r#"{"text":""}"#.len())
}

fn snapshot() -> AccessStrategy<Note> {
    AccessStrategy::Snapshot(Snapshot::named("Snapshot"))
}

/// Appends an event.
async fn note(category: &Category<Note, DynamoStore>, load: Load) {
    let noted = || Noted { note_id: "n".to_owned(), text: text() };
    let decide = |_: &Note| Ok::<_, ()>(events![noted()]);
    let noted = category.transact("n", load, &Envelope::default(), decide).await;
    assert_eq!(noted.expect("it is settled").attempts, 1);
}

/// Requests and units.
#[derive(Debug, PartialEq)]
struct Cost {
    requests: (u32, u32),
    read: f64,
    write: f64,
}

fn cost(reads: u32, read: f64, writes: u32, write: f64) -> Cost {
    Cost { requests: (reads, writes), read, write }
}

/// A stream with some events, to find the cost of operations on it.
struct Priced {
    wire: Wire,
    category: Category<Note, DynamoStore>,
}

impl Priced {
    async fn of(
        events: u32,
        limits: TipLimits,
        access: fn() -> AccessStrategy<Note>,
        warm: bool,
    ) -> Self {
        let (store, wire) = in_process();
        let of = |access, cache| {
            let log = log(store.clone()).with_limits(limits).with_encoding(Encoding::Raw);
            Category::new::<Notes>(log, access, cache).expect("each names a note")
        };
        // With a cached state, each event takes one write.
        let category = of(access(), Cache::of(std::num::NonZeroUsize::MIN));
        for _ in 0..events {
            note(&category, Load::Cached).await;
        }
        let category = if warm { category } else { of(access(), Cache::none()) };
        Self { wire, category }
    }

    async fn append(&self, load: Load) -> Cost {
        self.priced(note(&self.category, load)).await.1
    }

    async fn read(&self, load: Load) -> Cost {
        let envelope = Envelope::default();
        let read =
            self.priced(self.category.query("n", load, &envelope, |note| note.text.clone())).await;
        assert_eq!(read.0.expect("it can be read").0.len(), text().len());
        read.1
    }

    async fn tip_bytes(&self) -> usize {
        let stream = self.category.stream("n").expect("a name");
        let tip = self.category.log().store().tip(&stream, Consistency::Strong).await;
        tip.expect("an answer").map_or(0, |tip| item_bytes(&tip.to_item()))
    }

    /// The result of an operation and its cost, by the documented rules and by the emulator.
    async fn priced<T>(&self, operation: impl Future<Output = T>) -> (T, Cost) {
        let meter = self.category.log().store().meter();
        let (tip_before, before) = (self.tip_bytes().await, meter.snapshot());
        self.wire.forget();
        let given = operation.await;
        let (used, sent) = (meter.snapshot().since(&before), self.wire.take());
        let tip = self.tip_bytes().await.max(tip_before);
        let Units { read, write } = used.total();
        let mut computed = Cost { requests: (used.reads, used.writes), read: 0.0, write: 0.0 };
        for exchange in sent {
            let request = &exchange.request;
            let bytes = |item: &Value| item_bytes(&image(item));
            let consistency = match request["ConsistentRead"].as_bool() {
                Some(true) => Consistency::Strong,
                _ => Consistency::Eventual,
            };
            let units = |bytes| read_units(bytes, consistency);
            match &*exchange.operation {
                "GetItem" if exchange.answer["Item"].is_null() => computed.read += units(0),
                "GetItem" => computed.read += units(bytes(&exchange.answer["Item"])),
                "Query" => {
                    let items = exchange.answer["Items"].as_array().expect("items");
                    computed.read += units(items.iter().map(bytes).sum());
                }
                "TransactWriteItems" => {
                    let calf = bytes(&request["TransactItems"][0]["Put"]["Item"]);
                    computed.write += transact_write_units(calf) + transact_write_units(tip);
                }
                _ => computed.write += write_units(tip),
            }
        }
        let metered = Cost { requests: computed.requests, read, write };
        assert_eq!(computed, metered, "computed, metered");
        (given, metered)
    }
}

const UNOPTIMIZED: fn() -> AccessStrategy<Note> = || AccessStrategy::Unoptimized;
const RINGFENCE: fn() -> TipLimits = TipLimits::default;
const EQUINOX: fn() -> TipLimits = || TipLimits::EQUINOX;

#[tokio::test]
async fn create() {
    for limits in [RINGFENCE(), EQUINOX()] {
        let priced = Priced::of(0, limits, UNOPTIMIZED, false).await;
        assert_eq!(priced.append(Load::Eventual).await, cost(1, 0.5, 1, 1.0));
        let priced = Priced::of(0, limits, snapshot, false).await;
        assert_eq!(priced.append(Load::Empty).await, cost(0, 0.0, 1, 2.0));
    }
}

/// `of_tip` is the cost of reading only the Tip. `write` and `with_snapshot` are the costs of writing it.
#[tokio::test]
async fn a_hundred_events_are_read_and_appended_to() {
    for (limits, of_tip, write, with_snapshot) in
        [(RINGFENCE(), 0.5, 2.0, 2.0), (EQUINOX(), 3.0, 22.0, 23.0)]
    {
        let priced = Priced::of(100, limits, UNOPTIMIZED, false).await;
        assert_eq!(priced.read(Load::Eventual).await, cost(1, 7.0, 0, 0.0));
        assert_eq!(priced.read(Load::Strong).await.read, 14.0);
        assert_eq!(priced.append(Load::Eventual).await, cost(1, 7.0, 1, write));
        let priced = Priced::of(100, limits, snapshot, false).await;
        assert_eq!(priced.read(Load::Eventual).await, cost(1, of_tip, 0, 0.0), "a snapshot");
        assert_eq!(priced.append(Load::Eventual).await, cost(1, of_tip, 1, with_snapshot));
        let priced = Priced::of(100, limits, snapshot, true).await;
        assert_eq!(priced.append(Load::Cached).await, cost(0, 0.0, 1, with_snapshot));
        let priced = Priced::of(100, limits, UNOPTIMIZED, true).await;
        assert_eq!(priced.read(Load::Eventual).await, cost(1, of_tip, 0, 0.0), "asked after");
        assert_eq!(priced.read(Load::Cached).await, cost(0, 0.0, 0, 0.0), "cached");
    }
}

#[tokio::test]
async fn calve() {
    // Three events of 545 bytes fit the default Tip.
    let priced = Priced::of(3, RINGFENCE(), UNOPTIMIZED, true).await;
    assert_eq!(priced.append(Load::Cached).await, cost(0, 0.0, 1, 8.0));
    // After that there is room again.
    assert_eq!(priced.append(Load::Cached).await, cost(0, 0.0, 1, 2.0));
}
