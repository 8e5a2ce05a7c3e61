//! Tokens for retries. A store that refuses most requests gets few of them again.
//!
//! The standard mode of the AWS SDKs has the same numbers
//! (<https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html>, `TokenBucket` of
//! `aws-smithy-runtime`). There a success gives back what its own retry took, and one token if it was no retry. Here an
//! attempt does not know whether it is a retry, so each success gives back one retry. So in the long run there are at
//! most as many retries as successes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{Failure, Reason};

const TOKENS_MAX: u32 = 500;
/// For a retry after a request was throttled.
const THROTTLED: u32 = 5;
/// For a retry after a request without an answer, or with an answer of 5xx.
const UNKNOWN: u32 = 10;

/// The tokens that a client has for the requests of one table. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Tokens(Arc<AtomicU32>);

impl Default for Tokens {
    fn default() -> Self {
        Self(Arc::new(AtomicU32::new(TOKENS_MAX)))
    }
}

impl Tokens {
    /// A request succeeded.
    pub(crate) fn give(&self) {
        self.change(|left| Some(left.saturating_add(THROTTLED).min(TOKENS_MAX)));
    }

    /// Takes the tokens for another attempt after this failure. If too few are left, the failure is the last one.
    pub(crate) fn take(&self, failure: Failure) -> Failure {
        let cost = match &failure {
            Failure::Throttled { .. } => THROTTLED,
            Failure::Unknown { .. } => UNKNOWN,
            Failure::Cancelled(reasons)
                if failure.is_transient() && reasons.contains(&Reason::Throttled) =>
            {
                THROTTLED
            }
            _ => return failure,
        };
        match self.change(|left| left.checked_sub(cost)) {
            true => failure,
            false => Failure::Last(Box::new(failure)),
        }
    }

    fn change(&self, change: impl Fn(u32) -> Option<u32>) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change).is_ok()
    }
}
