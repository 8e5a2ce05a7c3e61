//! The sample of index-events.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use ringfence_feed::index_events::{Indexing, IndexingReport, index};
use ringfence_feed::{Indexed, Notification, Partition};
use ringfence_lambda::DeadLetters;
use ringfence_local::workspace_root;
use serde_json::Value;

/// Indexes one event of each notified partition.
struct One;

impl Indexing for One {
    fn index(
        &self,
        notifications: Vec<Notification>,
        _: Duration,
    ) -> BoxFuture<'_, BTreeMap<Partition, Indexed>> {
        let outcomes =
            notifications.into_iter().map(|notification| (notification.partition, Ok(1)));
        ready(outcomes.collect()).boxed()
    }
}

struct NoQueue;

impl DeadLetters for NoQueue {
    fn keep(&self, dead_letter: Value) -> BoxFuture<'_, Result<(), Box<dyn Error + Send + Sync>>> {
        panic!("a dead letter: {dead_letter}")
    }
}

#[tokio::test(start_paused = true)]
async fn the_sample_of_index_events_names_partitions() {
    let sample = fs::read_to_string(workspace_root().join("events/index-events/stream.json"));
    let sample: Value = serde_json::from_str(&sample.unwrap()).unwrap();
    let records = sample["Records"].as_array().unwrap();
    let IndexingReport { partitions, indexed, failed_from, .. } =
        index(&stack::stack().sources, &One, &NoQueue, records, Duration::from_secs(1)).await;
    assert!(partitions > 0 && indexed > 0, "{partitions} partitions, {indexed} events");
    assert_eq!(failed_from, None);
}
