//! The lease of a claim: how long an edge stays with a silent holder.
//!
//! Decisions and views follow the events of an edge by these rules. All times are in milliseconds since 1970, and are
//! times of events. A lease is over when a reader's clock says so.

use crate::{EdgeEvent, Otherwise};

/// How much later than its end a lease counts as over, in milliseconds: the clocks of writers differ.
pub const GRACE_MS: u64 = 5_000;
/// How long a lease stands still while a person has to look, in milliseconds.
pub const REVIEW_MS: u64 = 7 * 24 * 3_600_000;

/// The lease of an edge's latest claim.
#[ringfence::value]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

    /// Follows an event of the edge.
    pub fn follow(&mut self, event: &EdgeEvent) {
        match event {
            EdgeEvent::EdgeStarted { lease_ms, at_ms, .. } => {
                self.lease_ms = *lease_ms;
                self.hear(*at_ms);
            }
            EdgeEvent::ReviewRequested { at_ms, .. }
            | EdgeEvent::ConvergenceEscalated { action: Otherwise::Escalate, at_ms, .. } => {
                self.suspend(*at_ms);
            }
            EdgeEvent::ClaimRenewed { at_ms, .. }
            | EdgeEvent::IterationCompleted { at_ms, .. }
            | EdgeEvent::ConvergenceEscalated { at_ms, .. }
            | EdgeEvent::SpawnCreated { at_ms, .. } => self.hear(*at_ms),
            EdgeEvent::ReviewCompleted { at_ms, .. } => self.resume(*at_ms),
            EdgeEvent::EdgeReleased { .. } => (self.lease_ms, self.lease_until_ms) = (None, None),
            EdgeEvent::EdgeConverged { .. } | EdgeEvent::EdgeReopened { .. } => *self = Self::NEW,
            EdgeEvent::ClaimExpired { .. }
            | EdgeEvent::EdgeStuck { .. }
            | EdgeEvent::SpawnFoldedBack { .. } => {}
        }
    }

    /// The holder has the whole lease again, from this time on, or from when it no longer stands still.
    fn hear(&mut self, at_ms: u64) {
        let from_ms = self.suspended_until_ms.map_or(at_ms, |until_ms| until_ms.max(at_ms));
        self.lease_until_ms = self.lease_ms.map(|lease_ms| from_ms.saturating_add(lease_ms));
    }

    fn suspend(&mut self, at_ms: u64) {
        self.suspended_until_ms = Some(at_ms.saturating_add(REVIEW_MS));
        self.hear(at_ms);
    }

    /// The lease runs again. The holder has the whole of it from now on, but not longer than before.
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

    /// Whether it stands still, because a person has to look. Without a claim too, it stands still until the person
    /// has looked.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.suspended_until_ms.is_some()
    }
}

#[test]
fn a_lease_that_stood_still_for_a_week_starts_again_with_each_event() {
    use ringfence::view::kit::sequenced;
    use ringfence::{Catalogs, NewEvent, Reads};

    use crate::LEASE_MS;
    use crate::facts::{renewed, review_requested, reviewed, started};

    fn follow(lease: &mut Lease, event: impl Into<NewEvent>, at_ms: u64) {
        let current = Catalogs::default().current(sequenced(0, at_ms, event.into()));
        let event = EdgeEvent::decode(&current.expect("a first version"));
        lease.follow(&event.expect("an event of an edge"));
    }
    let mut lease = Lease::NEW;
    follow(&mut lease, started("ada", "c1", 1), 1_000);
    assert_eq!(lease.until_ms(), Some(1_000 + LEASE_MS));
    follow(&mut lease, review_requested(1), 2_000);
    let until_ms = 2_000 + REVIEW_MS;
    assert_eq!(lease.until_ms(), Some(until_ms + LEASE_MS));
    for (at_ms, from_ms) in [(3_000, until_ms), (until_ms + 3_000, until_ms + 3_000)] {
        follow(&mut lease, renewed("ada", "c1"), at_ms);
        assert_eq!(lease.until_ms(), Some(from_ms + LEASE_MS), "renewed at {at_ms}");
    }
    // A person has looked late, which gives no more time.
    follow(&mut lease, reviewed(1), until_ms + 4_000);
    assert_eq!(lease.until_ms(), Some(until_ms + 3_000 + LEASE_MS));
    assert!(!lease.is_suspended());
}
