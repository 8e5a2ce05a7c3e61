//! Writes the rows of a batch one by one, and then the checkpoint.
//!
//! A row shows the events up to its `as_of`, so an event that comes again changes only the rows that do not show it
//! yet. A row is put only if it is as it was read: its `as_of` only grows, so a put that arrives late is refused. A row
//! that is removed leaves a tombstone, which appears in one transaction with the checkpoint. So a row that is missing
//! has never been there, or was removed before the checkpoint, and more than a day ago.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::Put as RowPut;
use futures::stream::{FuturesUnordered, StreamExt};
use ringfence_aws::{BATCH_KEYS_MAX, Retry};
use ringfence_feed::{Checkpoint, FeedError};

use crate::ViewError;
use crate::batch::{Batch, HELD_BYTES_MAX, ROWS_MAX};
use crate::project::{Projector, Ran, Work};
use crate::row::{Becomes, PUT_MS_MAX, TOMBSTONE_MS, Write};

/// Answers with rows that are worked on at once, if the rows of the last ones were small.
const READS_AT_ONCE: usize = 4;
/// Rows of an answer that are put at once.
const PUTS_AT_ONCE: usize = 64;

/// The most parked rows that a run names.
const EXAMPLES_MAX: usize = 10;

/// The rows of some events.
#[derive(Default)]
struct Put {
    /// How many were put.
    rows: u64,
    /// The rows that are removed or parked.
    others: Vec<Write>,
    /// The bytes of the largest answer with rows.
    held: usize,
}

impl Projector {
    /// Writes a batch. Returns false if another projector was first, or a row would have to be parked that may not.
    pub(crate) async fn write(
        &self,
        work: &Work<'_>,
        batch: &mut Batch,
        ran: &mut Ran,
    ) -> Result<bool, ViewError> {
        ran.events += batch.entries() as u64;
        let mut most = usize::MAX;
        while let (events, Some(to)) =
            (batch.events().min(most), batch.to(batch.events().min(most)))
        {
            let Put { rows, others, held } = self.put_rows(work, batch, events, to).await?;
            batch.held = Some(held);
            ran.rows += rows;
            if others.len() > ROWS_MAX && events > 1 {
                // The rows that were put show these events already.
                most = (events * ROWS_MAX / others.len()).max(1);
                continue;
            }
            if !self.move_to(work, batch, to, others, ran).await? {
                return Ok(false);
            }
            batch.wrote(events, to);
            ran.batches += 1;
            (work.report)(ran);
        }
        Ok(true)
    }

    /// Puts the rows of the first events of a batch that do not show them yet.
    async fn put_rows(
        &self,
        work: &Work<'_>,
        batch: &Batch,
        events: usize,
        to: Checkpoint,
    ) -> Result<Put, ViewError> {
        let ids: Vec<&str> = batch.ids(events).into_iter().collect();
        let (mut put, mut ids) = (Put::default(), ids.chunks(BATCH_KEYS_MAX));
        let (mut held, mut at_work) = (batch.held, FuturesUnordered::new());
        loop {
            let fit = |held: usize| (HELD_BYTES_MAX / held.max(1)).clamp(1, READS_AT_ONCE);
            while at_work.len() < held.map_or(1, fit)
                && let Some(ids) = ids.next()
            {
                at_work.push(self.put_some(work, batch, (events, to), ids));
            }
            let Some(some) = at_work.next().await.transpose()? else { return Ok(put) };
            put.rows += some.rows;
            put.others.extend(some.others);
            put.held = put.held.max(some.held);
            held = Some(put.held);
        }
    }

    /// Puts at most 100 rows. If another run has put one in between, it goes on from there. The rows of views that move
    /// together are read from a replica first, at half the price: a row that has changed since then is refused. No row
    /// is removed or parked by such a read.
    async fn put_some(
        &self,
        work: &Work<'_>,
        batch: &Batch,
        (events, to): (usize, Checkpoint),
        ids: &[&str],
    ) -> Result<Put, ViewError> {
        let (mut put, mut left) = (Put::default(), ids.to_vec());
        let (mut overtaken, mut attempts) = (BTreeSet::new(), Retry::default().start());
        let mut strong = work.alone;
        let (table, until_ms) = (&self.table, batch.from_ms + PUT_MS_MAX);
        while !left.is_empty() {
            let (stored, held) = table.some_rows(&work.keys, &mut left, strong).await?;
            put.held = put.held.max(held);
            let writes = batch.writes(work.view, events, stored);
            let (mut rows, mut puts) = (Vec::new(), Vec::new());
            for write in writes {
                if matches!(write.becomes, Becomes::Nothing | Becomes::Parked(_)) {
                    match strong {
                        true => put.others.push(write),
                        false => drop(overtaken.insert(write.id)),
                    }
                    continue;
                }
                rows.push((write.id.clone(), u64::from(write.becomes.is_row())));
                puts.push(write.put(table.0.name(), &work.keys, to, None));
            }
            let put_now = self.put_each(puts, to, until_ms, PUTS_AT_ONCE).await?;
            for ((id, shown), is_put) in rows.into_iter().zip(put_now) {
                put.rows += if is_put { shown } else { 0 };
                overtaken.extend((!is_put).then_some(id));
            }
            if left.is_empty() && !overtaken.is_empty() {
                if strong && !attempts.again().await {
                    let (view, attempts) = (work.view.name, attempts.made());
                    return Err(ViewError::Contention { view, attempts });
                }
                strong = true;
                left.extend(ids.iter().filter(|id| overtaken.contains(**id)));
                overtaken.clear();
            }
        }
        Ok(put)
    }

    /// Puts rows, some at once, and fewer after the table has refused one for now. Says of each whether another run was
    /// not first.
    pub(crate) async fn put_each(
        &self,
        puts: Vec<RowPut>,
        to: Checkpoint,
        until_ms: u64,
        most: usize,
    ) -> Result<Vec<bool>, ViewError> {
        let mut is_put = vec![false; puts.len()];
        let mut left: Vec<_> = puts.iter().enumerate().collect();
        let (mut at_once, mut attempts) = (most, Retry::default().start());
        let (mut sent, mut refused) = (FuturesUnordered::new(), None);
        loop {
            while refused.is_none()
                && sent.len() < at_once
                && let Some((n, row)) = left.pop()
            {
                let put = self.table.put(row, to, &self.clock, until_ms);
                sent.push(async move { (n, row, put.await) });
            }
            match sent.next().await {
                Some((n, _, Ok(put))) => {
                    is_put[n] = put;
                    at_once = most.min(at_once + 1);
                    attempts = Retry::default().start();
                }
                Some((n, row, Err(error))) if error.is_transient() => {
                    left.push((n, row));
                    refused = Some(error);
                }
                Some((.., Err(error))) => return Err(error),
                None => match refused.take() {
                    None => return Ok(is_put),
                    Some(error) if !attempts.again().await => return Err(error),
                    Some(_) => at_once = 1.max(at_once / 2),
                },
            }
        }
    }

    /// Moves the checkpoint, with the rows that are removed or parked. If there are more of them than a transaction
    /// holds, only the last one moves the checkpoint. The tombstones of the others stay for good: only a checkpoint
    /// after the event proves that nobody folds it again. Only an event that removes so many rows leaves such.
    async fn move_to(
        &self,
        work: &Work<'_>,
        batch: &mut Batch,
        to: Checkpoint,
        others: Vec<Write>,
        ran: &mut Ran,
    ) -> Result<bool, ViewError> {
        let (now_ms, reader) = (self.clock.machine_ms(), &*work.keys.reader);
        if others.is_empty() {
            if work.alone {
                match self.checkpoints.advance(reader, batch.from, to).await {
                    Err(FeedError::Moved { .. }) => return Ok(false),
                    moved => moved?,
                }
                (batch.from, batch.from_ms, ran.checkpoint) = (Some(to), now_ms, Some(to));
            }
            return Ok(true);
        }
        let mut others = others.into_iter().peekable();
        while others.peek().is_some() {
            let some: Vec<_> = others.by_ref().take(ROWS_MAX).collect();
            let is_last = others.peek().is_none();
            let (rows, mut actions) = (some.len() as u64, Vec::new());
            let parked: Vec<_> = some.iter().filter_map(Write::parked).collect();
            actions.extend(is_last.then(|| self.checkpoints.action(reader, batch.from, to)));
            if !parked.is_empty() {
                if !work.alone {
                    return Ok(false);
                }
                let (view, more) = (work.view.name, parked.len().try_into().unwrap_or(i64::MAX));
                actions.push(self.table.count_parked(view, work.generation, more));
                actions.push(self.checkpoints.leave(reader));
            }
            let table = self.table.0.name();
            let goes_ms = is_last.then(|| self.clock.now_ms() + TOMBSTONE_MS);
            let some = some.into_iter();
            actions.extend(some.map(|write| write.action(table, &work.keys, to, goes_ms)));
            let token = self.clock.uuid().to_string();
            if !self.table.transact("removing or parking rows", actions, &token).await? {
                return Ok(false);
            }
            ran.rows += rows;
            ran.parked += parked.len() as u64;
            ran.examples.extend(parked);
            ran.examples.truncate(EXAMPLES_MAX);
        }
        (batch.from, batch.from_ms, ran.checkpoint) = (Some(to), now_ms, Some(to));
        Ok(true)
    }
}
