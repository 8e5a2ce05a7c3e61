//! When a function starts, it refuses contexts and slices in which an event or a command does not name one document.
//! Other tests use unusual slices.

use ringfence_aws::Clock;
use ringfence_core::prelude::*;
use ringfence_core::{Consistency, Envelope, EventSchema, Metadata};
use ringfence_document_log::{
    AccessStrategy, Cache, Category, CategoryError, Document, DocumentError, DocumentLog,
    Documents, Encoding, Load, MemoryStore, Store, TipLimits, handle,
};

use crate::basket::{Added, Basket, Event as Stored, State as Items, add, baskets, state};
use crate::on_both;
use crate::stack::{NOW_MS, log};

#[derive(Event)]
struct Filled {
    #[tag(partition)]
    shelf_id: String,
}

#[derive(Event)]
struct Labelled {
    #[tag(partition)]
    shelf_id: String,
    label_id: String,
}

#[derive(Event)]
struct Swapped {
    #[tag(partition, key = "shelfId")]
    from: String,
    #[tag(partition, key = "otherId")]
    to: String,
}

#[derive(Event)]
struct Opened {
    #[tag(partition)]
    room_id: String,
}

#[derive(Event)]
struct Dusted {}

#[derive(Reads)]
enum Consumed {
    Filled,
}

#[derive(Clone, Default)]
struct Shelf;

impl State for Shelf {
    type Reads = Consumed;

    fn evolve(self, Consumed::Filled: Consumed) -> Self {
        self
    }
}

impl Document for Shelf {
    const TIP: TipLimits = TipLimits { events_max: Some(2), ..TipLimits::DEFAULT };
    const ENCODING: Encoding = Encoding::Deflate;
}

/// A context with these events.
macro_rules! context {
    ($context:ident, $($event:ident),*) => {
        struct $context;

        impl Context for $context {
            const NAME: &'static str = "shelves";
            type Log = Documents<Shelf>;

            fn catalog() -> Result<Catalog, CatalogError> {
                Catalog::new(Self::NAME, [$($event::SCHEMA),*])
            }
        }
    };
}

context!(Shelves, Filled, Stocked);
context!(Labels, Filled, Labelled);
context!(Swaps, Filled, Swapped);
context!(Rooms, Filled, Opened);
context!(Dust, Filled, Dusted);
context!(Empty, Opened);

/// A slice of this command.
macro_rules! slice {
    ($command:ident, $writes:ident) => {
        impl Slice for $command {
            const NAME: &'static str = "fill";
            type Context = Shelves;
            type State = Shelf;
            type Writes = $writes;
            type Rejection = Never;

            fn decide(&self, _: &Shelf, _: &CommandContext) -> Result<Vec<$writes>, Never> {
                Ok(vec![])
            }
        }
    };
}

#[derive(Command)]
struct Fill {
    #[tag(partition)]
    shelf_id: String,
    #[tag(skip)]
    label_id: String,
}

#[derive(Command)]
struct FillLabelled {
    #[tag(partition)]
    shelf_id: String,
    label_id: String,
}

#[derive(Command)]
struct FillBoth {
    #[tag(partition, key = "shelfId")]
    from: String,
    #[tag(partition, key = "shelfId")]
    to: String,
}

#[derive(Command)]
struct FillRoom {
    #[tag(partition)]
    room_id: String,
}

#[derive(Command)]
struct FillAny {}

#[derive(Command)]
struct FillUnknown {
    #[tag(partition)]
    shelf_id: String,
}

slice!(Fill, Filled);
slice!(FillLabelled, Filled);
slice!(FillBoth, Filled);
slice!(FillRoom, Filled);
slice!(FillAny, Filled);
slice!(FillUnknown, Labelled);

/// Writes a retired type. Only a handwritten `Writes` can do that.
#[derive(Command)]
struct FillRetired {
    #[tag(partition)]
    shelf_id: String,
}

#[derive(Event)]
#[event(retired)]
struct Stocked {
    #[tag(partition)]
    shelf_id: String,
}

struct Restocked;

impl Writes for Restocked {
    const SCHEMAS: &'static [EventSchema] = &[Stocked::SCHEMA];

    fn visit(visitor: &mut impl ringfence_core::EventVisitor) {
        visitor.event::<Stocked>();
    }

    fn to_event(&self) -> Result<NewEvent, ringfence_core::EventError> {
        NewEvent::new(&Stocked { shelf_id: String::new() })
    }
}

slice!(FillRetired, Restocked);

fn memory() -> DocumentLog<MemoryStore> {
    log(MemoryStore::default())
}

/// The error with which a function of the context fails to start; empty if it starts.
fn of_context<C: Context<Log = Documents<Shelf>>>() -> String {
    let category = Category::new::<C>(memory(), AccessStrategy::Unoptimized, Cache::none());
    category.err().map(|error| error.to_string()).unwrap_or_default()
}

fn of_slice<S: Slice<State = Shelf, Context: Context<Log = Documents<Shelf>>>>() -> String {
    let category: Result<_, CategoryError> = Category::of::<S>(memory(), Cache::none());
    category.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn an_error_about_no_document_or_several_has_advice() {
    assert_eq!((of_context::<Shelves>(), of_slice::<Fill>()), (String::new(), String::new()));
    for (error, said) in [
        (of_context::<Labels>(), ["Labelled has the tag labelId", "mark the field #[tag(skip)]"]),
        (of_slice::<FillLabelled>(), ["fill has the tag labelId", "mark the field #[tag(skip)]"]),
        (of_context::<Swaps>(), ["Swapped names its document by several tags", "mark one field"]),
        (of_slice::<FillBoth>(), ["fill names its document by several tags", "mark one field"]),
        (of_context::<Rooms>(), ["by the tag roomId", "other events of its context by shelfId"]),
        (of_slice::<FillRoom>(), ["by the tag roomId", "other events of its context by shelfId"]),
        (of_context::<Dust>(), ["Dusted does not name its document", "#[tag(partition)]"]),
        (of_slice::<FillAny>(), ["fill does not name its document", "#[tag(partition)]"]),
        (of_context::<Empty>(), ["shelves are folded from Filled", "add Filled::SCHEMA"]),
        (of_slice::<FillUnknown>(), ["fill writes Labelled", "does not declare"]),
        (of_slice::<FillRetired>(), ["fill writes Stocked", "which is retired"]),
    ] {
        assert!(said.iter().all(|said| error.contains(said)), "{error}: {said:?}");
    }
}

#[tokio::test]
async fn the_state_decides_how_documents_are_stored() {
    let category = Category::of::<Fill>(memory(), Cache::none()).expect("a slice of the log");
    let mut metadata = Metadata::default();
    metadata.insert("note", "again ".repeat(50)).expect("not a key of the log");
    let envelope = Envelope { metadata, ..Envelope::default() };
    let filled = NewEvent::new(&Filled { shelf_id: "a".to_owned() }).expect("it has a JSON");
    for _ in 0..3 {
        let decide = |_: &Shelf| Ok::<_, ()>(vec![filled.clone()]);
        category.transact("a", Load::Eventual, &envelope, decide).await.expect("it is settled");
    }
    let stream = category.stream("a").expect("a name");
    let tip = category.log().tip(&stream, Consistency::Strong, &envelope).await;
    let tip = tip.expect("an answer").expect("a Tip");
    // Two events are in a calf.
    assert_eq!((tip.base(), tip.version), (2, 3));
    assert_eq!(tip.events[0].meta.encoding, Encoding::Deflate.number());
}

/// Unusual commands.
#[derive(Command)]
enum Act {
    /// Writes to another basket.
    Stray {
        #[tag(partition)]
        basket_id: String,
    },
    /// Puts in one thing for each millisecond since [`NOW_MS`].
    Count {
        #[tag(partition)]
        basket_id: String,
    },
}

impl Slice for Act {
    const NAME: &'static str = "act";
    type Context = Basket;
    type State = Items;
    type Writes = Added;
    type Rejection = Never;

    fn decide(&self, _: &Items, context: &CommandContext) -> Result<Vec<Added>, Never> {
        let (basket_id, quantity) = match self {
            Self::Stray { .. } => ("another".to_owned(), 1),
            Self::Count { basket_id } => (basket_id.clone(), context.now_ms - NOW_MS),
        };
        let quantity = quantity.try_into().expect("a few milliseconds");
        Ok(vec![Added { basket_id, sku: 1, quantity }])
    }
}

on_both![
    an_event_of_another_document_is_not_written,
    the_time_of_a_decision_is_not_before_the_events_that_it_read,
];

async fn an_event_of_another_document_is_not_written<S: Store>(store: S) {
    let category = baskets(log(store), AccessStrategy::Unoptimized, Cache::none());
    let stray = Act::Stray { basket_id: "a".to_owned() };
    let error = handle(&category, &stray, &Envelope::default()).await.expect_err("it strays");
    assert!(matches!(error, DocumentError::OtherStream { .. }), "{error:?}");
    let said = "a decision on Basket-a has made an event of type Added of the document \"another\"";
    assert_eq!(error.to_string(), said);
    for basket in ["a", "another"] {
        assert_eq!(state(&category, basket).await, Items::default());
    }
    let decide = |_: &Items| {
        Ok::<_, ()>(vec![NewEvent { event_type: "Wrapped".into(), ..Stored::Closed.of("a") }])
    };
    let error = category.transact("a", Load::Eventual, &Envelope::default(), decide).await;
    let error = error.expect_err("its catalog lacks it").to_string();
    assert!(error.contains("add Wrapped::SCHEMA"), "{error}");
}

async fn the_time_of_a_decision_is_not_before_the_events_that_it_read<S: Store + Clone>(store: S) {
    for (basket, ahead_ms, counted) in [("a", 5, 5), ("b", 60_001, 0)] {
        let ahead = DocumentLog::new(store.clone(), Clock::fixed(NOW_MS + ahead_ms));
        add(&baskets(ahead, AccessStrategy::Unoptimized, Cache::none()), basket, 2).await;
        let category = baskets(log(store.clone()), AccessStrategy::Unoptimized, Cache::none());
        let context = CommandContext { now_ms: NOW_MS, ..CommandContext::default() };
        let envelope = Envelope { context, ..Envelope::default() };
        let count = Act::Count { basket_id: basket.to_owned() };
        handle(&category, &count, &envelope).await.expect("it is settled");
        assert_eq!(state(&category, basket).await.items[&1], counted, "{basket}");
    }
}
