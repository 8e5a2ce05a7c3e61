//! `ringfence import --from reventless`, with items as Reventless writes them.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use futures::TryStreamExt;
use ringfence_aws::{Item, to_attribute};
use ringfence_core::{Context, Decisions, Envelope, Outcome, SequencedEvent, handle, kit::id};
use serde_json::{Value, json};

use crate::world::{EVENTS, World};
use ringfence_programs::shop::{PackParcel, ProductCatalog};

const SOURCE: &str = "reventless";
const IMPORT: [&str; 4] = ["import", "--from", "reventless", SOURCE];

/// A stack, and the table of another DCB log.
async fn world() -> World {
    let world = World::start().await;
    let keys = [("id", KeyType::Hash), ("position", KeyType::Range)];
    let create = world.client.create_table().table_name(SOURCE);
    let create = keys.into_iter().fold(create, |create, (name, kind)| {
        let key = KeySchemaElement::builder().attribute_name(name).key_type(kind);
        let is_text = AttributeDefinition::builder().attribute_name(name);
        let is_text = is_text.attribute_type(ScalarAttributeType::S);
        create.key_schema(key.build().unwrap()).attribute_definitions(is_text.build().unwrap())
    });
    create.billing_mode(BillingMode::PayPerRequest).send().await.unwrap();
    world
}

async fn put(world: &World, items: impl IntoIterator<Item = Value>) {
    for item in items {
        let item = item.as_object().unwrap().iter();
        let item: Item =
            item.map(|(name, value)| (name.clone(), to_attribute(name, value).unwrap())).collect();
        world.client.put_item().table_name(SOURCE).set_item(Some(item)).send().await.unwrap();
    }
}

/// An event's item.
fn item(id: &str, position: &str, event: &str, data: Value, tags: &[(&str, &str)]) -> Value {
    let all: Vec<_> =
        tags.iter().map(|(key, value)| json!({ "key": key, "value": value })).collect();
    let mut item = json!({
        "id": id,
        "position": position,
        "event": event,
        "data": data,
        "recordedAt": "2024-06-23T00:00:00.000Z",
        "tags": all,
        "service": "shopDcbEventLog",
        "time": "2024-06-23T00:00:00.000Z",
        "msgId": "m1",
        "correlationId": "c1",
    });
    for (key, value) in tags {
        item[format!("tag_{key}")] = json!(value);
    }
    if tags.len() > 1 {
        let mut pairs: Vec<_> = tags.iter().map(|(key, value)| format!("{key}:{value}")).collect();
        pairs.sort();
        item["tag_composite"] = json!(pairs.join("#"));
    }
    item
}

/// A product that was added this many milliseconds after the first.
fn added(product: &str, ms: u64) -> Value {
    let id = format!("productId:{product}");
    let position = format!("{}-550e8400-e29b-41d4-a716-446655440000", 1_719_100_800_000 + ms);
    let data = json!({ "productId": product, "name": "Lamp", "description": "bright" });
    item(&id, &position, "ProductAdded", data, &[("productId", product)])
}

const RENAMED: &str = "1719100803000-000000-16fd2706-8baf-433b-82eb-8c7fada847da";
const ADDED: &str = "1719100800000-550e8400-e29b-41d4-a716-446655440000";
const PLACED: &str = "1719100801000-000000-7d444840-9dc0-11d1-b245-5ffdce74fad2";
const PACKED: &str = "1719100801000-000000-7d444840-9dc0-11d1-b245-5ffdce74fad2-001";
/// An event of another writer in the same millisecond.
const PLACED_TOO: &str = "1719100801000-000000-9f0c3a52-0d1f-4d6c-9f0e-52b1d1a3c111";

/// Five events in four partitions, and other items that such a table has.
fn shop() -> Vec<Value> {
    let product = |name: &str| json!({ "productId": "p1", "name": name, "description": "bright" });
    let p1 = [("productId", "p1")];
    let renamed = item("productId:p1", RENAMED, "ProductNameChanged", product("Torch"), &p1);
    let mut added = item("productId:p1", ADDED, "ProductAdded", product("Lamp"), &p1);
    added["headers"] = json!({ "user": { "id": 7, "roles": ["clerk"] } });
    let order = [("orderId", "o1"), ("customerId", "c1")];
    let data = json!({ "orderId": "o1", "customerId": "c1" });
    let placed = item("orderId:o1", PLACED, "OrderPlaced", data, &order);
    // An attribute has one value, so an index there has only the last seal.
    let seals = [("sealId", "s1"), ("sealId", "s2"), ("sealId", "s1")];
    let parcel = [&[("orderId", "o1"), ("parcelId", "1")][..], &seals].concat();
    let data = json!({ "orderId": "o1", "parcelId": "1", "sealIds": ["s1", "s2"] });
    let mut packed = item("o1/1", PACKED, "ParcelPacked", data, &parcel);
    packed["context"] = json!("warehouse");
    let data = json!({ "orderId": "o2" });
    let too = item("orderId:o2", PLACED_TOO, "OrderPlaced", data, &[("orderId", "o2")]);
    let fence = json!({
        "id": "fence#productId:p1",
        "position": "FENCE",
        "pos#ProductAdded": ADDED,
        "pos#ProductNameChanged": RENAMED,
    });
    let snapshot = json!({
        "id": "productId:p1", "position": "SNAPSHOT", "state": { "name": "Torch" }, "version": 2,
    });
    vec![renamed, fence, too, packed, placed, snapshot, added]
}

/// The events of the log, in fold order.
async fn events(world: &World) -> Vec<SequencedEvent> {
    let mut events: Vec<SequencedEvent> = world.log.scan().try_collect().await.unwrap();
    events.sort_by_key(SequencedEvent::place);
    events
}

async fn decide(world: &World, order: &str, parcel: &str, seals: &[&str]) -> Outcome {
    let seal_ids = seals.iter().map(|seal| id(seal)).collect();
    let command = PackParcel { order_id: id(order), parcel_id: id(parcel), seal_ids };
    let catalog = ProductCatalog::catalog().unwrap();
    let (decisions, envelope) = (Decisions::new(0), Envelope::default());
    handle(&world.log, &catalog, &decisions, &command, &envelope).await.unwrap().outcome
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_reventless_are_imported_once_and_decided_on() {
    let world = world().await;
    put(&world, shop()).await;
    let left_out = "left out  tag customerId, which OrderPlaced does not declare: 1 times\n";

    let dry = world.run(&[&IMPORT[..], &["--dry-run"]].concat());
    assert_eq!(dry, (0, format!("{left_out}5 events can be imported\n")));
    assert_eq!(events(&world).await, []);

    let said = world.run(&IMPORT);
    assert_eq!(said, (0, format!("{left_out}5 imported, 0 were there before\n")));
    let events = events(&world).await;
    let places: Vec<_> = events.iter().map(|event| event.place().to_string()).collect();
    let expected = [
        "1719100800000/productId:p1/1",
        "1719100801000/orderId:o1/1",
        "1719100801001/orderId+parcelId:o1/1/1",
        "1719100801002/orderId:o2/1",
        "1719100803000/productId:p1/2",
    ];
    assert_eq!(places, expected);
    let [added, placed, packed, ..] = &events[..] else { unreachable!("there are five") };
    assert_eq!((&*added.event_type, &*added.context), ("ProductAdded", "catalog"));
    assert_eq!(added.data["name"], json!("Lamp"));
    let meta = json!({
        "service": "shopDcbEventLog",
        "time": "2024-06-23T00:00:00.000Z",
        "msgId": "m1",
        "correlationId": "c1",
    });
    let mut with_headers = meta.clone();
    with_headers["headers"] = json!({ "user": { "id": 7, "roles": ["clerk"] } });
    assert_eq!(json!(added.metadata), with_headers);
    // A tag that the type does not declare is left out, and so is a repeated one. The payload keeps them.
    assert_eq!(json!(placed.tags), json!([{ "key": "orderId", "value": "o1" }]));
    assert_eq!(placed.data, json!({ "orderId": "o1", "customerId": "c1" }));
    let seals: Vec<_> = packed.tags[2..].iter().map(|tag| tag.value.as_str()).collect();
    assert_eq!(seals, ["s1", "s2"]);
    let mut with_context = meta;
    with_context["context"] = json!("warehouse");
    assert_eq!(json!(packed.metadata), json!({ "metadata": with_context }));
    assert_eq!(world.run(&["verify", "--settle-seconds", "0"]).0, 0);

    let rejected = |outcome| match outcome {
        Outcome::Rejected { rejected, .. } => {
            rejected.rejection["code"].as_str().unwrap().to_owned()
        }
        Outcome::Accepted(events) => panic!("{events:?}"),
    };
    assert_eq!(rejected(decide(&world, "o1", "1", &["s9"]).await), "AlreadyPacked");
    assert_eq!(rejected(decide(&world, "o2", "1", &["s1"]).await), "SealUsed");
    assert_eq!(rejected(decide(&world, "o2", "1", &["s2"]).await), "SealUsed");
    let packed = decide(&world, "o1", "2", &["s3"]).await;
    assert!(matches!(packed, Outcome::Accepted(events) if events[0].slot == 1));

    // The next import takes only new events.
    put(&world, [self::added("p2", 9_000)]).await;
    let (status, again) = world.json(&IMPORT);
    let expected = json!({
        "events": 6,
        "imported": 1,
        "before": 5,
        "leftOut": [{ "type": "OrderPlaced", "tag": "customerId", "times": 1 }],
        "gone": 0,
        "broken": [],
    });
    assert_eq!((status, again), (0, expected));
    let said = world.run(&IMPORT);
    assert_eq!(said, (0, format!("{left_out}0 imported, 6 were there before\n")));
}

#[tokio::test(flavor = "multi_thread")]
async fn items_that_do_not_fit_are_named_and_nothing_is_written() {
    let world = world().await;
    let broken = |product: &str, change: &dyn Fn(&mut Value)| {
        let mut item = added(product, 1);
        change(&mut item);
        item
    };
    put(&world, shop()).await;
    put(
        &world,
        [
            broken("a", &|item| item["event"] = json!("ProductLost")),
            broken("b", &|item| item["event"] = json!("ProductLost")),
            broken("c", &|item| item["tags"] = json!([])),
            broken("d", &|item| item["tags"] = json!(7)),
            broken("e", &|item| {
                let tag = json!({ "key": "productId", "value": "x" });
                item["tags"].as_array_mut().unwrap().push(tag);
            }),
            broken("f", &|item| drop(item.as_object_mut().unwrap().remove("data"))),
            broken("g", &|item| drop(item["data"].as_object_mut().unwrap().remove("name"))),
            broken("h", &|item| item["position"] = json!("yesterday")),
            broken("i", &|item| item["tags"][0]["value"] = json!("")),
            broken("j", &|_| ()),
            broken("k", &|_| ()),
            broken("l", &|item| item["position"] = json!("9999999999999-1")),
            broken("m", &|item| item["schema"] = json!(2)),
        ],
    )
    .await;
    let position = "1719100800001-550e8400-e29b-41d4-a716-446655440000";
    let named = |product: &str| format!("productId:{product}/{position}");
    let expected = [
        (
            named("e"),
            "ProductAdded has several values of the tag productId, and an event may have only one",
        ),
        (named("c") + " and 1 more", "ProductAdded needs a value for its partition tag productId"),
        (named("f"), "attribute data is missing"),
        (
            named("d"),
            "attribute tags must be a list of tags: invalid type: integer `7`, expected a sequence",
        ),
        (named("g"), "catalog-products can't read ProductAdded: data.name: is missing"),
        (named("a") + " and 1 more", "event type ProductLost is not in the catalog"),
        (
            named("m"),
            "its metadata \"schema\" would be the version of the payload in this log: give it another name \
             in the source",
        ),
        (
            "productId:h/yesterday".to_owned(),
            "its position does not begin with 13 digits of milliseconds and a hyphen",
        ),
        (
            "productId:l/9999999999999-1".to_owned(),
            "its time lies in the future: import it then, or set the clock of this machine if it is slow",
        ),
        (
            position.to_owned(),
            "two events have this position, and only one of them would be imported",
        ),
    ];
    let expected = expected.map(|(items, cause)| format!("broken    {items}: {cause}"));
    for import in [&IMPORT[..], &[&IMPORT[..], &["--dry-run"]].concat()] {
        let (status, said) = world.run(import);
        let mut said: Vec<_> = said.lines().skip(1).collect();
        assert_eq!(said.pop(), Some("12 events can't be imported, and nothing is written"));
        assert_eq!((status, said), (1, expected.iter().map(String::as_str).collect()));
    }
    let (status, said) = world.json(&IMPORT);
    assert_eq!((status, &said["events"], &said["imported"]), (1, &json!(18), &json!(0)));
    let items = ["a", "b"].map(named);
    let lost = json!({
        "cause": "event type ProductLost is not in the catalog",
        "items": items,
    });
    assert!(said["broken"].as_array().unwrap().contains(&lost), "{said}");
    assert_eq!(events(&world).await, []);
}

/// Forwards connections to the store, until this many transactions were forwarded. Then it accepts nothing more, and
/// the last transaction gets no answer.
pub(crate) fn store_that_goes_away(endpoint: &str, transactions: usize) -> String {
    let to = endpoint.strip_prefix("http://").unwrap().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let come = Arc::new(AtomicUsize::new(0));
    thread::spawn(move || {
        // Each connection has its thread. One that waited for another would have no answer within the client's time
        // limit.
        while let Ok((client, _)) = listener.accept()
            && come.load(Ordering::SeqCst) < transactions
        {
            let store = TcpStream::connect(&to).unwrap();
            let come = come.clone();
            thread::spawn(move || hand_on(client, store, &come, transactions));
        }
    });
    format!("http://{address}")
}

/// Forwards a connection, until all connections together had this many transactions.
fn hand_on(mut client: TcpStream, mut store: TcpStream, come: &AtomicUsize, transactions: usize) {
    let (mut answers, mut back) = (store.try_clone().unwrap(), client.try_clone().unwrap());
    thread::spawn(move || std::io::copy(&mut answers, &mut back));
    let mut bytes = [0; 65_536];
    while let Ok(read @ 1..) = client.read(&mut bytes) {
        let is_transaction = String::from_utf8_lossy(&bytes[..read]).contains("TransactWriteItems");
        let before = come.fetch_add(usize::from(is_transaction), Ordering::SeqCst);
        if before + usize::from(is_transaction) >= transactions {
            client.shutdown(Shutdown::Both).unwrap();
        }
        if before >= transactions {
            return;
        }
        store.write_all(&bytes[..read]).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_that_was_broken_off_goes_on() {
    let world = world().await;
    put(&world, shop()).await;
    let endpoint = store_that_goes_away(world.dynamo.endpoint(), 3);
    let said = world.error_at(&endpoint, &IMPORT);
    let at = format!("error: broken off at {PACKED}, after 2 imported, 0 were there before: ");
    assert!(said.starts_with(&at), "{said}");

    let (status, rest) = world.json(&IMPORT);
    let number = |name: &str| rest[name].as_u64().unwrap();
    // The transaction without an answer may have taken effect.
    assert!((2..=3).contains(&number("before")), "{rest}");
    assert_eq!((status, number("imported") + number("before")), (0, 5), "{rest}");
    assert_eq!(events(&world).await.len(), 5);
    assert_eq!(world.run(&["verify", "--settle-seconds", "0"]).0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_table_is_not_imported_from_or_into() {
    let world = world().await;
    let said = world.error(&["import", "--from", "reventless", EVENTS]);
    assert_eq!(
        said,
        "error: events is the table of a DCB log, which --table names; see `ringfence verify`\n"
    );
    let said = world.error(&[&IMPORT[..], &["--table", SOURCE]].concat());
    let what = "a table of Reventless' DCB log; see `ringfence import`";
    assert_eq!(said, format!("error: {SOURCE} is {what}\n"));
    let said = world.error(&["import", "--from", "reventless", "nowhere"]);
    assert!(said.starts_with("error: describing table nowhere: "), "{said}");
}
