//! The data of a run of a reactor.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use ringfence_core::BoundaryId;
use ringfence_feed::{Checkpoint, Index};
use tokio::time::{Instant, sleep};

use crate::error::ReactorError;
use crate::handler::Handler;
use crate::item::{ParkedLane, Receipt};
use crate::table::{Lease, ReactorTable};

/// Lanes that are handled side by side.
pub(crate) const LANES_AT_ONCE: usize = 64;
/// The most events of a batch, after which the checkpoint moves.
pub const BATCH_EVENTS_MAX: usize = 100;
/// The most batches that are read and not passed.
pub(crate) const BATCHES_MAX: usize = 10;
/// The most bytes of memory for the events of a batch. No other batch is read while open batches hold as many.
pub(crate) const BATCH_HELD_BYTES_MAX: usize = 8_000_000;
/// The longest time of an effect. After that it may have happened or not.
pub const EFFECT_TIME_MAX: Duration = Duration::from_secs(15);
/// The pauses before an event is tried again. After the last try the lane is parked until a person asks.
pub const PAUSES: [Duration; 4] = [
    Duration::from_secs(5),
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
];
/// If so many lanes wait for their next try, the receiver must be down, and new events stay in the index.
pub const WAITING_LANES_MAX: usize = 100;

/// A reactor with its index and the table of its items.
pub struct Lanes<H> {
    /// Handles the events.
    pub handler: H,
    /// The source of the events.
    pub index: Index,
    /// Its items.
    pub table: ReactorTable,
}

/// The result of a run.
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
pub(crate) struct Run {
    pub(crate) lease: Lease,
    pub(crate) again: u32,
    pub(crate) end: Instant,
    /// No effect begins later: the end of the run, or of the share of new events.
    pub(crate) until: Cell<Instant>,
    pub(crate) at: Cell<Checkpoint>,
    pub(crate) receipts: RefCell<HashMap<BoundaryId, Receipt>>,
    pub(crate) parked: RefCell<BTreeMap<BoundaryId, ParkedLane>>,
    /// Parked lanes that are handled again.
    pub(crate) resumed: RefCell<BTreeSet<BoundaryId>>,
    /// Whether one event is handled at a time, and noted before, because the last run did not end normally.
    pub(crate) careful: Cell<usize>,
    /// After the event that the last run was handling when it ended, if that run was careful.
    pub(crate) deadly: Cell<Option<Checkpoint>>,
    pub(crate) effects: Cell<u64>,
    /// How many events have failed for now.
    pub(crate) failures: Cell<usize>,
    /// A request has failed, so nothing more begins.
    pub(crate) broken: Cell<bool>,
}

impl Run {
    pub(crate) fn is_over(&self) -> bool {
        self.broken.get() || now() >= self.until.get()
    }

    /// A receipt as this run writes it, after the one that is known.
    pub(crate) fn next(&self, receipt: Receipt) -> Receipt {
        Receipt { version: receipt.version + 1, lease: self.lease.number(), ..receipt }
    }

    /// New events have half of the time that is left.
    pub(crate) fn share(&self) {
        let now = now();
        self.until.set(now + self.end.saturating_duration_since(now) / 2);
    }

    /// Lanes whose event has failed and is tried again later. A lane that catches up does not count. Nor does one whose
    /// event lies after the checkpoint: it would wait for ever if the checkpoint did not move.
    pub(crate) fn waiting(&self) -> usize {
        let waits = |lane: &&ParkedLane| {
            let is_tried_again = lane.next_ms.is_some() && lane.asked.is_none();
            is_tried_again && lane.from < lane.place && lane.place <= self.at.get()
        };
        self.parked.borrow().values().filter(waits).count()
    }

    /// Lanes that wait for a person.
    pub(crate) fn parked(&self) -> usize {
        self.parked.borrow().values().filter(|lane| lane.next_ms.is_none()).count()
    }
}

fn now() -> Instant {
    sleep(Duration::ZERO).deadline()
}

impl<H: Handler> Lanes<H> {
    pub(crate) fn is_due(&self, lane: &ParkedLane) -> bool {
        lane.asked.is_some() || lane.next_ms.is_some_and(|ms| ms <= self.table.clock.now_ms())
    }

    /// When a lane is tried again after so many tries.
    pub(crate) fn next_ms(&self, tries: u32) -> Option<u64> {
        let pause = PAUSES.get(tries.checked_sub(1)? as usize)?;
        Some(self.table.clock.now_ms() + millis(*pause))
    }

    /// Notes that a lane waits or is parked. An earlier request of a person is done, and not noted again.
    pub(crate) async fn park(&self, run: &Run, lane: ParkedLane) -> Result<(), ReactorError> {
        let was = run.parked.borrow().get(&lane.lane).cloned();
        let lane = self.table.park(self.handler.name(), &run.lease, lane, was).await?;
        run.parked.borrow_mut().insert(lane.lane.clone(), lane);
        Ok(())
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
