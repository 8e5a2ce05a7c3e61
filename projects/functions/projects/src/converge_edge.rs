//! ConvergeEdge: ends the work on an edge.
//!
//! What a role may converge is asked here, and nowhere else. Who may not is rejected, escalated to a person, or only
//! noted, as the project says.

use ringfence::prelude::*;

use crate::{
    About, AgentId, ClaimId, Convergence, ConvergenceEscalated, Edge, EdgeConverged, EdgeRef, Gate,
    OfEdgeFeaturesAndProject, Otherwise, Projects, Rejection, ReviewDecision, RoleName, Status,
    ended, who,
};

/// Ends the work on an edge.
#[derive(Clone, Debug, PartialEq, Command)]
#[tag(key = "feature", cross_partition, value = edge.feature)]
#[tag(key = "project", cross_partition, value = edge.feature.project)]
pub struct ConvergeEdge {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    pub agent: AgentId,
    pub claim: ClaimId,
    pub convergence: Convergence,
}

#[derive(Writes)]
pub enum Ended {
    Converged(EdgeConverged),
    Escalated(ConvergenceEscalated),
}

impl ConvergeEdge {
    /// That a role which may not converge the edge has tried to.
    fn note(&self, edge: &Edge, role: Option<RoleName>, action: Otherwise) -> Ended {
        let Self { edge: of, agent, claim, convergence } = self.clone();
        let (run, iteration) = (edge.run(), edge.last_iteration());
        Ended::Escalated(ConvergenceEscalated {
            edge: of,
            agent,
            claim,
            run,
            iteration,
            role,
            action,
            convergence,
        })
    }
}

impl Slice for ConvergeEdge {
    const NAME: &'static str = "converge-edge";
    type Context = Projects;
    type State = About<OfEdgeFeaturesAndProject>;
    type Writes = Ended;
    type Rejection = Rejection;

    fn decide(
        &self,
        known: &About<OfEdgeFeaturesAndProject>,
        context: &CommandContext,
    ) -> Result<Vec<Ended>, Rejection> {
        let Self { edge: of, agent, claim, convergence } = self;
        let (config, _) = known.project(&of.feature.project)?;
        let (feature, rule, edge) = known.edge_of(of)?;
        if edge.is_converged() && edge.latest().is_some_and(|latest| latest.id == *claim) {
            return Ok(vec![]);
        }
        let who = who(context, agent);
        // A person answers a question under the claim of the agent that asked it.
        match convergence {
            Convergence::QuestionAnswered if config.is_human(&who) => edge.check_current(claim)?,
            _ => edge.check_claim(claim, context)?,
        };
        match convergence {
            Convergence::Standard => {
                let passed = |status| status == Status::Converged;
                if !edge.iteration.as_ref().is_some_and(|last| passed(last.status)) {
                    return Err(Rejection::NotConverged);
                }
            }
            Convergence::QuestionAnswered => {
                if !config.is_human(&who) {
                    return Err(Rejection::NotAllowed);
                }
                if !feature.kind.is_question() {
                    return Err(Rejection::NotAQuestion);
                }
            }
            Convergence::TimeBoxExpired => {
                if !feature.is_box_over(context.now_ms) {
                    return Err(Rejection::TimeBoxRuns);
                }
            }
        }
        let children = edge.open_spawns();
        if !children.is_empty() {
            return Err(Rejection::BlockedBySpawn { children });
        }
        let reviewed = edge.reviewed();
        let is_approved = edge.review_of(&reviewed) == Some(ReviewDecision::Approved);
        if rule.gate == Gate::Human && !is_approved {
            if edge.iteration.is_none() {
                return Err(Rejection::NothingToReview);
            }
            let (run, iteration, _) = reviewed;
            return Err(Rejection::ReviewRequired { run, iteration });
        }
        let before = edge.barred(claim, edge.last_iteration());
        let (noted, ends) = match config.bars(&who, &of.name) {
            None => (None, true),
            Some((role, Otherwise::Warn)) => (Some((role, Otherwise::Warn)), true),
            Some((role, Otherwise::Reject)) => {
                return Err(Rejection::NotAuthorised { role, next_iteration: None });
            }
            Some((role, Otherwise::Escalate)) => match (before, edge.escalated()) {
                (Some(Otherwise::Escalate), Some(_)) => (None, false),
                // A person has approved it, and it waited for a child.
                (Some(Otherwise::Escalate), None) if is_approved => (None, true),
                // A person has looked, and the edge did not converge.
                (Some(Otherwise::Escalate), None) => {
                    let next_iteration = Some(edge.last_iteration() + 1);
                    return Err(Rejection::NotAuthorised { role, next_iteration });
                }
                _ => (Some((role, Otherwise::Escalate)), false),
            },
        };
        let noted = noted.filter(|(_, action)| before != Some(*action));
        let noted = noted.map(|(role, action)| self.note(edge, role, action));
        let ended = ends.then(|| ended(of, agent, feature, edge, *convergence)).flatten();
        Ok(noted.into_iter().chain(ended.map(Ended::Converged)).collect())
    }

    fn leaves(
        &self,
        rejection: &Rejection,
        known: &About<OfEdgeFeaturesAndProject>,
        _: &CommandContext,
    ) -> Vec<Ended> {
        let Rejection::NotAuthorised { role, .. } = rejection else { return vec![] };
        let edge = known.edge(&self.edge);
        match edge.barred(&self.claim, edge.last_iteration()) {
            None => vec![self.note(edge, role.clone(), Otherwise::Reject)],
            Some(_) => vec![],
        }
    }

    fn cases() -> Vec<Case<Self>> {
        crate::converge_cases::cases()
    }
}
