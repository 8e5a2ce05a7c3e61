//! The flow of events through the lanes: many lanes side by side, and in a lane one event after another.
//!
//! Events are read in batches, ahead of the effects. A lane waits for its own effects only: while one lane is slow, the
//! others go on with later batches. A batch is passed, and the checkpoint moves over it, when all of its events and all
//! before them are done, or their lanes wait or are parked. So after a crash at most the events of the open batches are
//! read again.

use std::collections::{BTreeMap, VecDeque};

use futures::future::LocalBoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use ringfence_core::BoundaryId;
use ringfence_feed::{Checkpoint, Entry};

use crate::error::ReactorError;
use crate::handler::Handler;
use crate::lanes::{BATCH_HELD_BYTES_MAX, BATCHES_MAX, LANES_AT_ONCE, Lanes, Run};
use crate::work::{Batch, Cut, Feed};

/// How far a flow came.
pub(crate) struct Flowed {
    /// Everything before this place is done.
    pub(crate) to: Checkpoint,
    /// Whether the feed has ended and all of it is done.
    pub(crate) is_end: bool,
}

/// A thing that has ended.
enum Step {
    Read(Feed, Batch),
    /// The event at this place is done.
    Done(Checkpoint),
    /// It did not begin, because the time was over.
    Left(Checkpoint, Cut),
    Passed,
}

/// The events that are read and not yet passed.
#[derive(Default)]
struct Open {
    waiting: BTreeMap<Checkpoint, Cut>,
    /// The lanes of the events that are under way.
    busy: BTreeMap<Checkpoint, BoundaryId>,
    /// The ends of the open batches, and the memory that each holds.
    batches: VecDeque<(Checkpoint, usize)>,
}

impl Open {
    fn add(&mut self, Batch { cuts, to, held, .. }: Batch) {
        self.waiting.extend(cuts.into_iter().map(|cut| (cut.entry.checkpoint, cut)));
        self.batches.push_back((to, held));
    }

    /// Whether another batch may be read. A careful run has one alone.
    fn has_room(&self, is_careful: bool) -> bool {
        let held: usize = self.batches.iter().map(|(_, held)| held).sum();
        let most = if is_careful { 1 } else { BATCHES_MAX };
        self.batches.len() < most && held < BATCH_HELD_BYTES_MAX
    }

    /// The first event that waits and whose lane is free. It counts as under way.
    fn begin(&mut self) -> Option<Cut> {
        let is_busy = |lane: &BoundaryId| self.busy.values().any(|busy| busy == lane);
        let place = *self.waiting.iter().find(|(_, cut)| !is_busy(&cut.lane))?.0;
        let cut = self.waiting.remove(&place)?;
        self.busy.insert(place, cut.lane.clone());
        Some(cut)
    }

    /// The first event that is not done.
    fn undone(&self) -> Option<Checkpoint> {
        let (waiting, busy) = (self.waiting.keys().next(), self.busy.keys().next());
        waiting.into_iter().chain(busy).min().copied()
    }

    /// The end of the last batch that can be passed. It is open no more.
    fn pass(&mut self) -> Option<Checkpoint> {
        let (undone, mut to) = (self.undone(), None);
        while let Some((end, _)) =
            self.batches.pop_front_if(|(end, _)| undone.is_none_or(|undone| *end < undone))
        {
            to = Some(end);
        }
        to
    }
}

impl<H: Handler> Lanes<H> {
    /// Handles the wanted events of a feed that begins at a place. At most `lanes_max` lanes are under way, and no
    /// event begins after the time is over. Calls `pass` with the end of each batch that is passed, in order.
    pub(crate) async fn flow(
        &self,
        run: &Run,
        (feed, from): (Feed, Checkpoint),
        wants: impl Fn(&Entry) -> bool,
        lanes_max: impl Fn() -> usize,
        pass: impl AsyncFn(Checkpoint) -> Result<(), ReactorError>,
    ) -> Result<Flowed, ReactorError> {
        let (wants, pass) = (&wants, &pass);
        let (mut feed, mut front, mut is_last) = (Some(feed), from, false);
        let (mut open, mut passed, mut is_passing) = (Open::default(), from, false);
        let mut steps = FuturesUnordered::<LocalBoxFuture<Result<Step, ReactorError>>>::new();
        let mut failed = None;
        loop {
            if !is_passing
                && failed.is_none()
                && let Some(to) = open.pass().filter(|to| *to > passed)
            {
                (passed, is_passing) = (to, true);
                steps.push(async move { pass(to).await.map(|()| Step::Passed) }.boxed_local());
            }
            // A careful run does one thing at a time.
            let is_careful = run.careful.get() > 0;
            let is_free = !(run.is_over() || is_careful && is_passing);
            if is_free && !is_last && lanes_max() > 0 && open.has_room(is_careful) {
                let read = feed.take().map(|feed| self.read(run, feed, front, wants));
                steps.extend(read.map(FutureExt::boxed_local));
            }
            let most = lanes_max().min(if is_careful { 1 } else { LANES_AT_ONCE });
            while is_free
                && open.busy.len() < most
                && let Some(cut) = open.begin()
            {
                steps.push(self.one(run, cut).boxed_local());
            }
            match steps.next().await {
                None => break,
                Some(Ok(Step::Read(rest, batch))) => {
                    (feed, front, is_last) = (Some(rest), batch.to, batch.is_last);
                    open.add(batch);
                }
                Some(Ok(Step::Done(place))) => drop(open.busy.remove(&place)),
                Some(Ok(Step::Left(place, cut))) => {
                    open.busy.remove(&place);
                    open.waiting.insert(place, cut);
                }
                Some(Ok(Step::Passed)) => is_passing = false,
                // Events that have begun go on to their end. No other event begins.
                Some(Err(error)) => {
                    run.broken.set(true);
                    failed.get_or_insert(error);
                }
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        let undone = open.undone();
        let to = undone.map_or(front, |undone| undone.previous().unwrap_or_default());
        Ok(Flowed { to, is_end: is_last && undone.is_none() })
    }

    /// Reads the next batch, with the receipts of its lanes.
    async fn read(
        &self,
        run: &Run,
        mut feed: Feed,
        at: Checkpoint,
        wants: &impl Fn(&Entry) -> bool,
    ) -> Result<Step, ReactorError> {
        let batch = self.cut(&mut feed, at, wants).await?;
        if self.handler.keeps_receipts() {
            self.load(run, batch.cuts.iter().map(|cut| &cut.lane)).await?;
        }
        Ok(Step::Read(feed, batch))
    }

    /// Handles one event.
    async fn one(&self, run: &Run, cut: Cut) -> Result<Step, ReactorError> {
        let _alone = match run.careful.get() > 0 {
            true => Some(self.table.alone.lock().await),
            false => None,
        };
        let place = cut.entry.checkpoint;
        if run.is_over() {
            return Ok(Step::Left(place, cut));
        }
        self.event(run, &cut).await?;
        Ok(Step::Done(place))
    }
}
