//! The promises on the aggregate log.

type Tested = ringfence_aggregate_log::Aggregates;

#[path = "suite.rs"]
mod suite;
#[path = "world.rs"]
mod world;

use ringfence_aggregate_log::{AggregateKey, AggregateTable, NewAggregateEvent, PushPlace};
use ringfence_aws::Clock;
use ringfence_log::Log;
use serde_json::json;

use world::{Fill, NOW_MS, Tabled, envelope, fill, run};

/// Castore can leave versions out.
#[tokio::test(start_paused = true)]
async fn a_dry_run_does_not_name_a_gap_as_an_event() {
    let (world, clock) = (Tabled::new(), Clock::fixed(NOW_MS));
    run(&world::World::handler(&world, clock.clone(), 0), &fill(&["x"]), None).await;
    let table = AggregateTable::new(world.table.client.clone(), "table", clock.clone());
    let shelf = AggregateKey::new("shelves", "a").expect("a key");
    let put = NewAggregateEvent {
        event_type: "Put".to_owned(),
        payload: Some(json!({ "thing": "y", "decidedMs": NOW_MS })),
        metadata: None,
        timestamp_ms: None,
    };
    table.push_event(&shelf, PushPlace::Forced(4), put).await.expect("pushed");
    let (command, envelope) = (fill(&["z"]), envelope(&clock, None));
    let dry_run = <Tested as Log<Fill>>::dry_run(&world.table, &command, &envelope).await;
    let events = dry_run.expect("a slice of the log").events.into_iter().map(|event| event.id);
    assert_eq!(events.collect::<Vec<_>>(), ["shelves#a/1", "shelves#a/4"]);
}
