//! Remembers the versions of a table that have no event.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard};

use lru::LruCache;

use crate::AggregateKey;

/// The number of gaps that a table remembers. It forgets the least recently used gap first.
const GAPS_MAX: NonZeroUsize = NonZeroUsize::new(4_096).expect("not zero");

/// Gaps without events. Later reads do not look at them again.
#[derive(Clone, Debug)]
pub(crate) struct Gaps(Arc<Mutex<LruCache<Gap, ()>>>);

/// An aggregate, the first missing version, and the first version after the gap.
pub(crate) type Gap = (AggregateKey, u64, u64);

impl Gaps {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(LruCache::new(GAPS_MAX))))
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<Gap, ()>> {
        self.0.lock().expect("no code panics while it holds the lock")
    }

    pub(crate) fn has(&self, gap: &Gap) -> bool {
        self.lock().get(gap).is_some()
    }

    pub(crate) fn remember(&self, gap: Gap) {
        self.lock().put(gap, ());
    }
}
