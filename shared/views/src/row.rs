//! Rows as items of the view table, which are read, written under a condition, and deleted.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use aws_sdk_dynamodb::operation::query::builders::QueryInputBuilder;
use aws_sdk_dynamodb::types::{
    AttributeValue, Delete, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
};
use futures::future::try_join_all;
use ringfence_aws::{Clock, Failure, GaveUp, Item, Reason, Retry, Table, from_attribute};
use ringfence_feed::{Checkpoint, held_bytes};
use serde_json::Value;

use crate::error::ViewError;
use crate::keys::{ID, Keys, VIEW};

/// Longest id of a row, in bytes: DynamoDB's sort key.
pub const ID_BYTES_MAX: usize = 1_024;
/// Largest row with its id, in bytes: 10 KB below DynamoDB's 400 KB, for its other attributes.
pub const ROW_BYTES_MAX: usize = 390 * 1_024;

/// The row.
pub const ROW: &str = "row";
/// The attribute in place of a row that is parked; it says why.
pub const PARKED: &str = "parked";
const EVENT: &str = "event";
const CAUSE: &str = "cause";
/// Names the retry that has written a row, until a projector writes it again.
const RETRIED: &str = "retried";
/// The checkpoint up to which the row is folded.
pub const AS_OF: &str = "as_of";
/// Marks a tombstone.
const REMOVED: &str = "removed";
/// When DynamoDB deletes an item, in seconds since 1970. Rows lack it; tombstones and answers of queued commands have
/// it.
pub const EXPIRES_AT: &str = "expiresAt";
/// The time of a due's row, in milliseconds since 1970. Rows that have it are in the index of what is due.
pub const DUE_AT: &str = "dueAt";
/// How long a tombstone stays, in milliseconds: longer than any request takes that has read the row before. Until then
/// its `as_of` refuses a put that arrives late.
pub(crate) const TOMBSTONE_MS: u64 = 24 * 60 * 60_000;
/// How old a checkpoint may be when rows are put after it, in milliseconds. A process may have slept in between.
pub(crate) const PUT_MS_MAX: u64 = TOMBSTONE_MS / 4;
const LATE: &str = "the run has stood still for hours; start it again";
/// Requests in one BatchWriteItem.
const BATCH_WRITES_MAX: i32 = 25;

/// The view table.
#[derive(Clone, Debug)]
pub(crate) struct ViewTable(pub(crate) Table);

/// The content of a view under an id.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A row.
    Row(Value),
    /// The row could not be written.
    Parked(Parked),
}

/// Replaces a row that could not be written, or an event that could not be read, until it is folded again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    /// The id of the event that could not be folded.
    pub event: String,
    /// Why, for the people who run the stack.
    pub cause: String,
}

/// A row as it is stored, or the reason why it is parked. `None` is a tombstone: the row was removed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored {
    pub(crate) was: Was,
    pub(crate) content: Option<Content>,
}

/// Which state of a row was read. A retry may write a row with the checkpoint that it had before, so the checkpoint
/// alone does not tell the two states apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Was {
    pub(crate) as_of: Checkpoint,
    /// The retry that has written it.
    pub(crate) retried: Option<String>,
}

/// How a row is to be written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Becomes {
    /// It is replaced by this.
    Row(AttributeValue),
    /// It is removed. A tombstone takes its place, even if there was no row: a put that creates it may arrive late.
    Nothing,
    /// It is parked.
    Parked(Parked),
    /// It stays parked.
    StillParked(Parked),
}

/// How a row is to be written, and its state as it was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Write {
    pub(crate) id: String,
    pub(crate) was: Option<Was>,
    pub(crate) becomes: Becomes,
    /// Names the retry, if one writes it.
    pub(crate) retried: Option<String>,
}

/// The time of a due's row, if it has one.
fn due_of(row: &AttributeValue) -> Option<AttributeValue> {
    row.as_m().ok()?.get("due").filter(|at| at.is_n()).cloned()
}

pub(crate) fn failed(operation: &'static str) -> impl FnOnce(GaveUp) -> ViewError {
    move |source| ViewError::Store { operation, source }
}

/// The row of an item, with its id.
pub(crate) fn decode(mut item: Item) -> Result<(String, Stored), ViewError> {
    let text =
        |item: &Item, name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned();
    let (view, id) = (text(&item, VIEW).unwrap_or_default(), text(&item, ID).unwrap_or_default());
    let as_of = item.get(AS_OF).and_then(|value| value.as_n().ok()?.parse().ok());
    let parked = item.remove(PARKED).map(|parked| {
        let text = |name| parked.as_m().ok()?.get(name)?.as_s().ok().cloned();
        Some(Content::Parked(Parked { event: text(EVENT)?, cause: text(CAUSE)? }))
    });
    let content = parked.unwrap_or_else(|| {
        let row = from_attribute(ROW, item.remove(ROW)?).ok()?;
        Some(Content::Row(row))
    });
    let is_removed = item.contains_key(REMOVED);
    match as_of {
        Some(as_of) if is_removed || content.is_some() => {
            let was = Was { as_of, retried: text(&item, RETRIED) };
            Ok((id, Stored { was, content }))
        }
        _ => Err(ViewError::Item { view, id }),
    }
}

/// The condition that a row is as it was read, with its names and values.
fn as_it_was(was: Option<Was>) -> (&'static str, Option<HashMap<String, String>>, Option<Item>) {
    let of_retry = [("#as_of", AS_OF), ("#retried", RETRIED)];
    let (condition, names) = match &was {
        None => ("attribute_not_exists(#view)", &[("#view", VIEW)][..]),
        Some(Was { retried: None, .. }) => {
            ("#as_of = :was AND attribute_not_exists(#retried)", &of_retry[..])
        }
        Some(_) => ("#as_of = :was AND #retried = :retried", &of_retry[..]),
    };
    let names = names.iter().map(|(name, is)| ((*name).to_owned(), (*is).to_owned()));
    let values = was.map(|Was { as_of, retried }| {
        let retried = retried.map(|retry| (":retried".to_owned(), AttributeValue::S(retry)));
        [(":was".to_owned(), number(as_of))].into_iter().chain(retried).collect()
    });
    (condition, Some(names.collect()), values)
}

impl Becomes {
    pub(crate) fn is_row(&self) -> bool {
        matches!(self, Self::Row(_))
    }
}

impl Write {
    /// The row and the reason, if this write parks it.
    pub(crate) fn parked(&self) -> Option<(String, Parked)> {
        match &self.becomes {
            Becomes::Parked(parked) => Some((self.id.clone(), parked.clone())),
            Becomes::Row(_) | Becomes::Nothing | Becomes::StillParked(_) => None,
        }
    }

    /// Puts the row, or the tombstone, which goes at a time in milliseconds since 1970. The condition is that the row
    /// is still as it was read.
    pub(crate) fn put(
        self,
        table: &str,
        keys: &Keys,
        as_of: Checkpoint,
        goes_ms: Option<u64>,
    ) -> Put {
        let mut item = keys.key(&self.id);
        item.insert(AS_OF.to_owned(), number(as_of));
        item.extend(self.retried.map(|retry| (RETRIED.to_owned(), AttributeValue::S(retry))));
        match self.becomes {
            Becomes::Row(row) => {
                let due = due_of(&row).filter(|_| keys.is_due);
                item.extend(due.map(|at| (DUE_AT.to_owned(), at)));
                item.insert(ROW.to_owned(), row);
            }
            Becomes::Parked(parked) | Becomes::StillParked(parked) => {
                item.insert(PARKED.to_owned(), of_parked(parked));
            }
            Becomes::Nothing => {
                item.insert(REMOVED.to_owned(), AttributeValue::Bool(true));
                let goes = goes_ms.map(|ms| AttributeValue::N((ms / 1_000).to_string()));
                item.extend(goes.map(|goes| (EXPIRES_AT.to_owned(), goes)));
            }
        }
        let (condition, names, values) = as_it_was(self.was);
        Put::builder()
            .table_name(table)
            .set_item(Some(item))
            .condition_expression(condition)
            .set_expression_attribute_names(names)
            .set_expression_attribute_values(values)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .expect("table and item are set")
    }

    /// The same for a transaction.
    pub(crate) fn action(
        self,
        table: &str,
        keys: &Keys,
        as_of: Checkpoint,
        goes_ms: Option<u64>,
    ) -> TransactWriteItem {
        let put = self.put(table, keys, as_of, goes_ms);
        TransactWriteItem::builder().put(put).build()
    }
}

/// The action that deletes an item that was read.
pub(crate) fn delete(table: &str, key: Item, was: Was) -> TransactWriteItem {
    let (condition, names, values) = as_it_was(Some(was));
    let delete = Delete::builder()
        .table_name(table)
        .set_key(Some(key))
        .condition_expression(condition)
        .set_expression_attribute_names(names)
        .set_expression_attribute_values(values)
        .build();
    TransactWriteItem::builder().delete(delete.expect("table, key and condition are set")).build()
}

pub(crate) fn of_parked(Parked { event, cause }: Parked) -> AttributeValue {
    let pairs = [(EVENT, event), (CAUSE, cause)];
    AttributeValue::M(pairs.map(|(name, text)| (name.to_owned(), AttributeValue::S(text))).into())
}

fn number(checkpoint: Checkpoint) -> AttributeValue {
    AttributeValue::N(checkpoint.to_string())
}

impl ViewTable {
    /// Reads some of at most 100 rows, and takes their ids out of `ids`. A missing row is `None`. The bytes are those
    /// of the rows in memory.
    pub(crate) async fn some_rows<'a>(
        &self,
        keys: &Keys,
        ids: &mut Vec<&'a str>,
        strong: bool,
    ) -> Result<(BTreeMap<&'a str, Option<Stored>>, usize), ViewError> {
        let mut keys: Vec<Item> = ids.iter().map(|id| keys.key(id)).collect();
        let items = self.0.get_some(Retry::default(), &mut keys, strong).await;
        let items = items.map_err(failed("reading rows"))?.into_iter().map(decode);
        let mut found = items.collect::<Result<HashMap<_, _>, _>>()?;
        let held = found.values().map(|stored| match &stored.content {
            Some(Content::Row(row)) => held_bytes(row),
            _ => 0,
        });
        let held = held.sum();
        let left: BTreeSet<&str> =
            keys.iter().filter_map(|key| Some(&**key.get(ID)?.as_s().ok()?)).collect();
        let read = ids.extract_if(.., |id| !left.contains(*id));
        Ok((read.map(|id| (id, found.remove(id))).collect(), held))
    }

    /// Puts a row, unless it shows at least as much already. False if another run has written it, with less. Later than
    /// `until_ms` by the machine's clock the row is not put.
    pub(crate) async fn put(
        &self,
        put: &Put,
        as_of: Checkpoint,
        clock: &Clock,
        until_ms: u64,
    ) -> Result<bool, ViewError> {
        let late = || Failure::Permanent { source: LATE.into() };
        let in_time = || (clock.machine_ms() < until_ms).then_some(()).ok_or_else(late);
        let send = || async {
            in_time()?;
            self.0.put(put.clone()).await
        };
        match Retry::default().run(send).await {
            Ok(()) => Ok(true),
            Err(GaveUp { failure: Failure::Condition(found), .. }) => {
                let found = found.map(decode).transpose()?;
                Ok(found.is_some_and(|(_, stored)| stored.was.as_of >= as_of))
            }
            Err(gave_up) => Err(failed("writing a row")(gave_up)),
        }
    }

    /// Reads one item.
    pub(crate) async fn item(&self, key: Item, strong: bool) -> Result<Option<Item>, ViewError> {
        let get = || self.0.get(key.clone(), strong);
        Retry::default().run(get).await.map_err(failed("reading the view table"))
    }

    /// Reads items as they were at one moment.
    pub(crate) async fn snapshot<const N: usize>(
        &self,
        keys: [Item; N],
    ) -> Result<[Option<Item>; N], ViewError> {
        let found = Retry::default().run(|| self.0.get_together(&keys)).await;
        let mut found = found.map_err(failed("reading a row as of a moment"))?.into_iter();
        Ok(std::array::from_fn(|_| found.next().flatten()))
    }

    /// Carries out a transaction; false if a condition does not hold.
    pub(crate) async fn transact(
        &self,
        operation: &'static str,
        actions: Vec<TransactWriteItem>,
        token: &str,
    ) -> Result<bool, ViewError> {
        match Retry::default().run(|| self.0.transact(actions.clone(), token)).await {
            Ok(()) => Ok(true),
            Err(GaveUp { failure: Failure::Cancelled(reasons), .. })
                if reasons.iter().any(|reason| matches!(reason, Reason::Condition(_))) =>
            {
                Ok(false)
            }
            Err(gave_up) => Err(failed(operation)(gave_up)),
        }
    }

    /// Deletes some of the rows of a generation that nobody reads or writes any more, of all shards at once. Returns
    /// how many.
    pub(crate) async fn delete_some(&self, keys: &Keys) -> Result<u64, ViewError> {
        let of_shards = keys.shards().map(|shard| self.delete_of_shard(keys.shard(shard)));
        Ok(try_join_all(of_shards).await?.into_iter().sum())
    }

    async fn delete_of_shard(&self, view: String) -> Result<u64, ViewError> {
        let of_view = |query: QueryInputBuilder| {
            query
                .consistent_read(true)
                .key_condition_expression("#view = :view")
                .projection_expression("#view, #id")
                .limit(BATCH_WRITES_MAX)
                .expression_attribute_names("#view", VIEW)
                .expression_attribute_names("#id", ID)
                .expression_attribute_values(":view", AttributeValue::S(view.clone()))
        };
        let found = Retry::default().run(|| self.0.query(of_view)).await;
        let keys = found.map_err(failed("listing old rows"))?.items.unwrap_or_default();
        if keys.is_empty() {
            return Ok(0);
        }
        // The next call finds those that are left.
        let deleted = Retry::default().run(|| self.0.delete_some(&keys)).await;
        Ok(deleted.map_err(failed("deleting old rows"))? as u64)
    }
}
