//! Rows as items of the view table, which are read, written under a condition, and deleted.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use aws_sdk_dynamodb::operation::query::builders::QueryInputBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck, Delete, Put, TransactWriteItem};
use ringfence_aws::{Failure, GaveUp, Item, Reason, Retry, Table, attribute_bytes, from_attribute};
use ringfence_feed::{Checkpoint, held_bytes};
use serde_json::Value;

use crate::error::ViewError;
use crate::generation::Generation;

/// Longest id of a row, in bytes: DynamoDB's sort key.
pub const ID_BYTES_MAX: usize = 1_024;
/// Largest row with its id, in bytes: 10 KB below DynamoDB's 400 KB, for its other attributes.
pub const ROW_BYTES_MAX: usize = 390 * 1_024;

/// Partition key: the view and its generation.
pub const VIEW: &str = "view";
/// Sort key: the row's id.
pub const ID: &str = "id";
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
/// The key of the index of rows that have a time: their generation, and the number of the shard.
pub const DUE_IN: &str = "dueIn";
/// When DynamoDB deletes an item, in seconds since 1970. Rows lack it; answers of queued commands have it.
pub const EXPIRES_AT: &str = "expiresAt";
/// The time of a row, in milliseconds since 1970.
pub const DUE_AT: &str = "dueAt";
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

/// A row as it is stored, or the reason why it is parked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored {
    pub(crate) was: Was,
    pub(crate) content: Content,
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
    /// It is removed.
    Nothing,
    /// It is parked.
    Parked(Parked),
    /// It stays as it was read.
    AsItWas,
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

/// The partition key of a generation's rows, and the name of its reader of the index.
pub(crate) fn partition(view: &str, generation: Generation) -> String {
    format!("{view}#{generation}")
}

/// The view and the generation of a reader.
pub(crate) fn of_partition(reader: &str) -> Option<(&str, Generation)> {
    let (view, generation) = reader.split_once('#')?;
    Some((view, Generation(generation.parse().ok()?)))
}

/// The key of a shard of the rows that have a time.
pub(crate) fn due_in(rows: &str, shard: u32) -> String {
    format!("{rows}#{shard}")
}

/// The shard of a row: FNV-1a, whose result is the same on every machine and in every build.
fn shard_of(id: &str, shards: u32) -> u32 {
    let hash = id
        .bytes()
        .fold(2_166_136_261_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619));
    hash % shards.max(1)
}

/// The attributes of a row that has a time, by which the index finds it.
fn due_of(rows: &str, id: &str, row: &AttributeValue, shards: Option<u32>) -> Option<Item> {
    let AttributeValue::N(at) = row.as_m().ok()?.get("due")? else { return None };
    let shard = due_in(rows, shard_of(id, shards?));
    Some(Item::from([
        (DUE_IN.to_owned(), AttributeValue::S(shard)),
        (DUE_AT.to_owned(), AttributeValue::N(at.clone())),
    ]))
}

pub(crate) fn key(view: &str, id: &str) -> Item {
    let pairs = [(VIEW, view), (ID, id)];
    pairs.map(|(name, value)| (name.to_owned(), AttributeValue::S(value.to_owned()))).into()
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
    match (as_of, content) {
        (Some(as_of), Some(content)) => {
            let was = Was { as_of, retried: text(&item, RETRIED) };
            Ok((id, Stored { was, content }))
        }
        _ => Err(ViewError::Item { view, id }),
    }
}

impl Write {
    /// The row and the reason, if this write parks it.
    pub(crate) fn parked(&self) -> Option<(String, Parked)> {
        match &self.becomes {
            Becomes::Parked(parked) => Some((self.id.clone(), parked.clone())),
            Becomes::Row(_) | Becomes::Nothing | Becomes::AsItWas => None,
        }
    }

    /// The bytes that the write adds to a transaction.
    pub(crate) fn bytes(&self) -> usize {
        let content = match &self.becomes {
            Becomes::Row(row) => attribute_bytes(row),
            Becomes::Parked(Parked { event, cause }) => event.len() + cause.len(),
            Becomes::Nothing | Becomes::AsItWas => 0,
        };
        self.id.len() + content
    }

    /// The action, under the condition that the row is still as it was read. The items of an earlier
    /// transaction may become visible one by one, so the view's checkpoint alone does not prove that the rows read
    /// beside it belong to it.
    pub(crate) fn action(
        self,
        table: &str,
        view: &str,
        as_of: Checkpoint,
        shards: Option<u32>,
    ) -> TransactWriteItem {
        let key = key(view, &self.id);
        let due = match &self.becomes {
            Becomes::Row(row) => due_of(view, &self.id, row, shards),
            Becomes::Nothing | Becomes::Parked(_) | Becomes::AsItWas => None,
        };
        let of_retry = [("#as_of", AS_OF), ("#retried", RETRIED)];
        let (condition, names) = match &self.was {
            None => ("attribute_not_exists(#view)", &[("#view", VIEW)][..]),
            Some(Was { retried: None, .. }) => {
                ("#as_of = :was AND attribute_not_exists(#retried)", &of_retry[..])
            }
            Some(_) => ("#as_of = :was AND #retried = :retried", &of_retry[..]),
        };
        let names = names.iter().map(|(name, is)| ((*name).to_owned(), (*is).to_owned()));
        let names: Option<HashMap<_, _>> = Some(names.collect());
        let is_there = self.was.is_some();
        let was = self.was.map(|Was { as_of, retried }| {
            let retried = retried.map(|retry| (":retried".to_owned(), AttributeValue::S(retry)));
            [(":was".to_owned(), number(as_of))].into_iter().chain(retried).collect()
        });
        let action = TransactWriteItem::builder();
        let content = match self.becomes {
            Becomes::Row(row) => Some((ROW, row)),
            Becomes::Parked(parked) => Some((PARKED, of_parked(parked))),
            Becomes::Nothing if is_there => None,
            Becomes::Nothing | Becomes::AsItWas => {
                let check = ConditionCheck::builder().table_name(table).set_key(Some(key));
                let check = check.condition_expression(condition);
                let check = check.set_expression_attribute_names(names);
                let check = check.set_expression_attribute_values(was).build();
                let check = check.expect("table, key and condition are set");
                return action.condition_check(check).build();
            }
        };
        let action = match content {
            Some((name, content)) => {
                let mut item = key;
                item.extend([(name.to_owned(), content), (AS_OF.to_owned(), number(as_of))]);
                item.extend(due.into_iter().flatten());
                let retried = self.retried.map(AttributeValue::S);
                item.extend(retried.map(|retry| (RETRIED.to_owned(), retry)));
                let put = Put::builder().table_name(table).set_item(Some(item));
                let put = put.condition_expression(condition);
                let put = put.set_expression_attribute_names(names);
                let put = put.set_expression_attribute_values(was).build();
                action.put(put.expect("table and item are set"))
            }
            None => {
                let delete = Delete::builder().table_name(table).set_key(Some(key));
                let delete = delete.condition_expression(condition);
                let delete = delete.set_expression_attribute_names(names);
                let delete = delete.set_expression_attribute_values(was).build();
                action.delete(delete.expect("table and key are set"))
            }
        };
        action.build()
    }
}

pub(crate) fn of_parked(Parked { event, cause }: Parked) -> AttributeValue {
    let pairs = [(EVENT, event), (CAUSE, cause)];
    AttributeValue::M(pairs.map(|(name, text)| (name.to_owned(), AttributeValue::S(text))).into())
}

fn number(checkpoint: Checkpoint) -> AttributeValue {
    AttributeValue::N(checkpoint.to_string())
}

impl ViewTable {
    /// Reads rows strongly. A missing row is not in the answer. `None` if they take more than this many
    /// bytes of memory.
    pub(crate) async fn rows(
        &self,
        view: &str,
        ids: &BTreeSet<&str>,
        bytes_max: usize,
    ) -> Result<Option<BTreeMap<String, Stored>>, ViewError> {
        let mut found = BTreeMap::new();
        let mut bytes = 0;
        let mut keys: Vec<Item> = ids.iter().map(|id| key(view, id)).collect();
        while !keys.is_empty() {
            let items = self.0.get_some(Retry::default(), &mut keys, true).await;
            for item in items.map_err(failed("reading rows"))? {
                let (id, stored) = decode(item)?;
                if let Content::Row(row) = &stored.content {
                    bytes += held_bytes(row);
                }
                if bytes > bytes_max {
                    return Ok(None);
                }
                found.insert(id, stored);
            }
        }
        Ok(Some(found))
    }

    /// Reads one item.
    pub(crate) async fn item(
        &self,
        view: &str,
        id: &str,
        strong: bool,
    ) -> Result<Option<Item>, ViewError> {
        let get = || self.0.get(key(view, id), strong);
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

    /// Deletes some of the rows of a generation that nobody reads or writes any more. Returns how many.
    pub(crate) async fn delete_some(&self, view: &str) -> Result<u64, ViewError> {
        let of_view = |query: QueryInputBuilder| {
            query
                .consistent_read(true)
                .key_condition_expression("#view = :view")
                .projection_expression("#view, #id")
                .limit(BATCH_WRITES_MAX)
                .expression_attribute_names("#view", VIEW)
                .expression_attribute_names("#id", ID)
                .expression_attribute_values(":view", AttributeValue::S(view.to_owned()))
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
