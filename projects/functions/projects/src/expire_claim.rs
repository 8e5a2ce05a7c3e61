//! ExpireClaim: writes down that a lease is over.
//!
//! The function sweep-claims sends it for every open claim that looks overdue. No decision needs it, because
//! claim-edge looks at the lease itself. The event is for people and views, and it ends a claim that nobody else wants.

use ringfence::prelude::*;

use crate::{AgentId, ClaimExpired, DetectedBy, EdgeRef, Edges, Projects};

/// Ends the claim of this epoch, if its lease is over.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct ExpireClaim {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    /// The agent that noticed the expiry. The event names the agent whose claim it was.
    pub agent: AgentId,
    /// Of the claim that looks overdue.
    pub epoch: u64,
}

impl Slice for ExpireClaim {
    const NAME: &'static str = "expire-claim";
    type Context = Projects;
    type State = Edges;
    type Writes = ClaimExpired;
    type Rejection = Never;

    fn decide(&self, edges: &Edges, context: &CommandContext) -> Result<Vec<ClaimExpired>, Never> {
        let Self { edge: of, epoch, .. } = self.clone();
        let edge = edges.edge(&of);
        let overdue =
            edge.current().filter(|it| it.epoch == epoch && edge.is_overdue(context.now_ms));
        let expired = overdue.map(|late| ClaimExpired {
            edge: of,
            agent: late.agent.clone(),
            claim: late.id.clone(),
            epoch,
            lease_until_ms: edge.lease_until_ms().unwrap_or_default(),
            detected_by: DetectedBy::Sweep,
        });
        Ok(expired.into_iter().collect())
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{DESIGN_CODE, claim_expired, converged, released, started};
        use crate::{EdgeStarted, GRACE_MS, LEASE_MS};

        let expire = |epoch| ExpireClaim { edge: id(DESIGN_CODE), agent: id("sweep"), epoch };
        let late = LEASE_MS + GRACE_MS;
        let overdue = || given(events![started("ada", "c1", 1)]).wait(late + 1);
        vec![
            overdue().when(expire(1)).then([claim_expired("ada", "c1", 1)]),
            given(events![started("ada", "c1", 1)]).wait(late).when(expire(1)).then_nothing(),
            given([]).when(expire(1)).then_nothing(),
            overdue().when(expire(2)).then_nothing(),
            overdue().and(events![claim_expired("ada", "c1", 1)]).when(expire(1)).then_nothing(),
            overdue().and(events![released("ada", "c1")]).when(expire(1)).then_nothing(),
            overdue().and(events![converged(DESIGN_CODE, "c1")]).when(expire(1)).then_nothing(),
            // Another agent has the edge by now.
            overdue()
                .and(events![claim_expired("ada", "c1", 1), started("bob", "c2", 2)])
                .when(expire(1))
                .then_nothing(),
            given(events![EdgeStarted { lease_ms: None, ..started("primary", "c1", 1) }])
                .wait(late + 1)
                .when(expire(1))
                .then_nothing(),
        ]
    }
}
