//! RecordReview: records what a person says of an iteration.
//!
//! A review names run, iteration and the hash of the artefact. So a state that has changed meanwhile is not approved.
//! An approval ends the edge if nothing else stands against it.

use ringfence::{Text, prelude::*};

use crate::{
    AgentId, Convergence, EdgeConverged, EdgeRef, Edges, Features, Project, Projects, Rejection,
    ReviewCompleted, ReviewDecision, Sha256, ended, who,
};

/// Says what a person thinks of an iteration.
#[derive(Clone, Debug, PartialEq, Command)]
#[tag(key = "feature", cross_partition, value = edge.feature)]
#[tag(key = "project", cross_partition, value = edge.feature.project)]
pub struct RecordReview {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    #[serde(default)]
    pub agent: AgentId,
    pub run: u32,
    pub iteration: u32,
    /// The hash of the iteration's artefact, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
    pub decision: ReviewDecision,
    pub feedback: Text<4_000>,
}

#[derive(Writes)]
pub enum Recorded {
    Review(ReviewCompleted),
    Converged(EdgeConverged),
}

impl Slice for RecordReview {
    const NAME: &'static str = "record-review";
    type Context = Projects;
    type State = (Project, Features, Edges);
    type Writes = Recorded;
    type Rejection = Rejection;

    fn decide(
        &self,
        (project, features, edges): &(Project, Features, Edges),
        context: &CommandContext,
    ) -> Result<Vec<Recorded>, Rejection> {
        let Self { edge: of, agent, run, iteration, sha256, decision, feedback } = self.clone();
        project.config(&of.feature.project)?;
        let (feature, _) = features.rule(&of)?;
        let edge = edges.edge(&of);
        let reviewer = who(context, &agent);
        project.of_human(&of.feature.project, &agent, context)?;
        let reviewed = (run, iteration, sha256.clone());
        // A decided review may be requested again.
        if edge.review_of(&reviewed).is_some() && !edge.awaits_review() {
            return Err(Rejection::AlreadyDecided);
        }
        if edge.reviewed() != reviewed {
            return Err(Rejection::stale_review(edge.reviewed()));
        }
        let escalated = edge.escalated();
        if edge.iteration.is_none() && escalated.is_none() {
            return Err(Rejection::NothingToReview);
        }
        let is_passed = edge.iteration.as_ref().is_some_and(|it| it.delta == 0);
        let ends = decision == ReviewDecision::Approved
            && (is_passed || escalated.is_some())
            && !edge.is_converged()
            && edge.open_spawns().is_empty();
        let convergence = escalated.unwrap_or(Convergence::Standard);
        let claim = edge.latest().filter(|_| ends).map(|claim| (claim.id.clone(), claim.epoch));
        let ended = claim.map(|claim| ended(&of, &agent, feature, edge, claim, convergence));
        let (edge, feedback) = (of, feedback.into());
        let review =
            ReviewCompleted { edge, agent, run, iteration, sha256, decision, reviewer, feedback };
        Ok([Recorded::Review(review)].into_iter().chain(ended.map(Recorded::Converged)).collect())
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::Otherwise;
        use crate::facts::*;

        let review = |iteration, decision| RecordReview {
            edge: id(DESIGN_CODE),
            agent: id("eve"),
            run: 1,
            iteration,
            sha256: Some(hash(2)),
            decision,
            feedback: id("more tests"),
        };
        let approve = |iteration| review(iteration, ReviewDecision::Approved);
        let object = |iteration| review(iteration, ReviewDecision::ChangesRequested);
        let approved = |iteration| {
            let decision = ReviewDecision::Approved;
            Recorded::Review(ReviewCompleted { decision, ..reviewed(iteration) })
        };
        let ended = || {
            Recorded::Converged(EdgeConverged { agent: id("eve"), ..converged(DESIGN_CODE, "c1") })
        };
        let worked = |delta| {
            given(ready_in(multi())).and(events![started("ada", "c1", 1), iterated("c1", 1, delta)])
        };
        vec![
            given([])
                .when(approve(1))
                .then_rejected(Rejection::UnknownProject { project: id("shop") }),
            given(events![initialized(multi())])
                .when(approve(1))
                .then_rejected(Rejection::UnknownFeature { feature: id(AUTH) }),
            worked(0).when(approve(1)).then([approved(1), ended()]),
            worked(0).when(object(1)).then([Recorded::Review(reviewed(1))]),
            // Checks fail, so the holder goes on.
            worked(1).when(approve(1)).then([approved(1)]),
            // A role that may not converge the edge has asked.
            worked(0)
                .and(events![barred(Otherwise::Escalate)])
                .when(approve(1))
                .then([approved(1), ended()]),
            worked(1)
                .and(events![crate::ConvergenceEscalated {
                    convergence: Convergence::TimeBoxExpired,
                    ..barred(Otherwise::Escalate)
                }])
                .when(approve(1))
                .then([
                    approved(1),
                    Recorded::Converged(EdgeConverged {
                        agent: id("eve"),
                        convergence: Convergence::TimeBoxExpired,
                        ..converged(DESIGN_CODE, "c1")
                    }),
                ]),
            worked(1).and(events![barred(Otherwise::Reject)]).when(approve(1)).then([approved(1)]),
            worked(0).and(events![spawned(SEARCH, true)]).when(approve(1)).then([approved(1)]),
            worked(0)
                .and(events![reviewed(1)])
                .when(approve(1))
                .then_rejected(Rejection::AlreadyDecided),
            worked(0)
                .and(events![iterated("c1", 2, 0)])
                .when(approve(1))
                .then_rejected(Rejection::stale_review((1, 2, Some(hash(2))))),
            worked(0)
                .when(RecordReview { sha256: Some(hash(9)), ..approve(1) })
                .then_rejected(Rejection::stale_review((1, 1, Some(hash(2))))),
            given(ready_in(multi()))
                .and(events![started("ada", "c1", 1)])
                .when(approve(1))
                .then_rejected(Rejection::stale_review((1, 0, None))),
            given(ready_in(multi()))
                .and(events![started("ada", "c1", 1)])
                .when(RecordReview { sha256: None, ..approve(0) })
                .then_rejected(Rejection::NothingToReview),
            // After a reopening the review of the run before comes too late.
            worked(0)
                .and(events![converged(DESIGN_CODE, "c1"), reopened(2)])
                .when(approve(1))
                .then_rejected(Rejection::stale_review((2, 0, None))),
            // The holder, and a role that may not converge, request a decided review again.
            worked(1)
                .and(events![review_requested(1), reviewed(1), review_requested(1)])
                .when(object(1))
                .then([Recorded::Review(reviewed(1))]),
            worked(0)
                .and(events![reviewed(1), barred(Otherwise::Escalate)])
                .when(approve(1))
                .then([approved(1), ended()]),
            // The caller counts, and not the agent that the command names.
            worked(0).when(approve(1)).by("direct:ada").then_rejected(Rejection::NotAllowed),
            // The edge was converged meanwhile; the review is kept.
            worked(0)
                .and(events![converged(DESIGN_CODE, "c1")])
                .when(approve(1))
                .then([approved(1)]),
            given(ready_in(single()))
                .and(events![started("primary", "c1", 1), iterated("c1", 1, 0)])
                .when(approve(1))
                .by("direct:ada")
                .then([
                    Recorded::Review(ReviewCompleted {
                        decision: ReviewDecision::Approved,
                        reviewer: "direct:ada".to_owned(),
                        ..reviewed(1)
                    }),
                    ended(),
                ]),
        ]
    }
}
