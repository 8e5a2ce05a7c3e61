//! The result of a look, which pages share for a while.

use std::sync::Arc;

use ringfence_aws::Clock;

/// What the last look found, and when it ended, in milliseconds since 1970.
pub(crate) struct LastLook<T> {
    end_ms: u64,
    found: Arc<T>,
}

impl<T> LastLook<T> {
    /// A look that ends now.
    pub(crate) fn new(found: Arc<T>) -> Self {
        Self { end_ms: Clock::system().now_ms(), found }
    }

    /// What it found, if it ended less than this time ago.
    pub(crate) fn within(&self, kept_ms: u64) -> Option<Arc<T>> {
        self.at(Clock::system().now_ms(), kept_ms)
    }

    /// The clock may have been set back since.
    fn at(&self, now_ms: u64, kept_ms: u64) -> Option<Arc<T>> {
        (now_ms.abs_diff(self.end_ms) < kept_ms).then(|| self.found.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_shown_until_its_time_is_over() {
        let look = LastLook { end_ms: 100, found: Arc::new(()) };
        for (now_ms, is_shown) in [(90, false), (91, true), (109, true), (110, false)] {
            assert_eq!(look.at(now_ms, 10).is_some(), is_shown, "{now_ms}");
        }
    }
}
