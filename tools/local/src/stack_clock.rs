//! The clock of a stack, which a person can set forward.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use crate::{clock::now, kept::Kept};

/// A stack's clock is at most a hundred years ahead, in milliseconds.
const AHEAD_MAX_MS: u64 = 36_500 * 24 * 3_600_000;
/// A schedule notices this much later that time has passed. So `ringfence due`, which lets it pass, sends what is due
/// before the stack does.
const NOTICED: Duration = Duration::from_secs(1);

/// The clock of a stack: the machine's, plus the time that a person has let pass. Answers from the data have its time,
/// so functions follow it.
#[derive(Clone)]
pub struct StackClock(Arc<Passed>);

struct Passed {
    ms: watch::Sender<u64>,
    kept: Option<Kept>,
}

impl StackClock {
    /// The clock of a stack, which goes on with the kept data.
    pub(crate) fn of(kept: Option<Kept>) -> Self {
        let ms = kept.as_ref().map(Kept::passed_ms).unwrap_or_default();
        Self(Arc::new(Passed { ms: watch::Sender::new(ms), kept }))
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        now() + Duration::from_millis(*self.0.ms.borrow())
    }

    /// Lets time pass at once.
    pub(crate) fn pass(&self, ms: u64) -> Result<()> {
        let passed = (*self.0.ms.borrow()).checked_add(ms).filter(|ms| *ms <= AHEAD_MAX_MS);
        let passed = passed.context("the clock of a stack is at most 36500 days ahead")?;
        self.0.ms.send_replace(passed);
        if let Some(kept) = &self.0.kept {
            kept.keep_passed(passed);
        }
        Ok(())
    }

    /// Waits until this time.
    pub(crate) async fn reach(&self, time: DateTime<Utc>) {
        let mut passed = self.0.ms.subscribe();
        loop {
            let left = (time - self.now()).to_std().unwrap_or_default();
            match timeout(left, passed.changed()).await {
                Err(_) => return,
                Ok(_) => sleep(NOTICED).await,
            }
        }
    }
}

impl Default for StackClock {
    fn default() -> Self {
        Self::of(None)
    }
}
