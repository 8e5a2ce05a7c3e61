//! The index, for reading.

use aws_sdk_dynamodb::Client;
use ringfence::{BoundaryId, FedEvent, Sequence};
use ringfence_dynamo::{Item, Meter, Retry, Table};

use crate::checkpoint::Checkpoint;
use crate::error::{FeedError, failed};
use crate::item::{self, Indexed, Tip};

/// One event of the feed.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The checkpoint after it, which a reader keeps when it is done with the event.
    pub checkpoint: Checkpoint,
    /// The event.
    pub event: FedEvent,
}

/// How far to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// To the last entry that is there.
    Present,
    /// Without end: waits for new entries.
    Forever,
}

/// The order of all events. Clones share a meter.
#[derive(Clone, Debug)]
pub struct Index {
    pub(crate) table: Table,
}

impl Index {
    /// The index in `table`. The client's own retries must be off.
    #[must_use]
    pub fn new(client: Client, table: impl Into<String>) -> Self {
        Self { table: Table::new(client, table) }
    }

    /// What this index's requests cost so far.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.table.meter()
    }

    /// The checkpoint after the last entry.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn end(&self) -> Result<Checkpoint, FeedError> {
        match self.get(item::tip_key(), "reading the tip").await? {
            Some(item) => Tip::of(&item)?.checkpoint(),
            None => Ok(Checkpoint::START),
        }
    }

    /// A checkpoint after the event `position` of `partition`, once the event is in the index. A reader
    /// that has reached it has read the event.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn indexed(
        &self,
        partition: &BoundaryId,
        position: &Sequence,
    ) -> Result<Option<Checkpoint>, FeedError> {
        let item = self.get(item::progress_key(partition), "reading a progress").await?;
        let indexed = item.as_ref().map(Indexed::of).transpose()?.unwrap_or_default();
        let reached = indexed.progress.position.as_ref() >= Some(position);
        Ok(indexed.checkpoint.filter(|_| reached))
    }

    async fn get(&self, key: Item, operation: &'static str) -> Result<Option<Item>, FeedError> {
        let get = || self.table.get(key.clone(), true);
        Retry::default().run(get).await.map_err(failed(operation))
    }
}
