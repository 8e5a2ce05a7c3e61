//! When events are recorded (rule 4): which times a writer follows.

use std::collections::BTreeMap;

use crate::{BoundaryId, FenceEffect, Seen, Target};

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

/// The earliest time of an append's first event, by the writer's clock, by what was seen, by the cause and by the
/// writer's own last event ([`own_ms`]). It is later than the last event seen of each boundary that the append writes
/// to, and than those of all other boundaries, the cause and the own one, if these are followed. In milliseconds since
/// 1970.
#[must_use]
pub fn earliest_ms(
    now_ms: u64,
    own_ms: u64,
    cause_ms: Option<u64>,
    seen: Option<&Seen>,
    targets: &BTreeMap<BoundaryId, Target>,
    fences: &BTreeMap<BoundaryId, FenceEffect>,
) -> u64 {
    let is_written = |boundary: &BoundaryId| {
        targets.contains_key(boundary)
            || fences.get(boundary).is_some_and(|fence| !fence.adds.is_empty())
    };
    let lasts = seen.into_iter().flat_map(Seen::lasts);
    let lasts = lasts.filter(|(id, at)| is_followed(*at, now_ms) || is_written(id));
    let led = cause_ms.into_iter().chain([own_ms]);
    let led = led.filter(|at| is_followed(*at, now_ms));
    let after = lasts.map(|(_, at)| at).chain(led).max().map_or(0, |at| at.saturating_add(1));
    now_ms.max(after)
}
