//! ConvergeEdge: ends the work on an edge.
//!
//! What a role may converge is asked here, and nowhere else. Who may not is refused, escalated to a person, or only
//! noted, as the project says.

use ringfence::prelude::*;

use crate::{
    AgentId, ClaimId, Convergence, ConvergenceEscalated, EdgeConverged, EdgeRef, Gate, Known,
    OfEdgeFeaturesAndProject, Otherwise, Projects, Refused, ReviewDecision, RoleName, Status,
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
    /// That a role has tried, unless it is known of this claim and iteration.
    fn escalated(
        &self,
        known: &Known,
        role: Option<RoleName>,
        action: Otherwise,
    ) -> Option<ConvergenceEscalated> {
        let Self { edge: of, agent, claim, convergence } = self.clone();
        let edge = known.edge(&of);
        let (run, iteration) = (edge.run(), edge.last_iteration());
        (!edge.was_barred(&claim, iteration)).then_some(ConvergenceEscalated {
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
    type State = Known;
    type Writes = Ended;
    type Rejection = Refused;

    fn decide(&self, known: &Known, context: &CommandContext) -> Result<Vec<Ended>, Refused> {
        let Self { edge: of, agent, claim, convergence } = self;
        let (config, _) = known.project(&of.feature.project)?;
        let (feature, rule, edge) = known.edge_of(of)?;
        if edge.is_converged() && edge.latest().is_some_and(|latest| latest.id == *claim) {
            return Ok(vec![]);
        }
        edge.check_claim(claim, context)?;
        let who = who(context, agent);
        match convergence {
            Convergence::Standard => {
                let passed = |status| status == Status::Converged;
                if !edge.iteration.as_ref().is_some_and(|last| passed(last.status)) {
                    return Err(Refused::NotConverged);
                }
            }
            Convergence::QuestionAnswered => {
                if !config.is_human(&who) {
                    return Err(Refused::NotAllowed);
                }
                if !feature.kind.is_question() {
                    return Err(Refused::NotAQuestion);
                }
            }
            Convergence::TimeBoxExpired => {
                if !feature.is_box_over(context.now_ms) {
                    return Err(Refused::TimeBoxRuns);
                }
            }
        }
        let children = edge.open_spawns();
        if !children.is_empty() {
            return Err(Refused::BlockedBySpawn { children });
        }
        let reviewed = edge.reviewed();
        if rule.gate == Gate::Human && edge.review_of(&reviewed) != Some(ReviewDecision::Approved) {
            let (run, iteration, _) = reviewed;
            return Err(Refused::ReviewRequired { run, iteration });
        }
        let bar = config.bars(&who, &of.name);
        if let Some((role, Otherwise::Reject)) = bar {
            return Err(Refused::NotAuthorised { role });
        }
        let escalates = matches!(bar, Some((_, Otherwise::Escalate)));
        let noted = bar.and_then(|(role, action)| self.escalated(known, role, action));
        let ended = (!escalates).then(|| ended(of, agent, feature, edge, *convergence)).flatten();
        let noted = noted.map(Ended::Escalated);
        Ok(noted.into_iter().chain(ended.map(Ended::Converged)).collect())
    }

    fn cases() -> Vec<Case<Self>> {
        crate::converge_cases::cases()
    }
}

impl DcbSlice for ConvergeEdge {
    type Reads = OfEdgeFeaturesAndProject;

    fn evolve(known: Known, OfEdgeFeaturesAndProject(told): OfEdgeFeaturesAndProject) -> Known {
        known.and(told)
    }

    fn leaves(&self, refused: &Refused, known: &Known, _: &CommandContext) -> Vec<Ended> {
        let Refused::NotAuthorised { role } = refused else { return vec![] };
        let noted = self.escalated(known, role.clone(), Otherwise::Reject);
        noted.into_iter().map(Ended::Escalated).collect()
    }
}
