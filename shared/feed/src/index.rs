//! The index, for reading.

use std::sync::{Arc, atomic::AtomicU64};

use aws_sdk_dynamodb::Client;
use ringfence_aws::{Clock, Meter, Retry, Table};
use ringfence_core::{BoundaryId, chain};
use ringfence_log::Sources;
use serde_json::Value;

use crate::checkpoint::Checkpoint;
use crate::entry::Entry;
use crate::error::{FeedError, failed};
use crate::item::{self, Progress};

impl Entry {
    /// An entry that was read. If its event can't be decoded, the entry has its place and its type without a payload,
    /// and the reason comes with it.
    ///
    /// # Errors
    /// Any other error of the index.
    pub fn or_known(entry: Result<Self, FeedError>) -> Result<(Self, Option<String>), FeedError> {
        match entry {
            Err(FeedError::Undecodable { known, source, .. }) => {
                Ok((*known, Some(format!("the event can't be decoded: {}", chain(&*source)))))
            }
            entry => Ok((entry?, None)),
        }
    }

    /// The memory that the event's data takes, in bytes.
    #[must_use]
    pub fn held(&self) -> usize {
        held_bytes(&self.event.data)
    }
}

/// The memory that a value takes, in bytes. A value of many small parts takes ten times as much as DynamoDB counts.
#[must_use]
pub fn held_bytes(value: &Value) -> usize {
    let parts = match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(held_bytes).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| size_of::<String>() + name.len() + held_bytes(value))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + parts
}

/// How far to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// To the last entry that is there.
    Present,
    /// Without end: waits for new entries.
    Forever,
    /// Without end, for a person who watches: looks for new entries five times a second, where [`Until::Forever`]
    /// soon looks every 1.6 seconds. Each look that finds nothing costs 1.5 read units.
    Watched,
}

/// The order of all events. Clones share a meter.
#[derive(Clone, Debug)]
pub struct Index {
    pub(crate) table: Table,
    /// The logs whose entries are read.
    pub(crate) sources: Sources,
    /// An epoch that has begun, from which the end is looked for.
    pub(crate) epoch: Arc<AtomicU64>,
}

impl Index {
    /// The index in `table`, and the logs whose entries are read. The client's own retries must be off.
    #[must_use]
    pub fn new(client: Client, table: impl Into<String>, sources: impl Into<Sources>) -> Self {
        Self {
            table: Table::new(client, table, &Clock::system()),
            sources: sources.into(),
            epoch: Arc::default(),
        }
    }

    /// What this index's requests cost so far.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.table.meter()
    }

    /// A checkpoint after the event `slot` of `partition`, once the event is in the index. A reader
    /// that has reached it has read the event.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn indexed(
        &self,
        partition: &BoundaryId,
        slot: u64,
    ) -> Result<Option<Checkpoint>, FeedError> {
        let last = self.last_of(partition).await?;
        Ok(last.and_then(|(last, checkpoint)| (last >= slot).then_some(checkpoint)))
    }

    /// The last event of a partition that is in the index: its slot, and the checkpoint after it. A strong read.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn last_of(
        &self,
        partition: &BoundaryId,
    ) -> Result<Option<(u64, Checkpoint)>, FeedError> {
        let get = || self.table.get(item::progress_key(partition), true);
        let item = Retry::default().run(get).await.map_err(failed("reading a progress"))?;
        let progress = item.as_ref().map(Progress::of).transpose()?;
        Ok(progress.map(|(_, progress)| (progress.slot, progress.checkpoint)))
    }
}
