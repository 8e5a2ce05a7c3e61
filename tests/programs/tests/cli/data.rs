//! `export` and `import --from jsonl`.

use std::fs;
use std::path::Path;

use futures::TryStreamExt;
use ringfence::{
    Append, Appended, CommandRecord, Consistency, Envelope, EventLog, EventRef, Metadata, NewEvent,
    SequencedEvent, events, kit::id,
};
use ringfence_document_log::{Payload, StreamAppend, StreamAppended, StreamName};
use ringfence_feed::{Checkpoint, Entry, Index, Partition, Until};
use serde_json::{Value, json};

use crate::import::store_that_goes_away;
use crate::logs::customer;
use crate::world::{INDEX, World};
use ringfence_programs::shop::{ParcelPacked, ProductAdded};

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

/// Appends that a cart with so many items was checked out.
async fn checked_out(world: &World, cart: &str, items: u32) {
    let (log, stream) = (world.documents(), StreamName::new("carts", cart).unwrap());
    let envelope = Envelope::default();
    let tip = log.tip(&stream, Consistency::Strong, &envelope).await.unwrap();
    let append = StreamAppend {
        stream: &stream,
        known: tip.as_ref(),
        by_etag: false,
        events: vec![Payload::new("CheckedOut", Some(json!({ "items": items })))],
        unfolds: Vec::new(),
        envelope: &envelope,
    };
    assert!(matches!(log.append(append).await.unwrap(), StreamAppended::Written(_)));
}

/// Events on each log, in the index.
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

/// Appends twelve events of a command whose record they are, to a cart.
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

/// Appends the events of a command whose record is an item; its record, and the events that the item names.
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

async fn index(world: &World) {
    let stored: Vec<SequencedEvent> = world.log.scan().try_collect().await.unwrap();
    let cart = StreamName::new("carts", "c-1").unwrap();
    let of_streams = [Partition::of_aggregate("customers#ada#1"), Partition::of_document(&cart)];
    // The events of an append come in any order of their partitions.
    let mut partitions: Vec<_> = stored.iter().map(Partition::of).chain(of_streams).collect();
    partitions.sort();
    partitions.dedup();
    world.index_all(partitions.into_iter().rev()).await;
}

/// The events of the index, in the order of their ids, without how many follow of their append.
async fn indexed(world: &World) -> Vec<SequencedEvent> {
    let index = Index::new(world.client.clone(), INDEX);
    let entries: Vec<Entry> =
        index.read(Checkpoint::START, Until::Present).try_collect().await.unwrap();
    let events = entries.into_iter().map(|entry| SequencedEvent { rest: 0, ..entry.event });
    let mut events: Vec<_> = events.collect();
    events.sort_by_key(SequencedEvent::id);
    events
}

pub(crate) fn export(world: &World, folder: &Path, more: &[&str]) -> Value {
    let export = ["export", "--to", "jsonl", folder.to_str().unwrap()];
    world.json(&[&export[..], more].concat()).1
}

/// Lists in one another, so many.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(0), |inside, _| json!([inside]))
}

fn import(folder: &Path) -> [&str; 4] {
    ["import", "--from", "jsonl", folder.to_str().unwrap()]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_exported_is_imported_with_its_ids_and_times() {
    let world = of_all_logs().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events");
    let first = export(&world, &path, &[]);
    assert_eq!(
        (&first["events"], &first["files"], &first["checkpoint"]),
        (&json!(9), &json!(1), &json!(9))
    );
    // Nothing is new, and then one event.
    assert_eq!(export(&world, &path, &[])["files"], json!(0));
    world.append(vec![added("p2")]).await;
    // The index has the later one of two events with one seal before the earlier one.
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

    let other = World::start().await;
    let dry = other.run(&[&import(&path)[..], &["--dry-run"]].concat()).1;
    assert!(dry.ends_with("26 events can be imported\n"), "{dry}");
    let endpoint = store_that_goes_away(other.dynamo.endpoint(), 2);
    let error = other.error(&[&import(&path)[..], &["--endpoint-url", &endpoint]].concat());
    assert!(error.contains("; the same command goes on with it: importing "), "{error}");
    let (status, said) = other.json(&import(&path));
    let counts =
        |said: &Value| ["imported", "before", "later"].map(|it| said[it].as_u64().unwrap());
    let [imported, before, later] = counts(&said);
    assert_eq!((status, imported + before, later), (0, 26, 0), "{said}");
    assert!(before > 0, "{said}");
    index(&other).await;
    assert_eq!(indexed(&other).await, indexed(&world).await);
    // A repeat of the command is known by its item.
    let found = other.log.recorded(&record, &Envelope::default()).await.unwrap();
    assert_eq!(found, Some(recorded));
    // Where the events are the record, a repeat finds all of them in one item.
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
    // Each event is there once, also in the stack that it is from.
    for world in [&world, &other] {
        assert_eq!(counts(&world.json(&import(&path)).1), [0, 26, 0]);
    }

    // What comes between is imported from an export that begins later, if the rest is there.
    world.append(packed("o1", &["s9"])).await;
    world.append(vec![added("p3")]).await;
    index(&world).await;
    let rest = folder.path().join("rest");
    assert_eq!(export(&world, &rest, &["--from", "26"])["events"], json!(2));
    let empty = World::start().await;
    let (status, said) = empty.run(&import(&rest));
    let lacks = "broken    orderId+parcelId:o1/p1/2: the log lacks the event before it: export from an earlier place, or \
                 import what comes before it first\n";
    assert!(status == 1 && said.contains(lacks), "{said}");
    assert_eq!(counts(&other.json(&import(&rest)).1), [2, 0, 0]);
    // Another event is in the place of one, so nothing is written, neither it nor the others.
    empty.append(vec![added("p3")]).await;
    empty.append(packed("o1", &["s0"])).await;
    let (status, said) = empty.run(&import(&path));
    assert_eq!(status, 1);
    let other = "broken    orderId+parcelId:o1/p1/1: the log has another event in its place, so the import can't be ended";
    assert!(
        said.contains(other)
            && said.ends_with("1 events can't be imported, and nothing is written\n"),
        "{said}"
    );
    assert_eq!(empty.records().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_do_not_fit_are_named_by_their_numbers_and_nothing_is_written() {
    let world = of_all_logs().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events");
    // Only what is asked for.
    let orders = export(&world, &path, &["--context", "carts", "--context", "customers"]);
    assert_eq!((&orders["events"], &orders["checkpoint"]), (&json!(5), &json!(9)));
    let mistyped = ["export", "--to", "jsonl", path.to_str().unwrap(), "--context", "cart"];
    let error = world.error(&mistyped);
    let why = "this build has no context cart: its contexts are carts, catalog, customers; did you mean carts?";
    assert!(error.contains(why), "{error}");
    let error = world.error(&["export", "--to", "jsonl", path.to_str().unwrap()]);
    assert!(
        error.contains("jsonl of index from 0, carts, customers, and this one would be"),
        "{error}"
    );
    let error = world.error(&["export", "--to", "parquet", folder.path().to_str().unwrap()]);
    assert!(error.contains("build it with --features ringfence-cli/parquet"), "{error}");

    let (_, lines) = world.run(&["tail", "--from", "start", "--until-present", "--json"]);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |id: &str| lines.iter().find(|line| line["id"] == id).unwrap().clone();
    let with = |id: &str, member: &str, value: Value| {
        let mut line = of(id);
        line[member] = value;
        line.to_string()
    };
    let (first, tag) = ("productId:p1/1", &json!({ "key": "productId", "value": "p1" }));
    let with_seals = |seals: &[&str]| {
        let tag = |(key, value): (&str, &str)| json!({ "key": key, "value": value });
        let tags = [("orderId", "o1"), ("parcelId", "p1")];
        let tags = tags.into_iter().chain(seals.iter().map(|seal| ("sealId", *seal))).map(tag);
        with("orderId+parcelId:o1/p1/1", "tags", tags.collect())
    };
    let renamed = |slot: u64, at: &str| {
        let mut line = of("customers#ada#1/2");
        line["id"] = format!("customers#ada#1/{slot}").into();
        (line["slot"], line["recordedAt"]) = (slot.into(), at.into());
        line.to_string()
    };
    let broken = [
        (of(first).to_string(), None),
        ("{".to_owned(), Some("the line is not JSON: EOF while parsing an object at line 1 column 1")),
        (of("productId:p1/2").to_string(), None),
        (
            of(first).to_string(),
            Some("productId:p1/1 is there twice, or after a later event of its partition"),
        ),
        (of("customers#ada#1/2").to_string(), None),
        (with(first, "type", json!("Lost")), Some("context catalog has no event type Lost")),
        (with(first, "context", json!("shop")), Some("this build has no context shop")),
        (
            with(first, "context", json!("carts")),
            Some("it is of the DCB log, and context carts is on the document log"),
        ),
        (
            with(first, "data", json!({})),
            Some("catalog-products can't read ProductAdded: data.productId: is missing"),
        ),
        (
            with(first, "tags", json!([])),
            Some("ProductAdded needs a value for its partition tag productId"),
        ),
        (
            with(first, "tags", json!([{ "key": "productId", "value": "p2" }])),
            Some(
                "event productId:p1/1 would be productId:p2/1 or later by its tags and the events before it",
            ),
        ),
        (
            with(first, "schema", json!(2)),
            Some(
                "the catalog can't read ProductAdded: version 2, and 1 is the newest that is known",
            ),
        ),
        (
            with(first, "recordedAt", json!("9999-01-01T00:00:00.000Z")),
            Some("recordedAt: lies in the future; if the clock"),
        ),
        (
            with(first, "tags", json!([tag, tag])),
            Some("tags: one is there twice; leave one of the two out"),
        ),
        (
            with("carts-c-1/0", "tags", json!([tag])),
            Some("tags: a log of single streams keeps none; give an empty list"),
        ),
        (
            json!({ "id": "shop-c-1/0", "partition": "shop-c-1", "slot": 0, "context": "carts", "tags": [], "meta": {},
                    "type": "CheckedOut", "data": { "items": 1 }, "recordedAt": "2024-06-23T00:00:00.120Z" })
            .to_string(),
            Some("partition shop-c-1 is a stream of context shop, and the event is of context carts"),
        ),
        (
            with("customers#ada#1/1", "data", json!({ "name": "Ada", "nested": nested(30) })),
            Some("DynamoDB can't hold an event of customers#ada#1: payload.nested[0][0]"),
        ),
        (
            with("carts-c-1/0", "data", json!({ "items": 1, "nested": nested(120) })),
            Some("CheckedOut: 121 levels of lists and maps, limit 120; nest its data less"),
        ),
        (
            with_seals(&["s1"]),
            Some("tags: lack sealId:s2, which follows from the payload"),
        ),
        (
            with_seals(&["s1", "s2", "s3"]),
            Some("tags: have sealId:s3, which does not follow from the payload"),
        ),
        (
            with("customers#ada#1/2", "data", json!({ "customerId": "bob", "name": "Bob" })),
            Some("data.customerId: must be \"ada#1\", the id of the stream, is \"bob\""),
        ),
        (
            with("customers#ada#1/2", "streamId", json!("bob")),
            Some("streamId: must be \"ada#1\", as in customers#ada#1, is \"bob\""),
        ),
        (
            of("carts-c-1/0").to_string().replacen(r#""items":"#, r#""items":1,"items":"#, 1),
            Some("data.items: is given twice"),
        ),
        (
            of(first).to_string().replacen(r#""data":{"#, r#""data":{"weight":1584097275961.1234,"#, 1),
            Some("data.weight: is a number that can't be kept as it is"),
        ),
        (
            renamed(1 << 53, "2024-06-23T00:00:00.120Z"),
            Some("slot: must be at most 9007199254740991, is 9007199254740992; the events of a partition"),
        ),
        (
            renamed(3, "2024-06-23T00:00:00.120Z"),
            Some("recordedAt: is 2024-06-23T00:00:00.120Z, and the event before it in customers#ada#1 is of 2"),
        ),
        (of("carts-c-1/0").to_string(), None),
        (of("carts-c-1/2").to_string(), Some("carts-c-1/1 is missing before carts-c-1/2")),
    ];
    let file = folder.path().join("some.jsonl");
    let text: String = broken.iter().map(|(line, _)| format!("{line}\n")).collect();
    fs::write(&file, text + "cut off").unwrap();
    let other = World::start().await;
    let (status, said) = other.run(&import(&file));
    assert_eq!(status, 1);
    for (n, (_, why)) in broken.iter().enumerate() {
        let line = format!("broken    some.jsonl:{}: {}", n + 1, why.unwrap_or_default());
        assert_eq!(said.contains(&line), why.is_some(), "{line}\n{said}");
    }
    assert!(said.contains("broken    some.jsonl:27: the line is cut off\n"), "{said}");
    assert!(said.ends_with("23 events can't be imported, and nothing is written\n"), "{said}");
    assert_eq!(other.records().len(), 0);

    // DynamoDB gives 1.0 back as 1, and it is the same event. A number that a program can't hold is stored as a number,
    // and has all its digits in each copy. An editor may have written a mark at the beginning and an empty line.
    let exact = json!({ "$number": "1584097275961.12340" });
    let of_each_log = [first, "customers#ada#1/1", "carts-c-1/0"].map(|id| {
        let mut line = of(id);
        line["data"]["weight"] = json!([1.0, exact, 1e22]);
        format!("{line}\n")
    });
    fs::write(&file, format!("\u{feff}{}\r\n", of_each_log.concat())).unwrap();
    assert_eq!(other.json(&import(&file)).1["imported"], 3);
    assert_eq!(other.json(&import(&file)).1["before"], 3);
    let stored = other.records().remove(0);
    let weight = &stored["dynamodb"]["NewImage"]["data"]["M"]["weight"];
    assert_eq!(weight["L"][1], json!({ "N": "1584097275961.1234" }));
    let cart = StreamName::new("carts", "c-1").unwrap();
    let (documents, envelope) = (other.documents(), ringfence::Envelope::default());
    let tip = documents.tip(&cart, ringfence::Consistency::Strong, &envelope).await;
    let body = tip.unwrap().unwrap().events[0].data.unpacked().unwrap();
    assert!(String::from_utf8(body).unwrap().contains("1584097275961.12340"));
    index(&other).await;
    let copied = folder.path().join("copied");
    assert_eq!(export(&other, &copied, &[])["events"], 3);
    let copy = World::start().await;
    assert_eq!(copy.json(&import(&copied)).1["imported"], 3);
    index(&copy).await;
    assert_eq!(indexed(&copy).await, indexed(&other).await);
    let weights = indexed(&copy).await.into_iter().map(|event| event.data["weight"][1].to_string());
    assert!(weights.clone().all(|weight| weight.starts_with(r#"{"$number":"1584097275961.1234"#)));
    assert_eq!(weights.count(), 3);

    // What is under one tag is written in the order of the times, whatever the order of the lines.
    let (earlier, mut later) = (of("orderId+parcelId:o1/p1/1"), of("orderId+parcelId:o2/p1/1"));
    later["data"]["sealIds"] = json!(["s1"]);
    for tag in later["tags"].as_array_mut().unwrap().iter_mut().filter(|it| it["key"] == "sealId") {
        tag["value"] = json!("s1");
    }
    fs::write(&file, format!("{later}\n{earlier}\n")).unwrap();
    let said = other.json(&import(&file)).1;
    assert_eq!((&said["imported"], &said["later"]), (&json!(2), &json!(0)), "{said}");

    // An event of an aggregate is not earlier than the last one that the log has.
    let other = World::start().await;
    let later = ["2024-06-23T00:00:00.120Z", "2024-06-23T00:00:00.119Z"];
    fs::write(&file, format!("{}\n", renamed(1, later[0]))).unwrap();
    assert_eq!(other.json(&import(&file)).1["imported"], 1);
    fs::write(&file, format!("{}\n", renamed(2, later[1]))).unwrap();
    let (status, said) = other.run(&import(&file));
    let back = "broken    customers#ada#1/2: recordedAt: is 2024-06-23T00:00:00.119Z, and the event before it";
    assert!(status == 1 && said.starts_with(back), "{said}");

    // A file of an export is as it was written.
    let segment = path.join("000001.jsonl");
    let changed = fs::read_to_string(&segment).unwrap().replace("Ada", "Bob");
    fs::write(&segment, changed).unwrap();
    let error = other.error(&import(&path));
    assert!(error.contains("000001.jsonl is not as the export wrote it"), "{error}");
    let error = other.error(&import(&folder.path().join("nowhere")));
    assert!(error.contains("is neither a file nor the folder of an export"), "{error}");
}
