//! Events of older versions: every reader gets them in the newest version. Readers refuse events of a newer version.

use futures::executor::block_on;
use ringfence_core::{
    Append, Appended, CatalogError, CurrentError, Decisions, Envelope, EventLog, EventSchema,
    EventVisitor, LogError, MemoryLog, SequencedEvent, SliceError, TopicEvent, handle, prelude::*,
};
use serde_json::json;

use self::evolving::{
    CAREFUL, Consumed, ItemAdded, KNOWN, Known, Note, careful, history, newest, schemas,
};

#[path = "evolving.rs"]
mod evolving;

type Log = crate::shop::Dcb;

fn catalog_of(schemas: Vec<EventSchema>) -> Result<Catalog, CatalogError> {
    Catalog::new("shelf", schemas)
}

fn catalog(program: u32) -> Catalog {
    catalog_of(schemas(program)).unwrap()
}

/// The log, with the catalog of the program of this number.
fn log(program: u32, events: Vec<SequencedEvent>) -> MemoryLog {
    MemoryLog::of(catalog(program), events).unwrap()
}

fn append(program: u32, events: Vec<SequencedEvent>, new: NewEvent) -> Vec<SequencedEvent> {
    let (log, envelope) = (log(program, events), Envelope::default());
    let append = Append { events: vec![new], seen: None, record: None, envelope: &envelope };
    let appended = block_on(log.append(append)).unwrap();
    assert!(matches!(appended, Appended::Committed(_)));
    log.events()
}

/// An item's events, each as the program of its time wrote it.
fn written(item: &str) -> Vec<SequencedEvent> {
    let history = history(item).into_iter();
    history.fold(Vec::new(), |events, (program, new)| append(program, events, new))
}

#[test]
fn an_event_has_the_version_of_the_program_that_wrote_it() {
    let events = written("i");
    let versions: Vec<u32> = events.iter().map(|event| event.version).collect();
    assert_eq!(versions, [1, 1, 2, 3]);
    assert_eq!(events[2].data, json!({ "itemId": "i", "title": "cup", "price": 3 }));
    // On the bus, version 1 is left out.
    let sent = events.iter().map(|it| serde_json::to_value(TopicEvent::new(it.clone())).unwrap());
    let sent: Vec<_> = sent.map(|it| it.get("schema").cloned()).collect();
    assert_eq!(sent, [None, None, Some(json!(2)), Some(json!(3))]);
}

#[test]
fn a_decision_reads_each_version_as_the_newest_even_missed_events() {
    let (catalog, envelope) = (catalog(3), Envelope::default());
    let note = Note { item_id: "i".to_owned() };
    let decisions = Decisions::new(1);
    let mut events = Vec::new();
    for (n, (program, new)) in history("i").into_iter().enumerate() {
        events = append(program, events, new);
        let log = log(3, events);
        // The handler is warm from the second time on, and folds the tail on top.
        block_on(handle(&log, &catalog, &decisions, &note, &envelope)).unwrap();
        events = log.events();
        assert_eq!(events.last().unwrap().data["known"], json!(KNOWN[..=n]));
    }
    let log = log(3, written("i"));
    block_on(handle(&log, &catalog, &Decisions::new(0), &note, &envelope)).unwrap();
    assert_eq!(log.events().last().unwrap().data["known"], json!(KNOWN));
}

/// Adds the item again, with the number of its earlier events in the title.
#[derive(Clone, Debug, PartialEq, Command)]
struct AddAgain {
    #[tag(partition)]
    item_id: String,
    cents: u64,
}

struct Careful;

impl Context for Careful {
    const NAME: &'static str = "shelf";
    type Log = Log;

    fn catalog() -> Result<Catalog, CatalogError> {
        catalog_of(schemas(CAREFUL))
    }
}

impl Slice for AddAgain {
    const NAME: &'static str = "add-again";
    type Context = Careful;
    type State = Known;
    type Writes = careful::ItemAdded;
    type Rejection = Never;

    fn decide(
        &self,
        Known(known): &Known,
        _: &CommandContext,
    ) -> Result<Vec<careful::ItemAdded>, Never> {
        let Self { item_id, cents } = self.clone();
        let title = format!("after {}", known.join(", "));
        Ok(vec![careful::ItemAdded { item_id, title, cents }])
    }

    fn cases() -> Vec<Case<Self>> {
        let item_id = || "i".to_owned();
        let added = |title: &str, cents| careful::ItemAdded {
            item_id: item_id(),
            title: title.to_owned(),
            cents,
        };
        let again = Self { item_id: item_id(), cents: 700 };
        let facts = ringfence_core::events![added("mug", 400)];
        vec![given(facts).when(again).then([added("after mug for 400", 700)])]
    }
}

#[test]
fn a_program_that_writes_an_older_version_has_the_state_of_what_is_stored() {
    ringfence_core::kit::check_in_memory::<AddAgain>();
    let (catalog, envelope, warm) = (catalog(CAREFUL), Envelope::default(), Decisions::new(1));
    let log = MemoryLog::new(catalog.clone());
    let add = |cents| {
        let command = AddAgain { item_id: "i".to_owned(), cents };
        block_on(handle(&log, &catalog, &warm, &command, &envelope))
    };
    add(100).unwrap();
    let second = add(200).unwrap();
    let of_second = json!({ "itemId": "i", "title": "after after  for 100", "cents": 200 });
    assert_eq!(second.written[0].data, of_second);
    let stored: Vec<_> =
        log.events().into_iter().map(|it| (it.version, it.data["price"].clone())).collect();
    assert_eq!(stored, [(2, json!(1)), (2, json!(2))]);
    // The older version has whole euros.
    let error = add(250).unwrap_err();
    let text = "ItemAdded can't be written as version 2: field `cents` is lost. Readers skip fields that they do not \
                know: let the downcast leave its value in the payload, and the upcast take it from there";
    assert_eq!(error.to_string(), text);
    assert!(matches!(error, ringfence_core::HandleError::Log(LogError::Downcast(_))), "{error:?}");
    assert_eq!(log.events().len(), 2);
}

#[test]
fn a_program_that_does_not_know_a_version_decides_nothing() {
    let (catalog, envelope) = (catalog(2), Envelope::default());
    let log = log(2, append(3, Vec::new(), newest("i")));
    let note = Note { item_id: "i".to_owned() };
    let error = block_on(handle(&log, &catalog, &Decisions::new(0), &note, &envelope)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "event itemId:i/1 has version 3 of ItemAdded, and this program knows the versions up to 2; deploy one that \
         knows it"
    );
    assert!(
        matches!(error, ringfence_core::HandleError::Log(LogError::NewerVersion(_))),
        "{error:?}"
    );
}

#[test]
fn an_event_without_the_shape_of_its_version_names_type_version_and_field() {
    let mut event = written("i").remove(0);
    event.data = json!({ "price": 1 });
    let Err(CurrentError::Upcast { event: id, source }) = catalog(3).current(&event) else {
        panic!("it has no name");
    };
    let text = "ItemAdded can't be upcast from version 1 to 2: field `name` is missing";
    assert_eq!((id.as_str(), source.to_string().as_str()), ("itemId:i/1", text));
}

#[test]
fn a_reaction_reads_each_version_as_the_newest() {
    let sent = |n: usize| TopicEvent::new(written("i").remove(n));
    let (whole, named) = (Cause::of::<ItemAdded>("shelf"), Cause::named("shelf", "ItemAdded"));
    for (n, cents) in [(0, 400), (2, 300), (3, 700)] {
        let event = sent(n);
        assert_eq!(whole.current(&event).unwrap().data["cents"], cents);
    }
    assert_eq!(named.current(&sent(0)).unwrap().data["name"], "mug", "it knows the first version");
    assert!(matches!(named.current(&sent(2)), Err(CurrentError::Newer(_))));
}

#[test]
fn the_kit_upcasts_a_payload() {
    let old = json!({ "itemId": "i", "name": "mug", "price": 4 });
    let new = json!({ "itemId": "i", "title": "mug", "cents": 400 });
    assert_eq!(ringfence_core::kit::upcast::<ItemAdded>(1, old), new);
    // A log of streams leaves out the field that names the stream.
    let of_stream = json!({ "title": "mug", "cents": 400 });
    assert_eq!(ringfence_core::kit::upcast::<ItemAdded>(3, of_stream.clone()), of_stream);
}

/// Its downcast loses the price.
#[derive(Event)]
#[event(version = 2)]
#[upcast(1 = Ok)]
#[write(1 = without_price)]
struct Repriced {
    price: u64,
}

fn without_price(mut data: Fields) -> Result<Fields, FieldError> {
    let _: u64 = data.remove("price")?;
    Ok(data)
}

#[test]
#[should_panic(expected = "Repriced can't be written as version 1: field `price` is lost")]
fn the_kit_notices_a_downcast_that_loses_a_field() {
    let _ = ringfence_core::kit::upcast::<Repriced>(1, json!({ "price": 4 }));
}

#[test]
#[should_panic(expected = "missing field `cents`")]
fn the_kit_notices_an_upcast_to_a_wrong_shape() {
    let _ = ringfence_core::kit::upcast::<ItemAdded>(3, json!({ "title": "mug" }));
}

#[test]
fn a_type_is_known_by_its_context_as_well() {
    let streams = |context: &str, program| {
        let mut schemas = schemas(program);
        schemas.retain(|schema| schema.name == "ItemAdded");
        Catalog::of_streams(context.to_owned(), schemas).unwrap()
    };
    let catalogs = ringfence_core::Catalogs(vec![streams("lab", 1), streams("shelf", 3)]);
    let first = written("i").remove(0);
    assert_eq!(catalogs.current(&first).unwrap().version, 3);
    let of_lab = SequencedEvent { context: "lab".to_owned(), ..first };
    assert_eq!(catalogs.current(of_lab).unwrap().version, 1);
}

#[test]
fn a_current_event_is_not_upcast_again() {
    let catalog = catalog(3);
    let first = written("i").remove(0);
    let once = catalog.current(&first).unwrap().into_event();
    assert_eq!((once.version, once.data["cents"].as_u64()), (3, Some(400)));
    assert_eq!(catalog.current(&once).unwrap().into_event(), once);
}

#[test]
fn a_renamed_type_is_read_under_both_names_and_a_retired_one_is_not_written() {
    assert_eq!(Consumed::TYPES, ["ItemAdded", "ItemRemoved", "ItemDropped"]);
    assert_eq!(evolving::Dropped::NAME, "ItemDropped");
    let schemas = <Retiring as Writes>::SCHEMAS.to_vec();
    let catalog = Catalog::new("shelf", schemas).unwrap();
    let error = ringfence_core::check::<Retiring>(&catalog).unwrap_err();
    let event_type = "ItemDropped".into();
    assert_eq!(error, SliceError::Retired { slice: "retiring", event_type });
}

/// Writes a retired type, which only a handwritten `Writes` can do.
#[derive(Clone, Debug, PartialEq, Command)]
struct Retiring {
    #[tag(partition)]
    item_id: String,
}

impl Writes for Retiring {
    const SCHEMAS: &'static [EventSchema] = &[evolving::Dropped::SCHEMA];

    fn visit(visitor: &mut impl EventVisitor) {
        visitor.event::<evolving::Dropped>();
    }

    fn to_event(&self) -> Result<NewEvent, ringfence_core::EventError> {
        NewEvent::new(&evolving::Dropped { item_id: self.item_id.clone() })
    }
}

impl Slice for Retiring {
    const NAME: &'static str = "retiring";
    type Context = evolving::Shelf;
    type State = evolving::Known;
    type Writes = Self;
    type Rejection = Never;

    fn decide(&self, _: &evolving::Known, _: &CommandContext) -> Result<Vec<Self>, Never> {
        Ok(vec![self.clone()])
    }
}
