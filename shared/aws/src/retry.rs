//! Sends a request until its outcome is known, with exponential backoff and full jitter, within limits of attempts and
//! time, and as long as the client has tokens for retries.

use std::borrow::BorrowMut;
use std::time::Duration;

use ringfence_core::{Envelope, StoreError};
use tokio::time::Instant;

use crate::clock::{jitter, monotonic};
use crate::error::Source;
use crate::{Clock, Failure, Reason};

mod tokens;

pub(crate) use tokens::Tokens;

/// A request is sent this often, with the first time, unless the caller sets another number.
pub const ATTEMPTS_MAX: u32 = 8;
/// The longest wait before the second attempt. It doubles for each further one.
const WAIT_FIRST: Duration = Duration::from_millis(25);
/// The longest wait of all.
const WAIT_MAX: Duration = Duration::from_millis(1_600);
/// Tokio's timer counts whole milliseconds, so a wait can end one later.
const WAKE_MAX: Duration = Duration::from_millis(1);

/// Limits of attempts and time.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    attempts_max: u32,
    wait_max: Duration,
    deadline: Option<Instant>,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts_max: ATTEMPTS_MAX, wait_max: WAIT_MAX, deadline: None }
    }
}

impl Retry {
    /// The default, but only until the deadline of a command.
    #[must_use]
    pub fn of(envelope: &Envelope, clock: &Clock) -> Self {
        let retry = Self::default();
        match envelope.deadline_ms {
            None => retry,
            Some(deadline_ms) => {
                let left_ms = deadline_ms.saturating_sub(clock.machine_ms());
                retry.within(Duration::from_millis(left_ms))
            }
        }
    }

    /// The same limits with at most `attempts` attempts, at least one.
    #[must_use]
    pub fn attempts_max(self, attempts: u32) -> Self {
        Self { attempts_max: attempts.max(1), ..self }
    }

    /// The same limits with waits of at most `wait`, for a thing that others end soon.
    #[must_use]
    pub fn wait_max(self, wait: Duration) -> Self {
        Self { wait_max: wait, ..self }
    }

    /// The same limits, and every wait and every attempt ends `within` from now.
    #[must_use]
    pub fn within(self, within: Duration) -> Self {
        Self { deadline: monotonic().checked_add(within), ..self }
    }

    /// The time until the deadline, if there is one.
    #[must_use]
    pub fn left(self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(monotonic()))
    }

    /// Starts counting, with the first attempt under way.
    #[must_use]
    pub fn start(self) -> Attempts {
        Attempts { retry: self, made: 1 }
    }

    /// Waits before attempt `attempt` + 1, with full jitter. Returns false at once if the wait would end after the
    /// deadline.
    pub async fn pause(self, attempt: u32) -> bool {
        let doubled = WAIT_FIRST.saturating_mul(1 << attempt.saturating_sub(1).min(10));
        let wait = jitter(doubled.min(self.wait_max));
        if self.deadline.is_some_and(|deadline| monotonic() + wait + WAKE_MAX >= deadline) {
            return false;
        }
        tokio::time::sleep(wait).await;
        true
    }

    /// Sends one request until its outcome is known: it repeats the identical request as long as its failure is
    /// transient. A write that is refused in the end may still have taken effect, by an earlier attempt whose answer
    /// was lost. [`GaveUp::unknown`] says so.
    ///
    /// # Errors
    /// The first failure that is not transient, or the last one.
    pub fn run<T, F>(self, send: impl FnMut() -> F) -> impl Future<Output = Result<T, GaveUp>>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        until_known(self.start(), send)
    }

    /// Starts the sends of one write. They count as one, however often it is judged.
    #[must_use]
    pub fn write(self) -> Sends {
        Sends { attempts: self.start(), lost: None }
    }
}

/// One write, which is sent until it is known what became of it.
#[derive(Debug)]
pub struct Sends {
    attempts: Attempts,
    /// The last send that nobody answered.
    lost: Option<Source>,
}

impl Sends {
    /// Whether an earlier send may have taken effect, or may still do so.
    #[must_use]
    pub fn is_unsettled(&self) -> bool {
        self.lost.is_some()
    }

    /// Sends the write as [`Retry::run`], and once more where a refusal does not judge an earlier send whose answer was
    /// lost. `judge` says what a failed send means, and gets whether there was such an earlier send.
    ///
    /// # Errors
    /// That of `judge`, or the failure of the `operation` ([`GaveUp::writing`]).
    pub async fn judged<V, F, E: From<StoreError>>(
        &mut self,
        operation: &'static str,
        mut send: impl FnMut() -> F,
        judge: impl Fn(Failure, bool) -> Result<Judged<V>, E>,
    ) -> Result<V, E>
    where
        F: Future<Output = Result<V, Failure>>,
    {
        loop {
            let gave_up = match self.attempts.run(&mut send).await {
                Ok(committed) => return Ok(committed),
                Err(gave_up) => gave_up,
            };
            self.lost = gave_up.unknown.or(self.lost.take());
            let failure = match judge(gave_up.failure, self.is_unsettled())? {
                Judged::Known(verdict) => return Ok(verdict),
                Judged::Held(_) if self.attempts.again().await => continue,
                Judged::Held(failure) | Judged::Failed(failure) => failure,
            };
            return Err(self.gave_up(failure).writing(operation).into());
        }
    }

    /// Waits, before the write is sent again although it was judged.
    ///
    /// # Errors
    /// No attempt is left.
    pub async fn again(&mut self, operation: &'static str) -> Result<(), StoreError> {
        match self.attempts.again().await {
            true => Ok(()),
            false => {
                let failure = Failure::Cancelled(vec![Reason::Conflict]);
                Err(self.gave_up(failure).writing(operation))
            }
        }
    }

    fn gave_up(&mut self, failure: Failure) -> GaveUp {
        GaveUp { failure, attempts: self.attempts.made, unknown: self.lost.take() }
    }
}

/// What a failed send says about a write.
#[derive(Debug)]
pub enum Judged<V> {
    /// What became of the write.
    Known(V),
    /// Others held items of the write, so an earlier send of it was not judged. It is sent again.
    Held(Failure),
    /// Nothing else is known than the failure itself.
    Failed(Failure),
}

/// One future for both `run`s, so futures of callers nest less deep.
async fn until_known<T, F>(
    mut attempts: impl BorrowMut<Attempts>,
    mut send: impl FnMut() -> F,
) -> Result<T, GaveUp>
where
    F: Future<Output = Result<T, Failure>>,
{
    let attempts = attempts.borrow_mut();
    let mut unknown = None;
    loop {
        // At the deadline an attempt is given up. It may have taken effect.
        let sent = match attempts.retry.deadline {
            None => send().await,
            Some(deadline) => tokio::time::timeout_at(deadline, send())
                .await
                .unwrap_or_else(|late| Err(Failure::Unknown { source: late.into() })),
        };
        let (failure, is_last) = match sent {
            Ok(answer) => return Ok(answer),
            Err(Failure::Last(failure)) => (*failure, true),
            Err(failure) => (failure, false),
        };
        if is_last || !failure.is_transient() || !attempts.again().await {
            return Err(GaveUp { failure, attempts: attempts.made, unknown });
        }
        if let Failure::Unknown { source } = failure {
            unknown = Some(source);
        }
    }
}

/// A request that failed for good, or too often.
#[derive(Debug, thiserror::Error)]
#[error("gave up after {attempts} attempts")]
pub struct GaveUp {
    /// The last failure.
    #[source]
    pub failure: Failure,
    /// The number of attempts.
    pub attempts: u32,
    /// The SDK's error of the last earlier attempt with an unknown outcome. If there was such an attempt, the request
    /// may have taken effect, whatever the failure says.
    pub unknown: Option<Source>,
}

impl GaveUp {
    /// The error for a request without an effect if it fails.
    #[must_use]
    pub fn during(self, operation: &'static str) -> StoreError {
        let Self { failure, attempts, .. } = self;
        match failure {
            failure if failure.is_contention() => StoreError::Contention { attempts, over: None },
            Failure::Throttled { .. } => StoreError::Throttled { attempts },
            Failure::Cancelled(_) if failure.is_transient() => StoreError::Throttled { attempts },
            Failure::Unknown { .. } => {
                StoreError::Unavailable { operation, attempts, source: failure.into() }
            }
            failure => StoreError::Failed { operation, source: failure.into() },
        }
    }

    /// The error for a write whose failure does not show whether it took effect. If one attempt may have taken effect,
    /// no later failure counts as the outcome.
    #[must_use]
    pub fn writing(self, operation: &'static str) -> StoreError {
        let (source, attempts) = match self {
            Self { failure: Failure::Unknown { source }, attempts, .. }
            | Self { unknown: Some(source), attempts, .. } => (source, attempts),
            gave_up => return gave_up.during(operation),
        };
        StoreError::OutcomeUnknown { attempts, source: Failure::Unknown { source }.into() }
    }
}

/// The attempts of one request.
#[derive(Clone, Copy, Debug)]
pub struct Attempts {
    retry: Retry,
    made: u32,
}

impl Attempts {
    /// The number of attempts, with the one under way.
    #[must_use]
    pub fn made(&self) -> u32 {
        self.made
    }

    /// Does the same as [`Retry::run`], with the remaining attempts.
    ///
    /// # Errors
    /// As [`Retry::run`].
    pub fn run<T, F>(&mut self, send: impl FnMut() -> F) -> impl Future<Output = Result<T, GaveUp>>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        until_known(self, send)
    }

    /// Waits, then counts another attempt. Returns false at once if none is left.
    pub async fn again(&mut self) -> bool {
        let again = self.made < self.retry.attempts_max && self.retry.pause(self.made).await;
        self.made += u32::from(again);
        again
    }

    /// As [`Attempts::again`], after others were first.
    ///
    /// # Errors
    /// [`StoreError::Contention`] over their change if no attempt is left.
    pub async fn contend(&mut self, over: Option<Source>) -> Result<(), StoreError> {
        match self.again().await {
            true => Ok(()),
            false => Err(StoreError::Contention { attempts: self.made, over }),
        }
    }
}

#[cfg(test)]
mod tests;
