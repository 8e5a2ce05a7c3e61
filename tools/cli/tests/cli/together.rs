//! Events of all three logs in one index and on one bus.

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_core::BoundaryId;
use ringfence_document_log::StreamName;
use ringfence_feed::Partition;
use serde_json::{Value, json};

use crate::logs::{cart, customer};
use crate::world::{AGGREGATES, BUCKET, DOCUMENTS, QUEUE, World};

/// A stream whose name needs escapes.
const CART: &str = "a:1";
const CART_PARTITION: &str = "carts-a%3A1";

fn ada() -> Partition {
    Partition::from(BoundaryId::stored("customers#ada"))
}

fn of_cart() -> Partition {
    Partition::from(StreamName::new("carts", CART).unwrap().partition())
}

/// An event of the DCB log, two of a customer, three of a cart, all in the index.
async fn six_events() -> World {
    let world = World::start().await;
    world.indexed_demand("p1", "o1").await;
    customer(&world, "ada", &[1, 2]).await;
    world.index_all([ada()]).await;
    cart(&world, CART, 3).await;
    world.index_all([of_cart()]).await;
    world
}

fn ids(events: &[impl AsRef<Value>]) -> Vec<String> {
    let id = |event: &Value| event["detail"]["id"].as_str().unwrap().to_owned();
    events.iter().map(|event| id(event.as_ref())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn tail_shows_events_of_all_logs() {
    let world = six_events().await;
    let (_, printed) = world.run(&["tail", "--from", "1", "--until-present", "--json"]);
    let events: Vec<Value> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |event: &Value| {
        let part = |name: &str| event[name].clone();
        ["id", "slot", "context", "partition", "type", "data"].map(part)
    };
    let customer = |version: u64| {
        let id = format!("customers#ada/{version}");
        let data = json!({ "name": "Ada" });
        let (context, partition) = (json!("customers"), json!("customers#ada"));
        [json!(id), json!(version), context, partition, json!("CustomerRenamed"), data]
    };
    let cart = |index: u64| {
        let id = format!("{CART_PARTITION}/{index}");
        let data = json!({ "quantity": index });
        let (context, partition) = (json!("carts"), json!(CART_PARTITION));
        [json!(id), json!(index), context, partition, json!("ItemAdded"), data]
    };
    let expected = [customer(1), customer(2), cart(0), cart(1), cart(2)];
    assert_eq!(events.iter().map(of).collect::<Vec<_>>(), expected);
    let added = ["tail", "--from", "0", "--until-present", "--type", "ItemAdded"];
    let (_, lines) = world.run(&added);
    assert_eq!(lines.lines().count(), 3, "{lines}");
    assert!(lines.starts_with("        4  20"), "{lines}");
    assert!(
        lines.contains("Z  ItemAdded  carts-a%3A1  slice not recorded  {\"quantity\":0}\n"),
        "{lines}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_sends_events_of_all_logs() {
    let mut world = six_events().await;
    let replay = ["replay", "bus", "--name", "search", "--rate", "10000"];
    assert_eq!(world.run(&replay), (0, "6 events read, 6 sent, at checkpoint 6\n".to_owned()));
    let events = world.on_the_bus();
    // Each says when it was recorded, on the bus as in the index.
    let (_, printed) = world.run(&["tail", "--from", "0", "--until-present", "--json"]);
    let tailed = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut tailed: Vec<_> =
        tailed.map(|event| (event["id"].clone(), event["recordedAt"].clone())).collect();
    let sent = events.iter().map(|event| &event["detail"]);
    let mut sent: Vec<_> = sent.map(|e| (e["id"].clone(), e["recordedAt"].clone())).collect();
    for events in [&mut tailed, &mut sent] {
        events.sort_by_key(|(id, _)| id.to_string());
    }
    assert_eq!(tailed, sent);
    let is_time = |(_, time): &(_, Value)| {
        time.as_str().is_some_and(|time| time.starts_with("20") && time.ends_with('Z'))
    };
    assert!(tailed.iter().all(is_time), "{tailed:?}");
    let sent = ids(&events);
    assert_eq!(sent[1..3], ["customers#ada/1", "customers#ada/2"]);
    assert_eq!(sent[3..], [0, 1, 2].map(|n| format!("{CART_PARTITION}/{n}")));
    let (of_customer, of_cart) = (&events[2], &events[5]);
    assert_eq!(of_customer["source"], "replay.customers");
    assert_eq!(of_customer["detail-type"], "CustomerRenamed");
    assert_eq!(of_customer["detail"]["slot"], 2);
    assert_eq!(of_customer["detail"]["data"], json!({ "name": "Ada" }));
    assert_eq!(of_cart["source"], "replay.carts");
    assert_eq!(of_cart["detail"]["slot"], 2);
    assert_eq!(of_cart["detail"]["replay"], "search");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_index_is_compared_with_all_logs() {
    let world = six_events().await;
    let right = (0, "6 entries, 6 events: all in order\n".to_owned());
    assert_eq!(world.run(&["index", "verify"]), right);
    customer(&world, "ada", &[3]).await;
    customer(&world, "bob", &[1]).await;
    cart(&world, "b", 5).await;
    let behind = "behind   customers#ada: 1 events are not indexed\n\
                  behind   customers#bob: 1 events are not indexed\n\
                  behind   carts-b: 5 events are not indexed\n\
                  6 entries, 13 events: not in order\n";
    assert_eq!(world.run(&["index", "verify"]), (1, behind.to_owned()));
    let indexed = "indexed  customers#ada: 1 events\n\
                   indexed  customers#bob: 1 events\n\
                   indexed  carts-b: 5 events\n\
                   6 entries, 13 events: all in order\n";
    assert_eq!(world.run(&["index", "repair"]), (0, indexed.to_owned()));
    let right = (0, "13 entries, 13 events: all in order\n".to_owned());
    assert_eq!(world.run(&["index", "verify"]), right);

    let alone = |more: &[&str]| {
        let mut verify = world.command(&[&["index", "verify"], more].concat());
        verify.env_remove("AGGREGATE_TABLE").env_remove("DOCUMENT_TABLE");
        let output = verify.output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).unwrap()
    };
    let skipped = "skipped  the aggregate log is not compared: --aggregate-table is not given\n\
                   skipped  the document log is not compared: --document-table is not given\n\
                   skipped  12 entries of logs that are not compared\n\
                   13 entries, 1 events: all in order\n";
    assert_eq!(alone(&[]), skipped);
    let report: Value = serde_json::from_str(&alone(&["--json"])).unwrap();
    let skipped = json!({ "logs": ["aggregates", "documents"], "entries": 12 });
    assert_eq!(report["skipped"], skipped);
    let wrong = world.error(&["index", "verify", "--document-table", AGGREGATES]);
    assert!(wrong.contains("aggregates is the table of an aggregate log"), "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gap_keeps_the_events_after_it_out_of_the_index() {
    let world = six_events().await;
    customer(&world, "ada", &[4]).await;
    let (status, printed) = world.run(&["index", "repair"]);
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!((status, lines.len()), (1, 2), "{printed}");
    assert!(lines[0].starts_with("fails    customers#ada: "), "{printed}");
    assert!(lines[0].contains("customers#ada has event 4 but not event 3"), "{printed}");
    customer(&world, "ada", &[3]).await;
    let (status, printed) = world.run(&["index", "repair"]);
    let indexed = "indexed  customers#ada: 2 events\n6 entries, 8 events: all in order\n";
    assert_eq!((status, &*printed), (0, indexed));
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_of_all_logs_are_redriven() {
    let mut world = World::start().await;
    customer(&world, "ada", &[1, 2]).await;
    cart(&world, CART, 3).await;
    let of_customer = world.records_of(AGGREGATES);
    let key_2 = of_customer[1]["dynamodb"]["Keys"].clone();
    let of_cart = world.records_of(DOCUMENTS);
    let tips = of_cart.iter().map(|record| &record["dynamodb"]);
    let tip = tips.clone().find(|tip| tip["NewImage"]["n"]["N"] == "2").unwrap().clone();
    let tip_key = json!({
        "cause": "too large", "key": tip["Keys"], "sequenceNumber": "7",
        "n": tip["NewImage"]["n"], "a": tip["NewImage"]["a"],
    });
    let dead_letters = [
        json!({ "cause": "refused", "record": of_customer[0] }),
        json!({ "cause": "too large", "key": key_2, "sequenceNumber": "7" }),
        json!({ "cause": "refused", "record": of_cart[0] }),
        tip_key,
        json!({ "cause": "gap", "log": "aggregates", "partition": "customers#ada" }),
        json!({ "cause": "hole", "log": "documents", "partition": CART_PARTITION }),
    ];
    for dead_letter in &dead_letters {
        world.queues.send(QUEUE, dead_letter.to_string()).unwrap();
    }
    let url = world.queue_url();
    let done = world.run(&["redrive", "--queue", &url]);
    assert_eq!(done, (0, "6 done, 0 left\n".to_owned()));
    let cart = |n: u64| format!("{CART_PARTITION}/{n}");
    let sent = ids(&world.on_the_bus());
    assert_eq!(sent, ["customers#ada/1", "customers#ada/2", &cart(0), &cart(1)]);
    let right = (0, "5 entries, 5 events: all in order\n".to_owned());
    assert_eq!(world.run(&["index", "verify"]), right);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_batches_of_all_tables_are_indexed() {
    let world = World::start().await;
    customer(&world, "ada", &[1, 2]).await;
    cart(&world, CART, 3).await;
    let records = [world.records_of(AGGREGATES), world.records_of(DOCUMENTS)].concat();
    let payload = json!({ "Records": records }).to_string();
    let object = json!({ "payload": payload }).to_string();
    world.buckets.put(BUCKET, "aws/a", object.as_bytes()).unwrap();
    let done = world.run(&["redrive", "--bucket", BUCKET, "--to", "index"]);
    assert_eq!(done, (0, "1 done, 0 left\n".to_owned()));
    let right = (0, "5 entries, 5 events: all in order\n".to_owned());
    assert_eq!(world.run(&["index", "verify"]), right);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_overwritten_after_it_was_indexed_is_named() {
    let world = six_events().await;
    let update = world.client.update_item().table_name(AGGREGATES);
    let text = AttributeValue::S("customers#ada".to_owned());
    let update = update.key("aggregateId", text);
    let update = update.key("version", AttributeValue::N("2".to_owned()));
    let update = update.update_expression("SET #type = :type");
    let update = update.expression_attribute_names("#type", "type");
    let other = AttributeValue::S("CustomerMerged".to_owned());
    update.expression_attribute_values(":type", other).send().await.unwrap();
    let wrong = "wrong    customers#ada: event 2 is not the one that was indexed: somebody overwrote it, or its slot was \
                 taken again after a restore\n6 entries, 6 events: not in order\n";
    assert_eq!(world.run(&["index", "verify"]), (1, wrong.to_owned()));
    let (_, said) = world.run(&["tail", "--from", "0", "--until-present"]);
    assert_eq!(
        said.matches("its log has another event in the place of the event").count(),
        1,
        "{said}"
    );
}
