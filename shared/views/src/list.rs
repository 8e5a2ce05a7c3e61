//! Which rows a list has, and how they are read: from all shards at once, in the order of their ids.

use std::cmp::Ordering;
use std::collections::VecDeque;

use aws_sdk_dynamodb::operation::query::builders::QueryInputBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::try_join_all;
use ringfence_aws::{Retry, item_bytes};
use ringfence_feed::Checkpoint;

use crate::ViewError;
use crate::keys::{ID, Keys, VIEW, key};
use crate::row::{Content, ID_BYTES_MAX, Stored, ViewTable, decode, failed};

/// Most rows of one list.
pub const LIST_MAX: u16 = 100;
/// Rows of a list without a limit.
pub const LIST_DEFAULT: u16 = 25;
/// A page ends after so many bytes, as an answer of DynamoDB does.
const LIST_BYTES_MAX: usize = 1_024 * 1_024;

/// Which rows to list. Ids are compared byte by byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPage {
    /// The beginning of their ids.
    pub prefix: String,
    /// The least string that follows the prefix.
    pub from: Option<String>,
    /// The greatest string that follows the prefix; not less than `from`.
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

/// A row and the checkpoint up to which it is folded.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The row's id.
    pub id: String,
    /// The row, or why it is parked.
    pub content: Content,
    /// The checkpoint after the last event or batch that touched it, or a later one up to which it is also current. It
    /// goes back only when another generation is served, by the events of a moment.
    pub as_of: Checkpoint,
}

/// The row; `None` of a tombstone.
pub(crate) fn shown((id, Stored { content, was }): (String, Stored)) -> Option<Shown> {
    Some(Shown { id, content: content?, as_of: was.as_of })
}

impl ListPage {
    /// Whether the list can have a row with this id, on any page.
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

impl ListPage {
    /// The order of two places, each before the first row or after an id.
    fn compare(&self, a: Option<&str>, b: Option<&str>) -> Ordering {
        match self.order {
            Order::Descending if a.is_some() && b.is_some() => b.cmp(&a),
            _ => a.cmp(&b),
        }
    }
}

/// A shard while a list is read.
#[derive(Clone)]
struct Shard {
    /// Its partition key.
    key: String,
    /// Rows that were read, with their bytes.
    rows: VecDeque<(Shown, usize)>,
    /// The id after which it goes on.
    after: Option<String>,
    /// Whether all its rows were read.
    is_over: bool,
    /// How many items the next query reads. Tombstones are passed over, so each query reads twice as many as the one
    /// before.
    limit: u16,
}

impl Shard {
    /// Where its next row is, or may be; `None` after the last one.
    fn place(&self) -> Option<Option<&str>> {
        match self.rows.front() {
            Some((row, _)) => Some(Some(&row.id)),
            None => (!self.is_over).then_some(self.after.as_deref()),
        }
    }

    /// Reads more rows. Returns whether the answer ended at 1 MB.
    async fn read(
        &mut self,
        table: &ViewTable,
        page: &ListPage,
        strong: bool,
    ) -> Result<bool, ViewError> {
        let page = ListPage { after: self.after.take(), limit: self.limit, ..page.clone() };
        let query =
            || table.0.query(|query| of_list(query, &self.key, &page).consistent_read(strong));
        let read = Retry::default().run(query).await.map_err(failed("listing rows"))?;
        let items = read.items.unwrap_or_default();
        let is_cut = items.len() < usize::from(self.limit);
        for item in items {
            let bytes = item_bytes(&item);
            self.rows.extend(shown(decode(item)?).map(|row| (row, bytes)));
        }
        let last = read.last_evaluated_key;
        self.after = last.and_then(|mut key| key.remove(ID)?.as_s().ok().cloned());
        self.is_over = self.after.is_none();
        self.limit = self.limit.saturating_mul(2);
        Ok(is_cut && !self.is_over)
    }
}

impl ViewTable {
    /// The rows of a page, and the id after which the next page goes on.
    pub(crate) async fn list(
        &self,
        keys: &Keys,
        page: &ListPage,
        strong: bool,
    ) -> Result<(Vec<Shown>, Option<String>), ViewError> {
        // Of several shards each has few of the next rows.
        let share = u32::from(page.limit) / keys.shards().end;
        let limit = page.limit.min((2 * share + 4).try_into().unwrap_or(u16::MAX));
        let (rows, is_over) = (VecDeque::new(), false);
        let first = Shard { key: String::new(), rows, after: page.after.clone(), is_over, limit };
        let shard = |n| Shard { key: keys.shard(n), ..first.clone() };
        let mut shards: Vec<_> = keys.shards().map(shard).collect();
        let (mut found, mut bytes, mut is_cut) = (Vec::new(), 0, false);
        loop {
            let places = (0..).zip(&shards).filter_map(|(n, shard)| Some((n, shard.place()?)));
            let next = places.min_by(|(_, a), (_, b)| page.compare(*a, *b));
            let Some((n, place)) = next.map(|(n, place)| (n, place.map(str::to_owned))) else {
                return Ok((found, None));
            };
            if found.len() == usize::from(page.limit) || bytes >= LIST_BYTES_MAX {
                let last = found.last().map(|row: &Shown| row.id.clone());
                return Ok((found, last));
            }
            let shard: &mut Shard = &mut shards[n];
            if let Some((row, of_row)) = shard.rows.pop_front() {
                bytes += of_row;
                found.push(row);
                continue;
            }
            // A query ends at 1 MB, and so does the page.
            if is_cut {
                return Ok((found, place));
            }
            let wait = shards.iter_mut().filter(|it| it.rows.is_empty() && !it.is_over);
            is_cut =
                try_join_all(wait.map(|it| it.read(self, page, strong))).await?.contains(&true);
        }
    }
}

fn of_list(query: QueryInputBuilder, rows: &str, page: &ListPage) -> QueryInputBuilder {
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
