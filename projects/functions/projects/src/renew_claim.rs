//! RenewClaim: renews the lease of a claim.
//!
//! Every other event of the holder renews the lease as well, so only silent work needs it.

use ringfence::prelude::*;

use crate::{AgentId, ClaimId, ClaimRenewed, EdgeRef, Edges, Projects, Rejection};

/// Renews the lease of a claim, if less than half of it is left.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct RenewClaim {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    #[serde(default)]
    pub agent: AgentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimId>,
}

impl Slice for RenewClaim {
    const NAME: &'static str = "renew-claim";
    type Context = Projects;
    type State = Edges;
    type Writes = ClaimRenewed;
    type Rejection = Rejection;

    fn decide(
        &self,
        edges: &Edges,
        context: &CommandContext,
    ) -> Result<Vec<ClaimRenewed>, Rejection> {
        let Self { edge: of, agent, claim } = self.clone();
        let edge = edges.edge(&of);
        let claim = edge.check_claim(claim.as_ref(), &agent, context)?.id.clone();
        match edge.needs_renewal(context.now_ms) {
            true => Ok(vec![ClaimRenewed { edge: of, agent, claim }]),
            false => Ok(vec![]),
        }
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{DESIGN_CODE, claim_expired, renewed, started};
        use crate::{EdgeStarted, LEASE_MS};

        let renew =
            |claim| RenewClaim { edge: id(DESIGN_CODE), agent: id("ada"), claim: Some(id(claim)) };
        let by_ada = || given(events![started("ada", "c1", 1)]);
        let stale = |claim| Rejection::StaleClaim { claim: id(claim) };
        let of_key =
            EdgeStarted { principal: Some("direct:key-1".to_owned()), ..started("ada", "c1", 1) };
        vec![
            given([]).when(renew("c1")).then_rejected(stale("c1")),
            by_ada().when(renew("c2")).then_rejected(stale("c2")),
            by_ada().wait(LEASE_MS / 2).when(renew("c1")).then_nothing(),
            by_ada().wait(LEASE_MS / 2 + 1).when(renew("c1")).then([renewed("ada", "c1")]),
            // Late, and nobody has taken the edge over.
            by_ada().wait(9 * LEASE_MS).when(renew("c1")).then([renewed("ada", "c1")]),
            by_ada()
                .wait(LEASE_MS)
                .and(events![renewed("ada", "c1")])
                .wait(LEASE_MS / 2)
                .when(renew("c1"))
                .then_nothing(),
            by_ada()
                .and(events![claim_expired("ada", "c1", 1)])
                .when(renew("c1"))
                .then_rejected(stale("c1")),
            given(events![EdgeStarted { lease_ms: None, ..started("ada", "c1", 1) }])
                .wait(9 * LEASE_MS)
                .when(renew("c1"))
                .then_nothing(),
            // Only a claim that has an end must be named.
            given(events![EdgeStarted { lease_ms: None, ..started("primary", "c1", 1) }])
                .when(RenewClaim { agent: AgentId::default(), claim: None, ..renew("c1") })
                .then_nothing(),
            by_ada()
                .when(RenewClaim { claim: None, ..renew("c1") })
                .then_rejected(Rejection::ClaimMissing),
            by_ada()
                .when(RenewClaim { agent: AgentId::default(), ..renew("c1") })
                .then_rejected(Rejection::AgentMissing),
            given(events![of_key.clone()]).when(renew("c1")).by("direct:key-1").then_nothing(),
            given(events![of_key])
                .when(renew("c1"))
                .by("direct:key-2")
                .then_rejected(Rejection::NotYourClaim { claim: id("c1"), agent: id("ada") }),
        ]
    }
}
