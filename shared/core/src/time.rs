//! The times of events (rule 4), and which times a writer follows.

use std::sync::atomic::{AtomicU64, Ordering};

/// A writer follows a time only if it is at most this far ahead of its clock, unless the order of a boundary requires
/// it. Otherwise one event of a wrong clock would carry every boundary whose writers have read it into the future. In
/// milliseconds.
pub const AHEAD_MAX_MS: u64 = 60_000;

/// Whether a writer with the clock `now_ms` follows this time. Both are in milliseconds since 1970.
#[must_use]
pub fn is_followed(at_ms: u64, now_ms: u64) -> bool {
    at_ms <= now_ms.saturating_add(AHEAD_MAX_MS)
}

/// The time of a writer's own last event, in milliseconds since 1970; 0 before the first.
#[derive(Debug, Default)]
pub struct OwnTime(AtomicU64);

impl OwnTime {
    /// The time.
    #[must_use]
    pub fn ms(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Notes the time of an event of the writer that is in the log. A time that is not followed is not noted, or the
    /// writer's events elsewhere would be ahead as well.
    pub fn note(&self, at_ms: u64, now_ms: u64) {
        if is_followed(at_ms, now_ms) {
            self.0.fetch_max(at_ms, Ordering::AcqRel);
        }
    }
}
