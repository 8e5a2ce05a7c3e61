use aws_sdk_dynamodb::types::AttributeValue;
use ringfence::{
    Append, BoundaryId, Catalog, Envelope, Event, EventLog, EventSchema, NewEvent, Tag,
};
use ringfence_aggregate_log::{self as aggregate, AggregateKey, AggregateTable, PushPlace};
use ringfence_dcb_log::DcbLog;
use ringfence_dynamo::Clock;
use ringfence_feed::Partition;
use ringfence_programs::shop::{ProductAdded, ProductNameChanged};
use serde_json::{Value, json};

use crate::world::{AGGREGATES, EVENTS, World};

#[tokio::test(flavor = "multi_thread")]
async fn fences_are_verified_and_repaired() {
    let world = World::start().await;
    world.demand("p1", "o1").await;

    let run =
        |command, more: &[&str]| world.run(&[&[command, "--settle-seconds", "0"], more].concat());
    let right = (0, "1 events, 1 fences: all in order\n".to_owned());
    assert_eq!(run("verify", &[]), right);

    let text = |text: &str| AttributeValue::S(text.to_owned());
    let number = |number: u64| AttributeValue::N(number.to_string());
    const PAIR: &str = "orderId:o1#productId:p1";
    let update = world.client.update_item().table_name(EVENTS).key("position", number(0));
    let update = update.key("id", text(&format!("fence#{PAIR}")));
    let update = update.update_expression("REMOVE #count");
    let update = update.expression_attribute_names("#count", "cnt#ProductDemandRecorded");
    update.send().await.unwrap();

    let differs = format!("{PAIR}: counts 0 ProductDemandRecorded, found 1\n");
    let wrong = format!("differs  {differs}1 events, 1 fences: not in order\n");
    assert_eq!(run("verify", &["--passes", "2"]), (1, wrong));
    let count = json!({
        "wrong": "count", "type": "ProductDemandRecorded", "counted": 0, "found": 1,
    });
    let expected = json!({
        "events": 1,
        "fences": 1,
        "inOrder": false,
        "broken": {},
        "ahead": {},
        "differences": [{ "boundary": PAIR, "wrong": [count] }],
        "unindexed": {},
        "gaps": {},
        "mended": [],
        "indexed": {},
    });
    assert_eq!(world.json(&["verify", "--settle-seconds", "0"]), (1, expected));

    let mended = format!("mended   {differs}{}", right.1);
    assert_eq!(run("repair", &[]), (0, mended));
    assert_eq!(run("repair", &[]), right);
    assert_eq!(run("verify", &[]), right);

    let put = world.client.put_item().table_name(EVENTS).item("id", text("productId:p1"));
    let put = put.item("position", number(3)).item("event", text("Forgotten"));
    put.send().await.unwrap();
    for command in ["verify", "repair"] {
        let (status, said) = run(command, &[]);
        assert_eq!((status, said.lines().count()), (1, 4), "{said}");
        // Another build may know the type.
        assert!(said.contains(", built 20"), "{said}");
        assert!(
            said.starts_with("gap      productId:p1: slot 2 is missing\nbroken   productId:p1/3: "),
            "{said}"
        );
        assert!(said.ends_with("1 events, 1 fences: not in order\n"), "{said}");
    }
    let (_, report) = world.json(&["verify", "--settle-seconds", "0"]);
    assert_eq!(report["gaps"], json!({ "productId:p1": 2 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_fails_ends_with_status_2() {
    let world = World::start().await;
    // The flag counts more than the environment, and nobody listens there.
    let said = world.error(&["verify", "--endpoint-url", "no endpoint"]);
    assert!(
        said.starts_with("error: describing table events: gave up after 8 attempts: "),
        "{said}"
    );
}

/// A product as another version of the program writes it.
fn product(event_type: &'static str, data: Value) -> NewEvent {
    let tags = vec![Tag::new("productId", "p")];
    NewEvent { event_type: event_type.into(), tags, data }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_this_build_can_not_read_and_what_lies_ahead_is_named() {
    let world = World::start().await;
    let verify = |more: &[&str]| world.run(&[&["verify", "--settle-seconds", "0"], more].concat());
    world.indexed_demand("p", "o").await;
    let right =
        "1 events, 1 fences: all in order\n1 events of the index decoded: all can be read\n";
    assert_eq!(verify(&["--decode"]), (0, right.to_owned()));

    // A field that events lack, one of another type, and a type that this version does not declare.
    let vanished = EventSchema { name: "ProductVanished".into(), ..ProductAdded::SCHEMA };
    let other =
        Catalog::new("catalog", [ProductAdded::SCHEMA, ProductNameChanged::SCHEMA, vanished]);
    let month = Clock::system().now_ms() + 30 * 24 * 3_600_000;
    let log = DcbLog::new(world.client.clone(), EVENTS, other.unwrap(), Clock::fixed(month));
    let events = vec![
        product("ProductAdded", json!({ "productId": "p", "name": "Mug" })),
        product("ProductAdded", json!({ "productId": "p", "name": "Cup" })),
        product("ProductNameChanged", json!({ "productId": "p", "name": 5 })),
        product("ProductVanished", json!({})),
    ];
    let envelope = &Envelope::default();
    log.append(Append { events, seen: None, record: None, envelope }).await.unwrap();
    let customers = AggregateTable::new(world.client.clone(), AGGREGATES, Clock::system());
    let key = AggregateKey::new("customers", "ada").unwrap();
    let (event_type, payload) = ("Renamed".to_owned(), Some(json!({})));
    let renamed =
        aggregate::NewAggregateEvent { event_type, payload, metadata: None, timestamp_ms: None };
    customers.push_event(&key, PushPlace::End, renamed).await.unwrap();
    let of_aggregate = Partition::of_aggregate("customers#ada");
    world.index_all([BoundaryId::stored("productId:p").into(), of_aggregate]).await;

    let by = "read by catalog-products";
    let expected = format!(
        "unread   ProductAdded of catalog: description: missing field `description`; 2 events, the first is \
         productId:p/2; {by}\n\
         unread   ProductNameChanged of catalog: name: invalid type: integer `5`, expected a string; 1 events, \
         the first is productId:p/4; {by}\n\
         unread   ProductVanished of catalog: the context does not declare the type; 1 events, the first is \
         productId:p/5; read by catalog\n\
         unread   Renamed of customers: the context does not declare the type; 1 events, the first is \
         customers#ada/1; read by customers\n\
         6 events of the index decoded: not all can be read\n"
    );
    let (status, said) = verify(&["--decode"]);
    assert_eq!((status, said.ends_with(&expected)), (1, true), "{said}\n{expected}");
    let ahead: Vec<_> =
        said.lines().filter(|line| line.starts_with("ahead    productId:p/")).collect();
    assert_eq!(ahead.len(), 3, "{said}");
    let (_, report) = world.json(&["verify", "--settle-seconds", "0", "--decode"]);
    assert_eq!(report["ahead"]["productId:p/2"], month);
    let unread = report["decoded"]["unread"].as_array().unwrap();
    assert_eq!((unread.len(), &unread[1]["field"]), (4, &json!("name")));
}
