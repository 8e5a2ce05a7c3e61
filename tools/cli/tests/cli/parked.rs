use ringfence_aws::Clock;
use ringfence_core::{Catalogs, NewEvent, events, kit::id};
use ringfence_feed::Index;
use ringfence_views::{Definition, Generation, Projector, Ran};
use serde_json::json;

use crate::world::{INDEX, VIEWS, World};
use ringfence_programs::shop::{CatalogProducts, ProductAdded, ProductNameChanged};

fn added(product: &str, description: &str) -> Vec<NewEvent> {
    events![ProductAdded {
        product_id: id(product),
        name: "Lamp".to_owned(),
        description: description.to_owned(),
    }]
}

fn renamed(product: &str, name: &str) -> Vec<NewEvent> {
    events![ProductNameChanged { product_id: id(product), name: name.to_owned() }]
}

/// The row of two events is too large for an item. An older version may have accepted such events.
#[tokio::test(flavor = "multi_thread")]
async fn parked_rows_and_events_are_listed_and_folded_again_or_skipped() {
    let world = World::start().await;
    let long = "x".repeat(300_000);
    let mut last = None;
    for events in [added("p1", &long), added("p2", ""), renamed("p1", &long)] {
        let event = world.append(events).await.remove(0);
        world.index(&[&event.partition]).await;
        last = Some(event);
    }
    let event = last.unwrap().id();
    assert_eq!(world.run(&["parked", "show"]), (0, "0 parked\n".to_owned()));
    assert_eq!(world.run(&["due"]), (0, "0 took effect, 0 left\n".to_owned()));
    let error = world.error(&["due", "--in", "2h"]);
    assert!(error.contains("is another DynamoDB, and its clock can't be set"), "{error}");
    let (status, rebuilt) = world.json(&["replay", "view", "catalog-products"]);
    assert_eq!((status, &rebuilt["parked"]), (1, &json!(1)));

    let (_, shown) = world.json(&["parked", "show", "catalog-products"]);
    let cause = shown["parked"][0]["cause"].as_str().unwrap();
    assert!(
        cause.starts_with("the row: 600") && cause.contains("limit 399360; split it"),
        "{cause}"
    );
    let line = format!("catalog-products p1: event {event}: {cause}\n");
    assert_eq!(world.run(&["parked", "show"]), (1, format!("{line}1 parked\n")));
    let retry = ["parked", "retry", "catalog-products"];
    assert_eq!(
        world.run(&retry),
        (1, format!("{line}0 rows shown again, 0 events folded, 1 left\n"))
    );
    let row = json!({ "view": "catalog-products", "row": "p1", "event": event, "cause": cause });
    assert_eq!(world.json(&retry), (1, json!({ "parked": [row], "shown": 0, "folded": 0 })));
    assert_eq!(world.json(&["parked", "show", "product-demand"]), (0, json!({ "parked": [] })));

    let event = world.append(renamed("p1", "Torch")).await.remove(0);
    world.index(&[&event.partition]).await;
    let index = Index::new(world.client.clone(), INDEX, world.bodies());
    let projector =
        Projector::new(world.client.clone(), index, VIEWS, Catalogs::default(), Clock::system());
    let view = Definition::of::<CatalogProducts>();
    let (time, second) = (std::time::Duration::from_secs(60), Generation { number: 2, shards: 1 });
    projector.run(&view, second, time, &mut Ran::default()).await.unwrap();
    let shown = "1 rows shown again, 0 events folded, 0 left\n";
    assert_eq!(world.run(&retry), (0, shown.to_owned()));

    let mut unread = renamed("p3", "Lamp");
    unread[0].data["name"] = json!(["a\u{1b}"]);
    let event = world.append(unread).await.remove(0);
    world.index(&[&event.partition]).await;
    projector.run(&view, second, time, &mut Ran::default()).await.unwrap();
    let cause = "the event can't be read: invalid type: sequence, expected a string";
    let line = format!("catalog-products: event productId:p3/1: {cause}\n");
    assert_eq!(world.run(&["parked", "show"]), (1, format!("{line}1 parked\n")));
    let left = format!("{line}0 rows shown again, 0 events folded, 1 left\n");
    assert_eq!(world.run(&retry), (1, left));
    let skip = ["parked", "skip-event", "catalog-products", "productId:p3/1", "--why", "a test"];
    assert_eq!(world.run(&skip), (0, String::new()));
    let error = world.error(&skip);
    assert!(error.starts_with("error: event productId:p3/1 is not parked: "), "{error}");
    assert_eq!(world.run(&["parked", "show"]), (0, "0 parked\n".to_owned()));
}
