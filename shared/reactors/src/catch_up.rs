//! Lanes that waited or were parked: they are handled again, from the event that failed up to the checkpoint.

use std::future::ready;

use futures::{StreamExt, TryStreamExt};
use ringfence_core::BoundaryId;
use ringfence_feed::Entry;

use crate::error::ReactorError;
use crate::handler::Handler;
use crate::item::{ParkedLane, Receipt, Unpark};
use crate::lanes::{Lanes, Run};

impl<H: Handler> Lanes<H> {
    /// Handles again the lanes whose time has come, from the event that failed up to the checkpoint.
    pub(crate) async fn catch_up(&self, run: &Run) -> Result<(), ReactorError> {
        if run.is_over() {
            return Ok(());
        }
        let until = run.at.get();
        let is_turn = |lane: &&ParkedLane| lane.place <= until && self.is_due(lane);
        let lanes: Vec<_> = run.parked.borrow().values().filter(is_turn).cloned().collect();
        for lane in lanes {
            self.resume(run, lane).await?;
        }
        let from = {
            let (parked, resumed) = (run.parked.borrow(), run.resumed.borrow());
            resumed.iter().filter_map(|lane| parked.get(lane)).map(|lane| lane.from).min()
        };
        let Some(from) = from else { return Ok(()) };
        let feed = self.feed(from);
        let feed = feed.try_take_while(move |step| ready(Ok(step.checkpoint() <= until))).boxed();
        let is_resumed = |entry: &Entry| {
            let lane = self.handler.lane(&entry.event);
            let resumed = run.resumed.borrow().contains(&lane);
            resumed && run.parked.borrow().get(&lane).is_some_and(|of| of.from < entry.checkpoint)
        };
        let lanes_max = || run.resumed.borrow().len();
        let flowed = self.flow(run, (feed, from), is_resumed, lanes_max, async |_| Ok(())).await?;
        let at = if flowed.is_end { until } else { flowed.to };
        let resumed = std::mem::take(&mut *run.resumed.borrow_mut());
        for lane in resumed {
            if at >= until {
                self.let_go(run, &lane).await?;
                continue;
            }
            let lane = run.parked.borrow().get(&lane).filter(|lane| lane.from < at).cloned();
            let Some(mut lane) = lane else { continue };
            // The rest is for the next run. The event that failed is done, and need not be read again.
            (lane.from, lane.asked, lane.asking) = (at, None, None);
            lane.next_ms = Some(self.table.clock.now_ms());
            self.park(run, lane).await?;
        }
        Ok(())
    }

    /// Lets a lane that has caught up go with the others.
    async fn let_go(&self, run: &Run, lane: &BoundaryId) -> Result<(), ReactorError> {
        let lane = run.parked.borrow_mut().remove(lane);
        match lane {
            Some(lane) => self.table.unpark(self.handler.name(), &run.lease, &lane).await,
            None => Ok(()),
        }
    }

    /// Resumes a lane. The request of a person stays noted until it is done.
    async fn resume(&self, run: &Run, mut lane: ParkedLane) -> Result<(), ReactorError> {
        if let Some(Unpark::Skip(why)) = lane.asked.clone() {
            // A person may have asked for something else by now: the next run does that.
            let Some(skipped) = self.skip(run, &lane, &why).await? else { return Ok(()) };
            lane = skipped;
        }
        lane.next_ms = lane.next_ms.or_else(|| Some(self.table.clock.now_ms()));
        run.resumed.borrow_mut().insert(lane.lane.clone());
        run.parked.borrow_mut().insert(lane.lane.clone(), lane);
        Ok(())
    }

    /// Passes over the event that failed. Returns the lane as it goes on.
    async fn skip(
        &self,
        run: &Run,
        lane: &ParkedLane,
        why: &str,
    ) -> Result<Option<ParkedLane>, ReactorError> {
        let (reactor, event) = (self.handler.name(), &lane.event);
        let mut done = None;
        if self.handler.keeps_receipts() {
            self.load(run, [&lane.lane]).await?;
            let receipt = self.receipt(run, &lane.lane);
            if receipt.done < lane.place {
                let done_event =
                    Receipt { done: lane.place, began: None, n: 0, open: false, ..receipt };
                done = Some(run.next(done_event));
            }
        }
        let skipped = ParkedLane {
            from: lane.place,
            next_ms: Some(self.table.clock.now_ms()),
            asked: None,
            asking: None,
            ..lane.clone()
        };
        let after = (&skipped, done.as_ref());
        if !self.table.skip(reactor, &run.lease, lane, why, after).await? {
            return Ok(None);
        }
        tracing::warn!(reactor, lane = %lane.lane, event, why, "skipped");
        run.receipts.borrow_mut().extend(done.map(|done| (lane.lane.clone(), done)));
        Ok(Some(skipped))
    }
}
