//! How many events go into one transaction, and what becomes of the rows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence::{FedEvent, LimitExceeded};
use ringfence_dynamo::to_attribute;
use ringfence_feed::{Checkpoint, Entry};
use serde_json::Value;

use crate::row::{ID_BYTES_MAX, ROW_BYTES_MAX, Stored, Write};
use crate::{Definition, ViewError};

/// Actions in one transaction.
pub const ACTIONS_MAX: usize = 100;
/// Rows in one transaction, beside the checkpoint; so many can one event touch.
pub const ROWS_MAX: usize = ACTIONS_MAX - 1;
/// Events in one transaction that touch rows.
pub const EVENTS_MAX: usize = 200;
/// Bytes of memory for the events of a batch, and as many for its rows as they were: views run at
/// once, in one function. The first event and its rows are held whatever they take.
pub const HELD_BYTES_MAX: usize = 8_000_000;
/// Bytes of rows in one transaction: DynamoDB's 4 MB, without what else is in the items.
pub const BATCH_BYTES_MAX: usize = 3_500_000;
/// After so many events that touch nothing the checkpoint is written all the same, so that a crash
/// does not read them again.
const ENTRIES_MAX: usize = 1_000;

/// An entry of the index and the rows that it touches.
#[derive(Debug)]
pub(crate) struct Touched {
    checkpoint: Checkpoint,
    event: FedEvent,
    rows: BTreeSet<String>,
    /// What the event's data takes, if it touches rows.
    held: usize,
}

impl Touched {
    pub(crate) fn new(view: &Definition, entry: Entry) -> Result<Self, ViewError> {
        let Entry { checkpoint, event } = entry;
        let rows = match view.touch(&event) {
            Ok(rows) => rows,
            Err(source) => {
                let FedEvent { partition, position, .. } = event;
                return Err(ViewError::Event { view: view.name, partition, position, source });
            }
        };
        let subject = || format!("view {}, event {}", view.name, event.position);
        if rows.len() > ROWS_MAX {
            return Err(limit(subject(), rows.len(), ROWS_MAX, "rows", "let it touch fewer").into());
        }
        if let Some(id) = rows.iter().find(|id| !(1..=ID_BYTES_MAX).contains(&id.len())) {
            let advice = "name it by 1 to 1024 bytes";
            let subject = format!("{}, a row's id", subject());
            return Err(limit(subject, id.len(), ID_BYTES_MAX, "bytes", advice).into());
        }
        let held = if rows.is_empty() { 0 } else { held(&event.data) };
        Ok(Self { checkpoint, event, rows, held })
    }
}

/// What a value takes in memory, in bytes. Of many small parts that is ten times what DynamoDB
/// counts.
pub(crate) fn held(value: &Value) -> usize {
    let parts = match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(held).sum(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| size_of::<String>() + name.len() + held(value)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + parts
}

fn limit(
    subject: String,
    found: usize,
    limit: usize,
    unit: &'static str,
    advice: &'static str,
) -> LimitExceeded {
    LimitExceeded { subject, found: found as u64, limit: limit as u64, unit, advice }
}

/// Entries that are read and not yet written.
#[derive(Debug)]
pub(crate) struct Batch {
    /// The checkpoint as it is stored; `None` if nothing is.
    pub(crate) from: Option<Checkpoint>,
    touched: VecDeque<Touched>,
    /// How many entries were read, whether or not they touch rows.
    entries: usize,
    /// Behind the last entry.
    end: Option<Checkpoint>,
}

/// The beginning of a batch, folded.
#[derive(Debug)]
pub(crate) struct Folded {
    /// How many of its events.
    pub(crate) events: usize,
    /// The checkpoint behind them.
    pub(crate) to: Checkpoint,
    pub(crate) writes: Vec<Write>,
}

impl Batch {
    pub(crate) fn behind(from: Option<Checkpoint>) -> Self {
        Self { from, touched: VecDeque::new(), entries: 0, end: None }
    }

    pub(crate) fn fits(&self, next: &Touched) -> bool {
        let rows = || self.ids(EVENTS_MAX).into_iter().chain(next.rows.iter().map(String::as_str));
        let held = || self.touched.iter().map(|touched| touched.held).sum::<usize>() + next.held;
        self.entries < ENTRIES_MAX
            && (next.rows.is_empty()
                || self.touched.is_empty()
                || self.touched.len() < EVENTS_MAX
                    && held() <= HELD_BYTES_MAX
                    && rows().collect::<BTreeSet<_>>().len() <= ROWS_MAX)
    }

    pub(crate) fn push(&mut self, next: Touched) {
        self.entries += 1;
        self.end = Some(next.checkpoint);
        if !next.rows.is_empty() {
            self.touched.push_back(next);
        }
    }

    /// How many entries are read and not yet written.
    pub(crate) fn entries(&self) -> usize {
        self.entries
    }

    /// How many of its events touch rows.
    pub(crate) fn events(&self) -> usize {
        self.touched.len()
    }

    /// The rows that so many of its events touch.
    pub(crate) fn ids(&self, events: usize) -> BTreeSet<&str> {
        let touched = self.touched.iter().take(events);
        touched.flat_map(|touched| &touched.rows).map(String::as_str).collect()
    }

    /// Where the checkpoint comes to, if no event of the batch touches a row.
    pub(crate) fn idle(&self) -> Option<Checkpoint> {
        self.end.filter(|_| self.touched.is_empty())
    }

    /// Whether all of it is written.
    pub(crate) fn is_done(&self) -> bool {
        self.end.is_none()
    }

    /// Notes what is written.
    pub(crate) fn wrote(&mut self, events: usize, to: Checkpoint) {
        self.touched.drain(..events);
        self.from = Some(to);
        if self.end == Some(to) {
            (self.entries, self.end) = (0, None);
        }
    }

    /// Folds as many of the first `events` as can be folded and written at once: all, or half, or
    /// half of that.
    ///
    /// # Errors
    /// The first event can't be folded, or asks alone for more than a transaction holds.
    pub(crate) fn fold(
        &self,
        view: &Definition,
        mut events: usize,
        stored: &BTreeMap<String, Stored>,
    ) -> Result<Folded, ViewError> {
        loop {
            match fold(view, stored, self.touched.iter().take(events)) {
                Ok(writes) => {
                    let all = events == self.touched.len();
                    let last = self.touched[events - 1].checkpoint;
                    let to = self.end.filter(|_| all).unwrap_or(last);
                    return Ok(Folded { events, to, writes });
                }
                Err(error) if events == 1 => return Err(error),
                Err(_) => events /= 2,
            }
        }
    }
}

fn fold<'a>(
    view: &Definition,
    stored: &BTreeMap<String, Stored>,
    events: impl Iterator<Item = &'a Touched>,
) -> Result<Vec<Write>, ViewError> {
    let mut rows: BTreeMap<&str, Option<Value>> = BTreeMap::new();
    let mut newest = None;
    for Touched { event, rows: ids, .. } in events {
        newest = Some(&event.position);
        for id in ids {
            let row = rows.remove(id.as_str());
            let row = row.unwrap_or_else(|| stored.get(id).map(|stored| stored.row.clone()));
            let row = view.evolve(row, id, event).map_err(|source| ViewError::Row {
                view: view.name,
                id: id.clone(),
                source,
            })?;
            rows.insert(id, row);
        }
    }
    let subject = || {
        let event = newest.map(ToString::to_string).unwrap_or_default();
        format!("view {}, event {event}", view.name)
    };
    let mut writes = Vec::with_capacity(rows.len());
    let mut bytes = 0;
    for (id, row) in rows {
        let row = row.map(|row| encode(view, id, &row)).transpose()?;
        let was = stored.get(id).map(|stored| stored.as_of);
        let write = Write { id: id.to_owned(), was, row };
        if write.bytes() > ROW_BYTES_MAX {
            let subject = format!("{}, row {id:?}", subject());
            let advice = "split it into several rows, such as id/1, id/2";
            return Err(limit(subject, write.bytes(), ROW_BYTES_MAX, "bytes", advice).into());
        }
        bytes += write.bytes();
        writes.push(write);
    }
    if bytes > BATCH_BYTES_MAX {
        let advice = "let one event touch fewer or smaller rows";
        let subject = format!("{}, its rows together", subject());
        return Err(limit(subject, bytes, BATCH_BYTES_MAX, "bytes", advice).into());
    }
    Ok(writes)
}

fn encode(view: &Definition, id: &str, row: &Value) -> Result<AttributeValue, ViewError> {
    to_attribute("row", row).map_err(|source| ViewError::Value {
        view: view.name,
        id: id.to_owned(),
        source,
    })
}
