//! Reads the events of a stream, page by page, from either end.
//!
//! A query is read-committed and may come from a replica. It can show the Tip after a calving without the calf, or the
//! calf with the old Tip. If items overlap, the read takes each event once. If there is a gap, it reads again, strongly
//! consistent.

use std::collections::VecDeque;

use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use ringfence_aws::{Attempts, Retry};
use ringfence_core::{Consistency, Envelope};

use crate::batch::TIP_KEY;
use crate::{
    Batch, Direction, DocumentError, DocumentLog, ItemQuery, Store, StreamName, TimelineEvent,
};

/// After this many reads with a gap, the gap is real.
pub(crate) const TORN_ATTEMPTS_MAX: u32 = 4;

impl DocumentError {
    /// Whether the error can come from a torn read, so that a later read may succeed.
    pub(crate) fn is_torn(&self) -> bool {
        matches!(self, Self::Pruned { .. } | Self::Hole { .. } | Self::NoTip { .. })
    }
}

/// The retries of a read that looks torn.
pub(crate) fn torn_retry(retry: Retry) -> Retry {
    retry.attempts_max(TORN_ATTEMPTS_MAX)
}

/// The items of a stream, one after another, without gap or overlap.
pub(crate) struct Walk<'a, S> {
    store: &'a S,
    stream: &'a StreamName,
    retry: Retry,
    consistency: Consistency,
    direction: Direction,
    items_max: Option<i32>,
    beyond: Option<i64>,
    /// The index at which the next item has to begin (forward) or end (backward).
    edge: Option<u64>,
    waiting: VecDeque<Batch>,
    more: bool,
    started: bool,
}

impl<'a, S: Store> Walk<'a, S> {
    /// Backwards from the Tip, which is read too.
    pub(crate) fn back(
        log: &'a DocumentLog<S>,
        stream: &'a StreamName,
        consistency: Consistency,
        envelope: &Envelope,
    ) -> Self {
        Self {
            store: &log.store,
            stream,
            retry: log.retry(envelope),
            consistency,
            direction: Direction::Backward,
            items_max: None,
            beyond: None,
            edge: None,
            waiting: VecDeque::new(),
            more: true,
            started: false,
        }
    }

    /// Backwards through the calves whose events lie before `edge`.
    pub(crate) fn behind(self, edge: u64) -> Self {
        Self { beyond: Some(key_of(edge)), edge: Some(edge), more: edge > 0, ..self }
    }

    /// With at most this many items on a page.
    pub(crate) fn pages_of(self, items: u64) -> Self {
        Self { items_max: Some(i32::try_from(items).unwrap_or(i32::MAX).max(1)), ..self }
    }

    /// Forward from the item that holds event `from`.
    async fn forward(mut self, from: u64) -> Result<Self, DocumentError> {
        self.edge = Some(from);
        if from > 0 {
            self.beyond = Some(key_of(from.saturating_add(1)));
            let items_max = self.items_max.replace(1);
            self.page().await?;
            (self.items_max, self.more) = (items_max, true);
            self.beyond = self.waiting.front().map(|batch| batch.key);
            // The walk begins with this item, even if the item begins before `from`.
            self.edge = self.waiting.front().map(Batch::base).or(self.edge);
        }
        Ok(Self { direction: Direction::Forward, ..self })
    }

    /// The index at which the next item would begin (forward) or end (backward).
    pub(crate) fn edge(&self) -> Option<u64> {
        self.edge
    }

    /// The next item, without events that an earlier item had.
    ///
    /// # Errors
    /// A request failed, or there is a gap between the item and the one before.
    pub(crate) async fn next(&mut self) -> Result<Option<Batch>, DocumentError> {
        loop {
            while self.waiting.is_empty() && self.more {
                self.page().await?;
            }
            let Some(batch) = self.waiting.pop_front() else { return Ok(None) };
            let cut = match self.direction {
                Direction::Forward => self.after(batch)?,
                Direction::Backward => self.before(batch)?,
            };
            // A calf has nothing left if its events were read as part of the Tip before they moved.
            if !cut.events.is_empty() || cut.is_tip() {
                return Ok(Some(cut));
            }
        }
    }

    async fn page(&mut self) -> Result<(), DocumentError> {
        let query = ItemQuery {
            stream: self.stream,
            direction: self.direction,
            beyond: self.beyond,
            items_max: self.items_max,
            consistency: self.consistency,
        };
        let page = self.retry.run(|| self.store.query(query)).await;
        let page = page.map_err(|gave_up| gave_up.during("reading events"))?;
        self.beyond = page.batches.last().map(|batch| batch.key).or(self.beyond);
        self.more = page.more;
        self.waiting.extend(page.batches);
        Ok(())
    }

    fn before(&mut self, mut batch: Batch) -> Result<Batch, DocumentError> {
        match self.edge {
            None if !batch.is_tip() => {
                return Err(DocumentError::NoTip { stream: self.stream.clone() });
            }
            Some(edge) if batch.version < edge => {
                let stream = self.stream.clone();
                return Err(DocumentError::Hole { stream, from: batch.version, to: edge });
            }
            Some(edge) if batch.version > edge => {
                let kept = edge.saturating_sub(batch.base());
                batch.events.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
                batch.version = edge;
            }
            _ => {}
        }
        self.edge = Some(batch.base());
        Ok(batch)
    }

    fn after(&mut self, mut batch: Batch) -> Result<Batch, DocumentError> {
        let (edge, base, stream) = (self.edge.unwrap_or(0), batch.base(), self.stream.clone());
        match std::mem::replace(&mut self.started, true) {
            false if base > edge => {
                return Err(DocumentError::Pruned { stream, wanted: edge, first: base });
            }
            true if base > edge => {
                return Err(DocumentError::Hole { stream, from: edge, to: base });
            }
            _ => {}
        }
        let seen = (edge - base).min(batch.events.len() as u64);
        batch.events.drain(..usize::try_from(seen).unwrap_or(usize::MAX));
        self.edge = Some(edge.max(batch.version));
        if batch.is_tip() {
            self.more = false;
        }
        Ok(batch)
    }
}

/// The key of a calf that begins at `index`.
fn key_of(index: u64) -> i64 {
    i64::try_from(index).unwrap_or(TIP_KEY).min(TIP_KEY)
}

/// A read of events, and its remaining range.
struct Reading<'a, S> {
    log: &'a DocumentLog<S>,
    stream: &'a StreamName,
    /// The indexes still to read.
    left: std::ops::Range<u64>,
    direction: Direction,
    consistency: Consistency,
    envelope: &'a Envelope,
    walk: Option<Walk<'a, S>>,
    /// The attempts at reads that look torn, over all pages.
    attempts: Attempts,
    done: bool,
}

impl<S: Store> DocumentLog<S> {
    /// The events of the stream with these indexes.
    ///
    /// # Errors
    /// A request failed, the first of them were pruned, or others are missing.
    pub fn read<'a>(
        &'a self,
        stream: &'a StreamName,
        range: std::ops::Range<u64>,
        direction: Direction,
        consistency: Consistency,
        envelope: &'a Envelope,
    ) -> BoxStream<'a, Result<TimelineEvent, DocumentError>> {
        let done = range.is_empty();
        let reading = Reading {
            log: self,
            stream,
            left: range,
            direction,
            consistency,
            envelope,
            walk: None,
            attempts: torn_retry(self.retry(envelope)).start(),
            done,
        };
        let pages = stream::try_unfold(reading, |mut reading| async move {
            let events = reading.next().await?;
            let page = |events: Vec<_>| stream::iter(events.into_iter().map(Ok));
            Ok::<_, DocumentError>(events.map(|events| (page(events), reading)))
        });
        pages.try_flatten().boxed()
    }
}

impl<'a, S: Store> Reading<'a, S> {
    /// The next events. After a read that looks torn, it goes on after the last good item.
    async fn next(&mut self) -> Result<Option<Vec<TimelineEvent>>, DocumentError> {
        loop {
            if self.done || self.left.is_empty() {
                return Ok(None);
            }
            match self.attempt().await {
                Err(error) if error.is_torn() && self.attempts.again().await => {
                    (self.consistency, self.walk) = (Consistency::Strong, None);
                }
                other => return other.map(Some),
            }
        }
    }

    async fn attempt(&mut self) -> Result<Vec<TimelineEvent>, DocumentError> {
        let mut walk = match self.walk.take() {
            Some(walk) => walk,
            None => {
                let walk = Walk::back(self.log, self.stream, self.consistency, self.envelope);
                match self.direction {
                    Direction::Forward => walk.forward(self.left.start).await?,
                    // Each calf has an event, so this many items are enough if the range ends at the stream's end.
                    Direction::Backward => {
                        walk.pages_of((self.left.end - self.left.start).saturating_add(1))
                    }
                }
            }
        };
        let Some(batch) = walk.next().await? else { return self.end(&walk) };
        let base = batch.base();
        if self.direction == Direction::Backward && batch.is_tip() && self.left.end < base {
            // Calves between the Tip and the requested events need no read.
            walk = walk.behind(self.left.end);
        }
        self.walk = Some(walk);
        let mut events: Vec<_> = (base..)
            .zip(batch.events)
            .map(|(index, event)| TimelineEvent { index, event })
            .filter(|recorded| self.left.contains(&recorded.index))
            .collect();
        match self.direction {
            Direction::Forward => {
                self.left.start = batch.version.max(self.left.start);
                self.done = batch.key == TIP_KEY;
            }
            Direction::Backward => {
                events.reverse();
                self.left.end = base.min(self.left.end);
                self.done = base == 0;
            }
        }
        Ok(events)
    }

    /// There is no further item. In forward order the stream then has no items at all.
    fn end(&mut self, walk: &Walk<'_, S>) -> Result<Vec<TimelineEvent>, DocumentError> {
        let stream = self.stream.clone();
        match (self.direction, walk.edge()) {
            (Direction::Forward, _) if walk.beyond.is_some() => {
                Err(DocumentError::NoTip { stream })
            }
            (Direction::Backward, Some(first)) if first > self.left.start => {
                Err(DocumentError::Pruned { stream, wanted: self.left.start, first })
            }
            _ => {
                self.done = true;
                Ok(Vec::new())
            }
        }
    }
}
