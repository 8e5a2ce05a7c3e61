//! ClaimEdge: gives an agent the sole right to work on an edge.
//!
//! The boundary is the edge, where claims and work constrain each other, the feature, and the features that it waits
//! for. A query follows from the command alone; therefore the command names the latter, and the decision checks
//! them. If an agent does not get the edge, an event says so, once for each claim that bars the agent. The event is in
//! a partition of the agent's own, so repeated attempts do not conflict with the holder.

use std::collections::BTreeSet;

use ringfence::{List, prelude::*};

use crate::{
    About, AgentId, ClaimExpired, ClaimId, ClaimRejected, DEPENDENCIES_MAX, DetectedBy, Edge,
    EdgeRef, EdgeStarted, FeatureRef, Hold, Mode, OfClaim, OnExpiry, PRIMARY, Projects, Rejection,
};

/// Claims an edge.
#[derive(Clone, Debug, PartialEq, Command)]
#[tag(key = "feature", cross_partition, value = edge.feature)]
#[tag(key = "attempt", value = format!("{edge}/{agent}"))]
pub struct ClaimEdge {
    #[tag(key = "edge")]
    pub edge: EdgeRef,
    pub agent: AgentId,
    /// A new id. Who sends the command again with the same one gets the same claim.
    pub claim: ClaimId,
    /// The features that the edge's feature waits for.
    #[tag(key = "feature", cross_partition)]
    #[serde(default)]
    pub after: List<FeatureRef, DEPENDENCIES_MAX>,
}

#[derive(Writes)]
pub enum Claimed {
    Expired(ClaimExpired),
    Started(EdgeStarted),
    Rejected(ClaimRejected),
}

impl ClaimEdge {
    /// Why the caller does not get the edge, if a claim keeps it away.
    fn held(
        &self,
        edge: &Edge,
        on_expiry: OnExpiry,
        context: &CommandContext,
    ) -> Option<Rejection> {
        let claim = edge.barring(on_expiry)?;
        let is_current = edge.current().is_some();
        let is_over = !is_current || edge.is_overdue(context.now_ms);
        let is_own = claim.agent == self.agent && claim.principal == context.principal;
        let hold = match on_expiry {
            OnExpiry::Takeable if is_over => return None,
            _ if is_current && is_own => Hold::Yours,
            OnExpiry::SignalOnly if is_over => Hold::Over,
            _ => Hold::Current,
        };
        Some(Rejection::EdgeHeld {
            holder: claim.agent.clone(),
            claim: claim.id.clone(),
            epoch: claim.epoch,
            hold,
            lease_until_ms: edge.lease_until_ms(),
        })
    }
}

impl Slice for ClaimEdge {
    const NAME: &'static str = "claim-edge";
    type Context = Projects;
    type State = About<OfClaim>;
    type Writes = Claimed;
    type Rejection = Rejection;

    fn decide(
        &self,
        known: &About<OfClaim>,
        context: &CommandContext,
    ) -> Result<Vec<Claimed>, Rejection> {
        let Self { edge: of, agent, claim, after } = self;
        let (feature, rule, edge) = known.edge_of(of)?;
        let rules = &feature.rules;
        if rules.mode == Mode::Single && agent.to_string() != PRIMARY {
            return Err(Rejection::SingleMode);
        }
        if let Some(before) = edge.claim(claim) {
            let is_current = edge.current() == Some(before);
            return match is_current
                && before.agent == *agent
                && before.principal == context.principal
            {
                true => Ok(vec![]),
                false => Err(Rejection::ClaimIdUsed { claim: claim.clone() }),
            };
        }
        if edge.is_converged() {
            return Err(Rejection::AlreadyConverged);
        }
        let dependencies = &feature.dependencies;
        if after.iter().collect::<BTreeSet<_>>() != dependencies.iter().collect() {
            let dependencies = dependencies.iter().cloned().collect();
            return Err(Rejection::DependenciesDiffer { dependencies });
        }
        let open = dependencies.iter().filter(|on| !known.is_done(on));
        let features: Vec<_> = open.cloned().collect();
        if !features.is_empty() {
            return Err(Rejection::WaitsFor { features });
        }
        let edges = feature.open_before(rule);
        if !edges.is_empty() {
            return Err(Rejection::NotAdmissible { edges });
        }
        let children = edge.open_spawns();
        if !children.is_empty() {
            return Err(Rejection::BlockedBySpawn { children });
        }
        if let Some(held) = self.held(edge, rules.on_expiry, context) {
            return Err(held);
        }
        let expired = edge.current().map(|late| {
            Claimed::Expired(ClaimExpired {
                edge: of.clone(),
                agent: late.agent.clone(),
                claim: late.id.clone(),
                epoch: late.epoch,
                lease_until_ms: edge.lease_until_ms().unwrap_or_default(),
                detected_by: DetectedBy::Takeover,
            })
        });
        let started = Claimed::Started(EdgeStarted {
            edge: of.clone(),
            agent: agent.clone(),
            claim: claim.clone(),
            epoch: edge.next_epoch(),
            run: edge.run(),
            principal: context.principal.clone(),
            lease_ms: (rules.mode == Mode::Multi).then_some(rules.lease_ms),
            stuck_after: rules.stuck_after,
        });
        Ok(expired.into_iter().chain([started]).collect())
    }

    fn leaves(
        &self,
        rejection: &Rejection,
        known: &About<OfClaim>,
        _: &CommandContext,
    ) -> Vec<Claimed> {
        let Rejection::EdgeHeld { holder, claim, epoch, lease_until_ms, .. } = rejection.clone()
        else {
            return vec![];
        };
        let is_multi =
            known.feature(&self.edge.feature).is_ok_and(|it| it.rules.mode == Mode::Multi);
        if !is_multi || known.was_rejected(epoch) {
            return vec![];
        }
        let (edge, agent) = (self.edge.clone(), self.agent.clone());
        let rejected = ClaimRejected { edge, agent, holder, claim, epoch, lease_until_ms };
        vec![Claimed::Rejected(rejected)]
    }

    fn cases() -> Vec<Case<Self>> {
        crate::claim_cases::cases()
    }
}
