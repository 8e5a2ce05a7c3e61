//! How many events go into one transaction, and what becomes of the rows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ringfence::FedEvent;
use ringfence_feed::{Checkpoint, Entry};
use serde_json::Value;

use crate::fold::{self, Folding, RowError};
use crate::row::{Stored, Write};
use crate::{Definition, ViewError};

/// Actions in one transaction.
pub const ACTIONS_MAX: usize = 100;
/// Rows in one transaction, beside the checkpoint and the count of parked rows. An event that touches
/// more changes them in several transactions, the last of which moves the checkpoint.
pub const ROWS_MAX: usize = ACTIONS_MAX - 2;
/// Events in one transaction that touch rows.
pub const EVENTS_MAX: usize = 200;
/// Bytes of memory for the events of a batch, and as many for its rows as they were: views run at
/// once, in one function. The first event and one of its rows are held whatever they take.
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
    /// The rows whose own id can't be a key, and why.
    unnamed: BTreeMap<String, RowError>,
    /// What the event's data takes, if it touches rows.
    held: usize,
}

impl Touched {
    pub(crate) fn new(view: &Definition, entry: Entry) -> Result<Self, ViewError> {
        let Entry { checkpoint, event } = entry;
        let touched = match view.touch(&event) {
            Ok(rows) => rows,
            Err(source) => {
                let FedEvent { partition, position, .. } = event;
                return Err(ViewError::Event { view: view.name, partition, position, source });
            }
        };
        let (mut rows, mut unnamed) = (BTreeSet::new(), BTreeMap::new());
        for id in touched {
            match fold::check_id(&id) {
                Ok(()) => rows.insert(id),
                Err(error) => {
                    let substitute = fold::substitute(&id);
                    unnamed.insert(substitute.clone(), error);
                    rows.insert(substitute)
                }
            };
        }
        let held = if rows.is_empty() { 0 } else { held(&event.data) };
        Ok(Self { checkpoint, event, rows, unnamed, held })
    }

    pub(crate) fn rows(&self) -> &BTreeSet<String> {
        &self.rows
    }

    /// One of its rows after the event.
    pub(crate) fn fold(&self, view: &Definition, id: &str, row: Folding) -> Folding {
        match self.unnamed.get(id) {
            Some(error) => row.failed(&self.event, error),
            None => row.after(view, id, &self.event),
        }
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

/// Entries that are read and not yet written.
#[derive(Debug)]
pub(crate) struct Batch {
    /// The checkpoint as it is stored; `None` if nothing is.
    pub(crate) from: Option<Checkpoint>,
    touched: VecDeque<Touched>,
    /// How many rows of the first event are written already.
    written: usize,
    /// How many entries were read, whether or not they touch rows.
    entries: usize,
    /// Behind the last entry.
    end: Option<Checkpoint>,
}

/// How much of a batch goes into one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Its first events, with all of their rows.
    Events(usize),
    /// Of its first event, the first of the rows that are not written yet.
    Rows(usize),
}

/// The beginning of a batch, folded.
#[derive(Debug)]
pub(crate) struct Folded {
    pub(crate) cut: Cut,
    /// Where the checkpoint comes to.
    pub(crate) to: Checkpoint,
    /// What its rows show then. Of an event that takes several transactions, they show it before the
    /// checkpoint does.
    pub(crate) as_of: Checkpoint,
    pub(crate) writes: Vec<Write>,
}

impl Batch {
    pub(crate) fn behind(from: Option<Checkpoint>) -> Self {
        Self { from, touched: VecDeque::new(), written: 0, entries: 0, end: None }
    }

    pub(crate) fn fits(&self, next: &Touched) -> bool {
        let rows = || self.rows(self.touched.len()).chain(next.rows.iter().map(String::as_str));
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

    /// As much as the number of rows allows.
    pub(crate) fn cut(&self) -> Cut {
        match self.rows_left() {
            left if left > ROWS_MAX || self.written > 0 => Cut::Rows(left.min(ROWS_MAX)),
            _ => Cut::Events(self.touched.len()),
        }
    }

    /// Half of a cut; `None` if it is a single row.
    pub(crate) fn halved(&self, cut: Cut) -> Option<Cut> {
        match cut {
            Cut::Events(1) => self.halved(Cut::Rows(self.rows_left())),
            Cut::Events(events) => Some(Cut::Events(events / 2)),
            Cut::Rows(1) => None,
            Cut::Rows(rows) => Some(Cut::Rows(rows / 2)),
        }
    }

    /// The rows of a cut.
    pub(crate) fn ids(&self, cut: Cut) -> BTreeSet<&str> {
        match cut {
            Cut::Events(events) => self.rows(events).collect(),
            Cut::Rows(rows) => self.rows(1).skip(self.written).take(rows).collect(),
        }
    }

    fn rows(&self, events: usize) -> impl Iterator<Item = &str> {
        let touched = self.touched.iter().take(events);
        touched.flat_map(|touched| &touched.rows).map(String::as_str)
    }

    /// The rows of the first event that are not written yet.
    fn rows_left(&self) -> usize {
        self.touched.front().map_or(0, |first| first.rows.len() - self.written)
    }

    /// Where the checkpoint comes to, if no event of the batch touches a row.
    pub(crate) fn idle(&self) -> Option<Checkpoint> {
        self.end.filter(|_| self.touched.is_empty())
    }

    /// Whether all of it is written.
    pub(crate) fn is_done(&self) -> bool {
        self.end.is_none()
    }

    /// Notes what is written, and where the checkpoint is now.
    pub(crate) fn wrote(&mut self, cut: Cut, to: Checkpoint) {
        self.from = Some(to);
        match cut {
            Cut::Rows(rows) if rows < self.rows_left() => self.written += rows,
            Cut::Rows(_) => self.passed(1),
            Cut::Events(events) => self.passed(events),
        }
        if self.end == Some(to) {
            (self.entries, self.end) = (0, None);
        }
    }

    fn passed(&mut self, events: usize) {
        self.touched.drain(..events);
        self.written = 0;
    }

    /// Where the checkpoint is after a cut: where it was, as long as rows of the first event are left.
    fn behind_cut(&self, cut: Cut) -> Checkpoint {
        let events = match cut {
            Cut::Rows(rows) if rows < self.rows_left() => return self.from.unwrap_or_default(),
            Cut::Rows(_) => 1,
            Cut::Events(events) => events,
        };
        let all = events == self.touched.len();
        self.end.filter(|_| all).unwrap_or(self.touched[events - 1].checkpoint)
    }

    /// Folds as much of the cut as can be written at once: all, or half, or half of that. A row that
    /// can't be folded or stored is parked.
    pub(crate) fn fold(
        &self,
        view: &Definition,
        mut cut: Cut,
        stored: &BTreeMap<String, Stored>,
    ) -> Folded {
        loop {
            let writes = self.writes(view, cut, stored);
            let bytes = writes.iter().map(Write::bytes).sum::<usize>();
            match self.halved(cut) {
                Some(half) if bytes > BATCH_BYTES_MAX => cut = half,
                _ => {
                    let to = self.behind_cut(cut);
                    let as_of = to.max(self.touched[0].checkpoint);
                    return Folded { cut, to, as_of, writes };
                }
            }
        }
    }

    fn writes(&self, view: &Definition, cut: Cut, stored: &BTreeMap<String, Stored>) -> Vec<Write> {
        let ids = self.ids(cut);
        let events = if let Cut::Events(events) = cut { events } else { 1 };
        let mut rows: BTreeMap<&str, Folding> = BTreeMap::new();
        for touched in self.touched.iter().take(events) {
            for id in touched.rows.iter().filter(|id| ids.contains(id.as_str())) {
                let row = rows.remove(id.as_str());
                let row = row.unwrap_or_else(|| Folding::of(stored.get(id)));
                rows.insert(id, touched.fold(view, id, row));
            }
        }
        let write = |(id, row): (&str, Folding)| {
            let was = stored.get(id).map(|stored| stored.as_of);
            // An earlier transaction has written this row of an event that takes several.
            let written = was.is_some_and(|was| was > self.from.unwrap_or_default());
            (!written).then(|| Write { id: id.to_owned(), was, becomes: row.end(id) })
        };
        rows.into_iter().filter_map(write).collect()
    }
}
