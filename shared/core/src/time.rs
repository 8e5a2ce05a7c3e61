//! When events are recorded (rule 4): which times a writer follows.

/// A time further ahead of a writer's clock than this is not followed, unless the order of a boundary requires it.
/// Otherwise one event of a wrong clock would carry every boundary whose writers have read it into the future. In
/// milliseconds.
pub const AHEAD_MAX_MS: u64 = 60_000;

/// Whether a writer whose clock says `now_ms` follows this time. Both are in milliseconds since 1970.
#[must_use]
pub fn is_followed(at_ms: u64, now_ms: u64) -> bool {
    at_ms <= now_ms.saturating_add(AHEAD_MAX_MS)
}

/// The time of a writer's own last event, after one at this time: a time that is not followed is not remembered, or its
/// events elsewhere would be ahead as well. In milliseconds since 1970.
#[must_use]
pub fn own_ms(last_ms: u64, at_ms: u64, now_ms: u64) -> u64 {
    if is_followed(at_ms, now_ms) { last_ms.max(at_ms) } else { last_ms }
}
