//! The lease of a claim: how long an edge stays with a holder who is silent.
//!
//! Decisions and views follow the events of an edge by these rules. All times are in milliseconds since 1970, and
//! all of them are times of events: a lease is over when a reader's own clock says so.

use serde::{Deserialize, Serialize};

use crate::{Fact, Otherwise};

/// How much later than its end a lease counts as over, in milliseconds: the clocks of writers differ.
pub const GRACE_MS: u64 = 5_000;
/// How long a lease stands still while a person has to look, in milliseconds.
pub const REVIEW_MS: u64 = 7 * 24 * 3_600_000;

/// The lease of an edge's latest claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lease {
    /// How long the claim lasts after its holder's latest event; absent without a claim, and if the claim has no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease_ms: Option<u64>,
    /// When it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease_until_ms: Option<u64>,
    /// Until when it stands still, because a person has to look; absent if nobody has to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    suspended_until_ms: Option<u64>,
}

impl Lease {
    /// Of an edge on which nothing has happened.
    pub(crate) const NEW: Self =
        Self { lease_ms: None, lease_until_ms: None, suspended_until_ms: None };

    /// Follows an event of the edge that was recorded at this time.
    pub fn follow(&mut self, fact: &Fact, at_ms: u64) {
        match fact {
            Fact::EdgeStarted(started) => {
                self.lease_ms = started.lease_ms;
                self.hear(at_ms);
            }
            Fact::ConvergenceEscalated(it) if it.action == Otherwise::Escalate => {
                self.suspend(at_ms);
            }
            Fact::ClaimRenewed(_)
            | Fact::IterationCompleted(_)
            | Fact::ConvergenceEscalated(_)
            | Fact::SpawnCreated(_) => self.hear(at_ms),
            Fact::ReviewRequested(_) => self.suspend(at_ms),
            Fact::ReviewCompleted(_) => self.resume(at_ms),
            Fact::EdgeReleased(_) => (self.lease_ms, self.lease_until_ms) = (None, None),
            Fact::EdgeConverged(_) | Fact::EdgeReopened(_) => *self = Self::NEW,
            _ => {}
        }
    }

    /// The holder's time begins anew, once the lease does not stand still any more.
    fn hear(&mut self, at_ms: u64) {
        let from_ms = self.suspended_until_ms.map_or(at_ms, |until_ms| until_ms.max(at_ms));
        self.lease_until_ms = self.lease_ms.map(|lease_ms| from_ms.saturating_add(lease_ms));
    }

    fn suspend(&mut self, at_ms: u64) {
        self.suspended_until_ms = Some(at_ms.saturating_add(REVIEW_MS));
        self.hear(at_ms);
    }

    /// The lease begins anew, if it did not before.
    fn resume(&mut self, at_ms: u64) {
        if self.suspended_until_ms.take().is_some() {
            let until_ms = self.lease_until_ms;
            self.hear(at_ms);
            self.lease_until_ms = self.lease_until_ms.min(until_ms);
        }
    }

    /// When it is over; `None` without a claim, and if the claim has no end.
    #[must_use]
    pub fn until_ms(&self) -> Option<u64> {
        self.lease_until_ms
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_overdue(&self, now_ms: u64) -> bool {
        self.lease_until_ms.is_some_and(|until_ms| now_ms > until_ms.saturating_add(GRACE_MS))
    }

    /// Whether less than half of it is left.
    #[must_use]
    pub fn needs_renewal(&self, now_ms: u64) -> bool {
        let left_ms = self.lease_until_ms.map(|until_ms| until_ms.saturating_sub(now_ms));
        self.lease_ms.zip(left_ms).is_some_and(|(lease_ms, left_ms)| left_ms < lease_ms.div_ceil(2))
    }

    /// Whether it stands still, because a person has to look. It is so even without a claim, until the person has
    /// looked.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.suspended_until_ms.is_some()
    }
}

#[test]
fn a_lease_that_stood_still_for_a_week_begins_anew_with_each_event() {
    use crate::LEASE_MS;
    use crate::facts::{renewed, review_requested, reviewed, started};

    let mut lease = Lease::NEW;
    lease.follow(&Fact::EdgeStarted(started("ada", "c1", 1)), 0);
    assert_eq!(lease.until_ms(), Some(LEASE_MS));
    lease.follow(&Fact::ReviewRequested(review_requested(1)), 1_000);
    let until_ms = 1_000 + REVIEW_MS;
    assert_eq!(lease.until_ms(), Some(until_ms + LEASE_MS));
    for (at_ms, from_ms) in [(2_000, until_ms), (until_ms + 3_000, until_ms + 3_000)] {
        lease.follow(&Fact::ClaimRenewed(renewed("ada", "c1")), at_ms);
        assert_eq!(lease.until_ms(), Some(from_ms + LEASE_MS), "renewed at {at_ms}");
    }
    // A person has looked late, which gives no more time.
    lease.follow(&Fact::ReviewCompleted(reviewed(1)), until_ms + 4_000);
    assert_eq!(lease.until_ms(), Some(until_ms + 3_000 + LEASE_MS));
    assert!(!lease.is_suspended());
}
