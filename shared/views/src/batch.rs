//! Batches: how many events are applied before the checkpoint moves, and how they change the rows.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::{Catalogs, Current, CurrentError, chain};
use ringfence_feed::{Checkpoint, Entry, FeedError, FeedStep, held_bytes};

use crate::error::ViewError;
use crate::fold::{self, Folding, RowError};
use crate::row::{Parked, Stored, Write};
use crate::view::Definition;

/// Actions in one transaction.
pub const ACTIONS_MAX: usize = 100;
/// Rows that one transaction removes or parks, besides the checkpoint, the count of parked rows, and the item of the
/// views that move together.
pub const ROWS_MAX: usize = ACTIONS_MAX - 3;
/// Bytes of memory for the events of a batch, and as many for its rows as they were: all views run at
/// the same time in one function. The first event and the rows of one answer are held whatever their size.
pub const HELD_BYTES_MAX: usize = 8_000_000;
/// After this many events the checkpoint is written. So they are not all read again after a crash.
pub(crate) const ENTRIES_MAX: usize = 1_000;
/// The rows that the events of the first batch touch, each event counted by itself; twice as many in each further
/// batch. A run that breaks off reads the rows of its batch again. So one that a table throttles has small batches.
const TOUCHES_FIRST: usize = 100;
/// And at most so many.
const TOUCHES_MAX: usize = 2_000;

/// An entry of the index and the rows that it touches.
#[derive(Debug)]
pub(crate) struct Touched {
    checkpoint: Checkpoint,
    /// If it touches rows.
    event: Option<Current<'static>>,
    rows: BTreeSet<String>,
    /// Rows whose id can't be a key, with the reason.
    unnamed: BTreeMap<String, RowError>,
    /// Why the event can't be read. Then it is not known which rows it touches.
    unread: Option<Parked>,
    /// The memory for the event's data, if it touches rows.
    held: usize,
}

impl Touched {
    /// The rows that an entry touches, also if its event can't be read.
    pub(crate) fn new(
        view: &Definition,
        catalogs: &Catalogs,
        step: Result<FeedStep, FeedError>,
    ) -> Result<Self, ViewError> {
        match FeedStep::or_known(step)? {
            (_, Some((entry, unread))) => {
                Self::of(view, catalogs, Cow::Owned(entry), unread.as_deref())
            }
            (checkpoint, None) => Ok(Self::untouched(checkpoint, None)),
        }
    }

    fn untouched(checkpoint: Checkpoint, unread: Option<Parked>) -> Self {
        let (rows, unnamed) = (BTreeSet::new(), BTreeMap::new());
        Self { checkpoint, event: None, rows, unnamed, unread, held: 0 }
    }

    /// The same of an entry that was read. The event is copied only if the view reads it.
    pub(crate) fn of(
        view: &Definition,
        catalogs: &Catalogs,
        entry: Cow<'_, Entry>,
        undecodable: Option<&str>,
    ) -> Result<Self, ViewError> {
        let checkpoint = entry.checkpoint;
        let untouched = |unread| Self::untouched(checkpoint, unread);
        if !view.reads(&entry.event) {
            return Ok(untouched(None));
        }
        let event = entry.into_owned().event;
        let id = event.id();
        if let Some(why) = undecodable {
            return Ok(untouched(Some(fold::unread(id, why))));
        }
        let event = match catalogs.current(event) {
            Ok(event) => event,
            // A newer program knows the shape, so the view waits for the deploy.
            Err(CurrentError::Newer(newer)) => {
                return Err(ViewError::NewerVersion { view: view.name, newer });
            }
            Err(error) => return Ok(untouched(Some(fold::unread(id, &chain(&error))))),
        };
        let touched = match view.touch(&event) {
            Ok(touched) => touched,
            Err(error) => return Ok(untouched(Some(fold::unread(id, &chain(&error))))),
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
        let event = Some(event).filter(|_| !rows.is_empty());
        let held = event.as_ref().map_or(0, |event| held_bytes(&event.data));
        Ok(Self { checkpoint, event, rows, unnamed, unread: None, held })
    }

    /// The checkpoint after it.
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        self.checkpoint
    }

    pub(crate) fn rows(&self) -> &BTreeSet<String> {
        &self.rows
    }

    /// The memory for the event's data, in bytes, if it touches rows.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Why the event can't be read.
    pub(crate) fn unread(&self) -> Option<&Parked> {
        self.unread.as_ref()
    }

    /// One of its rows after the event.
    pub(crate) fn fold(&self, view: &Definition, id: &str, row: Folding) -> Folding {
        let Some(event) = &self.event else { return row };
        match self.unnamed.get(id) {
            Some(error) => row.failed(event, error),
            None => row.after(view, id, event),
        }
    }
}

/// Entries that are read and not yet written.
#[derive(Debug)]
pub(crate) struct Batch {
    /// How far the view has come, as it is stored.
    pub(crate) from: Option<Checkpoint>,
    /// When that was known, in milliseconds by the machine's clock.
    pub(crate) from_ms: u64,
    touched: Vec<Touched>,
    touches_max: usize,
    /// The bytes of the largest answer with rows of the batch before; `None` if there was none.
    pub(crate) held: Option<usize>,
    /// How many entries were read, whether or not they touch rows.
    entries: usize,
    /// The checkpoint after the last entry.
    end: Option<Checkpoint>,
}

impl Batch {
    pub(crate) fn behind(from: Option<Checkpoint>, from_ms: u64) -> Self {
        let (touched, touches_max) = (Vec::new(), TOUCHES_FIRST);
        Self { from, from_ms, touched, touches_max, held: None, entries: 0, end: None }
    }

    pub(crate) fn fits(&self, next: &Touched) -> bool {
        let sum = |of: fn(&Touched) -> usize| self.touched.iter().map(of).sum::<usize>() + of(next);
        self.entries < ENTRIES_MAX
            && next.unread.is_none()
            && (next.rows.is_empty()
                || self.touched.is_empty()
                || sum(|touched| touched.held) <= HELD_BYTES_MAX
                    && sum(|touched| touched.rows.len()) <= self.touches_max)
    }

    pub(crate) fn push(&mut self, next: Touched) {
        self.entries += 1;
        self.end = Some(next.checkpoint);
        if !next.rows.is_empty() {
            self.touched.push(next);
        }
    }

    /// Notes that no later entry up to this checkpoint touches a row.
    pub(crate) fn reaches(&mut self, end: Checkpoint) {
        self.end = self.end.max(Some(end));
    }

    /// How many entries are read and not yet written.
    pub(crate) fn entries(&self) -> usize {
        self.entries
    }

    /// How many of them touch rows.
    pub(crate) fn events(&self) -> usize {
        self.touched.len()
    }

    /// The rows of the first events.
    pub(crate) fn ids(&self, events: usize) -> BTreeSet<&str> {
        let touched = self.touched.iter().take(events);
        touched.flat_map(|touched| &touched.rows).map(String::as_str).collect()
    }

    /// How far the view is after the first events; `None` if nothing is left to write.
    pub(crate) fn to(&self, events: usize) -> Option<Checkpoint> {
        match self.touched.get(events) {
            None => self.end,
            Some(_) => self.touched[..events].last().map(Touched::checkpoint),
        }
    }

    /// Notes that the first events are written, which reach up to this checkpoint.
    pub(crate) fn wrote(&mut self, events: usize, to: Checkpoint) {
        self.touched.drain(..events);
        if self.end == Some(to) {
            (self.entries, self.end) = (0, None);
            self.touches_max = TOUCHES_MAX.min(2 * self.touches_max);
        }
    }

    /// The rows after those of the first events that each does not show yet. A row that can't be folded or stored is
    /// parked.
    pub(crate) fn writes(
        &self,
        view: &Definition,
        events: usize,
        stored: BTreeMap<&str, Option<Stored>>,
    ) -> Vec<Write> {
        let mut rows: BTreeMap<&str, Folding> = BTreeMap::new();
        for touched in self.touched.iter().take(events) {
            for (id, stored) in touched.rows.iter().filter_map(|id| stored.get_key_value(&**id)) {
                if stored.as_ref().is_some_and(|stored| stored.was.as_of >= touched.checkpoint) {
                    continue;
                }
                let row = rows.remove(id).unwrap_or_else(|| Folding::of(stored.as_ref()));
                rows.insert(id, touched.fold(view, id, row));
            }
        }
        let write = |(id, row): (&str, Folding)| {
            let was = stored[id].as_ref().map(|stored| stored.was.clone());
            Write { id: id.to_owned(), was, becomes: row.end(id), retried: None }
        };
        rows.into_iter().map(write).collect()
    }
}
