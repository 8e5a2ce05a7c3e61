//! The index, for reading.

use std::sync::{Arc, atomic::AtomicU64};

use aws_sdk_dynamodb::Client;
use ringfence_aws::{Clock, Meter, Retry, Table, Usage};
use ringfence_core::{BoundaryId, chain};
use ringfence_log::{EntryError, OpenSource};
use serde_json::Value;

use crate::checkpoint::Checkpoint;
use crate::entry::{Entry, FeedStep, KnownEntry};
use crate::error::{FeedError, failed};
use crate::item::{self, Progress};

impl FeedStep {
    /// A step that was read: the checkpoint after it, and the event if it is wanted, as [`Entry::or_known`] has it.
    ///
    /// # Errors
    /// Any other error of the index.
    pub fn or_known(
        step: Result<Self, FeedError>,
    ) -> Result<(Checkpoint, Option<KnownEntry>), FeedError> {
        let entry = match step {
            Ok(Self::Passed(checkpoint, _)) => return Ok((checkpoint, None)),
            Ok(Self::Event(entry)) => Ok(entry),
            Err(error) => Err(error),
        };
        let known = Entry::or_known(entry)?;
        Ok((known.0.checkpoint, Some(known)))
    }
}

impl Entry {
    /// An entry that was read. If its event can't be read, the entry has its place and its type without a payload, and
    /// the reason comes with it.
    ///
    /// # Errors
    /// Any other error of the index.
    pub fn or_known(entry: Result<Self, FeedError>) -> Result<KnownEntry, FeedError> {
        match entry {
            Err(FeedError::Undecodable { known, source, .. }) => {
                let why = match source.is::<EntryError>() {
                    true => format!("the event can't be decoded: {}", chain(&*source)),
                    false => chain(&*source),
                };
                Ok((*known, Some(why)))
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
    /// To the last entry that is there when the page that begins at this place is read. So a reader that is notified of
    /// each page looks for no later one.
    Past(Checkpoint),
    /// Without end: waits for new entries.
    Forever,
    /// Without end, for a person who watches: looks for new entries five times a second, where [`Until::Forever`]
    /// soon looks every 1.6 seconds. Each look that finds nothing costs 1.5 read units.
    Watched,
}

impl Until {
    /// Past the pages that these records of the index's stream show; `Present` if one shows no page.
    #[must_use]
    pub fn of_records(payload: &Value) -> Self {
        let records = payload["Records"].as_array().into_iter().flatten();
        let pages = records.map(|record| item::place_of_page(&record["dynamodb"]["Keys"]));
        let pages: Option<Vec<_>> = pages.collect();
        pages.and_then(|pages| pages.into_iter().max()).map_or(Self::Present, Self::Past)
    }
}

/// The order of all events. Clones share a meter.
#[derive(Clone, Debug)]
pub struct Index {
    pub(crate) table: Table,
    /// The logs whose events are read.
    pub(crate) logs: Arc<[OpenSource]>,
    /// An epoch that has begun, from which the end is looked for.
    pub(crate) epoch: Arc<AtomicU64>,
}

impl Index {
    /// The index in `table`, and the logs whose events are read. The client's own retries must be off.
    #[must_use]
    pub fn new(
        client: Client,
        table: impl Into<String>,
        logs: impl IntoIterator<Item = OpenSource>,
    ) -> Self {
        Self {
            table: Table::new(client, table, &Clock::system()),
            logs: logs.into_iter().collect(),
            epoch: Arc::default(),
        }
    }

    /// What the requests to its table cost so far.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.table.meter()
    }

    /// What this index's requests cost so far, with those for the events in the logs.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let of_logs = self.logs.iter().map(|log| log.table.meter().snapshot());
        of_logs.fold(self.meter().snapshot(), |sum, usage| sum.and(&usage))
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
