//! The holder of an edge, as rows show it.

use crate::{AgentId, ClaimId, EdgeEvent, Lease, OnExpiry};

/// The holder of an edge, and its lease.
#[ringfence::value]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Absent if the edge is free.
    #[serde(flatten)]
    pub holder: Option<Holder>,
    #[serde(flatten)]
    pub lease: Lease,
}

/// The holder of an edge. A claim that has expired is shown until another one follows or a person takes it back,
/// because in some projects it still bars others.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub agent: AgentId,
    pub claim: ClaimId,
    pub epoch: u64,
    /// Whether the end of its lease is recorded, so that the holder can't go on.
    pub expired: bool,
}

impl Holding {
    /// The holder after an event of the edge.
    #[must_use]
    pub fn and(mut self, event: &EdgeEvent) -> Self {
        self.lease.follow(event);
        match event {
            EdgeEvent::EdgeStarted { agent, claim, epoch, .. } => {
                let (agent, claim, epoch) = (agent.clone(), claim.clone(), *epoch);
                self.holder = Some(Holder { agent, claim, epoch, expired: false });
            }
            EdgeEvent::ClaimExpired { .. } => {
                self.holder = self.holder.map(|holder| Holder { expired: true, ..holder });
            }
            EdgeEvent::EdgeReleased { .. } | EdgeEvent::EdgeConverged { .. } => self.holder = None,
            _ => {}
        }
        self
    }

    /// The holder, unless the end of its lease is recorded.
    #[must_use]
    pub fn current(&self) -> Option<&Holder> {
        self.holder.as_ref().filter(|holder| !holder.expired)
    }

    /// The holder whose lease is over, if that is not recorded yet.
    #[must_use]
    pub fn overdue(&self, now_ms: u64) -> Option<&Holder> {
        self.current().filter(|_| self.lease.is_overdue(now_ms))
    }

    /// Whether an agent can claim the edge: nobody holds it, or the holder's lease is over and the project lets
    /// others take over.
    #[must_use]
    pub fn is_free(&self, on_expiry: OnExpiry, now_ms: u64) -> bool {
        match (&self.holder, on_expiry) {
            (None, _) => true,
            (Some(_), OnExpiry::SignalOnly) => false,
            (Some(holder), OnExpiry::Takeable) => holder.expired || self.lease.is_overdue(now_ms),
        }
    }

    /// Whether an agent is at work: it holds the edge, its lease is not over, and no person has to look first.
    #[must_use]
    pub fn is_at_work(&self, now_ms: u64) -> bool {
        self.current().is_some() && !self.lease.is_overdue(now_ms) && !self.lease.is_suspended()
    }
}
