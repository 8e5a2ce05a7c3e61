use std::collections::BTreeSet;
use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_feed::Checkpoint;
use serde_json::{Value, json};

use crate::world::{VIEWS, World, demand};

fn ids(events: &[Arc<Value>]) -> Vec<String> {
    events.iter().map(|event| event["detail"]["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_sends_marked_entries_once() {
    let mut world = World::start().await;
    let mut appended = Vec::new();
    for (product, order) in [("p1", "o1"), ("p2", "o1"), ("p1", "o2")] {
        appended.push(world.indexed_demand(product, order).await.id());
    }
    let replay = ["replay", "bus", "--name", "search", "--rate", "10000"];
    let (status, printed) = world.run(&[&replay[..], &["--until", "2"]].concat());
    assert_eq!((status, &*printed), (0, "2 events read, 2 sent, at checkpoint 2\n"));
    let events = world.on_the_bus();
    assert_eq!(ids(&events), appended[..2]);
    assert_eq!(events[0]["source"], "replay.catalog");
    assert_eq!(events[0]["detail-type"], "ProductDemandRecorded");
    assert_eq!(events[0]["detail"]["replay"], "search");
    assert_eq!(events[0]["detail"]["data"], json!({ "productId": "p1", "orderId": "o1" }));

    let rest = json!({ "read": 1, "sent": 1, "refused": [], "checkpoint": 3 });
    assert_eq!(world.json(&replay), (0, rest));
    let nothing = json!({ "read": 0, "sent": 0, "refused": [], "checkpoint": 3 });
    assert_eq!(world.json(&replay), (0, nothing));
    assert_eq!(ids(&world.on_the_bus()), appended[2..]);

    // A replay of another name begins where the flag says.
    let other = ["replay", "bus", "--name", "o", "--from", "1", "--tag", "productId:p1"];
    let some = json!({ "read": 2, "sent": 1, "refused": [], "checkpoint": 3 });
    assert_eq!(world.json(&other), (0, some));
    assert_eq!(ids(&world.on_the_bus()), appended[2..]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_is_killed_goes_on() {
    let mut world = World::start().await;
    let mut appended = BTreeSet::new();
    for n in 0..6 {
        let events = (0..40).flat_map(|m| demand("p1", &format!("o{n}-{m}"))).collect();
        let events = world.append(events).await;
        world.index(&[&events[0].partition]).await;
        appended.extend(events.into_iter().map(|event| event.id()));
    }
    let replay = ["replay", "bus", "--name", "all"];
    let mut first = world.command(&[&replay[..], &["--rate", "100"]].concat()).spawn().unwrap();
    let checkpoints = world.checkpoints();
    let kept = loop {
        if let Some(at) = checkpoints.load("replay.all").await.unwrap() {
            break i64::from(at);
        }
        tokio::task::yield_now().await;
    };
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(kept, 100);
    let before = world.on_the_bus();
    assert!((100..240).contains(&before.len()), "{} before it was killed", before.len());

    let kept = i64::from(checkpoints.load("replay.all").await.unwrap().unwrap());
    let (status, done) = world.json(&[&replay[..], &["--rate", "10000"]].concat());
    assert_eq!((status, done["sent"].as_i64()), (0, Some(240 - kept)));
    let after = world.on_the_bus();
    let mut sent = ids(&before);
    sent.extend(ids(&after));
    assert_eq!(sent.into_iter().collect::<BTreeSet<_>>(), appended);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_never_reached_the_bus_are_sent_as_new() {
    let mut world = World::start().await;
    let mut appended = Vec::new();
    for order in ["o1", "o2", "o3"] {
        appended.push(world.indexed_demand("p1", order).await.id());
    }
    let replay = ["replay", "bus", "--name", "outage", "--as-new", "--from", "1", "--until", "2"];
    assert_eq!(world.run(&replay).0, 0);
    let events = world.on_the_bus();
    assert_eq!(ids(&events), appended[1..2]);
    assert_eq!(events[0]["source"], "catalog");
    assert_eq!(events[0]["detail"].get("replay"), None);
}

/// It would continue where the earlier replay is, and repeat events as new.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_another_replay_has_is_refused() {
    let mut world = World::start().await;
    for order in ["o1", "o2", "o3", "o4"] {
        world.indexed_demand("p1", order).await;
    }
    let as_new = |from, until| {
        ["replay", "bus", "--name", "outage", "--as-new", "--from", from, "--until", until]
    };
    assert_eq!(world.run(&as_new("0", "1")).0, 0);
    assert_eq!(world.on_the_bus().len(), 1);
    let refused = world.error(&as_new("3", "4"));
    let expected = "error: --name outage was used before, for a replay that is at checkpoint 1, which \
                    is not between --from 3 and --until 4; take another --name, or begin this one \
                    again: ringfence checkpoint set replay.outage 3\n";
    assert_eq!(refused, expected);
    assert!(world.on_the_bus().is_empty());
    world.run(&["checkpoint", "set", "replay.outage", "3"]);
    assert_eq!(world.run(&as_new("3", "4")).0, 0);
    assert_eq!(world.on_the_bus().len(), 1);
    assert!(world.error(&as_new("0", "2")).contains("which is not between --from 0 and --until 2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_the_bus_refuses_are_named() {
    let mut world = World::start().await;
    let id = world.indexed_demand("p1", "o1").await.id();
    let (status, printed) = world.run(&["replay", "bus", "--name", "x", "--bus", "nowhere"]);
    let refused = "the bus refuses the entry: InvalidArgument: Event bus nowhere does not exist.";
    let expected = format!("refused  {id}: {refused}\n1 events read, 0 sent, at checkpoint 1\n");
    assert_eq!((status, printed), (1, expected));
    assert!(world.on_the_bus().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_is_rebuilt_beside_the_live_one() {
    let world = World::start().await;
    world.indexed_demand("p1", "o1").await;
    let rebuild = ["replay", "view", "product-demand"];
    let rebuilt = world.run(&rebuild);
    assert_eq!(rebuilt, (0, "product-demand: generation 2 is served\n".to_owned()));
    world.indexed_demand("p1", "o2").await;
    let rebuilt = world.json(&rebuild);
    assert_eq!(
        rebuilt,
        (0, json!({ "view": "product-demand", "live": "3", "rebuilt": true, "parked": 0 }))
    );

    let row = async |generation: &str| {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let row = world.client.get_item().table_name(VIEWS).key("id", text("p1"));
        let row = row.key("view", text(&format!("product-demand#{generation}")));
        row.send().await.unwrap().item
    };
    let row_3 = row("3").await.unwrap();
    assert_eq!(row_3["row"], AttributeValue::N("2".to_owned()));
    assert_eq!(row("2").await, None, "the old generation's rows are gone");
    let at = world.checkpoints().load("product-demand#3").await.unwrap();
    assert_eq!(at.map(i64::from), Some(2));
    assert_ne!(at, Some(Checkpoint::START));
    let (_, shown) = world.run(&["checkpoint", "show", "product-demand#2"]);
    assert!(shown.contains("  retired  "), "{shown}");
}

/// A person who thinks that this was a rebuild would trust rows of the earlier fold.
#[tokio::test(flavor = "multi_thread")]
async fn finishing_an_earlier_rebuild_is_not_reported_as_a_rebuild() {
    let world = World::start().await;
    world.indexed_demand("p1", "o1").await;
    let rebuild = ["replay", "view", "product-demand"];
    assert_eq!(world.run(&rebuild).0, 0);
    let broken_off = async || {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let update = world.client.update_item().table_name(VIEWS).key("id", text("VIEW"));
        let update = update.key("view", text("$View-product-demand"));
        let update = update.update_expression("SET retiring = :old");
        let old = AttributeValue::N("1".to_owned());
        update.expression_attribute_values(":old", old).send().await.unwrap();
    };
    broken_off().await;
    let (status, said) = world.run(&rebuild);
    assert!(status == 0 && said.contains("to build the view, run this again"), "{said}");
    broken_off().await;
    let ended = json!({ "view": "product-demand", "live": "2", "rebuilt": false, "parked": 0 });
    assert_eq!(world.json(&rebuild), (0, ended));
    assert_eq!(world.run(&rebuild).1, "product-demand: generation 3 is served\n");
}

/// The rows of an unfinished rebuild may come from another fold.
#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_can_begin_again() {
    let world = World::start().await;
    for order in ["o1", "o2"] {
        world.indexed_demand("p1", order).await;
    }
    let rebuild = ["replay", "view", "product-demand"];
    assert_eq!(world.run(&rebuild).1, "product-demand: generation 2 is served\n");
    // A row that the first event does not make, and a rebuild that was interrupted after that event.
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let number = |number: &str| AttributeValue::N(number.to_owned());
    let half = world.client.put_item().table_name(VIEWS).item("view", text("product-demand#3"));
    half.item("id", text("of another fold")).send().await.unwrap();
    world.checkpoints().set("product-demand#3", 1.try_into().unwrap()).await.unwrap();
    let begun = world.client.update_item().table_name(VIEWS).key("id", text("VIEW"));
    let begun = begun.key("view", text("$View-product-demand"));
    let begun = begun.update_expression("SET building = :half");
    begun.expression_attribute_values(":half", number("3")).send().await.unwrap();

    let from_start = world.json(&[&rebuild[..], &["--from-start"]].concat());
    assert_eq!(
        from_start,
        (0, json!({ "view": "product-demand", "live": "5", "rebuilt": true, "parked": 0 }))
    );
    let rows = world.client.query().table_name(VIEWS).key_condition_expression("#view = :view");
    let rows = async |generation: &str| {
        let rows = rows.clone().expression_attribute_names("#view", "view");
        let rows = rows.expression_attribute_values(":view", text(generation));
        rows.send().await.unwrap().items.unwrap()
    };
    assert!(rows("product-demand#3").await.is_empty());
    let built = rows("product-demand#5").await;
    assert_eq!((built.len(), &built[0]["row"]), (1, &number("2")));
}
