//! Rows that are due: the index `due` of the view table, and notes on commands that cleared nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::query::builders::QueryInputBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, Delete, Put};
use ringfence_aws::{Clock, Failure, GaveUp, Item, Meter, Retry, Table};
use serde_json::Value;

use crate::keys::{ID, Keys, VIEW, key};
use crate::row::{Content, DUE_AT, Stored, ViewTable, decode, failed};
use crate::{Definition, Generation, ViewError};

/// The index of the view table that has the rows with a time.
pub const DUE: &str = "due";
const CAUSE: &str = "cause";
const TRIES: &str = "tries";
const NEXT: &str = "next";
const WHY: &str = "why";

/// A row that has been due for longer is late, so that people look at it: an hour, in milliseconds. The alarm
/// DeadlinesLate has the same limit.
pub const DUE_LATE_MS: u64 = 60 * 60_000;
/// Most rows of one page.
pub const DUE_PAGE_MAX: u16 = 100;

/// Reads what is due, and keeps notes on it.
#[derive(Clone, Debug)]
pub struct DueReader {
    table: ViewTable,
}

/// Where a page of due rows begins: after the page before.
#[derive(Clone, Debug)]
pub struct DuePlace(Item);

/// Rows that are due, the earliest first.
#[derive(Clone, Debug, Default)]
pub struct DuePage {
    /// When each is due, in milliseconds since 1970, and its id.
    pub rows: Vec<(u64, String)>,
    /// Where the next page begins; `None` after the last one.
    pub next: Option<DuePlace>,
}

/// A note on a command that was sent and cleared nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueNote {
    /// The event that set the row then. If another one has set it since, the note does not count.
    pub cause: String,
    /// How often it was sent.
    pub tries: u32,
    /// Before this time it is not sent again, in milliseconds since 1970.
    pub next_ms: u64,
    /// The result of the last try, for the people who run the stack.
    pub why: String,
}

/// The rows that are due now, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DueStanding {
    /// How many rows are due, of the first hundred of each shard.
    pub rows: usize,
    /// Whether there may be more.
    pub is_more: bool,
    /// When the earliest of them was due, in milliseconds since 1970.
    pub earliest_ms: Option<u64>,
    /// The notes that count, each with the id of its row.
    pub notes: Vec<(String, DueNote)>,
}

impl DueStanding {
    /// Since when the earliest of them is due, if that is more than [`DUE_LATE_MS`] ago.
    #[must_use]
    pub fn late_since(&self, now_ms: u64) -> Option<u64> {
        self.earliest_ms.filter(|at| now_ms.saturating_sub(*at) > DUE_LATE_MS)
    }
}

fn notes_of(due: &Definition) -> String {
    format!("$Due-{}", due.name)
}

fn text(item: &Item, name: &str) -> Option<String> {
    item.get(name)?.as_s().ok().cloned()
}

fn number<T: std::str::FromStr>(item: &Item, name: &str) -> Option<T> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

impl DueReader {
    /// A reader of the rows in this table.
    pub fn new(client: Client, view_table: impl Into<String>) -> Self {
        Self { table: ViewTable(Table::new(client, view_table, &Clock::system())) }
    }

    /// What its requests cost so far.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.table.0.meter()
    }

    /// The generation whose rows count; `None` as long as the first one is being built, whose rows do not show all
    /// events yet.
    ///
    /// # Errors
    /// The view table can't be read.
    pub async fn live(&self, due: &Definition) -> Result<Option<Generation>, ViewError> {
        let registered = self.table.registered(due.name, false).await?;
        Ok(registered.filter(|registered| registered.until.is_none()).map(|it| it.live))
    }

    /// A page of the rows of a shard that are due up to a time in milliseconds since 1970. The index may lag behind the
    /// rows.
    ///
    /// # Errors
    /// The view table can't be read.
    pub async fn page(
        &self,
        due: &Definition,
        live: Generation,
        shard: u32,
        until_ms: u64,
        from: Option<DuePlace>,
    ) -> Result<DuePage, ViewError> {
        let shard = Keys::of(due, live).shard(shard);
        let start = from.map(|DuePlace(item)| item);
        let query = |query: QueryInputBuilder| {
            query
                .index_name(DUE)
                .key_condition_expression("#view = :view AND #at <= :until")
                .expression_attribute_names("#view", VIEW)
                .expression_attribute_names("#at", DUE_AT)
                .expression_attribute_values(":view", AttributeValue::S(shard.clone()))
                .expression_attribute_values(":until", AttributeValue::N(until_ms.to_string()))
                .set_exclusive_start_key(start.clone())
                .limit(DUE_PAGE_MAX.into())
        };
        let found = Retry::default().run(|| self.table.0.query(query)).await;
        let found = found.map_err(failed("listing what is due"))?;
        let rows = found.items.unwrap_or_default().into_iter();
        let rows = rows.map(|item| Some((number(&item, DUE_AT)?, text(&item, ID)?)));
        let wrong = || ViewError::Item { view: shard.clone(), id: DUE.to_owned() };
        let rows = rows.collect::<Option<_>>().ok_or_else(wrong)?;
        Ok(DuePage { rows, next: found.last_evaluated_key.map(DuePlace) })
    }

    /// These rows as they are now. Those that are gone or parked are left out.
    ///
    /// # Errors
    /// The view table can't be read.
    pub async fn rows(
        &self,
        due: &Definition,
        live: Generation,
        ids: &BTreeSet<&str>,
    ) -> Result<BTreeMap<String, Value>, ViewError> {
        let keys = Keys::of(due, live);
        let keys = ids.iter().map(|id| keys.key(id)).collect();
        let items = self.table.0.get_all(Retry::default(), keys, true).await;
        let mut shown = BTreeMap::new();
        for item in items.map_err(failed("reading rows"))? {
            if let (id, Stored { content: Some(Content::Row(row)), .. }) = decode(item)? {
                shown.insert(id, row);
            }
        }
        Ok(shown)
    }

    /// The notes, by the ids of their rows.
    ///
    /// # Errors
    /// The view table can't be read.
    pub async fn notes(&self, due: &Definition) -> Result<BTreeMap<String, DueNote>, ViewError> {
        let (of, mut notes, mut start) = (notes_of(due), BTreeMap::new(), None);
        loop {
            let query = |query: QueryInputBuilder| {
                query
                    .key_condition_expression("#view = :view")
                    .expression_attribute_names("#view", VIEW)
                    .expression_attribute_values(":view", AttributeValue::S(of.clone()))
                    .set_exclusive_start_key(start.clone())
            };
            let found = Retry::default().run(|| self.table.0.query(query)).await;
            let found = found.map_err(failed("listing notes on what is due"))?;
            for item in found.items.unwrap_or_default() {
                let id = text(&item, ID).unwrap_or_default();
                let note = || {
                    Some(DueNote {
                        cause: text(&item, CAUSE)?,
                        tries: number(&item, TRIES)?,
                        next_ms: number(&item, NEXT)?,
                        why: text(&item, WHY)?,
                    })
                };
                let wrong = || ViewError::Item { view: of.clone(), id: id.clone() };
                let note = note().ok_or_else(wrong)?;
                notes.insert(id, note);
            }
            start = found.last_evaluated_key;
            if start.is_none() {
                return Ok(notes);
            }
        }
    }

    /// The rows that are due up to a time, in milliseconds since 1970.
    ///
    /// # Errors
    /// The view table can't be read.
    pub async fn standing(&self, due: &Definition, now_ms: u64) -> Result<DueStanding, ViewError> {
        let mut standing = DueStanding::default();
        let Some(live) = self.live(due).await? else { return Ok(standing) };
        for shard in 0..live.shards {
            let page = self.page(due, live, shard, now_ms, None).await?;
            let first = page.rows.first().map(|(at, _)| *at);
            standing.earliest_ms = standing.earliest_ms.into_iter().chain(first).min();
            standing.rows += page.rows.len();
            standing.is_more |= page.next.is_some();
        }
        if standing.rows > 0 {
            let notes = self.notes(due).await?;
            let ids = notes.keys().map(String::as_str).collect();
            let rows = self.rows(due, live, &ids).await?;
            let counts = |id: &str, note: &DueNote| {
                rows.get(id).is_some_and(|row| row["cause"] == *note.cause)
            };
            standing.notes = notes.into_iter().filter(|(id, note)| counts(id, note)).collect();
        }
        Ok(standing)
    }

    /// Keeps a note on a row in place of the one that was read, unless another sweep has changed it since.
    ///
    /// # Errors
    /// The view table can't be written.
    pub async fn note(
        &self,
        due: &Definition,
        id: &str,
        was: Option<&DueNote>,
        note: &DueNote,
    ) -> Result<(), ViewError> {
        let mut item = key(&notes_of(due), id);
        let number = |number: u64| AttributeValue::N(number.to_string());
        item.extend([
            (CAUSE.to_owned(), AttributeValue::S(note.cause.clone())),
            (TRIES.to_owned(), number(note.tries.into())),
            (NEXT.to_owned(), number(note.next_ms)),
            (WHY.to_owned(), AttributeValue::S(note.why.clone())),
        ]);
        let (condition, names, values) = unchanged(was);
        let put = Put::builder()
            .table_name(self.table.0.name())
            .set_item(Some(item))
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(values)
            .build()
            .expect("table and item are set");
        let put = Retry::default().run(|| self.table.0.put(put.clone())).await;
        unless_changed(put).map_err(failed("keeping a note on what is due"))
    }

    /// Removes the note on a row that was read, unless another sweep has changed it since.
    ///
    /// # Errors
    /// The view table can't be written.
    pub async fn forget(&self, due: &Definition, id: &str, was: &DueNote) -> Result<(), ViewError> {
        let (condition, names, values) = unchanged(Some(was));
        let delete = Delete::builder()
            .table_name(self.table.0.name())
            .set_key(Some(key(&notes_of(due), id)))
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(values)
            .build()
            .expect("table and key are set");
        let deleted = Retry::default().run(|| self.table.0.delete(delete.clone())).await;
        unless_changed(deleted).map_err(failed("removing a note on what is due"))
    }
}

/// The condition that a note is as it was read, with its names and values.
fn unchanged(was: Option<&DueNote>) -> (&'static str, HashMap<String, String>, Option<Item>) {
    let name = |name: &str, of: &str| (name.to_owned(), of.to_owned());
    let Some(was) = was else {
        return ("attribute_not_exists(#cause)", [name("#cause", CAUSE)].into(), None);
    };
    let values = [
        (":cause".to_owned(), AttributeValue::S(was.cause.clone())),
        (":next".to_owned(), AttributeValue::N(was.next_ms.to_string())),
    ];
    let names = [name("#cause", CAUSE), name("#next", NEXT)];
    ("#cause = :cause AND #next = :next", names.into(), Some(values.into()))
}

/// A note that has changed since it was read is newer, or was written by an earlier send of the same request. So it
/// stays.
fn unless_changed(written: Result<(), GaveUp>) -> Result<(), GaveUp> {
    match written {
        Err(GaveUp { failure: Failure::Condition(_), .. }) => Ok(()),
        written => written,
    }
}
