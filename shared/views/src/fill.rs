//! Fills a new generation: folds all events in memory, and puts each row once.
//!
//! Only the run that begins a generation fills it: project-views runs only generations that are served, and another
//! rebuild begins another generation. So no put of an unfinished run arrives here, however late, and rows that are gone
//! in the end leave no tombstone.

use std::collections::BTreeMap;

use futures::stream::StreamExt;
use ringfence_feed::{Checkpoint, FeedError, Reference, Until};

use crate::batch::{ROWS_MAX, Touched};
use crate::fold::{Folding, Kept};
use crate::keys::hash;
use crate::project::{Projector, Ran, Work};
use crate::row::{Becomes, Write};
use crate::unread::PARKED_EVENTS_MAX;
use crate::{Parked, ViewError};

/// Bytes of memory for the rows, about. If they take more, the index is read again for the rest.
pub(crate) const FILL_BYTES_MAX: usize = 1_000_000_000;
/// Bytes of memory for a row besides its id and its content, about.
const ROW_BYTES: usize = 200;
/// Rows that are put at once.
const PUTS_AT_ONCE: usize = 128;
/// Rows that are encoded before they are put.
const HELD_ROWS: usize = 8 * PUTS_AT_ONCE;
/// How many events are read between two reports.
const REPORT_EVENTS: u64 = 1_000;

/// Rows whose hashes lie in a range.
struct Share {
    from: u64,
    until: u64,
    rows: BTreeMap<Box<str>, Kept>,
    /// The memory for them, in bytes, about.
    held: usize,
}

fn held(id: &str, row: &Kept) -> usize {
    ROW_BYTES + id.len() + row.held()
}

impl Share {
    fn holds(&self, id: &str) -> bool {
        (self.from..self.until).contains(&u64::from(hash(id)))
    }

    fn fold(&mut self, work: &Work<'_>, touched: &Touched, bytes_max: usize) {
        for id in touched.rows() {
            if !self.holds(id) {
                continue;
            }
            let row = match self.rows.remove(&**id) {
                Some(row) => {
                    self.held -= held(id, &row);
                    row.into()
                }
                None => Folding::of(None),
            };
            let row = touched.fold(work.view, id, row);
            if !row.is_gone() {
                let row = row.into();
                self.held += held(id, &row);
                self.rows.insert(id.as_str().into(), row);
            }
        }
        while self.held > bytes_max && self.until - self.from > 1 {
            self.until = self.from.midpoint(self.until);
            let (from, until) = (self.from, self.until);
            self.rows.retain(|id, _| (from..until).contains(&u64::from(hash(id))));
            self.held = self.rows.iter().map(|(id, row)| held(id, row)).sum();
        }
    }
}

impl Projector {
    /// Folds all events into a generation that this run has begun, and moves its checkpoint after them. False if
    /// another operator has given it up.
    pub(crate) async fn fill(&self, work: &Work<'_>, bytes_max: usize) -> Result<bool, ViewError> {
        let to = self.index.end().await?;
        let mut ran = Ran::default();
        let mut from = 0;
        while from < u64::from(u32::MAX) + 1 {
            let until = u64::from(u32::MAX) + 1;
            let mut share = Share { from, until, rows: BTreeMap::new(), held: 0 };
            let unread = self.fold_share(work, &mut share, to, bytes_max, &mut ran).await?;
            if from == 0 && !self.park_all(work, unread).await? {
                return Ok(false);
            }
            from = share.until;
            if !self.put_all(work, share.rows, to).await? {
                return Ok(false);
            }
        }
        match self.checkpoints.advance(&work.keys.reader, None, to).await {
            Err(FeedError::Moved { .. }) => return Ok(false),
            moved => moved?,
        }
        ran.checkpoint = Some(to);
        (work.report)(&ran);
        Ok(true)
    }

    /// Folds the events up to a checkpoint into the rows of a share, which gets smaller if they take too much memory.
    /// Returns the events that can't be read, with the checkpoints after them.
    async fn fold_share(
        &self,
        work: &Work<'_>,
        share: &mut Share,
        to: Checkpoint,
        bytes_max: usize,
        ran: &mut Ran,
    ) -> Result<Vec<(Checkpoint, Parked)>, ViewError> {
        let mut unread = Vec::new();
        let view = *work.view;
        let wants = move |it: &Reference| view.wants(&it.event_type);
        let mut feed = self.index.read_where(Checkpoint::START, Until::Present, wants);
        while let Some(step) = feed.next().await {
            let touched = Touched::new(work.view, &self.catalogs, step)?;
            let at = touched.checkpoint();
            if at > to {
                break;
            }
            unread.extend(touched.unread().map(|parked| (at, parked.clone())));
            share.fold(work, &touched, bytes_max);
            ran.events += 1;
            if ran.events.is_multiple_of(REPORT_EVENTS) {
                ran.checkpoint = Some(at);
                (work.report)(ran);
            }
        }
        Ok(unread)
    }

    async fn park_all(
        &self,
        work: &Work<'_>,
        unread: Vec<(Checkpoint, Parked)>,
    ) -> Result<bool, ViewError> {
        let (view, limit, mut parked) = (work.view.name, PARKED_EVENTS_MAX, 0);
        for (at, unread) in unread {
            if self.is_skipped(view, at).await? {
                continue;
            }
            if parked == limit {
                let Parked { event, cause } = unread;
                return Err(ViewError::Parked { view, limit, event, cause });
            }
            parked += 1;
            let actions = self.parking(work, at, unread);
            let token = self.clock.uuid().to_string();
            if !self.table.transact("parking an event", actions.into(), &token).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn put_all(
        &self,
        work: &Work<'_>,
        rows: BTreeMap<Box<str>, Kept>,
        to: Checkpoint,
    ) -> Result<bool, ViewError> {
        let (table, keys) = (self.table.0.name(), &work.keys);
        let mut writes = rows.into_iter().map(|(id, row)| Write {
            becomes: Folding::from(row).end(&id),
            id: id.into(),
            was: None,
            retried: None,
        });
        let mut parked = Vec::new();
        loop {
            let (mut puts, mut is_over) = (Vec::new(), true);
            for write in writes.by_ref().take(HELD_ROWS) {
                is_over = false;
                match write.becomes {
                    Becomes::Nothing => {}
                    Becomes::Row(_) => {
                        puts.push(write.put(table, keys, to, None));
                    }
                    _ => parked.push(write.action(table, keys, to, None)),
                }
            }
            if self.put_each(puts, to, u64::MAX, PUTS_AT_ONCE).await?.contains(&false) {
                return Ok(false);
            }
            while parked.len() >= ROWS_MAX || is_over && !parked.is_empty() {
                let mut actions = parked.split_off(parked.len().saturating_sub(ROWS_MAX));
                let more = actions.len().try_into().unwrap_or(i64::MAX);
                actions.push(self.table.count_parked(work.view.name, work.generation, more));
                let token = self.clock.uuid().to_string();
                if !self.table.transact("parking rows", actions, &token).await? {
                    return Ok(false);
                }
            }
            if is_over {
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ringfence_core::prelude::*;
    use ringfence_core::{Catalogs, Reads};
    use ringfence_feed::{Entry, FeedStep};

    use super::*;
    use crate::{Definition, Generation, View, kit::sequenced};

    #[derive(Clone, Debug, PartialEq, Event)]
    struct Counted {
        #[tag(partition)]
        name_id: String,
    }

    #[derive(Reads)]
    enum Read {
        Counted { name_id: String },
    }

    struct Counts;

    impl View for Counts {
        const NAME: &'static str = "counts";
        type Reads = Read;
        type Row = u64;

        fn rows(Read::Counted { name_id }: &Read) -> Vec<String> {
            vec![name_id.clone()]
        }

        fn evolve(row: Option<u64>, _: &str, _: &Read) -> Option<u64> {
            Some(row.unwrap_or_default() + 1)
        }
    }

    #[test]
    fn rows_that_take_too_much_memory_are_folded_in_shares() {
        let view = Definition::of::<Counts>();
        let work = Work::alone(&view, Generation::first(&view), &|_| {});
        let (mut from, mut shares, mut seen) = (0, 0, BTreeSet::new());
        while from <= u64::from(u32::MAX) {
            let until = u64::from(u32::MAX) + 1;
            let mut share = Share { from, until, rows: BTreeMap::new(), held: 0 };
            for n in 0..600 {
                let name_id = format!("row{}", n % 200);
                let event = sequenced(n, 0, Counted { name_id }.into());
                let checkpoint = Checkpoint::try_from(n as i64 + 1).expect("it is small");
                let step = Ok(FeedStep::Event(Entry { checkpoint, event }));
                let touched = Touched::new(&view, &Catalogs::default(), step).expect("it is read");
                share.fold(&work, &touched, 4_000);
            }
            for (id, row) in share.rows {
                assert!(seen.insert(id.clone()), "{id} is in two shares");
                let Becomes::Row(row) = Folding::from(row).end(&id) else {
                    panic!("{id} is a row")
                };
                assert_eq!(row.as_n().map(String::as_str), Ok("3"), "{id}");
            }
            (from, shares) = (share.until, shares + 1);
        }
        assert_eq!(seen.len(), 200);
        assert!((3..50).contains(&shares), "{shares} shares");
    }
}
