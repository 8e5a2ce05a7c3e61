//! One run of a reactor: the lanes that waited, and then the new events.
//!
//! A run has a lease, and only the run with the lease changes which lanes are parked and moves the checkpoint. It reads
//! the events after the checkpoint in batches. Each lane has one worker, which handles the lane's events one after
//! another; the checkpoint moves when all events of the batch are done or their lanes are parked. After a crash the next
//! run reads the batch again, and the receipts say what is done.
//!
//! A lane whose event fails is parked in one item, with the place of that event. The events that come later stay where
//! they are: in the index. When the lane is tried again, they are read from there, up to the checkpoint. From there on
//! the lane goes with the others, because the run that has caught up is the one that goes on.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use futures::future::{join_all, ready};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use ringfence::BoundaryId;
use ringfence_feed::{Checkpoint, Entry, FeedError, Index, Until};
use tokio::time::{Instant, sleep, timeout};

use crate::error::ReactorError;
use crate::handler::Handler;
use crate::item::{Ask, ParkedLane, ReactorStanding, Receipt};
use crate::table::{Lease, ReactorTable};
use crate::{Delivery, Failed, InDoubt, Starts};

/// Lanes that are handled side by side.
pub const WORKERS: usize = 16;
/// The most events of a batch, after which the checkpoint moves.
pub const BATCH_EVENTS_MAX: usize = 100;
/// The most entries of the index that are read for a batch, with those that are not handled.
const BATCH_ENTRIES_MAX: usize = 1_000;
/// The longest time of an effect. Afterwards nobody knows whether it happens.
pub const EFFECT_TIME_MAX: Duration = Duration::from_secs(15);
/// The pauses before an event is tried again. After the last try the lane is parked until a person asks.
pub const PAUSES: [Duration; 4] = [
    Duration::from_secs(5),
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
];
/// With so many lanes that wait for their next try, the far side is down, and new events stay in the index.
pub const WAITING_LANES_MAX: usize = 100;
/// How much longer than its time the lease of a run lasts.
const LEASE_RESERVE: Duration = Duration::from_secs(5);

/// A reactor with what it reads and where its items are.
pub struct Lanes<H> {
    /// What handles the events.
    pub handler: H,
    /// Where they come from.
    pub index: Index,
    /// Its items.
    pub table: ReactorTable,
}

/// What a run has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RanLanes {
    /// How it ended.
    pub ended: Ended,
    /// The checkpoint that it has reached.
    pub checkpoint: Checkpoint,
    /// Effects that it has carried out.
    pub effects: u64,
    /// Lanes that are tried again later.
    pub waiting: usize,
    /// Lanes that are parked until a person asks.
    pub parked: usize,
}

/// How a run ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ended {
    /// There was nothing to do.
    #[default]
    Idle,
    /// Another run has the lease, and looks once more.
    Held,
    /// All events are done, or their lanes wait.
    Present,
    /// Its time was over.
    Behind,
    /// Too many lanes wait, so new events stay in the index.
    Stopped,
}

/// A run with the lease.
struct Run {
    lease: u64,
    again: u32,
    replayed: Option<Checkpoint>,
    end: Instant,
    at: Cell<Checkpoint>,
    receipts: RefCell<HashMap<BoundaryId, Receipt>>,
    parked: RefCell<BTreeMap<BoundaryId, ParkedLane>>,
    /// Parked lanes that are handled again, each with the place of the event for which a person asks, if one does.
    resumed: RefCell<BTreeMap<BoundaryId, Option<Checkpoint>>>,
    effects: Cell<u64>,
    /// A worker has failed, so the others begin nothing more.
    broken: Cell<bool>,
}

impl Run {
    fn is_over(&self) -> bool {
        self.broken.get() || now() >= self.end
    }

    fn waiting(&self) -> usize {
        self.parked.borrow().values().filter(|lane| lane.next_ms.is_some()).count()
    }
}

fn now() -> Instant {
    sleep(Duration::ZERO).deadline()
}

impl<H: Handler> Lanes<H> {
    /// Handles what waits and what is new, until nothing is left or the time is over. No effect begins after `time`; one
    /// that has begun may take [`EFFECT_TIME_MAX`]. Any number of runs may begin at once: one has the lease.
    ///
    /// # Errors
    /// A table can't be read or written, or another run has taken over. What was done is done.
    pub async fn run(&self, time: Duration) -> Result<RanLanes, ReactorError> {
        let name = self.handler.name();
        let end = sleep(time).deadline();
        let standing = self.table.standing(name).await?;
        if let Some(idle) = self.idle(&standing).await? {
            return Ok(idle);
        }
        let lease_ms = millis(time + EFFECT_TIME_MAX + LEASE_RESERVE);
        let until_ms = self.table.clock.now_ms() + lease_ms;
        let Lease::Taken(standing) = self.table.take(name, until_ms).await? else {
            return Ok(RanLanes { ended: Ended::Held, ..RanLanes::default() });
        };
        let run = Run {
            lease: standing.lease,
            again: standing.again,
            replayed: standing.replayed,
            end,
            at: Cell::new(self.begin(&standing).await?),
            receipts: RefCell::default(),
            parked: RefCell::default(),
            resumed: RefCell::default(),
            effects: Cell::new(0),
            broken: Cell::new(false),
        };
        loop {
            let ended = self.round(&run).await?;
            let mut is_free = self.table.release(name, run.lease).await?;
            while !is_free && run.is_over() {
                // The next run hears the bell.
                is_free = self.table.release(name, run.lease).await?;
            }
            if is_free {
                return Ok(RanLanes {
                    ended,
                    checkpoint: run.at.get(),
                    effects: run.effects.get(),
                    waiting: run.waiting(),
                    parked: run.parked.borrow().len() - run.waiting(),
                });
            }
        }
    }

    /// What there is to say if there is nothing to do: no new event, and no lane whose time has come. It needs no lease.
    async fn idle(&self, standing: &ReactorStanding) -> Result<Option<RanLanes>, ReactorError> {
        let Some(checkpoint) = standing.checkpoint else { return Ok(None) };
        if self.index.read(checkpoint, Until::Present).try_next().await?.is_some() {
            return Ok(None);
        }
        let lanes = self.table.parked(self.handler.name()).await?;
        let waiting = lanes.iter().filter(|lane| lane.next_ms.is_some()).count();
        let parked = lanes.len() - waiting;
        let has_due = lanes.iter().any(|lane| self.is_due(lane));
        let idle = RanLanes { checkpoint, waiting, parked, ..RanLanes::default() };
        Ok((!has_due).then_some(idle))
    }

    fn is_due(&self, lane: &ParkedLane) -> bool {
        lane.asked.is_some() || lane.next_ms.is_some_and(|ms| ms <= self.table.clock.now_ms())
    }

    /// Where the run begins. A reactor that has never run has its first checkpoint afterwards.
    async fn begin(&self, standing: &ReactorStanding) -> Result<Checkpoint, ReactorError> {
        if let Some(checkpoint) = standing.checkpoint {
            return Ok(checkpoint);
        }
        let first = match self.handler.starts() {
            Starts::Beginning => Checkpoint::START,
            Starts::Now => {
                let (end, overlap_ms) = (self.index.end().await?, millis(self.handler.overlap()));
                let since_ms = self.table.clock.now_ms().saturating_sub(overlap_ms);
                let recent = self.index.read_back(end);
                let recent = recent.try_take_while(|entry| {
                    ready(Ok(overlap_ms > 0 && entry.event.at >= since_ms))
                });
                let first = recent.try_fold(None, |_, entry| ready(Ok(Some(entry)))).await?;
                first.and_then(|entry| entry.checkpoint.previous()).unwrap_or(end)
            }
        };
        self.table.advance(self.handler.name(), standing.lease, first).await?;
        Ok(first)
    }

    async fn round(&self, run: &Run) -> Result<Ended, ReactorError> {
        let lanes = self.table.parked(self.handler.name()).await?;
        *run.parked.borrow_mut() =
            lanes.into_iter().map(|lane| (lane.lane.clone(), lane)).collect();
        self.catch_up(run).await?;
        let mut feed = self.index.read(run.at.get(), Until::Present);
        loop {
            if run.waiting() >= WAITING_LANES_MAX {
                return Ok(Ended::Stopped);
            }
            if run.is_over() {
                return Ok(Ended::Behind);
            }
            let batch = self.cut(&mut feed, run.at.get(), |_| true).await?;
            let undone = self.handle(run, batch.entries).await?;
            let to = undone.unwrap_or(batch.to);
            if to > run.at.get() {
                self.table.advance(self.handler.name(), run.lease, to).await?;
                run.at.set(to);
            }
            match undone {
                Some(_) => return Ok(Ended::Behind),
                None if batch.is_last => return Ok(Ended::Present),
                None => {}
            }
        }
    }

    /// Handles again the lanes whose time has come, from the event that failed up to the checkpoint.
    async fn catch_up(&self, run: &Run) -> Result<(), ReactorError> {
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
            Some(Ask::Retry) => lane.tries = 1,
            Some(Ask::Skip(why)) => {
                self.skip(run, &lane, why).await?;
                (lane.from, lane.tries) = (lane.place, 1);
            }
        }
        lane.next_ms = self.next_ms(lane.tries);
        let for_event = (asked == Some(Ask::Retry)).then_some(lane.place);
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

    /// When a lane is tried again after so many tries.
    fn next_ms(&self, tries: u32) -> Option<u64> {
        let pause = PAUSES.get(tries.checked_sub(1)? as usize)?;
        Some(self.table.clock.now_ms() + millis(*pause))
    }

    async fn park(&self, run: &Run, lane: ParkedLane) -> Result<(), ReactorError> {
        self.table.park(self.handler.name(), run.lease, &lane).await?;
        run.parked.borrow_mut().insert(lane.lane.clone(), lane);
        Ok(())
    }

    /// The next events that are handled and wanted.
    async fn cut(
        &self,
        feed: &mut BoxStream<'static, Result<Entry, FeedError>>,
        at: Checkpoint,
        wants: impl Fn(&Entry) -> bool,
    ) -> Result<Batch, ReactorError> {
        let (mut entries, mut to) = (Vec::new(), at);
        for _ in 0..BATCH_ENTRIES_MAX {
            let Some(entry) = feed.try_next().await? else {
                return Ok(Batch { entries, to, is_last: true });
            };
            to = entry.checkpoint;
            if self.handler.handles(&entry.event) && wants(&entry) {
                entries.push(entry);
            }
            if entries.len() == BATCH_EVENTS_MAX {
                break;
            }
        }
        Ok(Batch { entries, to, is_last: false })
    }

    /// Handles events, the lanes side by side. Returns where the next run has to begin if the time was over before all were
    /// done.
    async fn handle(
        &self,
        run: &Run,
        entries: Vec<Entry>,
    ) -> Result<Option<Checkpoint>, ReactorError> {
        let mut workers: Vec<Vec<(BoundaryId, Entry)>> = vec![Vec::new(); WORKERS];
        for entry in entries {
            let lane = self.handler.lane(&entry.event);
            let mut hasher = DefaultHasher::new();
            lane.as_str().hash(&mut hasher);
            let worker = hasher.finish() % WORKERS as u64;
            workers[usize::try_from(worker).unwrap_or(0)].push((lane, entry));
        }
        if self.handler.keeps_receipts() {
            self.load(run, workers.iter().flatten().map(|(lane, _)| lane)).await?;
        }
        let working = workers.iter().enumerate().map(|(worker, entries)| async move {
            for (lane, entry) in entries {
                if run.is_over() {
                    return Ok(entry.checkpoint.previous());
                }
                self.event(run, worker, lane, entry).await.inspect_err(|_| run.broken.set(true))?;
            }
            Ok(None)
        });
        let ended =
            join_all(working).await.into_iter().collect::<Result<Vec<_>, ReactorError>>()?;
        Ok(ended.into_iter().flatten().min())
    }

    /// Carries out the effects of an event that are not done, unless its lane is parked.
    async fn event(
        &self,
        run: &Run,
        worker: usize,
        lane: &BoundaryId,
        entry: &Entry,
    ) -> Result<(), ReactorError> {
        let resumed = run.resumed.borrow().get(lane).copied();
        if run.parked.borrow().contains_key(lane) && resumed.is_none() {
            return Ok(());
        }
        let mut receipt = self.receipt(run, lane);
        if receipt.done >= entry.checkpoint {
            return Ok(());
        }
        let Entry { checkpoint, event } = entry;
        if receipt.began != Some(*checkpoint) {
            receipt = Receipt { began: None, n: 0, open: false, ..receipt };
        }
        let is_asked = resumed.flatten() == Some(*checkpoint);
        let parks = self.handler.in_doubt() == InDoubt::Park;
        if receipt.open && parks && !is_asked {
            let why = format!(
                "effect {} may have happened: its run ended before it had an answer",
                receipt.n
            );
            return self.failed(run, lane, entry, Failed::Unknown(why)).await;
        }
        let planned = match self.handler.plan(event) {
            Ok(planned) => planned,
            Err(failed) => return self.failed(run, lane, entry, failed).await,
        };
        for n in receipt.n..planned {
            let under_way = Receipt { began: Some(*checkpoint), n, open: parks, ..receipt.clone() };
            if parks && self.handler.keeps_receipts() {
                receipt = self.write(run, lane, under_way.clone()).await?;
            }
            if let Err(failed) = self.effect(run, worker, entry, n).await {
                if receipt.open && !matches!(failed, Failed::Unknown(_)) {
                    self.write(run, lane, Receipt { open: false, ..receipt }).await?;
                }
                return self.failed(run, lane, entry, failed).await;
            }
            run.effects.set(run.effects.get() + 1);
            let is_last = n + 1 == planned;
            if self.handler.keeps_receipts() && (is_last || !parks) {
                let next = match is_last {
                    true => {
                        Receipt { done: *checkpoint, began: None, n: 0, open: false, ..receipt }
                    }
                    false => Receipt { n: n + 1, ..under_way },
                };
                receipt =
                    self.write(run, lane, Receipt { version: receipt.version, ..next }).await?;
            }
        }
        Ok(())
    }

    /// Carries out one effect.
    async fn effect(
        &self,
        run: &Run,
        worker: usize,
        entry: &Entry,
        n: usize,
    ) -> Result<(), Failed> {
        let is_replay = run.replayed.is_some_and(|until| entry.checkpoint <= until);
        let delivery =
            Delivery::new(self.handler.name(), &entry.event, n).replayed(run.again, is_replay);
        let carried_out = timeout(EFFECT_TIME_MAX, self.handler.carry_out(worker, delivery)).await;
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
            Failed::ForGood(cause) => (cause, true),
            Failed::Unknown(cause) => (cause, self.handler.in_doubt() == InDoubt::Park),
        };
        let Entry { checkpoint, event } = entry;
        // A try that is under way was counted when it began, if it is that of the same event.
        let before =
            run.parked.borrow().get(lane).filter(|of| of.place == *checkpoint).map(|of| of.tries);
        let tries = before.unwrap_or(1);
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
        };
        let (reactor, ParkedLane { lane: name, event, cause, .. }) = (self.handler.name(), &parked);
        match next_ms {
            None => tracing::error!(reactor, lane = %name, event, cause, tries, "parked"),
            Some(_) => tracing::warn!(reactor, lane = %name, event, cause, tries, "failed for now"),
        }
        run.resumed.borrow_mut().remove(lane);
        self.park(run, parked).await
    }

    /// Reads the receipts of lanes that this run does not know yet.
    async fn load<'l>(
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
        run.receipts.borrow_mut().extend(unknown.into_iter().zip(read));
        Ok(())
    }

    /// The receipt of a lane. One from before the reactor was sent back to do all again counts for nothing.
    fn receipt(&self, run: &Run, lane: &BoundaryId) -> Receipt {
        let receipt = run.receipts.borrow().get(lane).cloned().unwrap_or_default();
        match receipt.again < run.again {
            true => Receipt { version: receipt.version, again: run.again, ..Receipt::default() },
            false => receipt,
        }
    }

    /// Writes the receipt that follows the one that is known.
    async fn write(
        &self,
        run: &Run,
        lane: &BoundaryId,
        receipt: Receipt,
    ) -> Result<Receipt, ReactorError> {
        let receipt = Receipt { version: receipt.version + 1, lease: run.lease, ..receipt };
        self.table.write(self.handler.name(), lane, &receipt).await?;
        run.receipts.borrow_mut().insert(lane.clone(), receipt.clone());
        Ok(receipt)
    }
}

/// Consecutive events, those that are handled.
struct Batch {
    entries: Vec<Entry>,
    /// After the last entry that was read.
    to: Checkpoint,
    /// Whether the index had no more.
    is_last: bool,
}

/// The most bytes of a cause in an item.
const CAUSE_BYTES_MAX: usize = 2_048;

fn cut_off(mut cause: String) -> String {
    cause.truncate(cause.floor_char_boundary(CAUSE_BYTES_MAX));
    cause
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
