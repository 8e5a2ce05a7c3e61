//! How work on an edge begins: by a claim, or in single mode by the work itself.

use ringfence::prelude::*;

use crate::{
    AgentId, ClaimId, Edge, EdgeRef, EdgeStarted, Edges, FeatureRef, Features, Hold, Mode,
    OnExpiry, Rejection, Rules, principal,
};

/// The claim under which a command works.
#[derive(Clone, Debug)]
pub(crate) struct Working {
    pub(crate) claim: ClaimId,
    pub(crate) epoch: u64,
    /// The claim begins with the command.
    pub(crate) started: Option<EdgeStarted>,
}

/// The claim that a command of work names. If it names no claim, the claim of `primary` counts, or in single mode a new
/// one. [`check_free`] gets `features` and `after` then.
///
/// # Errors
/// The caller may not work under the claim, or the edge has no claim and no claim can begin.
pub(crate) fn working(
    (features, edges): (&Features, &Edges),
    of: &EdgeRef,
    (agent, claim): (&AgentId, Option<&ClaimId>),
    after: &[FeatureRef],
    context: &CommandContext,
) -> Result<Working, Rejection> {
    let edge = edges.edge(of);
    if claim.is_some() || edge.current().is_some() {
        let claim = edge.check_claim(claim, agent, context)?;
        return Ok(Working { claim: claim.id.clone(), epoch: claim.epoch, started: None });
    }
    let (feature, _) = features.rule(of)?;
    let rules = &feature.rules;
    rules.mode.check(agent)?;
    if rules.mode == Mode::Multi {
        return Err(Rejection::ClaimMissing);
    }
    if !agent.is_primary() {
        return Err(Rejection::SingleMode);
    }
    check_free(features, edge, of, after)?;
    if let Some(held) = held(edge, agent, rules.on_expiry, context) {
        return Err(held);
    }
    let epoch = edge.next_epoch();
    // This id is free, unless an earlier claim has it.
    let mut ids = (epoch..).map(|n| format!("{agent}-{n}").parse().expect("a name"));
    let claim = ids.find(|id| edge.claim(id).is_none()).expect("an edge has few claims");
    let started = started(of, agent, &claim, rules, edge, context);
    Ok(Working { claim, epoch, started: Some(started) })
}

/// Checks that work on a free edge may begin: the features that its feature waits for are done, and the edges before
/// it.
///
/// # Errors
/// The first reason against it.
pub(crate) fn check_free(
    features: &Features,
    edge: &Edge,
    of: &EdgeRef,
    after: &[FeatureRef],
) -> Result<(), Rejection> {
    let (feature, rule) = features.rule(of)?;
    if edge.is_converged() {
        return Err(Rejection::AlreadyConverged);
    }
    let dependencies = &feature.dependencies;
    let is_named = |on: &FeatureRef| after.contains(on);
    if !dependencies.iter().all(is_named) || !after.iter().all(|on| dependencies.contains(on)) {
        let dependencies = dependencies.iter().cloned().collect();
        return Err(Rejection::DependenciesDiffer { dependencies });
    }
    let open = dependencies.iter().filter(|on| !features.is_done(on));
    let open: Vec<_> = open.cloned().collect();
    if !open.is_empty() {
        return Err(Rejection::WaitsFor { features: open });
    }
    let edges = feature.open_before(rule);
    if !edges.is_empty() {
        return Err(Rejection::NotAdmissible { edges });
    }
    let children = edge.open_spawns();
    match children.is_empty() {
        true => Ok(()),
        false => Err(Rejection::BlockedBySpawn { children }),
    }
}

/// Why an agent does not get an edge, if a claim keeps it away.
pub(crate) fn held(
    edge: &Edge,
    agent: &AgentId,
    on_expiry: OnExpiry,
    context: &CommandContext,
) -> Option<Rejection> {
    let claim = edge.barring(on_expiry)?;
    let is_current = edge.current().is_some();
    let is_over = !is_current || edge.is_overdue(context.now_ms);
    let is_own = claim.agent == *agent && claim.principal == principal(context);
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

/// The next claim of an edge.
pub(crate) fn started(
    of: &EdgeRef,
    agent: &AgentId,
    claim: &ClaimId,
    rules: &Rules,
    edge: &Edge,
    context: &CommandContext,
) -> EdgeStarted {
    EdgeStarted {
        edge: of.clone(),
        agent: agent.clone(),
        claim: claim.clone(),
        epoch: edge.next_epoch(),
        run: edge.run(),
        principal: principal(context),
        lease_ms: (rules.mode == Mode::Multi).then_some(rules.lease_ms),
        stuck_after: rules.stuck_after,
    }
}
