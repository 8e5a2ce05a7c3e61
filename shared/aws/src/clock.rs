//! Only this module reads the clock and makes random numbers, so tests can control both.
//!
//! The machine's clock may be wrong; all machines see the store's. So the `Date` of each answer of DynamoDB corrects
//! the clock. A `Date` is cut to a second; within that second the machine's own clock counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use ringfence_core::is_followed;
use tokio::time::Instant;
use uuid::Uuid;

/// How far the store's clock is ahead of this machine's. A process has one, because a machine has one clock.
static OF_THIS_MACHINE: Ahead = Ahead::new();

/// The source of time for an adapter. Clones share the time that a test sets.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    fixed_ms: Option<Arc<AtomicU64>>,
    /// If set, a fixed clock runs from this moment on, with tokio's time.
    since: Option<Instant>,
    /// If set, this fixed clock is the clock of a machine in a test.
    made_up: Option<Arc<Ahead>>,
}

impl Clock {
    /// The machine's clock, corrected by DynamoDB's answers.
    #[must_use]
    pub fn system() -> Self {
        Self::default()
    }

    /// A clock that stands at `ms` since the Unix epoch until [`Clock::set`] moves it.
    #[must_use]
    pub fn fixed(ms: u64) -> Self {
        Self { fixed_ms: Some(Arc::new(AtomicU64::new(ms))), ..Self::default() }
    }

    /// A clock that shows `ms` now and runs with tokio's time, which a test can pause.
    #[must_use]
    pub fn running(ms: u64) -> Self {
        Self { since: Some(monotonic()), ..Self::fixed(ms) }
    }

    /// This clock as the clock of a machine in a test: answers correct it, as they correct the real machine's.
    #[cfg(any(test, feature = "test-util"))]
    #[must_use]
    pub fn of_machine(self) -> Self {
        Self { made_up: Some(Arc::default()), ..self }
    }

    /// The clock that times requests, and that answers correct. A clock that a test or an import has set says nothing
    /// about the machine that sends the requests.
    pub(crate) fn of_requests(&self) -> Self {
        match self.ahead() {
            Some(_) => self.clone(),
            None => Self::system(),
        }
    }

    fn ahead(&self) -> Option<&Ahead> {
        match &self.fixed_ms {
            Some(_) => self.made_up.as_deref(),
            None => Some(&OF_THIS_MACHINE),
        }
    }

    /// Takes the store's time from an answer. The request was sent at `sent_ms` by [`Clock::machine_ms`].
    pub(crate) fn hear(&self, sent_ms: u64, answer: &HttpResponse) {
        let date = answer.headers().get("date");
        let date = date.and_then(|date| DateTime::from_str(date, Format::HttpDate).ok());
        if let Some((ahead, date)) = self.ahead().zip(date) {
            ahead.hear(sent_ms, self.machine_ms(), date.secs());
        }
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
    pub fn now_ms(&self) -> u64 {
        let ahead_ms = self.ahead().map_or(0, Ahead::ms);
        self.machine_ms().saturating_add_signed(ahead_ms)
    }

    /// The time by the machine's clock alone, in milliseconds since the Unix epoch. Deadlines of work are in this time:
    /// Lambda sets them by the machine's clock, and an answer that sets [`Clock::now_ms`] right must not move them.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "the one module that may")]
    pub fn machine_ms(&self) -> u64 {
        match &self.fixed_ms {
            Some(fixed) => fixed.load(Ordering::SeqCst).saturating_add(self.passed_ms()),
            // A time before 1970 counts as 0, and one after the year 584,542,016 as the greatest number.
            None => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
        }
    }

    /// A piece of work begins.
    #[must_use]
    pub fn begin(&self) -> Began {
        Began { at_ms: self.now_ms(), machine_ms: self.machine_ms() }
    }

    /// A random (version 4) UUID.
    #[must_use]
    pub fn uuid(&self) -> Uuid {
        random_uuid()
    }
}

/// When a piece of work began. An answer that corrects the clock in between does not change how long it lasts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Began {
    /// In milliseconds since the Unix epoch.
    pub at_ms: u64,
    machine_ms: u64,
}

impl Began {
    /// How long the work has lasted, in milliseconds.
    #[must_use]
    pub fn lasted_ms(&self, clock: &Clock) -> u64 {
        clock.machine_ms().saturating_sub(self.machine_ms)
    }
}

/// How far the store's clock is ahead of a machine's, in milliseconds; less than 0 if it is behind.
#[derive(Debug, Default)]
struct Ahead(AtomicI64);

impl Ahead {
    const fn new() -> Self {
        Self(AtomicI64::new(0))
    }

    fn ms(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Moves by the least that makes an answer fit. The store wrote its `Date`, cut to a second, after the request was
    /// sent and before its answer was received. If a function was frozen in between, these times are far apart, and the
    /// answer says little. If the machine's clock was set back in between, it says nothing.
    fn hear(&self, sent_ms: u64, received_ms: u64, date_s: i64) {
        let since = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
        let date_ms = date_s.saturating_mul(1_000);
        let least = date_ms.saturating_sub(since(received_ms));
        let most = date_ms.saturating_add(999).saturating_sub(since(sent_ms));
        let known = self.ms();
        if least <= most && !(least..=most).contains(&known) {
            self.0.store(known.clamp(least, most), Ordering::Relaxed);
        }
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
    use ringfence_core::Envelope;

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

    /// Hears answers of a store that is this far ahead, each with the times of its way there and back. Returns the
    /// correction after each.
    fn heard(ahead_ms: i64, answers: impl IntoIterator<Item = (u64, u64, u64)>) -> Vec<i64> {
        let ahead = Ahead::new();
        let hear = |(sent_ms, there_ms, back_ms)| {
            let store_ms = i64::try_from(sent_ms + there_ms).unwrap() + ahead_ms;
            ahead.hear(sent_ms, sent_ms + there_ms + back_ms, store_ms.div_euclid(1_000));
            ahead.ms()
        };
        answers.into_iter().map(hear).collect()
    }

    #[test]
    fn answers_set_a_wrong_clock_right_and_leave_a_right_one_alone() {
        const DAY_MS: i64 = 86_400_000;
        let (mut random, now_ms) = (crate::Random::new(&[1]), 1_719_100_800_000);
        for _ in 0..100 {
            let mut answer =
                |n: u64| (now_ms + 700 * n + random.below(400), random.below(30), random.below(30));
            let answers: Vec<_> = (0..50).map(&mut answer).collect();
            assert_eq!(heard(0, answers.clone()), [0; 50]);
            for wrong_ms in [-DAY_MS, -3_600_000, -1_500, 1_500, 3_600_000, DAY_MS] {
                let known = heard(wrong_ms, answers.clone());
                let off: Vec<_> = known.iter().map(|known| known.abs_diff(wrong_ms)).collect();
                assert!(off[0] <= 1_060 && off.is_sorted_by(|a, b| a >= b), "{wrong_ms}: {off:?}");
                // Answers at the ends of seconds leave only the way there and back open.
                assert!(off[49] <= 300, "{wrong_ms}: {off:?}");
            }
        }
    }

    #[test]
    fn an_answer_after_a_pause_says_little_and_one_from_before_a_step_back_nothing() {
        let now_s = 1_719_100_800;
        let now_ms = 1_719_100_800_000;
        let ahead = Ahead::new();
        ahead.hear(now_ms, now_ms + 3_600_000, now_s + 1_800);
        assert_eq!(ahead.ms(), 0, "frozen for an hour");
        ahead.hear(now_ms, now_ms - 60_000, now_s);
        assert_eq!(ahead.ms(), 0, "set back by a minute");
        // The next answer sees the step. A right clock is left alone.
        ahead.hear(now_ms - 60_000, now_ms - 59_990, now_s);
        assert_eq!(ahead.ms(), 59_990);
        ahead.hear(now_ms, now_ms + 10, now_s);
        assert_eq!(ahead.ms(), 999);
        ahead.hear(now_ms + 990, now_ms + 999, now_s);
        assert_eq!(ahead.ms(), 9);
        for extreme in [i64::MIN, i64::MAX] {
            ahead.hear(0, u64::MAX, extreme);
        }
    }

    #[test]
    fn an_answer_moves_neither_deadlines_nor_durations() {
        let clock = Clock::fixed(4_993).of_machine();
        let began = clock.begin();
        clock.set(5_000);
        clock.ahead().expect("it is a machine's").hear(5_000, 5_000, 100);
        assert_eq!((clock.now_ms(), clock.machine_ms()), (100_000, 5_000));
        assert_eq!((began.at_ms, began.lasted_ms(&clock)), (4_993, 7));
        let envelope = Envelope { deadline_ms: Some(5_700), ..Envelope::default() };
        let left = crate::Retry::of(&envelope, &clock).left().expect("it has a deadline");
        assert!(left > Duration::ZERO && left <= Duration::from_millis(700), "{left:?}");
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
