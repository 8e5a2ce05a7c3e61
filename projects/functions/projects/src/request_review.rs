//! RequestReview: asks a person to look at the last iteration.
//!
//! The holder's lease stands still meanwhile.

use ringfence::prelude::*;

use crate::{AgentId, ClaimId, EdgeRef, Edges, Projects, Rejection, ReviewRequested};

/// Asks for a review.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct RequestReview {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    #[serde(default)]
    pub agent: AgentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimId>,
}

impl Slice for RequestReview {
    const NAME: &'static str = "request-review";
    type Context = Projects;
    type State = Edges;
    type Writes = ReviewRequested;
    type Rejection = Rejection;

    fn decide(
        &self,
        edges: &Edges,
        context: &CommandContext,
    ) -> Result<Vec<ReviewRequested>, Rejection> {
        let Self { edge: of, agent, claim } = self.clone();
        let edge = edges.edge(&of);
        let claim = edge.check_claim(claim.as_ref(), &agent, context)?.id.clone();
        if edge.iteration.is_none() {
            return Err(Rejection::NothingToReview);
        }
        if edge.awaits_review() {
            return Ok(vec![]);
        }
        let (run, iteration, sha256) = edge.reviewed();
        Ok(vec![ReviewRequested { edge: of, agent, claim, run, iteration, sha256 }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{DESIGN_CODE, iterated, review_requested, reviewed, started};

        let ask = |claim| RequestReview {
            edge: id(DESIGN_CODE),
            agent: id("ada"),
            claim: Some(id(claim)),
        };
        let worked = || given(events![started("ada", "c1", 1), iterated("c1", 1, 1)]);
        vec![
            worked().when(ask("c1")).then([review_requested(1)]),
            worked().and(events![review_requested(1)]).when(ask("c1")).then_nothing(),
            worked()
                .and(events![review_requested(1), reviewed(1)])
                .when(ask("c1"))
                .then([review_requested(1)]),
            given(events![started("ada", "c1", 1)])
                .when(ask("c1"))
                .then_rejected(Rejection::NothingToReview),
            worked().when(ask("c2")).then_rejected(Rejection::StaleClaim { claim: id("c2") }),
        ]
    }
}
