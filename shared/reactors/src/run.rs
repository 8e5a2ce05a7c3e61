//! One run of a reactor: new events, and lanes that waited.
//!
//! Only the run with the lease parks lanes, frees them and moves the checkpoint. It reads the events after the
//! checkpoint, and handles those of a lane one after another ([`flow`](crate::flow)). The checkpoint moves over events
//! that are done, or whose lanes wait or are parked. After a crash the next run reads the events after the checkpoint
//! again, and the receipts say what is done.
//!
//! A lane whose event fails waits for its next try, or is parked: one item has the place of that event. Later events
//! stay in the index, and are read from there, up to the checkpoint, when the lane is tried again. From then on the
//! lane goes with the others. If a run broke off, a lane's event may lie after the checkpoint; then the lane stays
//! parked until the checkpoint has passed the event. New events come first and have half of the time, however much
//! there is to catch up with.
//!
//! A run that has not given its lease back did not end normally: its process was killed, or an effect ended it. The
//! next run is **careful** for as many batches as a run reads ahead: it handles one event at a time, and notes each
//! before. If that run does not end normally either, the noted event is the cause: its lane is parked, and the others
//! go on.
use std::cell::{Cell, RefCell};
use std::future::ready;
use std::time::Duration;

use futures::TryStreamExt;
use ringfence_feed::{Checkpoint, Until};
use tokio::time::sleep;

use crate::Starts;
use crate::error::ReactorError;
use crate::handler::Handler;
use crate::item::ReactorStanding;
use crate::lanes::{
    BATCHES_MAX, EFFECT_TIME_MAX, Ended, Lanes, RanLanes, Run, WAITING_LANES_MAX, millis,
};
use crate::work::Feed;

/// How much longer than its time the lease of a run lasts.
const LEASE_RESERVE: Duration = Duration::from_secs(5);

impl<H: Handler> Lanes<H> {
    /// Handles waiting lanes and new events, until nothing is left or the time is over. No effect begins after `time`;
    /// one that has begun may take [`EFFECT_TIME_MAX`]. Any number of runs may begin at once: one has the lease.
    ///
    /// # Errors
    /// A table can't be read or written, or another run has taken over. Effects that were carried out stay.
    pub async fn run(&self, time: Duration) -> Result<RanLanes, ReactorError> {
        let name = self.handler.name();
        let end = sleep(time).deadline();
        let standing = self.table.standing(name).await?;
        if let Some(idle) = self.idle(&standing).await? {
            return Ok(idle);
        }
        let lease_ms = millis(time + EFFECT_TIME_MAX + LEASE_RESERVE);
        let until_ms = self.table.clock.now_ms() + lease_ms;
        let first = self.first(&standing).await?;
        let taken = self.table.take(name, standing, first, until_ms).await?;
        let Some((lease, standing)) = taken else {
            return Ok(RanLanes { ended: Ended::Held, ..RanLanes::default() });
        };
        let run = Run {
            lease,
            again: standing.again,
            end,
            until: Cell::new(end),
            at: Cell::new(standing.checkpoint.unwrap_or(first)),
            receipts: RefCell::default(),
            parked: RefCell::default(),
            resumed: RefCell::default(),
            careful: Cell::new(if standing.until_ms.is_some() { BATCHES_MAX } else { 0 }),
            deadly: Cell::new(standing.trying),
            effects: Cell::new(0),
            failures: Cell::new(0),
            broken: Cell::new(false),
        };
        loop {
            let ended = self.round(&run).await?;
            let mut is_free = self.table.release(name, &run.lease).await?;
            while !is_free && run.is_over() {
                // The next run sees the notification.
                is_free = self.table.release(name, &run.lease).await?;
            }
            if is_free {
                return Ok(RanLanes {
                    ended,
                    checkpoint: run.at.get(),
                    effects: run.effects.get(),
                    parked: run.parked(),
                    waiting: run.parked.borrow().len() - run.parked(),
                });
            }
        }
    }

    /// The result if there is nothing to do: no new event, and no lane whose time has come. This needs no lease.
    async fn idle(&self, standing: &ReactorStanding) -> Result<Option<RanLanes>, ReactorError> {
        let Some(checkpoint) = standing.checkpoint else { return Ok(None) };
        if self.index.read_where(checkpoint, Until::Present, |_| false).try_next().await?.is_some()
        {
            return Ok(None);
        }
        let lanes = self.table.parked(self.handler.name()).await?;
        let waiting = lanes.iter().filter(|lane| lane.next_ms.is_some()).count();
        let parked = lanes.len() - waiting;
        let has_due = lanes.iter().any(|lane| self.is_due(lane));
        let idle = RanLanes { checkpoint, waiting, parked, ..RanLanes::default() };
        Ok((!has_due).then_some(idle))
    }

    /// The place where a reactor begins that has never run. The lease notes it, so a run that fails afterwards skips no
    /// event.
    async fn first(&self, standing: &ReactorStanding) -> Result<Checkpoint, ReactorError> {
        if let Some(checkpoint) = standing.checkpoint {
            return Ok(checkpoint);
        }
        match self.handler.starts() {
            Starts::Beginning => Ok(Checkpoint::START),
            Starts::Now => {
                let (end, overlap_ms) = (self.index.end().await?, millis(self.handler.overlap()));
                let since_ms = self.table.clock.now_ms().saturating_sub(overlap_ms);
                let recent = self.index.read_back_where(end, |_| false);
                let recent = recent
                    .try_take_while(|step| ready(Ok(overlap_ms > 0 && step.at() >= since_ms)));
                let first = recent.try_fold(None, |_, step| ready(Ok(Some(step)))).await?;
                Ok(first.and_then(|step| step.checkpoint().previous()).unwrap_or(end))
            }
        }
    }

    async fn round(&self, run: &Run) -> Result<Ended, ReactorError> {
        let lanes = self.table.parked(self.handler.name()).await?;
        let has_due = lanes.iter().any(|lane| self.is_due(lane));
        *run.parked.borrow_mut() =
            lanes.into_iter().map(|lane| (lane.lane.clone(), lane)).collect();
        if has_due {
            run.share();
            let careful = run.careful.get();
            self.follow(run).await?;
            // No waiting lane was handled yet.
            run.careful.set(careful);
            run.until.set(run.end);
            self.catch_up(run).await?;
        }
        self.follow(run).await
    }

    /// Handles the events after the checkpoint, except in lanes that wait.
    async fn follow(&self, run: &Run) -> Result<Ended, ReactorError> {
        let failures_max = run.failures.get() + WAITING_LANES_MAX.saturating_sub(run.waiting());
        let lanes_max = || failures_max.saturating_sub(run.failures.get());
        let pass = async |to| {
            self.advance(run, to).await?;
            run.careful.set(run.careful.get().saturating_sub(1));
            Ok(())
        };
        let from = run.at.get();
        let feed = (self.feed(from), from);
        let flowed = self.flow(run, feed, |_| true, lanes_max, pass).await?;
        if flowed.to > run.at.get() {
            self.advance(run, flowed.to).await?;
        }
        Ok(match lanes_max() {
            0 => Ended::Stopped,
            _ if flowed.is_end => Ended::Present,
            _ => Ended::Behind,
        })
    }

    /// The entries after a checkpoint, for the handler.
    pub(crate) fn feed(&self, from: Checkpoint) -> Feed {
        let wants = self.handler.wants();
        self.index.read_where(from, Until::Present, move |it| wants(it))
    }

    async fn advance(&self, run: &Run, to: Checkpoint) -> Result<(), ReactorError> {
        self.table.advance(self.handler.name(), &run.lease, to).await?;
        run.at.set(to);
        Ok(())
    }
}
