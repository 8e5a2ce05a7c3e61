//! What a process remembers from one run of all views to the next, so that it need not read it again.
//!
//! It is a hint. A run that goes on from it is as a run that has read this long ago and has stood still since then:
//! each put, each transaction and the move of the views that go together have conditions, which refuse it if others
//! have gone on. Then it reads again. It reads a view's own checkpoint again after a minute: only that says whether the
//! generation is still served, and a row that is put later stays until the next rebuild.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ringfence_aws::Clock;
use ringfence_feed::{Checkpoint, Checkpoints, FeedError, Together, Until};

/// For how many milliseconds an own checkpoint is known.
const KNOWN_MS_MAX: u64 = 60_000;
/// At most so many milliseconds pass between two lines with metrics while all is well.
const MEASURED_MS_MAX: u64 = 5 * 60_000;

/// The memory of a process.
#[derive(Debug, Default)]
pub(crate) struct Warm(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    group: Option<Remembered>,
    measured_ms: u64,
}

/// The views that move together, if those are all, and own checkpoints by readers.
pub(crate) type Remembered = (Together, BTreeMap<String, Own>);

/// The own checkpoint of a view.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    pub(crate) checkpoint: Option<Checkpoint>,
    /// When that was known, in milliseconds by the machine's clock.
    pub(crate) from_ms: u64,
}

impl Own {
    /// The own checkpoint of a reader: the one that is known, for a minute.
    pub(crate) async fn of(
        reader: &str,
        known: Option<Self>,
        checkpoints: &Checkpoints,
        clock: &Clock,
    ) -> Result<Self, FeedError> {
        let from_ms = clock.machine_ms();
        match known {
            Some(own) if from_ms < own.from_ms + KNOWN_MS_MAX => Ok(own),
            _ => Ok(Self { checkpoint: checkpoints.load(reader).await?, from_ms }),
        }
    }
}

impl Warm {
    fn with<T>(&self, of: impl FnOnce(&mut Memory) -> T) -> T {
        of(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the last run has read all that a notification asks for. A run that ends well ends between two pages.
    pub(crate) fn has_read(&self, until: Until) -> bool {
        self.with(|memory| match (until, &memory.group) {
            (Until::Past(page), Some((found, _))) => page < found.checkpoint,
            _ => false,
        })
    }

    /// What the last run has left. It is forgotten until a run that ends well leaves it again.
    pub(crate) fn take(&self) -> Option<Remembered> {
        self.with(|memory| memory.group.take())
    }

    pub(crate) fn keep(&self, group: Remembered) {
        self.with(|memory| memory.group = Some(group));
    }

    /// Whether a line is to have metrics, also if all is well: an alarm ends by them.
    pub(crate) fn is_to_be_measured(&self, now_ms: u64, is_well: bool) -> bool {
        self.with(|memory| {
            let measures = !is_well || now_ms >= memory.measured_ms + MEASURED_MS_MAX;
            if measures {
                memory.measured_ms = now_ms;
            }
            measures
        })
    }
}
