//! ReleaseEdge: gives an edge back.

use ringfence::{Text, prelude::*};

use crate::{AgentId, ClaimId, EdgeRef, EdgeReleased, Edges, Projects, Rejection};

/// Gives an edge back.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct ReleaseEdge {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    #[serde(default)]
    pub agent: AgentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimId>,
    pub reason: Text<4_000>,
}

impl Slice for ReleaseEdge {
    const NAME: &'static str = "release-edge";
    type Context = Projects;
    type State = Edges;
    type Writes = EdgeReleased;
    type Rejection = Rejection;

    fn decide(
        &self,
        edges: &Edges,
        context: &CommandContext,
    ) -> Result<Vec<EdgeReleased>, Rejection> {
        let Self { edge: of, agent, claim, reason } = self.clone();
        let edge = edges.edge(&of);
        let before = claim.as_ref().map_or(edge.latest(), |claim| edge.claim(claim));
        if before.is_some_and(crate::Claim::is_released) {
            return Ok(vec![]);
        }
        let claim = edge.check_claim(claim.as_ref(), &agent, context)?.id.clone();
        let (reason, forced_by) = (reason.into(), None);
        Ok(vec![EdgeReleased { edge: of, agent, claim, reason, forced_by }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{DESIGN_CODE, released, started};

        let release = |agent, claim| ReleaseEdge {
            edge: id(DESIGN_CODE),
            agent: id(agent),
            claim: Some(id(claim)),
            reason: id("done for today"),
        };
        let by_ada = || given(events![started("ada", "c1", 1)]);
        vec![
            by_ada().when(release("ada", "c1")).then([released("ada", "c1")]),
            by_ada().and(events![released("ada", "c1")]).when(release("ada", "c1")).then_nothing(),
            // Even if the edge has another holder by now.
            by_ada()
                .and(events![released("ada", "c1"), started("bob", "c2", 2)])
                .when(release("ada", "c1"))
                .then_nothing(),
            // Nobody gives back what another agent holds.
            by_ada()
                .and(events![released("ada", "c1"), started("bob", "c2", 2)])
                .when(release("ada", "c3"))
                .then_rejected(Rejection::StaleClaim { claim: id("c3") }),
            by_ada()
                .when(release("bob", "b1"))
                .then_rejected(Rejection::StaleClaim { claim: id("b1") }),
            by_ada()
                .when(release("bob", "c1"))
                .then_rejected(Rejection::NotYourClaim { claim: id("c1"), agent: id("ada") }),
        ]
    }
}
