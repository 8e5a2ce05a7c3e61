//! `read`.

use std::collections::BTreeMap;
use std::process::Stdio;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};

use crate::console::Console;
use crate::data::of_all_logs;
use crate::world::{AGGREGATES, EVENTS, World, demand};

/// Removes an attribute from the first event of a partition.
async fn break_event(world: &World, table: &str, [key, sort]: [&str; 2], id: &str, what: &str) {
    let update = world.client.update_item().table_name(table);
    let update = update.key(key, AttributeValue::S(id.to_owned()));
    let update = update.key(sort, AttributeValue::N("1".to_owned()));
    let update = update.update_expression("REMOVE #what");
    update.expression_attribute_names("#what", what).send().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_cannot_be_decoded_is_named_and_the_others_are_shown() {
    let world = of_all_logs().await;
    break_event(&world, EVENTS, ["id", "position"], "productId:p1", "tags").await;
    let run = |arguments: &[&str]| {
        let output = world.command(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let why = "the event can't be decoded: the item is not a complete event: the image is not an event: attribute tags is missing or of another type";
    let (status, printed, _) = run(&["tail", "--from", "start", "--until-present", "--json"]);
    let lines: Vec<Value> = printed.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!((status, lines.len()), (Some(0), 9), "{printed}");
    let first = lines.iter().find(|line| line["id"] == "productId:p1/1").unwrap();
    assert_eq!(
        (&first["data"], &first["type"]),
        (&json!({ "unreadable": why }), &json!("ProductAdded"))
    );

    let (status, _, said) = run(&["trace", "nothing"]);
    assert_eq!((status, &*said), (Some(1), &*format!("productId:p1/1: {why}\n")));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("events");
    let (status, printed, _) = run(&["export", folder.to_str().unwrap()]);
    assert_eq!(status, Some(1));
    let begins = format!("left out productId:p1/1: {why}\n8 events in 1 new files, ");
    assert!(printed.starts_with(&begins), "{printed}");
    let (status, _, said) = run(&["schemas", "check"]);
    assert_eq!(status, Some(1), "{said}");

    let keys = ["aggregateId", "version"];
    break_event(&world, AGGREGATES, keys, "customers#ada#1", "timestamp").await;
    for name in ["productId:p1", "customers#ada#1"] {
        let (status, printed, said) = run(&["read", name]);
        assert_eq!(status, Some(1), "{said}");
        assert!(printed.contains(&format!("/{name}/2  ")), "{printed}");
        assert_eq!(printed.lines().count(), 1, "{printed}");
        assert!(
            said.contains(" can't be decoded: ") && said.contains(", 1 can't be decoded, "),
            "{said}"
        );
    }
    let console = Console::start(&world, &[]).await;
    let page = console.page("/events").await;
    assert!(page.contains("unreadable") && page.contains("9 events, back to the first."), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn any_query_is_read_in_pages() {
    let world = of_all_logs().await;
    let ids = |arguments: &[&str]| {
        let output = world.command(&[&["read", "--json"], arguments].concat()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{said}");
        let printed = String::from_utf8(output.stdout).unwrap();
        let lines = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let lines: Vec<_> = lines.collect();
        let id = |line: &Value| line["id"].as_str().unwrap().to_owned();
        (lines.iter().map(id).collect::<Vec<_>>(), said, lines.last().map(|it| it["place"].clone()))
    };
    let parcel = "orderId+parcelId:o1/p1";
    let (found, said, _) = ids(&["--tag", "sealId:s1", "--type", "ParcelPacked"]);
    assert_eq!((found, &*said), (vec![format!("{parcel}/1")], "1 events, 0.5 read units\n"));
    // The index has no metadata, so the event is also read from the table.
    let by = BTreeMap::from([("principal".to_owned(), json!("eve"))]);
    world.append_with(demand("p9", "o9"), by.try_into().unwrap()).await;
    let both = ["--tag", "productId:p9", "--tag", "orderId:o9", "--type", "ProductDemandRecorded"];
    assert_eq!(ids(&both).1, "1 events, 1 read units\n");
    let (_, line) = world.json(&[&["read"], &both[..]].concat());
    assert_eq!(line["meta"]["principal"], "eve", "{line}");
    let (found, said, place) = ids(&["productId:p1", "--limit", "1"]);
    let place = place.unwrap().as_str().unwrap().to_owned();
    assert_eq!(found, ["productId:p1/1"]);
    assert!(said.ends_with(&format!("; there may be more: --from {place}\n")), "{said}");
    assert_eq!(ids(&["productId:p1", "--from", &place]).0, ["productId:p1/2"]);
    for (name, slots) in
        [("customers#ada#1", [2, 1]), ("carts-c-1", [2, 1]), ("productId:p1", [2, 1])]
    {
        let (found, ..) = ids(&[name, "--backwards", "--limit", "2"]);
        assert_eq!(found, slots.map(|slot| format!("{name}/{slot}")));
    }
    let place = |slot: u64| format!("0/carts-c-1/{slot}");
    assert_eq!(ids(&["carts-c-1", "--from", &place(0)]).0, ["carts-c-1/1", "carts-c-1/2"]);
    assert_eq!(ids(&["carts-c-1", "--from", &place(1), "--backwards"]).0, ["carts-c-1/0"]);
    // There is nothing after the last possible place.
    for name in ["customers#ada#1", "carts-c-1", "productId:p1"] {
        let last = format!("9/{name}/{}", u64::MAX);
        assert_eq!(ids(&[name, "--from", &last]).0, [""; 0]);
    }
    let after = "0/customers#ada#1/1";
    assert_eq!(ids(&["customers#ada#1", "--from", after]).0, ["customers#ada#1/2"]);

    // No decision reads products by their type alone.
    let of_type = ["--type", "ProductAdded"];
    let error = world.error(&[&["read"], &of_type[..]].concat());
    assert!(
        error.starts_with(
            "error: no decision reads these types alone, so the whole table is read: about "
        ),
        "{error}"
    );
    assert!(error.ends_with("Add --yes to read them, or --tag to read fewer\n"), "{error}");
    assert_eq!(ids(&[&of_type[..], &["--yes"]].concat()).0, ["productId:p1/1", "productId:p1/2"]);
    for (arguments, why) in [
        (
            &["--type", "CheckedOut"][..],
            "CheckedOut is of context carts, on the document log, which is read stream by stream: name a partition carts-<id>",
        ),
        (&["--type", "Lost"], "event type Lost is read but not in the catalog"),
        (&["nothing"], "\"nothing\" is the name of no partition"),
        (&["carts#c-1"], "context carts is on the document log: name its partition carts-<id>"),
        (
            &["--tag", "orderId:o1", "--type", "ProductAdded"],
            "the log has no read of ProductAdded by orderId. `ringfence tail --from start` looks through the index",
        ),
        (
            &["--tag", "order:o1"],
            "warning: no event of this build has a tag order; did you mean orderId?",
        ),
        (
            &["carts-c-1", "--from", "0/carts-c-2/1"],
            "--from 0/carts-c-2/1 is a place of another partition than carts-c-1",
        ),
        (&[], "the following required arguments were not provided"),
    ] {
        let error = world.error(&[&["read"], arguments].concat());
        assert!(error.contains(why), "{error}");
    }
    // The reader of the output leaves, as `head` does.
    let mut read = world.command(&["read", "carts-c-1"]);
    let mut read = read.stdout(Stdio::piped()).spawn().unwrap();
    drop(read.stdout.take());
    assert!(tokio::task::block_in_place(|| read.wait()).unwrap().success());
}
