//! Reading the rows that are served, and waiting until they show an event.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity};
use ringfence::{BoundaryId, Sequence};
use ringfence_dynamo::{Failure, Item, Kind, Meter, Retry};
use ringfence_feed::{Checkpoint, Checkpoints, Index};
use serde_json::Value;

use crate::project::retired;
use crate::row::{ID, Table, VIEW, decode, failed, key, partition};
use crate::{Generation, ViewError};

/// Most rows of one list.
pub const LIST_MAX: u16 = 100;
/// Rows of a list that does not say how many.
pub const LIST_DEFAULT: u16 = 25;
/// Waits between two looks at a checkpoint stop growing after so many, at 200 ms at most.
const WAITS_GROWING: u32 = 4;

/// Serves the rows of views.
#[derive(Clone, Debug)]
pub struct ViewReader {
    index: Index,
    checkpoints: Checkpoints,
    table: Table,
}

/// An event that an answer has to show, and how long to wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The event's partition.
    pub partition: BoundaryId,
    /// Its place there.
    pub position: Sequence,
    /// How long to wait at most.
    pub most: Duration,
}

/// A row and the checkpoint up to which it is folded.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The row's id.
    pub id: String,
    /// The row.
    pub row: Value,
    /// Behind the last event that touched it, or the batch that did.
    pub as_of: Checkpoint,
}

/// Which rows to list, in the order of their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPage {
    /// What their ids begin with.
    pub prefix: String,
    /// Only rows whose ids come after this one.
    pub after: Option<String>,
    /// At most so many rows; a page also ends at 1 MB.
    pub limit: u16,
}

/// Rows of a view.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The rows.
    pub rows: Vec<Shown>,
    /// The id after which the next page goes on, if there may be one.
    pub next: Option<String>,
    /// The view shows at least the events before this checkpoint.
    pub as_of: Checkpoint,
}

/// What a read of a view comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Read<T> {
    /// The answer.
    Found(T),
    /// No view of this name was ever run.
    UnknownView,
    /// The view did not show the event in time.
    Behind {
        /// What it waited for: the checkpoint behind the event, or nothing as long as the event is
        /// not in the index.
        until: Option<Checkpoint>,
        /// Where the view is; nothing if that was not the question yet.
        at: Option<Checkpoint>,
    },
}

impl ViewReader {
    /// A reader of a view table; the index is asked where events are.
    pub fn new(client: Client, index: Index, view_table: impl Into<String>) -> Self {
        let name = view_table.into();
        let checkpoints = Checkpoints::new(client.clone(), name.clone());
        Self { index, checkpoints, table: Table { client, name, meter: Meter::default() } }
    }

    /// One row, `None` if the view has none of that id. The read is eventually consistent unless
    /// it waits for an event.
    ///
    /// # Errors
    /// A table does not answer, or holds what this crate does not write.
    pub async fn row(
        &self,
        view: &str,
        id: &str,
        wait: Option<&Wait>,
    ) -> Result<Read<Option<Shown>>, ViewError> {
        let mut served = self.served(view, wait).await?;
        loop {
            let generation = match served {
                Read::Found(generation) => generation,
                Read::UnknownView => return Ok(Read::UnknownView),
                Read::Behind { until, at } => return Ok(Read::Behind { until, at }),
            };
            let rows = partition(view, generation);
            let item = self.table.item(&rows, id, wait.is_some()).await?;
            if let Some(item) = item {
                let (id, stored) = decode(item)?;
                let (row, as_of) = (stored.row, stored.as_of);
                return Ok(Read::Found(Some(Shown { id, row, as_of })));
            }
            match self.still_served(view, generation).await? {
                None => return Ok(Read::Found(None)),
                Some(now) => served = now,
            }
        }
    }

    /// A page of rows.
    ///
    /// # Errors
    /// As [`ViewReader::row`].
    pub async fn list(
        &self,
        view: &str,
        page: &ListPage,
        wait: Option<&Wait>,
    ) -> Result<Read<Listed>, ViewError> {
        let mut served = self.served(view, wait).await?;
        loop {
            let generation = match served {
                Read::Found(generation) => generation,
                Read::UnknownView => return Ok(Read::UnknownView),
                Read::Behind { until, at } => return Ok(Read::Behind { until, at }),
            };
            let rows = partition(view, generation);
            let as_of = self.checkpoints.load(&rows).await?.unwrap_or_default();
            let query = || self.query(&rows, page, wait.is_some());
            let (items, last) =
                Retry::default().run(query).await.map_err(failed("listing rows"))?;
            match self.still_served(view, generation).await? {
                Some(now) => served = now,
                None => {
                    let rows = items.into_iter().map(|item| {
                        let (id, stored) = decode(item)?;
                        Ok(Shown { id, row: stored.row, as_of: stored.as_of })
                    });
                    let rows = rows.collect::<Result<_, ViewError>>()?;
                    let next = last.and_then(|mut key| key.remove(ID)?.as_s().ok().cloned());
                    return Ok(Read::Found(Listed { rows, next, as_of }));
                }
            }
        }
    }

    /// The generation that is served, once it shows what is waited for.
    async fn served(&self, view: &str, wait: Option<&Wait>) -> Result<Read<Generation>, ViewError> {
        let Some(wait) = wait else {
            let registered = self.table.registered(view, false).await?;
            return Ok(registered.map_or(Read::UnknownView, |known| Read::Found(known.live)));
        };
        let retry = Retry::default().within(wait.most);
        let (mut until, mut at) = (None, None);
        for attempt in 1.. {
            let Some(registered) = self.table.registered(view, true).await? else {
                return Ok(Read::UnknownView);
            };
            if until.is_none() {
                until = self.index.indexed(&wait.partition, &wait.position).await?;
            }
            if let Some(until) = until {
                let reader = partition(view, registered.live);
                let found = self.checkpoints.load(&reader).await?;
                // One that is no longer served says nothing of its rows.
                at = found.filter(|found| *found != retired());
                if at.is_some_and(|at| at >= until) {
                    return Ok(Read::Found(registered.live));
                }
            }
            if !retry.pause(attempt.min(WAITS_GROWING)).await {
                break;
            }
        }
        Ok(Read::Behind { until, at })
    }

    /// What is served instead of `generation`, whose rows may be deleted; `None` if it still is.
    /// What is not found is not there only if the generation was served after the look.
    async fn still_served(
        &self,
        view: &str,
        generation: Generation,
    ) -> Result<Option<Read<Generation>>, ViewError> {
        let registered = self.table.registered(view, true).await?;
        let now = registered.map_or(generation, |registered| registered.live);
        Ok((now != generation).then_some(Read::Found(now)))
    }

    async fn query(
        &self,
        rows: &str,
        page: &ListPage,
        strong: bool,
    ) -> Result<(Vec<Item>, Option<Item>), Failure> {
        self.table.meter.sent(Kind::Read);
        let request = self.table.client.query().table_name(&self.table.name);
        let mut request = request
            .key_condition_expression("#view = :view")
            .expression_attribute_names("#view", VIEW)
            .expression_attribute_values(":view", AttributeValue::S(rows.to_owned()))
            .set_exclusive_start_key(page.after.as_ref().map(|after| key(rows, after)))
            .limit(page.limit.into())
            .consistent_read(strong)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        if !page.prefix.is_empty() {
            request = request
                .key_condition_expression("#view = :view AND begins_with(#id, :prefix)")
                .expression_attribute_names("#id", ID)
                .expression_attribute_values(":prefix", AttributeValue::S(page.prefix.clone()));
        }
        let answer = request.send().await?;
        self.table.meter.consumed(Kind::Read, answer.consumed_capacity());
        Ok((answer.items.unwrap_or_default(), answer.last_evaluated_key))
    }
}
