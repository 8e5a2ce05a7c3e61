//! The restore drill: tables from different times, without streams, become a stack again. The script `restore-drill`
//! shows the output of the commands; docs/runbook.md has the order.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::{StreamSpecification, StreamViewType, TimeToLiveSpecification};
use ringfence_core::BoundaryId;
use ringfence_document_log::StreamName;
use ringfence_feed::Partition;
use ringfence_local::template::Template;
use serde_json::{Value, json};

use crate::logs::{cart, customer};
use crate::world::{AGGREGATES, DOCUMENTS, EVENTS, INDEX, VIEWS, World};

/// The tables after a restore: the variable of the command, the logical id, and the stream's view type.
const RESTORED: [(&str, &str, &str, Option<StreamViewType>); 5] = [
    ("EVENT_TABLE", "EventTable", "restored-events", Some(StreamViewType::NewImage)),
    ("AGGREGATE_TABLE", "AggregateTable", "restored-aggregates", Some(StreamViewType::NewImage)),
    ("DOCUMENT_TABLE", "DocumentTable", "restored-documents", Some(StreamViewType::NewImage)),
    ("INDEX_TABLE", "IndexTable", "restored-index", Some(StreamViewType::KeysOnly)),
    ("VIEW_TABLE", "ViewTable", "restored-views", None),
];

/// The items of a table now.
fn items(world: &World, table: &str) -> Vec<Value> {
    world.dynamo.items(table).unwrap()
}

/// Creates a table without the named properties.
fn make(world: &World, id: &str, table: &str, items: &[Value], lost: &[&str]) {
    let mut properties = Template::of_stack().unwrap().table(id).unwrap();
    properties.as_object_mut().unwrap().retain(|name, _| !lost.contains(&&**name));
    world.dynamo.create_table(&properties, table).unwrap();
    for item in items {
        let put = json!({ "TableName": table, "Item": item }).to_string();
        let (status, answer) = world.dynamo.engine().call("PutItem", put.as_bytes());
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&answer));
    }
}

/// Runs a command on the restored tables, or on others that these variables name, and shows it.
fn run(world: &World, status: i32, arguments: &[&str], others: &[(&str, &str)]) -> String {
    let mut command = world.command(arguments);
    command.envs(RESTORED.iter().map(|(variable, _, table, _)| (*variable, *table)));
    let output = command.envs(others.iter().copied()).output().unwrap();
    let [printed, said] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    let named: String = others.iter().map(|(name, value)| format!("{name}={value} ")).collect();
    eprintln!("\n$ {named}ringfence {}\n{printed}{said}", arguments.join(" "));
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {printed}{said}");
    printed
}

/// The rows of the view, by id.
fn rows(world: &World, table: &str) -> BTreeMap<String, Value> {
    let mut rows = items(world, table);
    rows.retain(|row| row["view"]["S"].as_str().unwrap().starts_with("product-demand#"));
    rows.into_iter()
        .map(|row| (row["id"]["S"].as_str().unwrap().to_owned(), row["row"].clone()))
        .collect()
}

/// Indexes all events of the logs.
async fn index_all(world: &World, carts: &[&str], products: &[&str]) {
    let carts =
        carts.iter().map(|id| Partition::from(StreamName::new("carts", id).unwrap().partition()));
    let product = |id: &&str| Partition::from(BoundaryId::stored(format!("productId:{id}")));
    let ada = Partition::from(BoundaryId::stored("customers#ada"));
    world.index_all(carts.chain(products.iter().map(product)).chain([ada])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_different_times_become_a_stack_again() {
    let world = World::start().await;
    let build = ["replay", "view", "product-demand"];
    eprintln!(
        "Five tables are in use. What follows another table is restored to an earlier time than that one."
    );
    world.demand("p1", "o1").await;
    world.demand("p1", "o2").await;
    customer(&world, "ada", &[1, 2]).await;
    cart(&world, "a", 3).await;
    index_all(&world, &["a"], &["p1"]).await;
    world.run(&build);
    let views = items(&world, VIEWS);

    world.demand("p2", "o3").await;
    index_all(&world, &["a"], &["p2"]).await;
    let (index, before) = (items(&world, INDEX), items(&world, EVENTS));

    world.demand("p1", "o4").await;
    world.demand("p2", "o4").await;
    customer(&world, "ada", &[3]).await;
    cart(&world, "b", 2).await;
    let [mut events, aggregates, documents] =
        [EVENTS, AGGREGATES, DOCUMENTS].map(|table| items(&world, table));
    // A restore takes the items of a table within about a second, and not at one moment, so some fences are older.
    let is_fence = |item: &Value| item["id"]["S"].as_str().unwrap().starts_with("fence#");
    events.retain(|item| !is_fence(item));
    events.extend(before.into_iter().filter(is_fence));
    index_all(&world, &["a", "b"], &["p1", "p2"]).await;
    world.run(&build);
    let expected = rows(&world, VIEWS);
    assert_eq!(expected.len(), 2, "{expected:?}");

    eprintln!("\nAll that is written from here on is lost.");
    world.demand("p3", "o5").await;
    customer(&world, "ada", &[4]).await;
    index_all(&world, &[], &["p3"]).await;
    let later_index = items(&world, INDEX);

    let times = [events, aggregates, documents, index, views];
    for ((_, id, table, _), items) in RESTORED.iter().zip(&times) {
        make(&world, id, table, items, &["StreamSpecification", "TimeToLiveSpecification"]);
    }
    eprintln!("\n1. The tables get what a restore leaves out.");
    let lacking = run(&world, 1, &["tables", "check"], &[]);
    for said in [
        "lacking  restored-events, of the DCB log: it has no stream, and one with NEW_IMAGE is needed\n",
        "lacking  restored-events, of the DCB log: its items do not expire at expiresAt\n",
        "lacking  restored-index, of the index: it has no stream, and one with KEYS_ONLY is needed\n",
        "lacking  restored-views, of the views: its items do not expire at expiresAt\n",
    ] {
        assert!(lacking.contains(said), "{said}: {lacking}");
    }
    for (_, _, table, view) in RESTORED {
        let Some(view) = view else { continue };
        let stream = StreamSpecification::builder().stream_enabled(true).stream_view_type(view);
        let update = world.client.update_table().table_name(table);
        update.stream_specification(stream.build().unwrap()).send().await.unwrap();
    }
    let expiry = TimeToLiveSpecification::builder().attribute_name("expiresAt").enabled(true);
    let expiry = expiry.build().unwrap();
    for table in ["restored-events", "restored-views"] {
        let update = world.client.update_time_to_live().table_name(table);
        update.time_to_live_specification(expiry.clone()).send().await.unwrap();
    }
    let fits = run(&world, 0, &["tables", "check"], &[]);
    assert!(fits.contains("EventTableName=restored-events EventTableStreamArn=arn:"), "{fits}");

    eprintln!("2. The logs are whole, or are mended.");
    let differs = run(&world, 1, &["verify", "--settle-seconds", "0"], &[]);
    assert!(differs.contains("differs  orderId:o4#productId:p1: "), "{differs}");
    run(&world, 0, &["repair", "--settle-seconds", "0"], &[]);
    run(&world, 0, &["verify", "--settle-seconds", "0"], &[]);
    run(&world, 0, &["aggregates", "verify"], &[]);
    run(&world, 0, &["documents", "verify"], &[]);

    eprintln!("3. The index gets what the logs have.");
    let behind = run(&world, 1, &["index", "verify"], &[]);
    for partition in ["carts-b: 2", "customers#ada: 1", "productId:p1: 1", "productId:p2: 1"] {
        assert!(
            behind.contains(&format!("behind   {partition} events are not indexed\n")),
            "{behind}"
        );
    }
    run(&world, 0, &["index", "repair"], &[]);
    run(&world, 0, &["index", "verify"], &[]);

    eprintln!("4. The views are built again, and have the rows of before.");
    run(&world, 0, &build, &[]);
    assert_eq!(rows(&world, "restored-views"), expected);

    eprintln!(
        "If the index is of a later time than a log, only a new one helps, and with it new views."
    );
    make(&world, "IndexTable", "later-index", &later_index, &[]);
    let later = [("INDEX_TABLE", "later-index")];
    let ahead = run(&world, 1, &["index", "verify"], &later);
    let wrong = "wrong    productId:p3: event 1 is gone\n";
    assert!(ahead.contains(wrong), "{ahead}");
    run(&world, 1, &["index", "repair"], &later);
    make(&world, "IndexTable", "new-index", &[], &[]);
    make(&world, "ViewTable", "new-views", &[], &[]);
    let new = [("INDEX_TABLE", "new-index"), ("VIEW_TABLE", "new-views")];
    run(&world, 0, &["index", "repair"], &new);
    run(&world, 0, &build, &new);
    assert_eq!(rows(&world, "new-views"), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_checked_by_name_and_printed_for_other_tools() {
    let world = World::start().await;
    make(&world, "ViewTable", "bare-views", &[], &["TimeToLiveSpecification"]);
    let (status, report) = world.json(&["tables", "check", "--view-table", "bare-views"]);
    let lacks = "its items do not expire at expiresAt";
    assert_eq!((status, &report[4]["lacking"][0]["what"]), (1, &json!(lacks)), "{report}");
    assert_eq!(report[1]["parameters"]["AggregateTableName"], AGGREGATES, "{report}");
    let mut none = world.command(&["tables", "check"]);
    for (variable, ..) in RESTORED {
        none.env_remove(variable);
    }
    let said = String::from_utf8(none.output().unwrap().stderr).unwrap();
    assert!(said.starts_with("error: no table is named: name some"), "{said}");
    let unknown = world.error(&["tables", "check", "--view-table", "nowhere"]);
    assert!(unknown.contains("describing table nowhere"), "{unknown}");

    for (flag, line) in [
        ("--cloudformation", "  EventTable:"),
        ("--terraform", "resource \"aws_dynamodb_table\" \"event_table\" {"),
        ("--cdk", "export class Tables extends Construct {"),
    ] {
        let (status, printed) = world.run(&["schema", flag]);
        assert!(status == 0 && printed.lines().any(|found| found == line), "{printed}");
    }
}
