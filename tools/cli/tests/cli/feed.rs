use std::io::{BufRead, BufReader};
use std::process::Stdio;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};

use crate::world::{EVENTS, World};

/// The output of `tail` up to the present, as JSON.
fn tail(world: &World, more: &[&str]) -> Vec<Value> {
    let (status, printed) = world.run(&[&["tail", "--until-present", "--json"], more].concat());
    assert_eq!(status, 0);
    printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The checkpoints after the events that `tail` prints.
fn checkpoints(world: &World, more: &[&str]) -> Vec<i64> {
    tail(world, more).iter().map(|event| event["checkpoint"].as_i64().unwrap()).collect()
}

async fn three_events() -> World {
    let world = World::start().await;
    for (product, order) in [("p1", "o1"), ("p1", "o2"), ("p2", "o1")] {
        world.indexed_demand(product, order).await;
    }
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_printed_from_any_checkpoint_by_type_and_tag() {
    let world = three_events().await;
    let check = |more: &[&str], expected: &[i64]| {
        assert_eq!(checkpoints(&world, more), expected, "{more:?}");
    };
    check(&["--from", "start"], &[1, 2, 3]);
    check(&["--from", "1"], &[2, 3]);
    check(&["--from", "end"], &[]);
    check(&[], &[]);
    check(&["--from", "0", "--tag", "orderId:o1"], &[1, 3]);
    check(&["--from", "0", "--tag", "orderId:o1", "--tag", "productId:p1"], &[1]);
    check(&["--from", "0", "--type", "ProductDemandRecorded"], &[1, 2, 3]);
    check(&["--from", "0", "--type", "ProductAdded"], &[]);

    let first = &tail(&world, &["--from", "0"])[0];
    assert_eq!(first["type"], "ProductDemandRecorded");
    assert_eq!(first["context"], "catalog");
    assert_eq!(first["partition"], "productId:p1");
    assert_eq!(first["data"], json!({ "productId": "p1", "orderId": "o1" }));
    let (_, lines) = world.run(&["tail", "--until-present", "--from", "2"]);
    assert!(lines.starts_with("        3  20"), "{lines}");
    let end = "Z  ProductDemandRecorded  productId:p2  slice not recorded  {\"orderId\":\"o1\",\"productId\":\"p2\"}\n";
    assert!(lines.ends_with(end), "{lines}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_reader_goes_on_where_it_was() {
    let world = three_events().await;
    let audit = &["--reader", "audit"];
    assert_eq!(checkpoints(&world, &[audit, &["--tag", "orderId:o2"][..]].concat()), [2]);
    assert_eq!(checkpoints(&world, audit), [0; 0], "events that are not wanted count as read");
    world.indexed_demand("p3", "o1").await;
    assert_eq!(checkpoints(&world, audit), [4]);
    assert_eq!(checkpoints(&world, &["--reader", "other"]), [1, 2, 3, 4]);

    let set = world.run(&["checkpoint", "set", "audit", "2"]);
    assert_eq!(set, (0, "audit: 4 -> 2\n".to_owned()));
    let set = world.json(&["checkpoint", "set", "audit", "1"]);
    assert_eq!(set, (0, json!({ "reader": "audit", "from": 2, "to": 1 })));
    let (_, shown) = world.json(&["checkpoint", "show"]);
    let readers = shown["readers"].as_array().unwrap();
    let readers: Vec<_> = readers.iter().map(|r| (&r["reader"], &r["checkpoint"])).collect();
    assert_eq!(readers, [(&json!("audit"), &json!(1)), (&json!("other"), &json!(4))]);
    assert_eq!(shown["end"], 4);
    let (status, shown) = world.run(&["checkpoint", "show", "audit"]);
    assert!(status == 0 && shown.starts_with("audit  1  3 behind  20"), "{shown}");
    assert!(shown.ends_with("Z\nthe index ends at 4\n"), "{shown}");
    assert_eq!(checkpoints(&world, audit), [2, 3, 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoints_that_would_lose_events_are_refused() {
    let world = three_events().await;
    let beyond = "checkpoint 4 is after the end of the index, 3\n";
    assert_eq!(world.error(&["checkpoint", "set", "audit", "4"]), format!("error: {beyond}"));
    assert_eq!(world.error(&["tail", "--from", "4"]), format!("error: {beyond}"));
    let view = world.error(&["checkpoint", "set", "product-demand#1", "0"]);
    assert!(view.contains("ringfence replay view product-demand\n"), "{view}");
    let unnamed =
        world.command(&["tail", "--reader", "a"]).env_remove("VIEW_TABLE").output().unwrap();
    let unnamed = String::from_utf8(unnamed.stderr).unwrap();
    assert!(unnamed.contains("give --view-table, VIEW_TABLE or --stack"), "{unnamed}");
    let nobody = world.error(&["checkpoint", "show", "audit"]);
    assert_eq!(nobody, "error: reader audit has no checkpoint\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_type_gets_a_warning_that_names_similar_types() {
    let world = three_events().await;
    let warnings = |wanted: &str| {
        let tail = ["tail", "--until-present", "--from", "0", "--type", wanted];
        let output = world.command(&tail).output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let warned = "warning: no context of this build has an event type ";
    assert_eq!(
        warnings("ProductDemandRecordet"),
        format!(
            "{warned}ProductDemandRecordet; did you mean ProductDemandRecorded or ProductDemandRevoked?\n"
        )
    );
    assert_eq!(warnings("NoSuchType"), format!("{warned}NoSuchType\n"));
    // One event of each log.
    for known in ["OrderPlaced", "CustomerRenamed", "CheckedOut"] {
        assert_eq!(warnings(known), "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tail_waits_for_new_events() {
    let world = three_events().await;
    let mut tail = world.command(&["tail", "--reader", "live"]);
    let mut tail = tail.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines();
    let mut check = |expected: &[&str]| {
        for expected in expected {
            let line = tokio::task::block_in_place(|| lines.next().unwrap().unwrap());
            assert!(line.contains(expected), "{line}");
        }
    };
    check(&["o1", "o2", "p2"]);
    for order in ["o8", "o9"] {
        world.indexed_demand("p1", order).await;
        check(&[order]);
    }
    // The reader of the output leaves, as `head` does: tail ends without an error, before it saves a checkpoint.
    drop(lines);
    world.indexed_demand("p1", "o10").await;
    assert!(tokio::task::block_in_place(|| tail.wait()).unwrap().success());
    assert_eq!(checkpoints(&world, &["--reader", "live"]), [6]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_index_is_verified_and_repaired() {
    let world = three_events().await;
    let right = (0, "3 entries, 3 events: all in order\n".to_owned());
    assert_eq!(world.run(&["index", "verify"]), right);
    assert_eq!(world.run(&["index", "repair"]), right);
    world.demand("p1", "o7").await;
    world.demand("p4", "o1").await;

    let behind = "behind   productId:p1: 1 events are not indexed\n\
                  behind   productId:p4: 1 events are not indexed\n\
                  3 entries, 5 events: not in order\n";
    assert_eq!(world.run(&["index", "verify"]), (1, behind.to_owned()));
    let (status, repaired) = world.json(&["index", "repair"]);
    assert_eq!((status, &repaired["inOrder"]), (0, &json!(true)));
    let each = |partition| json!({ "partition": partition, "indexed": 1 });
    assert_eq!(repaired["repaired"], json!([each("productId:p1"), each("productId:p4")]));
    let right = (0, "5 entries, 5 events: all in order\n".to_owned());
    assert_eq!(world.run(&["index", "verify"]), right);

    // Indexing can't mend the loss of an event in the table.
    let gone = &world.records()[0]["dynamodb"]["Keys"];
    let of = |name: &str, kind: &str| gone[name][kind].as_str().unwrap().to_owned();
    let delete = world.client.delete_item().table_name(EVENTS);
    let delete = delete.key("id", AttributeValue::S(of("id", "S")));
    delete.key("position", AttributeValue::N(of("position", "N"))).send().await.unwrap();
    let gone = "wrong    productId:p1: event 1 is gone\n\
                5 entries, 4 events: not in order\n";
    assert_eq!(world.run(&["index", "verify"]), (1, gone.to_owned()));
    assert_eq!(world.run(&["index", "repair"]), (1, gone.to_owned()));
}
