//! Older versions of events and unfolds in Equinox's layout, beside items of other writers.

use ringfence_core::{Catalog, CatalogError, Consistency, Envelope, EventSchema, prelude::*};
use ringfence_document_log::{
    AccessStrategy, Batch, Cache, Category, Document, DocumentError, Documents, Load, Payload,
    Snapshot, Store, StreamAppend, StreamAppended, StreamName, TimelineEvent, decode, handle,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::evolving::{CAREFUL, ItemAdded, KNOWN, Known, Note, Shelf, history, newest, schemas};
use crate::on_both;
use crate::stack::log;

#[path = "../../../../core/tests/core/evolving.rs"]
mod evolving;

type Log = Documents<Known>;

impl Document for Known {}

fn catalog_of(schemas: Vec<EventSchema>) -> Result<Catalog, CatalogError> {
    Catalog::of_streams("shelf", schemas)
}

on_both![
    each_version_is_read_as_the_newest,
    an_unfold_that_is_an_event_has_its_version,
    a_newer_version_is_a_separate_error,
    a_snapshot_of_other_versions_is_read_only_in_place_of_pruned_events,
];

/// A state that does not read the type with upcasts.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Removals(Vec<String>);

#[derive(Reads)]
enum Removed {
    ItemRemoved,
}

impl State for Removals {
    type Reads = Removed;

    fn evolve(self, Removed::ItemRemoved: Removed) -> Self {
        self
    }
}

impl Document for Removals {}

/// The context of a later build, with that state.
struct Later;

impl Context for Later {
    const NAME: &'static str = Shelf::NAME;
    type Log = Documents<Removals>;

    fn catalog() -> Result<Catalog, CatalogError> {
        Shelf::catalog()
    }
}

/// The context of the program that still writes the second version.
struct Careful;

impl Context for Careful {
    const NAME: &'static str = Shelf::NAME;
    type Log = Log;

    fn catalog() -> Result<Catalog, CatalogError> {
        catalog_of(schemas(CAREFUL))
    }
}

fn shelf<S: Store>(store: S, access: AccessStrategy<Known>) -> Category<Known, S> {
    Category::new::<Shelf>(log(store), access, Cache::none()).expect("each event names an item")
}

fn stream(item: &str) -> StreamName {
    StreamName::new("shelf", item).expect("a name")
}

/// Appends an event in the form of an earlier program.
async fn append<S: Store>(store: S, item: &str, event: Payload) -> Batch {
    append_with(store, item, event, Vec::new()).await
}

async fn append_with<S: Store>(
    store: S,
    item: &str,
    event: Payload,
    unfolds: Vec<Payload>,
) -> Batch {
    let (log, stream, envelope) = (log(store), stream(item), Envelope::default());
    let known = log.tip(&stream, Consistency::Strong, &envelope).await.expect("an answer");
    let (known, events) = (known.as_ref(), vec![event]);
    let by_etag = false;
    let append =
        StreamAppend { stream: &stream, known, by_etag, events, unfolds, envelope: &envelope };
    match log.append(append).await.expect("it is settled") {
        StreamAppended::Written(tip) => tip,
        StreamAppended::Conflict(found) => panic!("nobody else writes: {found:?}"),
    }
}

/// The event in the form of the program of this number, without the field that the stream's name has.
fn payload(program: u32, mut event: NewEvent) -> Payload {
    event.data.as_object_mut().expect("an object").remove("itemId");
    let types = schemas(program);
    let schema = types.iter().find(|of| of.name == event.event_type).expect("a type of then");
    let (version, data) = schema.stored(event.data).expect("nothing is lost");
    Payload { version, ..Payload::new(event.event_type.into_owned(), Some(data)) }
}

async fn each_version_is_read_as_the_newest<S: Store + Clone>(store: S) {
    let mut tip = None;
    for (program, event) in history("i") {
        tip = Some(append(store.clone(), "i", payload(program, event)).await);
    }
    let tip = tip.expect("a Tip");
    let meta = tip.events.iter().map(|event| event.meta.json().expect("JSON"));
    let marked = |version| Some(json!({ "schema": { "ItemAdded": version } }));
    assert_eq!(meta.collect::<Vec<_>>(), [None, None, marked(2), marked(3)]);
    let (category, envelope) =
        (shelf(store.clone(), AccessStrategy::Unoptimized), Envelope::default());
    handle(&category, &Note { item_id: "i".to_owned() }, &envelope).await.expect("accepted");
    let (known, _) = category
        .query("i", Load::Strong, &envelope, |known| known.0.clone())
        .await
        .expect("a state");
    assert_eq!(known, KNOWN);
    // The event in the form of the index and the bus.
    let stored = TimelineEvent { index: 2, event: tip.events[2].clone() };
    let fed = stored.fed(&stream("i")).expect("an event");
    assert_eq!((fed.version, fed.metadata.iter().count()), (2, 0));
    let read = decode::<Shelf, Known>(&fed).expect("its shape").expect("it is read");
    assert_eq!(Known::default().evolve(read).0, ["cup for 300"]);
}

async fn an_unfold_that_is_an_event_has_its_version<S: Store + Clone>(store: S) {
    let access = || AccessStrategy::LatestKnownEvent;
    let (category, envelope) = (shelf(store.clone(), access()), Envelope::default());
    let decide = |_: &Known| Ok::<_, Never>(vec![newest("i")]);
    category.transact("i", Load::Strong, &envelope, decide).await.expect("accepted");
    let known = category.query("i", Load::Strong, &envelope, |known| known.0.clone()).await;
    assert_eq!(known.expect("a state").0, ["jug for 700"]);
    // A category that writes an older version has it in both places.
    let careful = Category::new::<Careful>(log(store.clone()), access(), Cache::none());
    let careful = careful.expect("each event names an item");
    let decide = |_: &Known| Ok::<_, Never>(vec![newest("j")]);
    careful.transact("j", Load::Strong, &envelope, decide).await.expect("accepted");
    let known = careful.query("j", Load::Strong, &envelope, |known| known.0.clone()).await;
    assert_eq!(known.expect("a state").0, ["jug for 700"]);
    let tip = log(store).tip(&stream("j"), Consistency::Strong, &envelope).await;
    let tip = tip.expect("an answer").expect("a Tip");
    let bodies =
        [(&tip.events[0].data, &tip.events[0].meta), (&tip.unfolds[0].data, &tip.unfolds[0].meta)];
    for (data, meta) in bodies {
        let second = json!({ "title": "jug", "price": 7 });
        assert_eq!(data.json().expect("JSON"), Some(second));
        assert_eq!(meta.json().expect("JSON"), Some(json!({ "schema": { "ItemAdded": 2 } })));
    }
    let lossy = || ItemAdded { item_id: "j".to_owned(), title: "jug".to_owned(), cents: 750 };
    let decide = |_: &Known| Ok::<_, Never>(vec![lossy().into()]);
    let refused = careful
        .transact("j", Load::Strong, &envelope, decide)
        .await
        .expect_err("750 cents are no euros");
    assert!(matches!(&refused, DocumentError::Downcast(_)), "{refused:?}");
}

async fn a_newer_version_is_a_separate_error<S: Store + Clone>(store: S) {
    let newer = Payload { version: 4, ..payload(3, newest("i")) };
    append(store.clone(), "i", newer).await;
    let category = shelf(store, AccessStrategy::Unoptimized);
    let read = category.query("i", Load::Strong, &Envelope::default(), |_| ()).await;
    let error = read.expect_err("nobody knows it");
    assert!(matches!(&error, DocumentError::NewerVersion(it) if it.known == 3), "{error:?}");
}

async fn a_snapshot_of_other_versions_is_read_only_in_place_of_pruned_events<S: Store + Clone>(
    store: S,
) {
    let envelope = Envelope::default();
    let snapshot = || {
        let access = AccessStrategy::Snapshot(Snapshot::named("Kept"));
        shelf(store.clone(), access)
    };
    let known = async |item: &str| {
        let known = snapshot().query(item, Load::Strong, &envelope, |known| known.0.clone()).await;
        known.map(|(known, _)| known)
    };
    // An item has had two upcasts.
    for (item, version, state) in
        [("old", 1, "of version 1"), ("same", 3, "of version 3"), ("new", 4, "of version 4")]
    {
        let unfold = Payload { version, ..Payload::new("Kept", Some(json!([state]))) };
        let event = payload(1, history(item).remove(0).1);
        append_with(store.clone(), item, event, vec![unfold]).await;
        let expected = if version == 3 { state } else { "mug for 400" };
        assert_eq!(known(item).await.expect("a state"), [expected], "{item}");
        // A version of the fold counts as one more.
        let raised = AccessStrategy::Snapshot(Snapshot::named("Kept").version(1));
        let raised = shelf(store.clone(), raised);
        let read = raised.query(item, Load::Strong, &envelope, |known| known.0.clone()).await;
        let expected = if version == 4 { state } else { "mug for 400" };
        assert_eq!(read.expect("a state").0, [expected], "{item}");
        // A state without events is read unchanged.
        let rolling = shelf(store.clone(), AccessStrategy::RollingState(Snapshot::named("Kept")));
        let read = rolling.query(item, Load::Strong, &envelope, |known| known.0.clone()).await;
        assert_eq!(read.expect("a state").0, [state]);
        // If the events are gone, a read takes an older state. It can't understand a newer one.
        log(store.clone()).prune(&stream(item), 1, &envelope).await.expect("pruned");
        match known(item).await {
            Ok(known) => assert_eq!((known, version < 4), (vec![state.to_owned()], true), "{item}"),
            Err(error) => {
                let is_newer = matches!(&error, DocumentError::NewerVersion(it) if it.known == 3);
                assert!(is_newer && version == 4, "{item}: {error:?}");
            }
        }
    }
    // The same holds if the snapshot is an event, which other writers of the layout may write.
    for (item, version, state) in
        [("o", 1, "of version 1"), ("s", 3, "of version 3"), ("n", 4, "of version 4")]
    {
        let kept = Payload { version, ..Payload::new("Kept", Some(json!([state]))) };
        for event in [payload(1, history(item).remove(0).1), kept, payload(3, newest(item))] {
            append(store.clone(), item, event).await;
        }
        let first = if version == 3 { state } else { "mug for 400" };
        assert_eq!(known(item).await.expect("a state"), [first, "jug for 700"], "{item}");
        log(store.clone()).prune(&stream(item), 1, &envelope).await.expect("pruned");
        match known(item).await {
            Ok(known) => assert_eq!(
                (&*known, version < 4),
                (&[state.to_owned(), "jug for 700".to_owned()][..], true)
            ),
            Err(error) => {
                let is_newer = matches!(&error, DocumentError::NewerVersion(it) if it.known == 3);
                assert!(is_newer && version == 4, "{item}: {error:?}");
            }
        }
    }
    // A newer build whose state reads fewer types still has the higher number.
    let access = AccessStrategy::Snapshot(Snapshot::named("Kept"));
    let later = Category::<Removals, _>::new::<Later>(log(store.clone()), access, Cache::none());
    let later = later.expect("each event names an item");
    let read = later.query("same", Load::Strong, &envelope, |state| state.0.clone()).await;
    assert_eq!(read.expect("a state").0, ["of version 3"]);
    // The next append keeps one of these versions.
    let decide = |_: &Known| Ok::<_, Never>(vec![newest("old")]);
    let added = snapshot().transact("old", Load::Strong, &envelope, decide).await;
    added.expect("accepted");
    let tip = log(store.clone()).tip(&stream("old"), Consistency::Strong, &envelope).await;
    let unfolds = tip.expect("an answer").expect("a Tip").unfolds;
    let marks = unfolds.iter().map(|unfold| unfold.meta.json().expect("JSON"));
    assert_eq!(marks.collect::<Vec<_>>(), [Some(json!({ "schema": { "Kept": 3 } }))]);
    assert_eq!(known("old").await.expect("a state"), ["of version 1", "jug for 700"]);
}
