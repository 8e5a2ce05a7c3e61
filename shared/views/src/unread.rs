//! Events that a view can't read: they are parked, and folded or skipped when an operator asks for it.
//!
//! It is not known which rows such an event touches, so the view goes on without it. Once the view can read it, a retry
//! folds each of its rows from the first event on.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};
use ringfence_aws::Item;
use ringfence_core::rfc3339;
use ringfence_feed::{Checkpoint, FeedStep};

use crate::batch::{Batch, Touched};
use crate::keys::{Keys, key, reader_of};
use crate::parked::{PASS_ROWS_MAX, Retried};
use crate::project::{Projector, Ran, Work};
use crate::row::{Becomes, PARKED, Parked, Was, Write, delete, of_parked};
use crate::{Definition, Generation, ViewError};

/// The most events that are parked for a generation. If there are so many, the view itself is wrong. It stops at the
/// next one, so that its rows do not miss more.
pub const PARKED_EVENTS_MAX: u64 = 100;

/// Why an operator has skipped an event.
const WHY: &str = "why";
/// When.
const AT: &str = "at";

/// The key of the events that are parked for a generation. Each is stored as a parked row is.
pub(crate) fn events_of(view: &str, generation: Generation) -> Keys {
    Keys::one(format!("$Parked-{}", reader_of(view, generation)))
}

/// The partition key of the notes on skipped events, which count for all generations.
fn skipped(view: &str) -> String {
    format!("$Skipped-{view}")
}

/// The checkpoint after an event, as a sort key.
fn place(at: Checkpoint) -> String {
    format!("{:019}", i64::from(at))
}

impl Projector {
    /// Parks an event and moves the checkpoint after it, or only moves it if the event was skipped before. Returns
    /// false if another projector was first.
    pub(crate) async fn park(
        &self,
        work: &Work<'_>,
        batch: &mut Batch,
        (at, unread): (Checkpoint, &Parked),
        ran: &mut Ran,
    ) -> Result<bool, ViewError> {
        let (view, reader) = (work.view.name, &work.keys.reader);
        let now_ms = self.clock.machine_ms();
        let mut actions = vec![self.checkpoints.action(reader, batch.from, at)];
        let is_skipped = self.is_skipped(view, at).await?;
        if !is_skipped {
            let limit = PARKED_EVENTS_MAX;
            if self.table.parked_events(view, work.generation).await? >= limit {
                let Parked { event, cause } = unread.clone();
                return Err(ViewError::Parked { view, limit, event, cause });
            }
            actions.push(self.checkpoints.leave(reader));
            actions.extend(self.parking(work, at, unread.clone()));
        }
        let token = self.clock.uuid().to_string();
        if !self.table.transact("parking an event", actions, &token).await? {
            return Ok(false);
        }
        *batch = Batch::behind(Some(at), now_ms);
        ran.events += 1;
        ran.batches += 1;
        ran.checkpoint = Some(at);
        ran.unread.extend((!is_skipped).then(|| unread.clone()));
        (work.report)(ran);
        Ok(true)
    }

    /// Whether an operator has skipped the event before this checkpoint.
    pub(crate) async fn is_skipped(&self, view: &str, at: Checkpoint) -> Result<bool, ViewError> {
        Ok(self.table.item(key(&skipped(view), &place(at)), true).await?.is_some())
    }

    /// The actions that park an event and count it.
    pub(crate) fn parking(
        &self,
        work: &Work<'_>,
        at: Checkpoint,
        unread: Parked,
    ) -> [TransactWriteItem; 2] {
        let becomes = Becomes::Parked(unread);
        let write = Write { id: place(at), was: None, becomes, retried: None };
        let (view, events) = (work.view.name, events_of(work.view.name, work.generation));
        [
            self.table.count_parked_events(view, work.generation, 1),
            write.action(self.table.0.name(), &events, at, None),
        ]
    }

    /// The events that are parked for the generation that is served, in the order of the index.
    ///
    /// # Errors
    /// The view table can't be read, or holds items that this crate did not write.
    pub async fn parked_events(&self, view: &Definition) -> Result<Vec<Parked>, ViewError> {
        match self.table.registered(view.name, true).await? {
            Some(registered) if registered.parked_events > 0 => {
                let events = events_of(view.name, registered.live);
                let events = self.table.parked(&events, None, usize::MAX).await?;
                Ok(events.into_iter().map(|(_, _, parked)| parked).collect())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Folds the parked events that the view can read now into their rows, from the first event of each row on.
    pub(crate) async fn retry_events(
        &self,
        view: &Definition,
        live: Generation,
        report: &(dyn Fn(Checkpoint) + Send + Sync),
        retried: &mut Retried,
    ) -> Result<(), ViewError> {
        let events = self.table.parked(&events_of(view.name, live), None, usize::MAX).await?;
        let (mut rows, mut read) = (BTreeSet::new(), Vec::new());
        for (_, was, _) in events {
            // It is there: a page of the index never changes.
            let entry = self.index.before(was.as_of, 1).await?.pop();
            let step = entry.map(|entry| entry.map(FeedStep::Event));
            let touched = step.map(|it| Touched::new(view, &self.catalogs, it)).transpose()?;
            match touched.as_ref().and_then(Touched::unread) {
                Some(unread) => retried.events_left.push(unread.clone()),
                None => {
                    rows.extend(touched.iter().flat_map(Touched::rows).cloned());
                    read.push(was);
                }
            }
        }
        let mut rows = rows.into_iter();
        loop {
            let some: BTreeSet<_> = rows.by_ref().take(PASS_ROWS_MAX).collect();
            if some.is_empty() {
                break;
            }
            self.pass(view, live, some, false, report, retried).await?;
        }
        for was in read {
            if self.unpark(view, live, was, None).await? {
                retried.events += 1;
            }
        }
        Ok(())
    }

    /// Passes over a parked event for good, for this reason: neither a retry nor a rebuild parks it again. Returns
    /// false if it is not parked.
    ///
    /// # Errors
    /// The view table can't be read or written.
    pub async fn skip(&self, view: &Definition, event: &str, why: &str) -> Result<bool, ViewError> {
        let Some(registered) = self.table.registered(view.name, true).await? else {
            return Ok(false);
        };
        let events = events_of(view.name, registered.live);
        let events = self.table.parked(&events, None, usize::MAX).await?;
        let Some((_, was, parked)) = events.into_iter().find(|(.., parked)| parked.event == event)
        else {
            return Ok(false);
        };
        let mut note = key(&skipped(view.name), &place(was.as_of));
        let texts = [(WHY, why.to_owned()), (AT, rfc3339(self.clock.now_ms()))];
        note.extend(texts.map(|(name, text)| (name.to_owned(), AttributeValue::S(text))));
        note.insert(PARKED.to_owned(), of_parked(parked));
        self.unpark(view, registered.live, was, Some(note)).await
    }

    /// Deletes a parked event, and puts the note if there is one. Returns false if it was deleted before.
    async fn unpark(
        &self,
        view: &Definition,
        live: Generation,
        was: Was,
        note: Option<Item>,
    ) -> Result<bool, ViewError> {
        let (table, at) = (self.table.0.name(), place(was.as_of));
        let mut actions = vec![
            self.table.count_parked_events(view.name, live, -1),
            delete(table, events_of(view.name, live).key(&at), was),
        ];
        actions.extend(note.map(|note| {
            let put = Put::builder().table_name(table).set_item(Some(note)).build();
            TransactWriteItem::builder().put(put.expect("table and item are set")).build()
        }));
        let token = self.clock.uuid().to_string();
        self.table.transact("taking back a parked event", actions, &token).await
    }
}
