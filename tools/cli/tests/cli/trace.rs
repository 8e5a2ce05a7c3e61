//! `trace`.

use ringfence_core::{Metadata, SequencedEvent};
use serde_json::json;

use crate::world::{World, demand};

/// The metadata of an event in the flow `walk-1`.
fn of(slice: &str, command: &str, cause: &str, traceparent: Option<&str>) -> Metadata {
    let mut metadata = Metadata::default();
    for (key, value) in [
        ("slice", slice),
        ("commandId", command),
        ("correlationId", "walk-1"),
        ("causationId", cause),
        ("principal", "jwt:main:ada"),
    ] {
        metadata.insert(key, value).unwrap();
    }
    if let Some(traceparent) = traceparent {
        metadata.insert("traceparent", traceparent).unwrap();
    }
    metadata
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_is_traced_by_its_events_alone() {
    let world = World::start().await;
    let append = async |product: &str, metadata: Metadata| -> SequencedEvent {
        let event = world.append_with(demand(product, "o1"), metadata).await.remove(0);
        world.index(&[&event.partition]).await;
        event
    };
    let caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let first = append("p1", of("order-product", "c-1", "c-1", Some(caller))).await;
    world.indexed_demand("p2", "o2").await;
    let second = append("p3", of("notice", "r/1", &first.id(), None)).await;
    append("p4", of("notice", "r/2", &second.id(), None)).await;

    let (status, traced) = world.json(&["trace", "walk-1"]);
    assert_eq!((status, &traced["correlationId"]), (0, &json!("walk-1")));
    let commands = traced["commands"].as_array().unwrap();
    let text = |n: usize, key: &str| commands[n][key].as_str().map(str::to_owned);
    let levels: Vec<_> = commands.iter().map(|it| it["level"].clone()).collect();
    assert_eq!(levels, [0, 1, 2]);
    let mut parent = None;
    for (n, command) in commands.iter().enumerate() {
        assert_eq!(text(n, "parentSpanId"), parent);
        assert_eq!(text(n, "traceId").as_deref(), Some(&caller[3..35]));
        assert_eq!(command["waitedMs"].is_u64(), n > 0);
        parent = text(n, "spanId");
    }
    assert_eq!(text(1, "slice").as_deref(), Some("notice"));

    let (_, text) = world.run(&["trace", "walk-1"]);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("walk-1: 3 commands, 3 events, "), "{text}");
    assert!(lines[1].ends_with(" ms  catalog/order-product for jwt:main:ada"), "{text}");
    assert!(lines[3].contains("   catalog/notice for jwt:main:ada, "), "{text}");
    assert!(lines[6].ends_with(" ms        ProductDemandRecorded productId:p4/1"), "{text}");

    let (status, text) = world.run(&["trace", "walk-2"]);
    assert_eq!(status, 1);
    assert!(text.starts_with("No event has the correlation id walk-2. `ringfence tail"), "{text}");
    let (status, _) = world.json(&["trace", "walk-1", "--from", "4"]);
    assert_eq!(status, 1, "after the last event");
}
