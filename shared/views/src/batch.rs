//! Batches: how many events go into one transaction, and how they change the rows.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ringfence_core::{Catalogs, Current, CurrentError, chain};
use ringfence_feed::{Checkpoint, Entry, FeedError, FeedStep, Reached, held_bytes};

use crate::error::ViewError;
use crate::fold::{self, Folding, RowError};
use crate::row::{Parked, Stored, Write};
use crate::view::Definition;

/// Actions in one transaction.
pub const ACTIONS_MAX: usize = 100;
/// Rows in one transaction, besides the checkpoint, the count of parked rows, and the item of the views that move
/// together. An event that touches more rows changes them in several transactions. Each transaction but the last keeps
/// the id of its last row beside the checkpoint, so that the event counts once in each row, even if the run breaks off
/// between them.
pub const ROWS_MAX: usize = ACTIONS_MAX - 3;
/// Events in one transaction that touch rows.
pub const EVENTS_MAX: usize = 200;
/// Bytes of memory for the events of a batch, and as many for its rows as they were: all views run at
/// the same time in one function. The first event and one of its rows are held whatever their size.
pub const HELD_BYTES_MAX: usize = 8_000_000;
/// Bytes of rows in one transaction: DynamoDB's 4 MB, less the rest of the items.
pub const BATCH_BYTES_MAX: usize = 3_500_000;
/// After this many events that touch no row, the checkpoint is written all the same. So they are not all read again
/// after a crash.
pub(crate) const ENTRIES_MAX: usize = 1_000;

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

    /// Whether it is the entry after a checkpoint. A checkpoint within an entry lies right before it.
    fn follows(&self, checkpoint: Option<Checkpoint>) -> bool {
        self.checkpoint.previous() == checkpoint
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
    /// How far the view has come, as it is stored: it names the last row of the first event that is
    /// written.
    pub(crate) from: Reached,
    touched: VecDeque<Touched>,
    /// How many rows of the first event are written already, in the order of their ids.
    written: usize,
    /// How many entries were read, whether or not they touch rows.
    entries: usize,
    /// The checkpoint after the last entry.
    end: Option<Checkpoint>,
}

/// The part of a batch that goes into one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// This many of its first events, with all of their rows.
    Events(usize),
    /// Only the first event, with this many of its rows that are not written yet.
    Rows(usize),
}

/// The beginning of a batch, folded.
#[derive(Debug)]
pub(crate) struct Folded {
    pub(crate) cut: Cut,
    /// How far the view comes.
    pub(crate) to: Reached,
    /// The checkpoint that the rows show then. If an event takes several transactions, its rows show it before the
    /// view's checkpoint does.
    pub(crate) as_of: Checkpoint,
    pub(crate) writes: Vec<Write>,
}

impl Batch {
    pub(crate) fn behind(from: Reached) -> Self {
        Self { from, touched: VecDeque::new(), written: 0, entries: 0, end: None }
    }

    pub(crate) fn fits(&self, next: &Touched) -> bool {
        let rows = || self.rows(self.touched.len()).chain(next.rows.iter().map(String::as_str));
        let held = || self.touched.iter().map(|touched| touched.held).sum::<usize>() + next.held;
        self.entries < ENTRIES_MAX
            && next.unread.is_none()
            && (next.rows.is_empty()
                || self.touched.is_empty()
                || self.touched.len() < EVENTS_MAX
                    && held() <= HELD_BYTES_MAX
                    && rows().collect::<BTreeSet<_>>().len() <= ROWS_MAX)
    }

    pub(crate) fn push(&mut self, next: Touched) {
        // The part is of the entry after the stored checkpoint, whichever rows that entry touches by now.
        let part = self.from.part.as_ref().filter(|_| next.follows(self.from.checkpoint));
        let written = part.map_or(0, |last| next.rows.iter().take_while(|id| *id <= last).count());
        self.entries += 1;
        self.end = Some(next.checkpoint);
        if next.rows.len() > written {
            self.written = self.written.max(written);
            self.touched.push_back(next);
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

    /// The largest cut that the limit of rows allows.
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

    /// The checkpoint to write, if no event of the batch touches a row.
    pub(crate) fn idle(&self) -> Option<Checkpoint> {
        self.end.filter(|_| self.touched.is_empty())
    }

    /// Whether all of it is written.
    pub(crate) fn is_done(&self) -> bool {
        self.end.is_none()
    }

    /// Notes that a cut is written, and how far the view has come.
    pub(crate) fn wrote(&mut self, cut: Cut, to: Reached) {
        match cut {
            Cut::Rows(rows) if rows < self.rows_left() => self.written += rows,
            Cut::Rows(_) => self.passed(1),
            Cut::Events(events) => self.passed(events),
        }
        if self.end == to.checkpoint {
            (self.entries, self.end) = (0, None);
        }
        self.from = to;
    }

    fn passed(&mut self, events: usize) {
        self.touched.drain(..events);
        self.written = 0;
    }

    /// How far the view is after a cut: right before the first event, as long as some of its rows are
    /// left, with the last row that is written.
    fn behind_cut(&self, cut: Cut) -> Reached {
        let events = match cut {
            Cut::Rows(rows) if rows < self.rows_left() => {
                let checkpoint = self.touched[0].checkpoint.previous();
                return Reached {
                    checkpoint,
                    part: self.ids(cut).last().map(|id| (*id).to_owned()),
                };
            }
            Cut::Rows(_) => 1,
            Cut::Events(events) => events,
        };
        let all = events == self.touched.len();
        self.end.filter(|_| all).unwrap_or(self.touched[events - 1].checkpoint).into()
    }

    /// Folds as much of the cut as can be written at once: all of it, or half, or half of that. A row that
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
                    let as_of = to.checkpoint.max(Some(self.touched[0].checkpoint));
                    let as_of = as_of.unwrap_or_default();
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
            let was = stored.get(id).map(|stored| stored.was.clone());
            Write { id: id.to_owned(), was, becomes: row.end(id), retried: None }
        };
        rows.into_iter().map(write).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(checkpoint: i64, rows: &[&str]) -> Touched {
        let checkpoint = checkpoint.try_into().expect("it is not negative");
        let rows = rows.iter().map(|row| (*row).to_owned()).collect();
        Touched { checkpoint, event: None, rows, unnamed: BTreeMap::new(), unread: None, held: 0 }
    }

    /// A part is of the entry after the stored checkpoint. A view that has changed may touch fewer of its rows.
    #[test]
    fn a_part_counts_for_the_entry_after_the_checkpoint_and_for_no_later_one() {
        let at = |checkpoint: i64| Checkpoint::try_from(checkpoint).expect("it is not negative");
        for (first, left) in [
            (&["a", "b", "c"][..], vec!["c"]),
            (&["a"], vec!["a", "b", "d"]),
            (&[], vec!["a", "b", "d"]),
        ] {
            let part = Some("b".to_owned());
            let mut batch = Batch::behind(Reached { checkpoint: Some(at(1)), part });
            batch.push(touched(2, first));
            batch.push(touched(3, &["a", "b", "d"]));
            let ids = batch.ids(batch.cut());
            assert_eq!(ids, left.into_iter().collect(), "{first:?}");
        }
    }
}
