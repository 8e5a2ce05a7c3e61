//! The states of streams that a warm program keeps.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use ringfence_aws::ms_of_rfc3339;
use ringfence_core::{is_followed, is_open_too_long};

use crate::{Batch, StreamName};

/// States that a warm program keeps. The least recently used state goes first.
pub struct Cache<T>(Option<Mutex<LruCache<StreamName, Cached<T>>>>);

struct Cached<T> {
    state: Arc<Loaded<T>>,
    /// The last time it was known to be the newest, by [`Clock::machine_ms`](ringfence_aws::Clock::machine_ms).
    at_ms: u64,
}

/// A state and the Tip up to which it was folded.
pub(crate) struct Loaded<T> {
    pub(crate) state: T,
    /// `None` if nothing was ever written.
    pub(crate) tip: Option<Batch>,
    /// When the state first had an opened personal value, by the same clock.
    pub(crate) opened_ms: Option<u64>,
}

impl<T> Cache<T> {
    /// Keeps nothing.
    #[must_use]
    pub fn none() -> Self {
        Self(None)
    }

    /// Keeps the states of at most this many streams.
    #[must_use]
    pub fn of(streams: NonZeroUsize) -> Self {
        Self(Some(Mutex::new(LruCache::new(streams))))
    }

    /// The state, unless it has personal values that were opened too long ago.
    pub(crate) fn get(&self, stream: &StreamName, now_ms: u64) -> Option<(Arc<Loaded<T>>, u64)> {
        let mut cache = self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        let Cached { state, at_ms } = cache.get(stream)?;
        let is_old = state.opened_ms.is_some_and(|at| is_open_too_long(at, now_ms));
        (!is_old).then(|| (state.clone(), *at_ms))
    }

    pub(crate) fn put(&self, stream: &StreamName, state: &Arc<Loaded<T>>, at_ms: u64) {
        let Some(cache) = &self.0 else { return };
        let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
        let version = |state: &Loaded<T>| state.tip.as_ref().map_or(0, |tip| tip.version);
        // A slow reader does not replace the state of a faster writer.
        let newer = |cached: &Cached<T>| version(&cached.state) > version(state);
        if !cache.peek(stream).is_some_and(newer) {
            cache.put(stream.clone(), Cached { state: state.clone(), at_ms });
        }
    }
}

impl<T> Loaded<T> {
    pub(crate) fn version(&self) -> u64 {
        self.tip.as_ref().map_or(0, |tip| tip.version)
    }

    /// The time of a decision, in milliseconds since 1970: the latest of the clock's `now_ms` and the times in the Tip.
    /// It ignores times that are too far ahead.
    pub(crate) fn newest_ms(&self, now_ms: u64) -> u64 {
        self.times().filter(|at| is_followed(*at, now_ms)).fold(now_ms, u64::max)
    }

    /// The time of the next events, in milliseconds since 1970: the latest of the clock's `now_ms`, the times in the
    /// Tip and the time of the command's cause.
    pub(crate) fn next_ms(&self, now_ms: u64, cause_ms: Option<u64>) -> u64 {
        self.times().chain(cause_ms).fold(now_ms, u64::max)
    }

    /// The times in the Tip, in milliseconds since 1970.
    fn times(&self) -> impl Iterator<Item = u64> {
        let times = self.tip.iter().flat_map(|tip| {
            let events = tip.events.iter().map(|event| &event.time);
            events.chain(tip.unfolds.iter().map(|unfold| &unfold.time))
        });
        times.filter_map(|time| ms_of_rfc3339(time))
    }

    pub(crate) fn etag(&self) -> Option<&String> {
        self.tip.as_ref()?.etag.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(version: u64) -> Arc<Loaded<u64>> {
        let stream = StreamName::new("A", "1").expect("a name");
        let tip = Batch {
            stream,
            key: crate::batch::TIP_KEY,
            version,
            etag: None,
            calved_bytes: 0,
            appended: 0,
            events: vec![],
            unfolds: vec![],
        };
        Arc::new(Loaded { state: version, tip: Some(tip), opened_ms: None })
    }

    #[test]
    fn an_older_state_does_not_replace_a_newer_one() {
        let cache = Cache::of(NonZeroUsize::MIN);
        let stream = StreamName::new("A", "1").expect("a name");
        let known = || cache.get(&stream, 0).map(|(state, at_ms)| (state.state, at_ms));
        for (version, at_ms, expected) in
            [(2, 1, (2, 1)), (1, 2, (2, 1)), (2, 3, (2, 3)), (3, 4, (3, 4))]
        {
            cache.put(&stream, &state(version), at_ms);
            assert_eq!(known(), Some(expected), "version {version}");
        }
    }
}
