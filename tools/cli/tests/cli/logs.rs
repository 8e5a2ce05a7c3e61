//! The two logs of single streams.

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aggregate_log::{AggregateKey, AggregateTable, NewAggregateEvent, PushPlace};
use ringfence_aws::{Clock, Item};
use ringfence_core::Envelope;
use ringfence_document_log::{Batch, Payload, StreamAppend, StreamAppended, StreamName};
use serde_json::json;

use crate::world::{AGGREGATES, DOCUMENTS, EVENTS, INDEX, VIEWS, World};

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

fn number(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

/// Writes events of a customer at these versions, and overwrites existing ones.
pub(crate) async fn customer(world: &World, id: &str, versions: &[u64]) {
    let table = AggregateTable::new(world.client.clone(), AGGREGATES, Clock::system());
    let key = AggregateKey::new("customers", id).unwrap();
    for version in versions {
        let event = NewAggregateEvent {
            event_type: "CustomerRenamed".to_owned(),
            payload: Some(json!({ "name": "Ada" })),
            metadata: None,
            timestamp_ms: None,
        };
        table.push_event(&key, PushPlace::Forced(*version), event).await.unwrap();
    }
}

/// Appends this many events to a cart, one at a time, two to an item.
pub(crate) async fn cart(world: &World, id: &str, events: usize) {
    let log = world.documents();
    let stream = StreamName::new("carts", id).unwrap();
    let mut tip: Option<Batch> = None;
    for n in 0..events {
        let append = StreamAppend {
            stream: &stream,
            known: tip.as_ref(),
            by_etag: false,
            events: vec![Payload::new("ItemAdded", Some(json!({ "quantity": n })))],
            unfolds: Vec::new(),
            envelope: &Envelope::default(),
        };
        match log.append(append).await.unwrap() {
            StreamAppended::Written(written) => tip = Some(written),
            StreamAppended::Conflict(_) => unreachable!("nobody else writes"),
        }
    }
}

async fn delete(world: &World, table: &str, key: [(&str, AttributeValue); 2]) {
    let key: Item = key.map(|(name, value)| (name.to_owned(), value)).into();
    world.client.delete_item().table_name(table).set_key(Some(key)).send().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn aggregates_are_verified() {
    let world = World::start().await;
    let verify = ["aggregates", "verify"];
    assert_eq!(world.run(&verify), (0, "0 events, 0 aggregates: all in order\n".to_owned()));
    customer(&world, "ada", &[1, 2, 3]).await;
    customer(&world, "bob", &[1]).await;
    assert_eq!(world.run(&verify), (0, "4 events, 2 aggregates: all in order\n".to_owned()));

    delete(&world, AGGREGATES, [("aggregateId", text("customers#ada")), ("version", number(2))])
        .await;
    let unlist = world.client.update_item().table_name(AGGREGATES);
    let unlist = unlist.key("aggregateId", text("customers#bob")).key("version", number(1));
    unlist.update_expression("REMOVE eventStoreId").send().await.unwrap();
    let odd = world.client.put_item().table_name(AGGREGATES);
    let odd = odd.item("aggregateId", text("customers#eve")).item("version", number(1));
    odd.send().await.unwrap();

    let (status, printed) = world.run(&verify);
    let mut lines: Vec<_> = printed.lines().collect();
    assert_eq!((status, lines.pop()), (1, Some("3 events, 2 aggregates: not in order")));
    lines.sort_unstable();
    let expected = [
        "wrong    customers#ada: version 3 follows 1",
        "wrong    customers#bob: version 1 has eventStoreId None",
        "wrong    item customers#eve 1 is not an event",
    ];
    assert_eq!(lines, expected);
    let (status, mut report) = world.json(&verify);
    let wrong = report["wrong"].as_array_mut().unwrap();
    wrong.sort_by_key(|wrong| wrong["wrong"].to_string());
    let expected = json!({
        "events": 3,
        "aggregates": 2,
        "inOrder": false,
        "wrong": [
            { "wrong": "gap", "aggregate": "customers#ada", "after": 1, "found": 3 },
            { "wrong": "item", "item": "item customers#eve 1" },
            { "wrong": "listing", "aggregate": "customers#bob", "version": 1, "found": null },
        ],
    });
    assert_eq!((status, report), (1, expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_verified() {
    let world = World::start().await;
    let verify = ["documents", "verify"];
    for (id, events) in [("a", 5), ("b", 1), ("c", 3), ("d", 3), ("e", 3)] {
        cart(&world, id, events).await;
    }
    let right = "5 streams, 15 events, 5 calves: all in order\n";
    assert_eq!(world.run(&verify), (0, right.to_owned()));

    delete(&world, DOCUMENTS, [("p", text("carts-a")), ("i", number(2))]).await;
    let tip = number(2_147_483_647);
    delete(&world, DOCUMENTS, [("p", text("carts-c")), ("i", tip)]).await;
    let odd = world.client.update_item().table_name(DOCUMENTS).key("p", text("carts-d"));
    odd.key("i", number(0)).update_expression("REMOVE e").send().await.unwrap();
    // Items that belong to no stream don't end the check.
    let odd = world.client.update_item().table_name(DOCUMENTS).key("p", text("carts-e"));
    let odd = odd.key("i", number(0)).update_expression("REMOVE #n");
    odd.expression_attribute_names("#n", "n").send().await.unwrap();
    let odd = world.client.put_item().table_name(DOCUMENTS).item("p", text("nothing"));
    odd.item("i", number(0)).send().await.unwrap();

    let (status, printed) = world.run(&verify);
    let mut lines: Vec<_> = printed.lines().collect();
    let end = "6 streams, 8 events, 2 calves: not in order";
    assert_eq!((status, lines.pop()), (1, Some(end)), "{printed}");
    lines.sort_unstable();
    assert_eq!(lines.len(), 6, "{printed}");
    assert!(lines[0].starts_with("wrong    carts-a: events 2 to 3 are missing"), "{printed}");
    assert!(lines[1].starts_with("wrong    carts-a: the Tip says that "), "{printed}");
    assert_eq!(lines[2], "wrong    carts-c: there is no Tip");
    assert!(lines[3].starts_with("wrong    carts-d: verifying failed: "), "{printed}");
    assert!(lines[4].starts_with("wrong    carts-e: "), "{printed}");
    let missing = "attribute n of item carts-e is not an integer";
    assert!(lines[4].ends_with(missing), "{printed}");
    let missing = "attribute n of item nothing is not an integer";
    assert_eq!(lines[5], format!("wrong    nothing: {missing}"));
    let (status, report) = world.json(&verify);
    let hole = json!({ "stream": "carts-a", "wrong": "hole", "from": 2, "to": 4 });
    assert_eq!((status, &report["inOrder"]), (1, &json!(false)));
    assert!(report["wrong"].as_array().unwrap().contains(&hole), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_of_another_log_is_refused_with_what_it_is() {
    let world = World::start().await;
    world.indexed_demand("p1", "o1").await;
    cart(&world, "a", 1).await;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("exported");
    let export = ["export", folder.to_str().unwrap(), "--index-table"];
    let verifies: [(&[&str], &str); 8] = [
        (&["verify", "--table"], EVENTS),
        (&["aggregates", "verify", "--aggregate-table"], AGGREGATES),
        (&["documents", "verify", "--document-table"], DOCUMENTS),
        (&["index", "verify", "--index-table"], INDEX),
        (&["tables", "check", "--document-table"], DOCUMENTS),
        (&["tables", "check", "--index-table"], INDEX),
        (&["tables", "check", "--view-table"], VIEWS),
        (&export, INDEX),
    ];
    let tables = [
        (EVENTS, "the table of a DCB log, which --table names; see `ringfence verify`"),
        (
            AGGREGATES,
            "the table of an aggregate log, which --aggregate-table names; see `ringfence aggregates verify`",
        ),
        (
            DOCUMENTS,
            "the table of a document log, which --document-table names; see `ringfence documents verify`",
        ),
        (INDEX, "an index of all events, which --index-table names; see `ringfence index verify`"),
        (VIEWS, "a table of views, which --view-table names"),
    ];
    for (verify, own) in verifies {
        for (table, what) in tables.iter().filter(|(table, _)| *table != own) {
            let said = world.error(&[verify, &[table]].concat());
            assert_eq!(said, format!("error: {table} is {what}\n"), "{verify:?}");
        }
        let said = world.error(&[verify, &["nowhere"]].concat());
        let begins =
            ["error: describing table nowhere: ", "error: finding the end of the index failed"];
        assert!(begins.iter().any(|begin| said.starts_with(begin)), "{verify:?}: {said}");
    }
    assert!(!folder.exists());
}
