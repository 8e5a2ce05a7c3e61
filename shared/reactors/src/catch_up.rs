//! Lanes that waited or were parked: they are handled again, from the event that failed up to the checkpoint.

use std::future::ready;

use futures::{StreamExt, TryStreamExt};
use ringfence_feed::{Entry, Until};

use crate::error::ReactorError;
use crate::handler::Handler;
use crate::item::{ParkedLane, Receipt, Unpark};
use crate::lanes::{Lanes, Run};

impl<H: Handler> Lanes<H> {
    /// Handles again the lanes whose time has come, from the event that failed up to the checkpoint.
    pub(crate) async fn catch_up(&self, run: &Run) -> Result<(), ReactorError> {
        let lanes: Vec<_> =
            run.parked.borrow().values().filter(|lane| self.is_due(lane)).cloned().collect();
        for lane in lanes {
            self.resume(run, lane).await?;
        }
        let from = {
            let (parked, resumed) = (run.parked.borrow(), run.resumed.borrow());
            resumed.keys().filter_map(|lane| parked.get(lane)).map(|lane| lane.from).min()
        };
        let Some(mut at) = from else { return Ok(()) };
        let until = run.at.get();
        let feed = self.index.read(at, Until::Present);
        let mut feed =
            feed.try_take_while(move |entry| ready(Ok(entry.checkpoint <= until))).boxed();
        while at < until && !run.resumed.borrow().is_empty() {
            let is_resumed = |entry: &Entry| {
                let lane = self.handler.lane(&entry.event);
                let resumed = run.resumed.borrow().contains_key(&lane);
                resumed
                    && run.parked.borrow().get(&lane).is_some_and(|of| of.from < entry.checkpoint)
            };
            let batch = self.cut(&mut feed, at, is_resumed).await?;
            let undone = self.handle(run, batch.entries).await?;
            at = undone.unwrap_or(if batch.is_last { until } else { batch.to });
            if undone.is_some() || run.is_over() {
                break;
            }
        }
        let caught_up = std::mem::take(&mut *run.resumed.borrow_mut());
        for lane in caught_up.into_keys() {
            let Some(mut parked) = run.parked.borrow_mut().remove(&lane) else { continue };
            if at >= until {
                self.table.unpark(self.handler.name(), run.lease, &lane).await?;
                continue;
            }
            // The rest is for the next run. What is done need not be read again, and nothing has failed.
            parked.from = parked.from.max(at);
            parked.tries = 0;
            parked.next_ms = Some(self.table.clock.now_ms());
            self.park(run, parked).await?;
        }
        Ok(())
    }

    /// Takes a lane up again. That this is a try is noted first: if it ends the process, it counts.
    async fn resume(&self, run: &Run, mut lane: ParkedLane) -> Result<(), ReactorError> {
        let asked = lane.asked.take();
        match &asked {
            None => lane.tries += 1,
            Some(Unpark::Retry) => lane.tries = 1,
            Some(Unpark::Skip(why)) => {
                self.skip(run, &lane, why).await?;
                (lane.from, lane.tries) = (lane.place, 1);
            }
        }
        lane.next_ms = self.next_ms(lane.tries);
        let for_event = (asked == Some(Unpark::Retry)).then_some(lane.place);
        run.resumed.borrow_mut().insert(lane.lane.clone(), for_event);
        self.park(run, lane).await
    }

    /// Passes over the event that failed.
    async fn skip(&self, run: &Run, lane: &ParkedLane, why: &str) -> Result<(), ReactorError> {
        let (reactor, event) = (self.handler.name(), &lane.event);
        self.table.note_skipped(reactor, run.lease, lane, why).await?;
        tracing::warn!(reactor, lane = %lane.lane, event, why, "skipped");
        if self.handler.keeps_receipts() {
            self.load(run, [&lane.lane]).await?;
            let receipt = self.receipt(run, &lane.lane);
            if receipt.done < lane.place {
                let done = Receipt { done: lane.place, began: None, n: 0, open: false, ..receipt };
                self.write(run, &lane.lane, done).await?;
            }
        }
        Ok(())
    }
}
