//! What a table's readers remember of versions without an event.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard};

use lru::LruCache;

use crate::AggregateKey;

/// How many gaps a table remembers; the one met least recently is forgotten first.
const GAPS_MAX: NonZeroUsize = NonZeroUsize::new(4_096).expect("not zero");

/// Gaps in which no event is: later reads do not look for what an earlier one has looked for.
#[derive(Clone, Debug)]
pub(crate) struct Gaps(Arc<Mutex<LruCache<Gap, ()>>>);

/// An aggregate, the first version that is missing, and the first one after the gap.
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
