//! The times of events (rule 4), and which times a writer follows.

/// A writer follows a time only if it is at most this far ahead of its clock, unless the order of a boundary requires
/// it. Otherwise one event of a wrong clock would carry every boundary whose writers have read it into the future. In
/// milliseconds.
pub const AHEAD_MAX_MS: u64 = 60_000;

/// Whether a writer with the clock `now_ms` follows this time. Both are in milliseconds since 1970.
#[must_use]
pub fn is_followed(at_ms: u64, now_ms: u64) -> bool {
    at_ms <= now_ms.saturating_add(AHEAD_MAX_MS)
}

/// The time of a writer's last event, after an event at this time. A time that is not followed is not remembered,
/// because the writer's events elsewhere would be ahead as well. In milliseconds since 1970.
#[must_use]
pub fn own_ms(last_ms: u64, at_ms: u64, now_ms: u64) -> u64 {
    if is_followed(at_ms, now_ms) { last_ms.max(at_ms) } else { last_ms }
}
