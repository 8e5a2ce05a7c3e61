//! One table, two writers and two readers: this crate and the original.

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aggregate_log::{
    AggregateError, AggregateEvent, AggregateLog, ListOptions, NewAggregateEvent, Push, PushPlace,
    Range, Version, event_of_image, push_to_tables,
};
use ringfence_aws::Item;
use ringfence_harness::bound;
use serde_json::{Value, json};

use crate::castore;
use crate::customers::{Customer, Deactivate, add, added, catalog, customer, register};
use crate::stack::{NOW, Stack, conflict, event, events, import, key, run, versions};

/// The number of pushes to each layout that either writer can win.
fn races() -> u64 {
    bound(15, 40)
}

/// An item from DynamoDB's JSON.
pub(crate) fn item(json: &Value) -> Item {
    let attributes = json.as_object().expect("an item").iter();
    attributes.map(|(name, value)| (name.clone(), attribute(value))).collect()
}

fn attribute(json: &Value) -> AttributeValue {
    let (kind, value) = json.as_object().and_then(|a| a.iter().next()).expect("an attribute");
    let text = || value.as_str().expect("a text").to_owned();
    match kind.as_str() {
        "S" => AttributeValue::S(text()),
        "N" => AttributeValue::N(text()),
        "BOOL" => AttributeValue::Bool(value == true),
        "NULL" => AttributeValue::Null(true),
        "L" => AttributeValue::L(value.as_array().expect("a list").iter().map(attribute).collect()),
        "M" => AttributeValue::M(item(value)),
        other => panic!("{other} is in no event"),
    }
}

/// An event in the form of the original.
fn detail(event: &AggregateEvent) -> Value {
    let mut detail = json!({
        "aggregateId": event.key.id(),
        "version": event.version.number(),
        "type": event.event_type,
        "timestamp": event.timestamp,
    });
    for (name, value) in [("payload", &event.payload), ("metadata", &event.metadata)] {
        if let Some(value) = value {
            detail[name] = value.clone();
        }
    }
    detail
}

fn details(events: &[AggregateEvent]) -> Value {
    events.iter().map(detail).collect()
}

/// A payload with every kind of JSON value.
fn payload() -> Value {
    json!({
        "name": "Ada", "text": "größe 🦀", "empty": "", "none": null, "yes": true, "no": false,
        "numbers": [0, -1, 1.5, 1e-7, 123_456_789_012_345_i64], "nested": { "a": [{ "b": [] }, {}] },
    })
}

fn pushed(store: &str, id: &str, version: u64, event_type: &str, payload: Value) -> Value {
    let event =
        json!({ "aggregateId": id, "version": version, "type": event_type, "payload": payload });
    json!({ "store": store, "event": event })
}

#[tokio::test]
async fn this_crate_reads_and_continues_aggregates_of_the_original_which_reads_them_again() {
    let stack = Stack::serve().await;
    let Some(mut castore) = castore::start(&stack).await else { return };
    let log = stack.table();
    for id in ["ada", "b#c"] {
        let mut first = pushed("CUSTOMERS", id, 1, "CustomerRegistered", payload());
        first["event"]["metadata"] = json!({ "by": ["original"] });
        first["event"]["timestamp"] = json!("2023-01-01T00:00:00.000Z");
        castore.call("push", first).await;
        let mut second = pushed("CUSTOMERS", id, 2, "PointsAdded", json!({ "points": 3 }));
        second["event"]["timestamp"] = json!("2023-01-02T00:00:00.000Z");
        castore.call("push", second).await;

        let range = Range::default();
        let theirs = castore.call("events", json!({ "store": "CUSTOMERS", "id": id })).await;
        assert_eq!(theirs["events"], details(&events(&log, &customer(id), range).await));

        let read =
            log.get_aggregate::<Customer>(&catalog(), &customer(id), None).await.expect("theirs");
        assert_eq!((read.version.number(), read.state.points), (2, 3));
        let decisions = stack.log();
        run(&decisions, &add(id, &[4]), None).await;
        run(&decisions, &Deactivate { customer_id: id.to_owned() }, None).await;

        let theirs = castore.call("aggregate", json!({ "store": "CUSTOMERS", "id": id })).await;
        let expected = json!({ "points": 7, "name": "Ada", "active": false });
        assert_eq!(theirs["aggregate"], expected);
        assert_eq!(theirs["events"], details(&events(&log, &customer(id), range).await));
    }
    assert!(log.verify(&|_| {}).await.expect("a report").wrong.is_empty());
}

#[tokio::test]
async fn the_original_reads_continues_and_lists_aggregates_of_this_crate() {
    let stack = Stack::serve().await;
    let Some(mut castore) = castore::start(&stack).await else { return };
    let log = stack.table();
    let first = NewAggregateEvent {
        metadata: Some(json!({ "correlationId": "r-1", "deep": payload() })),
        ..event("CustomerRegistered", payload())
    };
    log.push_event(&customer("ada"), PushPlace::After(Version::NONE), first).await.expect("pushed");
    for points in 1..=4 {
        log.push_event(&customer("ada"), PushPlace::End, added(points)).await.expect("pushed");
    }
    let more = pushed("CUSTOMERS", "ada", 6, "PointsAdded", json!({ "points": 5 }));
    castore.call("push", more).await;
    let all = events(&log, &customer("ada"), Range::default()).await;
    assert_eq!(all.len(), 6);
    for (options, range) in [
        (json!({}), Range::default()),
        (json!({ "minVersion": 5 }), Range { min_version: Some(5), ..Range::default() }),
        (json!({ "maxVersion": 2 }), Range { max_version: Some(2), ..Range::default() }),
        (json!({ "reverse": true }), Range { reverse: true, ..Range::default() }),
    ] {
        let input = json!({ "store": "CUSTOMERS", "id": "ada", "options": options });
        let theirs = castore.call("events", input).await;
        assert_eq!(theirs["events"], details(&events(&log, &customer("ada"), range).await));
    }
    let theirs = castore.call("aggregate", json!({ "store": "CUSTOMERS", "id": "ada" })).await;
    assert_eq!(theirs["aggregate"]["points"], 15);
    // This crate forces an event over an event of the original, and the other way round.
    log.push_event(&customer("ada"), PushPlace::Forced(6), added(50)).await.expect("forced");
    let mut forced = pushed("CUSTOMERS", "ada", 5, "PointsAdded", json!({ "points": 40 }));
    forced["force"] = json!(true);
    castore.call("push", forced).await;
    let theirs = castore.call("aggregate", json!({ "store": "CUSTOMERS", "id": "ada" })).await;
    assert_eq!(theirs["aggregate"]["points"], 96);
    let ours =
        log.get_aggregate::<Customer>(&catalog(), &customer("ada"), None).await.expect("Ada");
    assert_eq!(ours.state.points, 96);
}

#[tokio::test]
async fn lists_are_equal_and_each_side_continues_the_pages_of_the_other() {
    let stack = Stack::serve().await;
    let Some(mut castore) = castore::start(&stack).await else { return };
    let log = stack.table();
    for n in 0..6_u64 {
        stack.clock.set(crate::stack::NOW_MS + n * 1_000);
        let id = n.to_string();
        if n % 2 == 0 {
            log.push_event(&customer(&id), PushPlace::End, added(1)).await.expect("pushed");
        } else {
            let mut first = pushed("CUSTOMERS", &id, 1, "PointsAdded", json!({ "points": 1 }));
            first["event"]["timestamp"] = json!(format!("2024-06-23T00:00:0{n}.000Z"));
            castore.call("push", first).await;
        }
    }
    let ours = async |list: &ListOptions| {
        let page = log.list_aggregate_ids("CUSTOMERS", list).await.expect("a page");
        let ids = page.aggregates.iter().map(
            |a| json!({ "aggregateId": a.id, "initialEventTimestamp": a.initial_event_timestamp }),
        );
        (ids.collect::<Value>(), page.next_page_token)
    };
    let all = castore.call("list", json!({ "store": "CUSTOMERS" })).await;
    assert_eq!(all["aggregateIds"], ours(&ListOptions::default()).await.0);
    assert_eq!(all["aggregateIds"].as_array().map(Vec::len), Some(6));

    let bounds = json!({
        "limit": 2, "reverse": true, "initialEventAfter": "2024-06-23T00:00:01.000Z",
        "initialEventBefore": "2024-06-23T00:00:04.000Z",
    });
    let theirs = castore.call("list", json!({ "store": "CUSTOMERS", "options": bounds })).await;
    let list = ListOptions {
        limit: std::num::NonZeroU32::new(2),
        reverse: Some(true),
        initial_event_after: Some("2024-06-23T00:00:01.000Z".to_owned()),
        initial_event_before: Some("2024-06-23T00:00:04.000Z".to_owned()),
        page_token: None,
    };
    let (first, token) = ours(&list).await;
    assert_eq!(theirs["aggregateIds"], first);
    let next = ListOptions {
        page_token: theirs["nextPageToken"].as_str().map(str::to_owned),
        ..ListOptions::default()
    };
    let (mine, _) = ours(&next).await;
    let options = json!({ "pageToken": token });
    let theirs = castore.call("list", json!({ "store": "CUSTOMERS", "options": options })).await;
    assert_eq!(theirs["aggregateIds"], mine);
    let ids: Vec<_> =
        mine.as_array().into_iter().flatten().map(|a| a["aggregateId"].clone()).collect();
    assert_eq!(ids, ["2", "1"]);
}

#[tokio::test]
async fn each_side_reads_the_groups_of_the_other_also_over_two_tables() {
    let stack = Stack::serve().await;
    let Some(mut castore) = castore::start(&stack).await else { return };
    let (log, other) = (stack.table(), stack.other_table());
    let group = json!({ "events": [
        pushed("CUSTOMERS", "ada", 1, "PointsAdded", json!({ "points": 1 })),
        pushed("CARDS", "ada", 1, "PointsAdded", json!({ "points": 2 })),
        pushed("VOUCHERS", "ada", 1, "PointsAdded", json!({ "points": 3 })),
    ] });
    castore.call("group", group.clone()).await;
    assert_eq!(versions(&log, &key("CARDS", "ada"), Range::default()).await, [1]);
    assert_eq!(versions(&other, &key("VOUCHERS", "ada"), Range::default()).await, [1]);
    let push = |store: &str, version| Push {
        key: key(store, "ada"),
        place: PushPlace::At(version),
        events: vec![added(10)],
    };
    let ours =
        [(&log, push("CUSTOMERS", 2)), (&other, push("VOUCHERS", 2)), (&log, push("CARDS", 2))];
    let ours = push_to_tables(&ours).await.expect("pushed");
    assert!(ours.iter().all(|event| event.timestamp == NOW));
    for (store, points) in [("CUSTOMERS", 11), ("CARDS", 12), ("VOUCHERS", 13)] {
        let theirs = castore.call("aggregate", json!({ "store": store, "id": "ada" })).await;
        assert_eq!(theirs["aggregate"]["points"], points);
    }
    let refused = castore.ask("group", group).await;
    assert_eq!(refused["error"]["code"], "EventAlreadyExistsError", "{refused}");
    let refused = log.push_event_group(vec![push("CARDS", 3), push("CUSTOMERS", 2)]).await;
    assert_eq!(conflict(refused), ("CUSTOMERS#ada".to_owned(), 2));
    let refused = push_to_tables(&[(&other, push("VOUCHERS", 3)), (&log, push("CARDS", 2))]).await;
    assert_eq!(conflict(refused), ("CARDS#ada".to_owned(), 2));
    assert_eq!(versions(&other, &key("VOUCHERS", "ada"), Range::default()).await, [1, 2]);
    assert_eq!(versions(&log, &key("CARDS", "ada"), Range::default()).await, [1, 2]);
}

#[tokio::test]
async fn exactly_one_of_two_writers_of_a_version_wins() {
    let stack = Stack::serve().await;
    let Some(mut castore) = castore::start(&stack).await else { return };
    for (store, log) in [("CUSTOMERS", stack.table()), ("LEGACY", stack.legacy_table())] {
        let mut wins = [0, 0];
        let mut read = Version::NONE;
        for version in 1..=races() {
            // Each may start later than the other, so that neither is always first.
            let ada = customer("ada");
            let mine = log.push_event(&ada, PushPlace::After(read), added(1));
            let theirs = pushed(store, "ada", version, "PointsAdded", json!({ "points": 1000 }));
            let (mine, theirs) = match version % 3 {
                0 => (mine.await, castore.ask("push", theirs).await),
                1 => {
                    let theirs = castore.ask("push", theirs).await;
                    (mine.await, theirs)
                }
                _ => tokio::join!(mine, castore.ask("push", theirs)),
            };
            match (mine, &theirs["error"]["code"]) {
                (Ok(event), Value::String(code)) if code == "EventAlreadyExistsError" => {
                    assert_eq!(event.version.number(), version);
                    wins[0] += 1;
                }
                (Err(AggregateError::Conflict(conflict)), Value::Null) => {
                    assert_eq!(conflict.version, version);
                    wins[1] += 1;
                }
                (mine, _) => panic!("version {version}: {mine:?}, {theirs}"),
            }
            read = events(&log, &customer("ada"), Range::NEWEST).await[0].version;
            assert_eq!(read.number(), version);
        }
        assert!(wins.iter().all(|won| *won > 0), "{wins:?}");
        let ada =
            log.get_aggregate::<Customer>(&catalog(), &customer("ada"), None).await.expect("Ada");
        assert_eq!(ada.state.points, wins[0] + 1_000 * wins[1]);
        let theirs = castore.call("aggregate", json!({ "store": store, "id": "ada" })).await;
        assert_eq!(theirs["aggregate"]["points"], wins[0] + 1_000 * wins[1]);
    }
}

#[tokio::test]
async fn stream_images_mean_the_same_to_both() {
    let stack = Stack::serve().await;
    let Some(mut castore) = castore::start(&stack).await else { return };
    let mut stream = stack.stream();
    let first = pushed("CUSTOMERS", "a#b", 1, "CustomerRegistered", payload());
    castore.call("push", first).await;
    let log = stack.table();
    log.push_event(&customer("a#b"), PushPlace::End, added(2)).await.expect("pushed");
    let records = stream.read().expect("records");
    assert_eq!(records.len(), 2);
    for record in records {
        let image = &record["dynamodb"]["NewImage"];
        let ours = event_of_image(item(image)).expect("an event");
        let theirs = castore.call("image", json!({ "image": image })).await;
        assert_eq!(theirs["eventStoreId"], ours.key.store());
        assert_eq!(theirs["event"], detail(&ours));
    }
}

#[tokio::test]
async fn a_legacy_table_of_the_original_is_read_written_listed_and_imported() {
    let stack = Stack::serve().await;
    let Some(mut castore) = castore::start(&stack).await else { return };
    for id in ["ada", "b#c"] {
        for version in 1..=3 {
            let event = pushed("LEGACY", id, version, "PointsAdded", json!({ "points": version }));
            castore.call("push", event).await;
        }
    }
    let (legacy, log) = (stack.legacy_table(), stack.table());
    // A slice decides on events of the original, and the original reads the slice's events.
    let decisions = AggregateLog::new(legacy.clone(), catalog(), stack.clock.clone());
    for customer in ["ada", "eve"] {
        run(&decisions, &register(customer), None).await;
    }
    run(&decisions, &add("ada", &[4, 5]), None).await;
    let theirs = castore.call("aggregate", json!({ "store": "LEGACY", "id": "ada" })).await;
    let ours = events(&legacy, &customer("ada"), Range::default()).await;
    assert_eq!((theirs["aggregate"]["points"].as_i64(), ours.len()), (Some(15), 6));
    assert_eq!(theirs["events"], details(&ours));
    let theirs = castore.call("list", json!({ "store": "LEGACY" })).await;
    assert_eq!(theirs["aggregateIds"].as_array().map(Vec::len), Some(3));
    let listed =
        legacy.list_aggregate_ids("CUSTOMERS", &ListOptions::default()).await.expect("a page");
    assert_eq!(listed.aggregates.len(), 3);
    assert_eq!(import(&legacy, &log).await.expect("imported"), [true; 10]);
    for (id, version) in [("ada", 7), ("b#c", 4)] {
        let before = castore.call("events", json!({ "store": "LEGACY", "id": id })).await;
        let after = castore.call("events", json!({ "store": "CUSTOMERS", "id": id })).await;
        assert_eq!(before, after);
        let ours = events(&legacy, &customer(id), Range::default()).await;
        assert_eq!(after["events"], details(&ours));
        let more = pushed("CUSTOMERS", id, version, "PointsAdded", json!({ "points": 4 }));
        castore.call("push", more).await;
        assert_eq!(versions(&log, &customer(id), Range::NEWEST).await, [version]);
    }
    let theirs = castore.call("list", json!({ "store": "CUSTOMERS" })).await;
    let ours = log.list_aggregate_ids("CUSTOMERS", &ListOptions::default()).await.expect("a page");
    assert_eq!(theirs["aggregateIds"].as_array().map(Vec::len), Some(3));
    assert_eq!(ours.aggregates.len(), 3);
    assert!(log.verify(&|_| {}).await.expect("a report").wrong.is_empty());
}
