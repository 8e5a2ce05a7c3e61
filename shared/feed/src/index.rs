//! The index, to be read.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use futures::stream::BoxStream;
use ringfence::{BoundaryId, FedEvent, Sequence};
use ringfence_dynamo::{Failure, Item, Kind, Meter, Retry};

use crate::error::failed;
use crate::item::{self, Indexed, Tip};
use crate::{Checkpoint, FeedError, read};

/// One event of the feed.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Behind it: what a reader keeps when it is done with the event.
    pub checkpoint: Checkpoint,
    /// The event.
    pub event: FedEvent,
}

/// How far to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// To the last entry there is.
    Present,
    /// Without end: waits for what comes.
    Forever,
}

/// The order of all events. Clones share a meter.
#[derive(Clone, Debug)]
pub struct Index {
    pub(crate) client: Client,
    pub(crate) table: String,
    pub(crate) meter: Meter,
}

impl Index {
    /// The index in `table`. The client's own retries must be off.
    #[must_use]
    pub fn new(client: Client, table: impl Into<String>) -> Self {
        Self { client, table: table.into(), meter: Meter::default() }
    }

    /// What this index's requests cost so far.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The entries behind a checkpoint, in order. A task reads one answer (1 MB) ahead while the last
    /// one is consumed; it ends with the stream. Needs a tokio runtime. The stream ends after its first error.
    #[must_use]
    pub fn read(
        &self,
        from: Checkpoint,
        until: Until,
    ) -> BoxStream<'static, Result<Entry, FeedError>> {
        read::read(self.clone(), from, until)
    }

    /// The checkpoint behind the last entry.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn end(&self) -> Result<Checkpoint, FeedError> {
        match self.get(item::tip_key(), "reading the tip").await? {
            Some(item) => Tip::of(&item)?.checkpoint(),
            None => Ok(Checkpoint::START),
        }
    }

    /// How many entries lie between two checkpoints: 0 unless `until` lies after `from`. Checkpoints that
    /// differ by 3 in one epoch have 3 entries between them. For each epoch that ends between them, its
    /// last page is read, since an epoch may end with fewer entries than a checkpoint counts for it.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn count(&self, from: Checkpoint, until: Checkpoint) -> Result<u64, FeedError> {
        if until <= from {
            return Ok(0);
        }
        let ((first, before), (last, after)) = (from.place(), until.place());
        let mut entries = after;
        for epoch in first..last {
            entries += read::epoch_entries(self, epoch).await?;
        }
        Ok(entries.saturating_sub(before))
    }

    /// A checkpoint that lies behind the event `position` of `partition`, once it is in the
    /// index: a reader that has reached it has read the event.
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
        Retry::default().run(|| self.get_once(key.clone())).await.map_err(failed(operation))
    }

    async fn get_once(&self, key: Item) -> Result<Option<Item>, Failure> {
        self.meter.sent(Kind::Read);
        let answer = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(key))
            .consistent_read(true)
            .return_consumed_capacity(ReturnConsumedCapacity::Indexes)
            .send()
            .await?;
        self.meter.consumed(Kind::Read, answer.consumed_capacity());
        Ok(answer.item)
    }
}
