//! Reads the rows that are served, and can wait until they show an event.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use ringfence::BoundaryId;
use ringfence_dynamo::{Item, Retry, Table};
use ringfence_feed::{Checkpoint, Checkpoints, Index};

use crate::project::retired;
use crate::registry::FIRST;
use crate::row::{
    Content, ID, ID_BYTES_MAX, Stored, VIEW, ViewTable, decode, failed, key, partition,
};
use crate::{Definition, Generation, ViewError};

/// Most rows of one list.
pub const LIST_MAX: u16 = 100;
/// Rows of a list without a limit.
pub const LIST_DEFAULT: u16 = 25;
/// After this many waits between two looks at a checkpoint, the waits stop growing, at 200 ms at most.
const WAITS_GROWING: u32 = 4;

/// Serves the rows of views.
#[derive(Clone, Debug)]
pub struct ViewReader {
    views: Vec<&'static str>,
    pub(crate) index: Index,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) table: ViewTable,
}

/// An event that an answer has to show, and how long to wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The event's partition.
    pub partition: BoundaryId,
    /// Its number there.
    pub slot: u64,
    /// How long to wait at most.
    pub most: Duration,
}

/// A row and the checkpoint up to which it is folded.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The row's id.
    pub id: String,
    /// The row, or that it is parked.
    pub content: Content,
    /// The checkpoint after the last event or batch that touched it.
    pub as_of: Checkpoint,
}

/// Which rows to list. Ids are compared byte by byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPage {
    /// The beginning of their ids.
    pub prefix: String,
    /// The least that follows the prefix.
    pub from: Option<String>,
    /// The greatest that follows the prefix; not less than `from`.
    pub to: Option<String>,
    /// The order of their ids.
    pub order: Order,
    /// Only rows whose ids come after this one, in this order.
    pub after: Option<String>,
    /// At most this many rows; a page also ends at 1 MB.
    pub limit: u16,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The least id first.
    #[default]
    Ascending,
    /// The greatest id first.
    Descending,
}

/// Rows of a view.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The rows.
    pub rows: Vec<Shown>,
    /// The id after which the next page goes on, if there may be one.
    pub next: Option<String>,
    /// The view had come at least to this checkpoint before the rows were read strongly. `None` for a list
    /// that does not wait for an event: its rows may be of any time.
    pub as_of: Option<Checkpoint>,
}

/// The result of a read of a view.
#[derive(Clone, Debug, PartialEq)]
pub enum Read<T> {
    /// The answer.
    Found(T),
    /// There is no view of this name.
    UnknownView,
    /// The view is new, and does not yet show the events that were in the index when it was deployed.
    Building {
        /// The checkpoint from which on it is served.
        until: Checkpoint,
        /// Its checkpoint.
        at: Checkpoint,
    },
    /// The view did not show the event in time.
    Behind {
        /// The checkpoint after the event, for which it waited; `None` as long as the event is not in the
        /// index.
        until: Option<Checkpoint>,
        /// The view's checkpoint; `None` if it was not read.
        at: Option<Checkpoint>,
    },
}

impl<T> Read<T> {
    /// The answer, or why there is none.
    fn found<U>(self) -> Result<T, Read<U>> {
        match self {
            Self::Found(found) => Ok(found),
            Self::UnknownView => Err(Read::UnknownView),
            Self::Building { until, at } => Err(Read::Building { until, at }),
            Self::Behind { until, at } => Err(Read::Behind { until, at }),
        }
    }
}

/// The row of an item.
fn shown(item: Option<Item>) -> Result<Option<Shown>, ViewError> {
    let Some(item) = item else { return Ok(None) };
    let (id, Stored { content, as_of }) = decode(item)?;
    Ok(Some(Shown { id, content, as_of }))
}

/// The generation to read, and how far it has come if the answer waits for an event.
struct Served {
    generation: Generation,
    waited: Option<Waited>,
}

/// The result of a wait.
struct Waited {
    /// The checkpoint after the event.
    until: Checkpoint,
    /// The generation's checkpoint.
    at: Checkpoint,
}

impl ViewReader {
    /// A reader of these views. The index tells it where events are.
    pub fn new(
        client: Client,
        index: Index,
        view_table: impl Into<String>,
        views: &[Definition],
    ) -> Self {
        let name = view_table.into();
        let checkpoints = Checkpoints::new(client.clone(), name.clone());
        let views = views.iter().map(|view| view.name).collect();
        let table = ViewTable(Table::new(client, name));
        Self { views, index, checkpoints, table }
    }

    /// One row; `None` if the view has no row of this id. The read is eventually consistent unless it
    /// waits for an event.
    ///
    /// # Errors
    /// A table does not answer, or holds an item that this crate did not write.
    pub async fn row(
        &self,
        view: &str,
        id: &str,
        wait: Option<&Wait>,
    ) -> Result<Read<Option<Shown>>, ViewError> {
        let Served { mut generation, waited } = match self.served(view, wait).await?.found() {
            Ok(served) => served,
            Err(other) => return Ok(other),
        };
        loop {
            let rows = partition(view, generation);
            let mut found = shown(self.table.item(&rows, id, wait.is_some()).await?)?;
            let older = |until| found.as_ref().is_none_or(|found| found.as_of < until);
            let mut served = found.is_some();
            if waited.as_ref().is_some_and(|waited| older(waited.until)) {
                // Perhaps the event does not touch the row. Or the row is not visible yet, though the
                // checkpoint of its transaction is. Read in one transaction, both are of one moment.
                let keys = [key(&rows, id), Checkpoints::key(&rows)];
                let [row, checkpoint] = self.table.snapshot(keys).await?;
                let at = checkpoint.as_ref().map(Checkpoints::decode).transpose()?;
                served = at != Some(retired());
                found = shown(row)?;
            }
            if served {
                return Ok(Read::Found(found));
            }
            match self.still_served(view, generation).await? {
                None if waited.is_none() => return Ok(Read::Found(None)),
                now => generation = now.unwrap_or(generation),
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
        let Served { mut generation, waited } = match self.served(view, wait).await?.found() {
            Ok(served) => served,
            Err(other) => return Ok(other),
        };
        loop {
            let rows = partition(view, generation);
            let query = || {
                self.table
                    .0
                    .query(|query| of_list(query, &rows, page).consistent_read(wait.is_some()))
            };
            let found = Retry::default().run(query).await.map_err(failed("listing rows"))?;
            if let Some(now) = self.still_served(view, generation).await? {
                generation = now;
                continue;
            }
            let items = found.items.unwrap_or_default();
            let rows = items.into_iter().filter_map(|item| shown(Some(item)).transpose());
            let rows = rows.collect::<Result<_, ViewError>>()?;
            let last = found.last_evaluated_key;
            let next = last.and_then(|mut key| key.remove(ID)?.as_s().ok().cloned());
            let as_of = waited.map(|waited| waited.at);
            return Ok(Read::Found(Listed { rows, next, as_of }));
        }
    }

    /// The generation that is served, once it shows the event of the wait. It looks a last time when the
    /// time is over.
    async fn served(&self, view: &str, wait: Option<&Wait>) -> Result<Read<Served>, ViewError> {
        if !self.views.contains(&view) {
            return Ok(Read::UnknownView);
        }
        let retry = Retry::default().within(wait.map_or(Duration::ZERO, |wait| wait.most));
        let mut until = None;
        let mut attempt = 0;
        loop {
            let (generation, due) = match self.table.registered(view, wait.is_some()).await? {
                Some(registered) => (registered.live, registered.until),
                // No projector has run it yet.
                None => (FIRST, Some(self.index.end().await?)),
            };
            if let (Some(Wait { partition, slot, .. }), None) = (wait, until) {
                until = self.index.indexed(partition, *slot).await?;
            }
            let at = match due.max(until) {
                None => None,
                Some(_) => self.checkpoints.load(&partition(view, generation)).await?,
            };
            // The checkpoint of a generation that is no longer served says nothing about its rows.
            let at = at.filter(|at| *at != retired());
            let shows = |place| at.unwrap_or_default() >= place;
            let left = match (due, until) {
                (Some(due), _) if !shows(due) => {
                    Read::Building { until: due, at: at.unwrap_or_default() }
                }
                (_, Some(until)) if shows(until) => {
                    let at = at.unwrap_or_default();
                    return Ok(Read::Found(Served {
                        generation,
                        waited: Some(Waited { until, at }),
                    }));
                }
                _ if wait.is_none() => {
                    return Ok(Read::Found(Served { generation, waited: None }));
                }
                _ => Read::Behind { until, at },
            };
            attempt += 1;
            if !retry.pause(WAITS_GROWING.min(attempt)).await {
                match retry.left() {
                    Some(rest) if !rest.is_zero() => tokio::time::sleep(rest).await,
                    _ => return Ok(left),
                }
            }
        }
    }

    /// The generation that is served instead of `generation`, whose rows may be deleted; `None` if
    /// `generation` still is. A row that was not found is missing for sure only if the generation was
    /// still served after the look.
    async fn still_served(
        &self,
        view: &str,
        generation: Generation,
    ) -> Result<Option<Generation>, ViewError> {
        let registered = self.table.registered(view, true).await?;
        let now = registered.map(|registered| registered.live);
        Ok(now.filter(|now| *now != generation))
    }
}

impl ListPage {
    /// Whether the list can have a row with this id, on whichever page.
    pub(crate) fn holds(&self, id: &str) -> bool {
        id.strip_prefix(&*self.prefix).is_some_and(|rest| {
            self.from.as_deref().is_none_or(|from| from <= rest)
                && self.to.as_deref().is_none_or(|to| rest <= to)
        })
    }

    /// The least and the greatest id that the list can have. A key can't be empty, so there may be no bound.
    fn bounds(&self) -> (Option<String>, Option<String>) {
        let id = |rest: &str| Some(format!("{}{rest}", self.prefix)).filter(|id| !id.is_empty());
        let last = || (!self.prefix.is_empty()).then(|| greatest(&self.prefix));
        (id(self.from.as_deref().unwrap_or_default()), self.to.as_deref().map_or_else(last, id))
    }
}

/// The greatest id that begins with `prefix`.
fn greatest(prefix: &str) -> String {
    let mut id = prefix.to_owned();
    for last in ['\u{10FFFF}', '\u{FFFF}', '\u{7FF}', '\u{7F}'] {
        while id.len() + last.len_utf8() <= ID_BYTES_MAX {
            id.push(last);
        }
    }
    id
}

fn of_list(query: QueryFluentBuilder, rows: &str, page: &ListPage) -> QueryFluentBuilder {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let mut condition = "#view = :view".to_owned();
    let mut query = query
        .expression_attribute_names("#view", VIEW)
        .expression_attribute_values(":view", text(rows))
        .set_exclusive_start_key(page.after.as_ref().map(|after| key(rows, after)))
        .scan_index_forward(page.order == Order::Ascending)
        .limit(page.limit.into());
    let (least, greatest) = page.bounds();
    condition.push_str(match (&least, &greatest) {
        (None, None) => "",
        (Some(_), None) => " AND #id >= :least",
        (None, Some(_)) => " AND #id <= :greatest",
        (Some(_), Some(_)) => " AND #id BETWEEN :least AND :greatest",
    });
    for (name, bound) in [(":least", least), (":greatest", greatest)] {
        if let Some(bound) = bound {
            query = query
                .expression_attribute_names("#id", ID)
                .expression_attribute_values(name, text(&bound));
        }
    }
    query.key_condition_expression(condition)
}
