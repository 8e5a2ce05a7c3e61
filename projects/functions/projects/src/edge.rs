//! Edges, as decisions know them: their holders, and how far the work is.

use std::collections::BTreeMap;

use ringfence::prelude::*;

use crate::{
    AgentId, ClaimId, Convergence, EdgeConverged, EdgeEvent, EdgeRef, Feature, FeatureRef, Lease,
    Mode, OnExpiry, Otherwise, Rejection, ReqKey, ReviewDecision, Reviewed, Sha256, Status,
    principal,
};

/// A claim of the edge, of now or of before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub id: ClaimId,
    pub agent: AgentId,
    /// The principal that may work under it; `None` if the claimer was not known.
    pub principal: Option<String>,
    /// 1 and the number of earlier claims.
    pub epoch: u64,
    end: Option<End>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Released,
    Expired,
    Converged,
}

/// The last iteration of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iteration {
    pub claim: ClaimId,
    pub number: u32,
    pub status: Status,
    pub delta: u32,
    /// How many iterations in succession, up to this one, had this delta.
    pub same: u32,
    pub sha256: Option<Sha256>,
    pub req_keys: Vec<ReqKey>,
}

/// Why a person has to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    Review,
    /// The edge was to converge thus.
    Escalation(Convergence),
}

/// An edge.
#[derive(Debug)]
pub struct Edge {
    claims: Vec<Claim>,
    /// Of the latest claim.
    lease: Lease,
    /// 1 and the number of times it was opened again.
    run: u32,
    stuck_after: u32,
    pub iteration: Option<Iteration>,
    /// Whether it is written that the last iterations are a plateau.
    stuck: bool,
    pending: Option<Pending>,
    reviews: BTreeMap<Reviewed, ReviewDecision>,
    /// The consequence of a try by a role that may not converge, for each claim and iteration.
    barred: BTreeMap<(ClaimId, u32), Otherwise>,
    /// For each child: whether the edge waits for it, and whether it is folded back.
    spawns: BTreeMap<FeatureRef, (bool, bool)>,
    converged: bool,
}

/// The edges on which something has happened, by name.
#[derive(Default)]
pub struct Edges(BTreeMap<EdgeRef, Edge>);

impl State for Edges {
    type Reads = EdgeEvent;

    fn evolve(mut self, event: EdgeEvent) -> Self {
        let edge = self.0.entry(event.edge().clone()).or_insert(Edge::NEW);
        edge.lease.follow(&event);
        edge.follow(event);
        self
    }
}

impl Edges {
    /// The edge. If no event of it was read, nothing has happened on it.
    #[must_use]
    pub fn edge(&self, edge: &EdgeRef) -> &Edge {
        static NEW: Edge = Edge::NEW;
        self.0.get(edge).unwrap_or(&NEW)
    }
}

impl Edge {
    /// An edge on which nothing has happened.
    const NEW: Self = Self {
        claims: Vec::new(),
        lease: Lease::NEW,
        run: 1,
        stuck_after: 0,
        iteration: None,
        stuck: false,
        pending: None,
        reviews: BTreeMap::new(),
        barred: BTreeMap::new(),
        spawns: BTreeMap::new(),
        converged: false,
    };

    /// Follows an event, apart from the lease.
    fn follow(&mut self, event: EdgeEvent) {
        match event {
            EdgeEvent::EdgeStarted { claim, agent, principal, epoch, run, stuck_after, .. } => {
                self.claims.push(Claim { id: claim, agent, principal, epoch, end: None });
                (self.run, self.stuck_after) = (run, stuck_after);
            }
            EdgeEvent::ClaimRenewed { .. } => {}
            EdgeEvent::EdgeReleased { .. } => self.end(End::Released),
            EdgeEvent::ClaimExpired { .. } => self.end(End::Expired),
            EdgeEvent::IterationCompleted {
                claim,
                iteration: number,
                status,
                delta,
                artifact,
                req_keys,
                ..
            } => {
                let same = self.next_same(delta);
                self.stuck &= same > 1;
                let sha256 = artifact.map(|artifact| artifact.sha256);
                self.iteration =
                    Some(Iteration { claim, number, status, delta, same, sha256, req_keys });
            }
            EdgeEvent::EdgeStuck { .. } => self.stuck = true,
            EdgeEvent::ReviewRequested { .. } => self.pending = Some(Pending::Review),
            EdgeEvent::ReviewCompleted { run, iteration, sha256, decision, .. } => {
                self.pending = None;
                self.reviews.insert((run, iteration, sha256), decision);
            }
            EdgeEvent::ConvergenceEscalated { claim, iteration, action, convergence, .. } => {
                if action == Otherwise::Escalate {
                    self.pending = Some(Pending::Escalation(convergence));
                }
                self.barred.insert((claim, iteration), action);
            }
            EdgeEvent::SpawnCreated { child, blocks, .. } => {
                self.spawns.insert(child, (blocks, false));
            }
            EdgeEvent::SpawnFoldedBack { child, .. } => {
                if let Some((_, folded)) = self.spawns.get_mut(&child) {
                    *folded = true;
                }
            }
            EdgeEvent::EdgeConverged { .. } => {
                self.end(End::Converged);
                self.converged = true;
                self.pending = None;
            }
            EdgeEvent::EdgeReopened { run, .. } => {
                (self.run, self.converged) = (run, false);
                (self.iteration, self.pending, self.stuck) = (None, None, false);
            }
        }
    }

    fn end(&mut self, end: End) {
        if let Some(claim) = self.claims.last_mut() {
            claim.end = Some(end);
        }
    }

    // Questions of decisions.

    #[must_use]
    pub fn run(&self) -> u32 {
        self.run
    }

    #[must_use]
    pub fn is_converged(&self) -> bool {
        self.converged
    }

    /// The claim with this id, of now or of before.
    #[must_use]
    pub fn claim(&self, id: &ClaimId) -> Option<&Claim> {
        self.claims.iter().find(|claim| claim.id == *id)
    }

    /// The claim that is current.
    #[must_use]
    pub fn current(&self) -> Option<&Claim> {
        self.claims.last().filter(|claim| claim.end.is_none())
    }

    /// The claim that keeps others away: the current one, or one that is over and may not be taken over.
    #[must_use]
    pub fn barring(&self, on_expiry: OnExpiry) -> Option<&Claim> {
        self.claims.last().filter(|claim| match claim.end {
            None => true,
            Some(End::Expired) => on_expiry == OnExpiry::SignalOnly,
            Some(End::Released | End::Converged) => false,
        })
    }

    /// The epoch of the next claim.
    #[must_use]
    pub fn next_epoch(&self) -> u64 {
        self.claims.last().map_or(1, |claim| claim.epoch + 1)
    }

    /// When the lease of the latest claim is over, in milliseconds since 1970.
    #[must_use]
    pub fn lease_until_ms(&self) -> Option<u64> {
        self.lease.until_ms()
    }

    /// Whether less than half of the lease is left.
    #[must_use]
    pub fn needs_renewal(&self, now_ms: u64) -> bool {
        self.lease.needs_renewal(now_ms)
    }

    /// The latest claim, whether it is current or not.
    #[must_use]
    pub fn latest(&self) -> Option<&Claim> {
        self.claims.last()
    }

    /// Whether the lease of the current claim is over.
    #[must_use]
    pub fn is_overdue(&self, now_ms: u64) -> bool {
        self.current().is_some() && self.lease.is_overdue(now_ms)
    }

    /// The current claim, if it has this id, and this agent and its caller have made it. A claim without an end need
    /// not be named.
    ///
    /// # Errors
    /// [`Rejection::AgentMissing`], [`Rejection::ClaimMissing`], [`Rejection::StaleClaim`],
    /// [`Rejection::NotYourClaim`]
    pub fn check_claim(
        &self,
        id: Option<&ClaimId>,
        agent: &AgentId,
        context: &CommandContext,
    ) -> Result<&Claim, Rejection> {
        let has_end = self.current().is_some() && self.lease.until_ms().is_some();
        // A claim with an end is of multi mode.
        if has_end {
            Mode::Multi.check(agent)?;
        }
        let claim = match id {
            Some(id) => self.check_current(id)?,
            None => self.current().filter(|_| !has_end).ok_or(Rejection::ClaimMissing)?,
        };
        let is_caller = claim.principal.is_none() || claim.principal == principal(context);
        match claim.agent == *agent && is_caller {
            true => Ok(claim),
            false => {
                let (claim, agent) = (claim.id.clone(), claim.agent.clone());
                Err(Rejection::NotYourClaim { claim, agent })
            }
        }
    }

    /// Checks that the current claim has this id.
    ///
    /// # Errors
    /// [`Rejection::StaleClaim`]
    pub fn check_current(&self, id: &ClaimId) -> Result<&Claim, Rejection> {
        let claim = self.current().filter(|claim| claim.id == *id);
        claim.ok_or_else(|| Rejection::StaleClaim { claim: id.clone() })
    }

    /// Whether a person has to look before work goes on.
    #[must_use]
    pub fn awaits_review(&self) -> bool {
        self.pending.is_some()
    }

    /// How the edge converges if a person approves what was escalated.
    #[must_use]
    pub fn escalated(&self) -> Option<Convergence> {
        match self.pending {
            Some(Pending::Escalation(convergence)) => Some(convergence),
            _ => None,
        }
    }

    /// The consequence of this claim's earlier try to converge this iteration, in a role that may not.
    #[must_use]
    pub fn barred(&self, claim: &ClaimId, iteration: u32) -> Option<Otherwise> {
        self.barred.get(&(claim.clone(), iteration)).copied()
    }

    /// The number of the last iteration of the run; 0 without any.
    #[must_use]
    pub fn last_iteration(&self) -> u32 {
        self.iteration.as_ref().map_or(0, |iteration| iteration.number)
    }

    /// How many iterations in succession have this delta, if the next one has.
    #[must_use]
    pub fn next_same(&self, delta: u32) -> u32 {
        let before = self.iteration.as_ref().filter(|iteration| iteration.delta == delta);
        before.map_or(1, |iteration| iteration.same + 1)
    }

    /// How many iterations in succession with one delta show that work is stuck, by the rules of the latest claim.
    #[must_use]
    pub fn stuck_after(&self) -> u32 {
        self.stuck_after
    }

    /// Whether the next iteration, with this delta, shows that work is stuck, and this is not written yet.
    #[must_use]
    pub fn gets_stuck(&self, delta: u32, stuck_after: u32) -> bool {
        let same = self.next_same(delta);
        delta > 0 && same >= stuck_after && !(self.stuck && same > 1)
    }

    /// The names that a review needs now: the run, its last iteration, and the artefact. The iteration is 0 if there is
    /// none.
    #[must_use]
    pub fn reviewed(&self) -> Reviewed {
        let sha256 = self.iteration.as_ref().and_then(|it| it.sha256.clone());
        (self.run, self.last_iteration(), sha256)
    }

    /// The person's decision about it.
    #[must_use]
    pub fn review_of(&self, reviewed: &Reviewed) -> Option<ReviewDecision> {
        self.reviews.get(reviewed).copied()
    }

    /// The children that the edge waits for.
    #[must_use]
    pub fn open_spawns(&self) -> Vec<FeatureRef> {
        let is_open = |(_, (blocks, folded)): &(_, &(bool, bool))| *blocks && !*folded;
        self.spawns.iter().filter(is_open).map(|(child, _)| child.clone()).collect()
    }

    /// Whether a child was born here, and whether it is folded back.
    #[must_use]
    pub fn spawned(&self, child: &FeatureRef) -> Option<bool> {
        self.spawns.get(child).map(|(_, folded)| *folded)
    }
}

impl Claim {
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.end == Some(End::Released)
    }
}

/// The event that the edge is done, under this claim of this epoch.
#[must_use]
pub fn ended(
    of: &EdgeRef,
    agent: &AgentId,
    feature: &Feature,
    edge: &Edge,
    (claim, epoch): (ClaimId, u64),
    convergence: Convergence,
) -> EdgeConverged {
    EdgeConverged {
        edge: of.clone(),
        agent: agent.clone(),
        claim,
        epoch,
        run: edge.run,
        iteration: edge.last_iteration(),
        convergence,
        req_keys: edge.iteration.as_ref().map_or_else(Vec::new, |it| it.req_keys.clone()),
        completes_feature: feature.is_done_with(&of.name),
    }
}
