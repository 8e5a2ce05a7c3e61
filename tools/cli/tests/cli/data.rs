//! `export` and `import --from jsonl`.

use std::fs;
use std::path::Path;

use futures::TryStreamExt;
use ringfence_core::{
    Append, Appended, BoundaryId, CommandRecord, Consistency, Envelope, EventLog, EventRef,
    Metadata, NewEvent, SequencedEvent, events, kit::id,
};
use ringfence_document_log::{Payload, StreamAppend, StreamAppended, StreamName};
use ringfence_feed::{Checkpoint, Entry, Index, Partition, Until};
use serde_json::{Value, json};

use crate::import::store_that_goes_away;
use crate::logs::customer;
use crate::world::{INDEX, World};
use ringfence_programs::shop::{CustomerMet, ParcelPacked, ProductAdded};

fn added(product: &str) -> NewEvent {
    let (product_id, name, description) =
        (id(product), "Lamp".to_owned(), "it's bright".to_owned());
    ProductAdded { product_id, name, description }.into()
}

fn packed(order: &str, seals: &[&str]) -> Vec<NewEvent> {
    let (order_id, parcel_id) = (id(order), id("p1"));
    let seal_ids = seals.iter().map(|seal| id(seal)).collect();
    events![ParcelPacked { order_id, parcel_id, seal_ids }]
}

/// A customer whose name is sealed, as the log has it.
pub(crate) fn met(customer: &str) -> NewEvent {
    let name = json!({ "$sealed": "AQ", "of": customer, "k": 1 });
    let of = CustomerMet { customer_id: id(customer), name: String::new().into() };
    NewEvent { data: json!({ "customerId": customer, "name": name }), ..of.into() }
}

/// Appends the checkout of a cart with so many items.
async fn checked_out(world: &World, cart: &str, items: u32) {
    let (log, stream) = (world.documents(), StreamName::new("carts", cart).unwrap());
    let envelope = Envelope::default();
    let tip = log.tip(&stream, Consistency::Strong, &envelope).await.unwrap();
    let data = json!({ "items": items, "paidAt": "2024-06-23T01:30:00+02:00" });
    let append = StreamAppend {
        stream: &stream,
        known: tip.as_ref(),
        by_etag: false,
        events: vec![Payload::new("CheckedOut", Some(data))],
        unfolds: Vec::new(),
        envelope: &envelope,
    };
    assert!(matches!(log.append(append).await.unwrap(), StreamAppended::Written(_)));
}

/// A stack with events on each log, indexed.
pub(crate) async fn of_all_logs() -> World {
    let world = World::start().await;
    let by = [("principal".to_owned(), json!("eve")), ("commandId".to_owned(), json!("k"))];
    let by: Metadata = std::collections::BTreeMap::from(by).try_into().unwrap();
    world.append_with([vec![added("p1")], packed("o1", &["s1", "s2"])].concat(), by).await;
    world.append(packed("o2", &["s3"])).await;
    world.append(vec![added("p1")]).await;
    customer(&world, "ada#1", &[1, 2]).await;
    for items in 1..=3 {
        checked_out(&world, "c-1", items).await;
    }
    index(&world).await;
    world
}

/// Appends twelve events of a command to a cart. The events are the command's record.
async fn checked_out_often(world: &World, cart: &StreamName) {
    let log = world.documents();
    let envelope = &Envelope::default().marked(&CommandRecord::new("check-out", "once", &1));
    let tip = log.tip(cart, Consistency::Strong, envelope).await.unwrap();
    let append = StreamAppend {
        stream: cart,
        known: tip.as_ref(),
        by_etag: false,
        events: vec![Payload::new("CheckedOut", Some(json!({ "items": 9 }))); 12],
        unfolds: Vec::new(),
        envelope,
    };
    assert!(matches!(log.append(append).await.unwrap(), StreamAppended::Written(_)));
}

/// Appends the events of a command whose record is an item. Returns the record, and the events that the item names.
async fn with_item(world: &World) -> (CommandRecord, Vec<EventRef>) {
    let record = CommandRecord::new("pack-all", "once", &1);
    let envelope = &Envelope::default().itemized(&record);
    let events = [packed("o5", &[]), packed("o6", &[])].concat();
    let append = Append { events, seen: None, record: Some(&record), envelope };
    match world.log.append(append).await.unwrap() {
        Appended::Committed(events) => (record, events.iter().map(EventRef::from).collect()),
        Appended::Repeated(events) => panic!("{events:?}"),
    }
}

pub(crate) async fn index(world: &World) {
    let stored: Vec<SequencedEvent> = world.log.scan().try_collect().await.unwrap();
    let cart = StreamName::new("carts", "c-1").unwrap();
    let of_streams =
        [Partition::from(BoundaryId::stored("customers#ada#1")), Partition::from(cart.partition())];
    // An append returns its events in any order of their partitions.
    let mut partitions: Vec<_> = stored.iter().map(Partition::of).chain(of_streams).collect();
    partitions.sort();
    partitions.dedup();
    world.index_all(partitions.into_iter().rev()).await;
}

/// The events of the index, ordered by their ids, without the number of further events in their append.
pub(crate) async fn indexed(world: &World) -> Vec<SequencedEvent> {
    let index = Index::new(world.client.clone(), INDEX, world.bodies());
    let entries: Vec<Entry> =
        index.read(Checkpoint::START, Until::Present).try_collect().await.unwrap();
    let events = entries.into_iter().map(|entry| SequencedEvent { rest: 0, ..entry.event });
    let mut events: Vec<_> = events.collect();
    events.sort_by_key(SequencedEvent::id);
    events
}

pub(crate) fn export(world: &World, folder: &Path, more: &[&str]) -> Value {
    let export = ["export", folder.to_str().unwrap()];
    world.json(&[&export[..], more].concat()).1
}

pub(crate) fn import(folder: &Path) -> [&str; 4] {
    ["import", "--from", "jsonl", folder.to_str().unwrap()]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_imported_with_its_ids_and_times() {
    let world = of_all_logs().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events");
    let first = export(&world, &path, &[]);
    assert_eq!(
        (&first["events"], &first["files"], &first["checkpoint"]),
        (&json!(9), &json!(1), &json!(9))
    );
    // First nothing is new, then one event.
    assert_eq!(export(&world, &path, &[])["files"], json!(0));
    world.append(vec![met("ada")]).await;
    // The index has the later of two events with one seal before the earlier one.
    world.append(packed("o3", &["s8"])).await;
    let later = world.append(packed("o4", &["s8"])).await.remove(0);
    world.index(&[&later.partition]).await;
    let (record, recorded) = with_item(&world).await;
    let cart = StreamName::new("carts", "c-1").unwrap();
    checked_out_often(&world, &cart).await;
    index(&world).await;
    let next = export(&world, &path, &[]);
    assert_eq!((&next["events"], &next["allEvents"]), (&json!(17), &json!(26)));
    let lines = fs::read_to_string(path.join("000001.jsonl")).unwrap();
    let (_, tailed) = world.run(&["tail", "--from", "start", "--until-present", "--json"]);
    assert!(tailed.starts_with(&lines), "{tailed}\n{lines}");
    let (_, tailed) = world.run(&["tail", "--from", "start", "--until-present"]);
    assert!(tailed.contains(r#""name":"sealed, of ada"}"#), "{tailed}");
    assert_eq!(world.json(&["read", "customerId:ada"]).1["data"]["name"]["$sealed"], "AQ");

    let other = World::start().await;
    let dry = other.run(&[&import(&path)[..], &["--dry-run"]].concat()).1;
    assert!(dry.ends_with("26 events can be imported\n"), "{dry}");
    let endpoint = store_that_goes_away(other.dynamo.endpoint(), 2);
    let error = other.error_at(&endpoint, &import(&path));
    assert!(error.contains("; the same command goes on with it: importing "), "{error}");
    let (status, said) = other.json(&import(&path));
    let counts =
        |said: &Value| ["imported", "before", "later"].map(|it| said[it].as_u64().unwrap());
    let [imported, before, later] = counts(&said);
    assert_eq!((status, imported + before, later), (0, 26, 0), "{said}");
    assert!(before > 0, "{said}");
    index(&other).await;
    assert_eq!(indexed(&other).await, indexed(&world).await);
    // The item makes a repeat of the command known.
    let found = other.log.recorded(&record, &Envelope::default()).await.unwrap();
    assert_eq!(found, Some(recorded));
    // The events are the record here, and a repeat finds all of them in one item.
    let tip = other.documents().tip(&cart, Consistency::Strong, &Envelope::default()).await;
    assert!(tip.unwrap().unwrap().events.len() >= 12);
    for verify in [
        &["verify", "--settle-seconds", "0"][..],
        &["aggregates", "verify"],
        &["documents", "verify"],
    ] {
        assert_eq!(other.run(verify).0, 0, "{verify:?}");
    }
    let dry = other.run(&[&import(&path)[..], &["--dry-run"]].concat()).1;
    assert!(dry.ends_with("\n0 events can be imported, 26 are there\n"), "{dry}");
    // Each event is there once, also in the stack of the export.
    for world in [&world, &other] {
        assert_eq!(counts(&world.json(&import(&path)).1), [0, 26, 0]);
    }

    // An export that begins later can be imported if the log has the earlier events.
    world.append(packed("o1", &["s9"])).await;
    world.append(vec![added("p3")]).await;
    index(&world).await;
    let rest = folder.path().join("rest");
    assert_eq!(export(&world, &rest, &["--from", "26"])["events"], json!(2));
    let empty = World::start().await;
    let (status, said) = empty.run(&import(&rest));
    let lacks = "broken    orderId+parcelId:o1/p1/2: the log lacks the event before it: export from an earlier place, or \
                 import the events before it first\n";
    assert!(status == 1 && said.contains(lacks), "{said}");
    assert_eq!(counts(&other.json(&import(&rest)).1), [2, 0, 0]);
    // Another event has the place of one, so nothing is written.
    empty.append(vec![added("p3")]).await;
    empty.append(packed("o1", &["s0"])).await;
    let (status, said) = empty.run(&import(&path));
    assert_eq!(status, 1);
    let other = "broken    orderId+parcelId:o1/p1/1: the log has another event in its place, so the import can't be completed";
    assert!(
        said.contains(other)
            && said.ends_with("1 events can't be imported, and nothing is written\n"),
        "{said}"
    );
    assert_eq!(empty.records().len(), 2);
}
