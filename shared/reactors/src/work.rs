//! The work on one event: its effects, its receipt, and what follows if it fails.

use futures::StreamExt;
use futures::stream::BoxStream;
use ringfence_core::BoundaryId;
use ringfence_feed::{Checkpoint, Entry, FeedError, FeedStep};
use tokio::time::timeout;

use crate::error::ReactorError;
use crate::handler::Handler;
use crate::item::{ParkedLane, Receipt, Unpark};
use crate::lanes::{BATCH_EVENTS_MAX, BATCH_HELD_BYTES_MAX, EFFECT_TIME_MAX, Lanes, Run};
use crate::table::overtaken;
use crate::{Delivery, Failed, InDoubt};

/// The most entries of the index that are read for a batch, with those that are not handled.
const BATCH_ENTRIES_MAX: usize = 1_000;
/// The most bytes of a cause in an item.
const CAUSE_BYTES_MAX: usize = 2_048;

/// Entries of the index.
pub(crate) type Feed = BoxStream<'static, Result<FeedStep, FeedError>>;

/// An entry of the index with its lane; if it can't be decoded, its known part and the reason.
pub(crate) struct Cut {
    pub(crate) lane: BoundaryId,
    pub(crate) entry: Entry,
    unread: Option<String>,
}

/// Consecutive events of the handler.
pub(crate) struct Batch {
    pub(crate) cuts: Vec<Cut>,
    /// After the last entry that was read.
    pub(crate) to: Checkpoint,
    /// The memory that the events take, in bytes.
    pub(crate) held: usize,
    /// Whether the index had no more.
    pub(crate) is_last: bool,
}

impl<H: Handler> Lanes<H> {
    /// The next events of the handler that are wanted.
    pub(crate) async fn cut(
        &self,
        feed: &mut Feed,
        at: Checkpoint,
        wants: impl Fn(&Entry) -> bool,
    ) -> Result<Batch, ReactorError> {
        let mut batch = Batch { cuts: Vec::new(), to: at, held: 0, is_last: false };
        for _ in 0..BATCH_ENTRIES_MAX {
            let Some(step) = feed.next().await else {
                batch.is_last = true;
                break;
            };
            let (checkpoint, known) = FeedStep::or_known(step)?;
            batch.to = checkpoint;
            let Some((entry, unread)) = known else { continue };
            if self.handler.handles(&entry.event) && wants(&entry) {
                batch.held += entry.held();
                let lane = self.handler.lane(&entry.event);
                batch.cuts.push(Cut { lane, entry, unread });
            }
            if batch.cuts.len() == BATCH_EVENTS_MAX || batch.held >= BATCH_HELD_BYTES_MAX {
                break;
            }
        }
        Ok(batch)
    }

    /// Carries out the effects of an event that are not done, unless its lane is parked.
    pub(crate) async fn event(
        &self,
        run: &Run,
        Cut { lane, entry, unread }: &Cut,
    ) -> Result<(), ReactorError> {
        let Entry { checkpoint, event } = entry;
        let parked = run.parked.borrow().get(lane).cloned();
        if parked.is_some() && !run.resumed.borrow().contains(lane) {
            return Ok(());
        }
        let mut receipt = self.receipt(run, lane);
        if receipt.done >= *checkpoint {
            return Ok(());
        }
        if let Some(why) = unread {
            return self.failed(run, lane, entry, Failed::ForGood(why.clone())).await;
        }
        if run.deadly.get() == Some(*checkpoint) {
            run.deadly.set(None);
            let why = "two runs have ended while it was handled, the second one with this event alone: the log of the \
                       function says how";
            return self.failed(run, lane, entry, Failed::ForGood(why.to_owned())).await;
        }
        if run.careful.get() > 0 {
            self.table.note_trying(self.handler.name(), &run.lease, *checkpoint).await?;
        }
        if receipt.began != Some(*checkpoint) {
            receipt = Receipt { began: None, n: 0, open: false, ..receipt };
        }
        let parks = self.handler.in_doubt() == InDoubt::Park;
        let is_meant = |of: &ParkedLane| of.place == *checkpoint && of.asked == Some(Unpark::Retry);
        let asking = parked.filter(is_meant).and_then(|of| of.asking);
        // One request of a person allows one try of an effect in doubt.
        if receipt.open && parks && (asking.is_none() || asking == receipt.asking) {
            let why = format!(
                "effect {} may have happened: its run ended before it had an answer",
                receipt.n
            );
            return self.failed(run, lane, entry, Failed::Unknown(why)).await;
        }
        let opened = self.handler.opened(event).await;
        let planned = match opened.and_then(|event| self.handler.plan(&event)) {
            Ok(planned) => planned,
            Err(failed) => return self.failed(run, lane, entry, failed).await,
        };
        for n in receipt.n..planned {
            let under_way = Receipt {
                began: Some(*checkpoint),
                n,
                open: parks,
                asking: asking.clone(),
                ..receipt.clone()
            };
            if parks && self.handler.keeps_receipts() {
                receipt = self.write(run, lane, under_way.clone()).await?;
            }
            let carried_out = self.effect(run, entry, n).await;
            if let Err(Failed::Undeliverable(cause)) = carried_out {
                let (reactor, event, cause) = (self.handler.name(), event.id(), cut_off(cause));
                tracing::warn!(reactor, lane = %lane, event, cause, "undeliverable");
            } else if let Err(failed) = carried_out {
                if receipt.open && !matches!(failed, Failed::Unknown(_)) {
                    self.write(run, lane, Receipt { open: false, ..receipt }).await?;
                }
                return self.failed(run, lane, entry, failed).await;
            } else {
                run.effects.set(run.effects.get() + 1);
            }
            let is_last = n + 1 == planned;
            if self.handler.keeps_receipts() && (is_last || !parks) {
                let next = match is_last {
                    true => {
                        Receipt { done: *checkpoint, began: None, n: 0, open: false, ..receipt }
                    }
                    false => Receipt { n: n + 1, ..under_way },
                };
                receipt = self.write(run, lane, next).await?;
            }
        }
        Ok(())
    }

    /// Carries out one effect.
    async fn effect(&self, run: &Run, entry: &Entry, n: usize) -> Result<(), Failed> {
        let delivery = Delivery::new(self.handler.name(), &entry.event, n).again(run.again);
        let carried_out = timeout(EFFECT_TIME_MAX, self.handler.carry_out(delivery)).await;
        carried_out.unwrap_or_else(|_| {
            Err(Failed::Unknown(format!("it had no answer within {EFFECT_TIME_MAX:?}")))
        })
    }

    /// Notes that an event has failed. Its lane waits, or is parked.
    async fn failed(
        &self,
        run: &Run,
        lane: &BoundaryId,
        entry: &Entry,
        failed: Failed,
    ) -> Result<(), ReactorError> {
        let (cause, is_final) = match failed {
            Failed::ForNow(cause) => (cause, false),
            Failed::ForGood(cause) | Failed::Undeliverable(cause) => (cause, true),
            Failed::Unknown(cause) => (cause, self.handler.in_doubt() == InDoubt::Park),
        };
        let Entry { checkpoint, event } = entry;
        let known = run.parked.borrow().get(lane).cloned();
        let tries = match known.filter(|of| of.place == *checkpoint) {
            Some(of) if of.asked != Some(Unpark::Retry) => of.tries + 1,
            _ => 1,
        };
        let next_ms = if is_final { None } else { self.next_ms(tries) };
        let parked = ParkedLane {
            lane: lane.clone(),
            from: checkpoint.previous().unwrap_or_default(),
            place: *checkpoint,
            event: event.id(),
            cause: cut_off(cause),
            tries,
            at_ms: self.table.clock.now_ms(),
            next_ms,
            asked: None,
            asking: None,
        };
        let (reactor, ParkedLane { lane: name, event, cause, .. }) = (self.handler.name(), &parked);
        match next_ms {
            None => tracing::error!(reactor, lane = %name, event, cause, tries, "parked"),
            Some(_) => tracing::warn!(reactor, lane = %name, event, cause, tries, "failed for now"),
        }
        run.failures.set(run.failures.get() + usize::from(next_ms.is_some()));
        run.resumed.borrow_mut().remove(lane);
        self.park(run, parked).await
    }

    /// Reads the receipts of lanes that this run does not know yet.
    pub(crate) async fn load<'l>(
        &self,
        run: &Run,
        lanes: impl IntoIterator<Item = &'l BoundaryId>,
    ) -> Result<(), ReactorError> {
        let known = |lane: &&BoundaryId| !run.receipts.borrow().contains_key(*lane);
        let mut unknown: Vec<BoundaryId> = lanes.into_iter().filter(known).cloned().collect();
        unknown.sort_unstable();
        unknown.dedup();
        if unknown.is_empty() {
            return Ok(());
        }
        let read = self.table.receipts(self.handler.name(), &unknown).await?;
        // This run must not go on from the receipts of a later run, which may have been sent back to do all again.
        if read.iter().any(|receipt| receipt.lease > run.lease.number()) {
            return Err(overtaken(self.handler.name()));
        }
        run.receipts.borrow_mut().extend(unknown.into_iter().zip(read));
        Ok(())
    }

    /// The receipt of a lane. It does not count if the reactor was sent back since to do all again.
    pub(crate) fn receipt(&self, run: &Run, lane: &BoundaryId) -> Receipt {
        let receipt = run.receipts.borrow().get(lane).cloned().unwrap_or_default();
        match receipt.again < run.again {
            true => Receipt { version: receipt.version, again: run.again, ..Receipt::default() },
            false => receipt,
        }
    }

    /// Writes the receipt that follows the one that is known.
    pub(crate) async fn write(
        &self,
        run: &Run,
        lane: &BoundaryId,
        receipt: Receipt,
    ) -> Result<Receipt, ReactorError> {
        let receipt = run.next(receipt);
        self.table.write(self.handler.name(), lane, &receipt).await?;
        run.receipts.borrow_mut().insert(lane.clone(), receipt.clone());
        Ok(receipt)
    }
}

fn cut_off(mut cause: String) -> String {
    cause.truncate(cause.floor_char_boundary(CAUSE_BYTES_MAX));
    cause
}
