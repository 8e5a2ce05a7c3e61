//! The requests of a reader of the index to the logs, which have the events.

use futures::TryStreamExt;
use ringfence_aws::wire::Exchange;
use ringfence_core::kit::fail;
use ringfence_feed::{Partition, Until};

use crate::readers::{AGGREGATES, World, noted};

impl World {
    /// The requests of a reader of all events: of one that is alone in its partition, and of several. Those of
    /// documents need none.
    pub(crate) async fn requests_for_bodies(&self, of_aggregates: bool) -> Vec<Exchange> {
        let mut asked = Vec::new();
        for events in [1, 2] {
            let from = self.index().end().await.unwrap_or_else(|error| fail("the index", error));
            let published = self.append(vec![noted(&["a"], 0); events]).await;
            let mut partitions: Vec<_> = published.iter().map(Partition::of).collect();
            if of_aggregates && self.tables.contains(&AGGREGATES) {
                partitions.push(self.push(events as u64).await);
            }
            self.index_all(partitions).await;
            self.dynamo.wire.forget();
            let entries = self.index().read(from, Until::Present);
            let read: Result<Vec<_>, _> = entries.try_collect().await;
            read.unwrap_or_else(|error| fail("the events", error));
            asked.extend(self.dynamo.wire.take());
        }
        asked
    }
}
