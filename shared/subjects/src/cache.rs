//! What a warm function keeps, for a time.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use ringfence_aws::Clock;

/// Values by their names, the least used ones forgotten first.
pub(crate) struct Cache<V> {
    values: Mutex<LruCache<String, (u64, Arc<V>)>>,
    kept_ms: u64,
    clock: Clock,
}

impl<V> Cache<V> {
    /// Keeps so many values for so long.
    pub(crate) fn new(values_max: usize, kept_ms: u64, clock: Clock) -> Self {
        let values_max = NonZeroUsize::new(values_max).unwrap_or(NonZeroUsize::MIN);
        Self { values: Mutex::new(LruCache::new(values_max)), kept_ms, clock }
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<V>> {
        let now_ms = self.clock.now_ms();
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        // A clock that was set back makes no value last longer.
        let kept = |from_ms: u64| now_ms.checked_sub(from_ms).is_some_and(|age| age < self.kept_ms);
        match values.get(name) {
            Some((from_ms, value)) if kept(*from_ms) => Some(value.clone()),
            _ => {
                values.pop(name);
                None
            }
        }
    }

    /// Keeps a value that was asked for at this time, in milliseconds since 1970.
    pub(crate) fn put(&self, name: &str, asked_ms: u64, value: Arc<V>) {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.put(name.to_owned(), (asked_ms, value));
    }
}
