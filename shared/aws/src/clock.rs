//! Only this module reads the clock and makes random numbers, so tests can control both.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use ringfence_core::is_followed;
use tokio::time::Instant;
use uuid::Uuid;

/// The source of time for an adapter. Clones share the time that a test sets.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    fixed_ms: Option<Arc<AtomicU64>>,
    /// If set, a fixed clock runs from this moment on, with tokio's time.
    since: Option<Instant>,
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self::default()
    }

    /// A clock that stands at `ms` since the Unix epoch until [`Clock::set`] moves it.
    #[must_use]
    pub fn fixed(ms: u64) -> Self {
        Self { fixed_ms: Some(Arc::new(AtomicU64::new(ms))), since: None }
    }

    /// A clock that shows `ms` now and runs with tokio's time, which a test can pause.
    #[must_use]
    pub fn running(ms: u64) -> Self {
        Self { since: Some(monotonic()), ..Self::fixed(ms) }
    }

    /// Moves a fixed or running clock to `ms` since the epoch, back or forth. Does nothing to the machine's clock.
    pub fn set(&self, ms: u64) {
        if let Some(fixed) = &self.fixed_ms {
            fixed.store(ms.saturating_sub(self.passed_ms()), Ordering::SeqCst);
        }
    }

    fn passed_ms(&self) -> u64 {
        let passed = self.since.map_or(Duration::ZERO, |since| monotonic() - since);
        u64::try_from(passed.as_millis()).unwrap_or(u64::MAX)
    }

    /// The time of a command's cause, if the command's events must be later. If it is too far ahead of this clock, it
    /// is ignored with a warning. Both are in milliseconds since 1970.
    pub fn follow(&self, cause_ms: Option<u64>) -> Option<u64> {
        let now_ms = self.now_ms();
        let followed = cause_ms.filter(|cause_ms| is_followed(*cause_ms, now_ms));
        if cause_ms != followed {
            tracing::warn!(cause_ms, now_ms, "the cause lies too far ahead of the clock");
        }
        followed
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "the one module that may")]
    pub fn now_ms(&self) -> u64 {
        match &self.fixed_ms {
            Some(fixed) => fixed.load(Ordering::SeqCst).saturating_add(self.passed_ms()),
            // A time before 1970 counts as 0, and one after the year 584,542,016 as the greatest number.
            None => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
        }
    }

    /// A random (version 4) UUID.
    #[must_use]
    pub fn uuid(&self) -> Uuid {
        random_uuid()
    }
}

#[cfg(any(test, feature = "test-util"))]
thread_local! {
    static SEEDED: std::cell::RefCell<Option<crate::Random>> = const { std::cell::RefCell::new(None) };
}

/// From now on this thread's UUIDs and waits follow from `seed`, so a run can be repeated exactly.
#[cfg(any(test, feature = "test-util"))]
pub fn seed_thread(seed: u64) {
    SEEDED.set(Some(crate::Random::new(&[seed])));
}

#[allow(clippy::disallowed_methods, reason = "the one module that may")]
fn random_uuid() -> Uuid {
    #[cfg(any(test, feature = "test-util"))]
    if let Some((high, low)) =
        SEEDED.with_borrow_mut(|seeded| seeded.as_mut().map(|r| (r.next(), r.next())))
    {
        return uuid::Builder::from_random_bytes(
            (u128::from(high) << 64 | u128::from(low)).to_be_bytes(),
        )
        .into_uuid();
    }
    Uuid::new_v4()
}

/// The monotonic clock for deadlines.
#[allow(clippy::disallowed_methods, reason = "the one module that may")]
pub(crate) fn monotonic() -> Instant {
    Instant::now()
}

/// A random duration from zero to `most`.
pub(crate) fn jitter(most: Duration) -> Duration {
    let uuid = random_uuid();
    let random = u32::from_be_bytes([0, 1, 2, 3].map(|byte| uuid.as_bytes()[byte]));
    most.mul_f64(f64::from(random) / f64::from(u32::MAX))
}

/// The message for a text that [`ms_of_rfc3339`] can't read.
pub const TIME_WANTED: &str =
    "must be a time of RFC 3339 from 1970 to 9999, such as 2026-11-22T19:30:00Z";

/// Milliseconds since 1970 of an RFC 3339 text with any offset. The rest of the second is cut off.
#[must_use]
pub fn ms_of_rfc3339(text: &str) -> Option<u64> {
    let time = DateTime::from_str(text, Format::DateTimeWithOffset).ok()?;
    u64::try_from(time.to_millis().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_offsets_and_fractions_are_understood() {
        let ms = Some(1_719_100_800_120);
        assert_eq!(ms_of_rfc3339("2024-06-23T00:00:00.120Z"), ms);
        assert_eq!(ms_of_rfc3339("2024-06-23T02:00:00.1200009+02:00"), ms);
        assert_eq!(ms_of_rfc3339("1970-01-01T00:00:00Z"), Some(0));
        for wrong in ["yesterday", "1969-12-31T23:59:59.999Z", "10000-01-01T00:00:00Z"] {
            assert_eq!(ms_of_rfc3339(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_fixed_clock_is_shared_by_its_clones() {
        let clock = Clock::fixed(5);
        clock.clone().set(3);
        assert_eq!(clock.now_ms(), 3);
    }

    #[test]
    fn the_machines_clock_is_past_this_projects_start() {
        assert!(Clock::system().now_ms() > 1_700_000_000_000);
    }

    #[test]
    fn jitter_stays_within_its_bound_and_varies() {
        let most = Duration::from_secs(1);
        let waits: Vec<_> = (0..50).map(|_| jitter(most)).collect();
        assert!(waits.iter().all(|wait| *wait <= most));
        assert!(waits.iter().any(|wait| *wait != waits[0]));
    }
}
