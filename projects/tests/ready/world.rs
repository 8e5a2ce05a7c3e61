//! A small project, whose histories are made by the decisions of the slices.

use projects::facts::*;
use projects::{
    ClaimId, EdgeName, EdgeRef, Edges, FeatureRef, Features, LEASE_MS, REVIEW_MS, ReviewDecision,
    Rules, Status, add_dependency::AddDependency, claim_edge::ClaimEdge,
    complete_iteration::CompleteIteration, converge_edge::ConvergeEdge,
    create_release::CreateRelease, expire_claim::ExpireClaim, fold_back::FoldBack,
    force_release::ForceRelease, record_review::RecordReview, release_edge::ReleaseEdge,
    renew_claim::RenewClaim, reopen_edge::ReopenEdge, request_review::RequestReview,
    spawn_feature::SpawnFeature,
};
use ringfence_core::kit::{BEGIN_MS, id};
use ringfence_core::{
    Catalog, Catalogs, CommandContext, Context, Current, NewEvent, Reads, SequencedEvent, Slice,
    State, Writes, events,
};
use ringfence_views::kit::sequenced;

/// The events so far, and the time.
#[derive(Clone)]
pub(crate) struct World {
    catalog: Catalog,
    pub(crate) events: Vec<SequencedEvent>,
    pub(crate) now_ms: u64,
    /// How many claims were tried.
    claims: usize,
}

/// A step that may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Claim(usize),
    Iterate(usize, Status),
    Renew(usize),
    Ask(usize),
    Review(usize, ReviewDecision),
    Converge(usize),
    Release(usize),
    Force(usize),
    Expire(usize),
    Reopen(usize),
    Spawn(usize),
    Fold(usize),
    Depend,
    Publish,
    Wait(u64),
}

/// The edges that steps name by number. The last one is of the feature that may be born or waited for.
pub(crate) fn edge(n: usize) -> EdgeRef {
    let late = format!("{SEARCH}/requirements_design");
    id([REQUIREMENTS_DESIGN, DESIGN_CODE, &late][n])
}

impl Step {
    pub(crate) fn all() -> Vec<Self> {
        let of_edge = |n| {
            [
                Self::Claim(n),
                Self::Iterate(n, Status::Converged),
                Self::Iterate(n, Status::InProgress),
                Self::Renew(n),
                Self::Ask(n),
                Self::Review(n, ReviewDecision::Approved),
                Self::Review(n, ReviewDecision::ChangesRequested),
                Self::Converge(n),
                Self::Release(n),
                Self::Force(n),
                Self::Expire(n),
                Self::Reopen(n),
                Self::Spawn(n),
                Self::Fold(n),
            ]
        };
        let rest =
            [Self::Depend, Self::Publish, Self::Wait(2 * LEASE_MS), Self::Wait(2 * REVIEW_MS)];
        (0..3).flat_map(of_edge).chain(rest).collect()
    }
}

/// The event as it is read: no type has a second version.
pub(crate) fn current(event: &SequencedEvent) -> Current<'_> {
    Catalogs::default().current(event).unwrap()
}

impl World {
    /// A project with these rules, in which `AUTH` exists.
    pub(crate) fn new(rules: Rules) -> Self {
        let catalog = projects::Projects::catalog().unwrap();
        let mut world = Self { catalog, events: Vec::new(), now_ms: BEGIN_MS, claims: 0 };
        let mut config = multi();
        (config.on_expiry, config.stuck_after) = (rules.on_expiry, 2);
        let rules = config.rules();
        let born = projects::FeatureCreated { rules, ..created(AUTH) };
        world.record(events![initialized(config), born]);
        world
    }

    fn record(&mut self, events: Vec<NewEvent>) {
        for event in events {
            let partition = self.catalog.filing(&event).unwrap().partition;
            let before = self.events.iter().filter(|it| it.partition == partition).count();
            let event = sequenced(before, self.now_ms, event);
            self.events.push(SequencedEvent { partition, ..event });
        }
    }

    /// A state after all events of the types that it reads.
    pub(crate) fn known<S: State>(&self) -> S {
        let types = S::Reads::TYPES;
        let read = self.events.iter().filter(|it| types.contains(&it.event_type.as_str()));
        read.fold(S::default(), |state, it| state.evolve(S::Reads::decode(&current(it)).unwrap()))
    }

    pub(crate) fn context(&self) -> CommandContext {
        CommandContext { now_ms: self.now_ms, ..CommandContext::default() }
    }

    /// Records what the slice decides; nothing if it rejects the command.
    fn decide<S: Slice>(&mut self, command: S) {
        if let Ok(events) = command.decide(&self.known(), &self.context()) {
            self.record(events.iter().map(|event| event.to_event().unwrap()).collect());
        }
    }

    fn claim(&self, edge: &EdgeRef) -> ClaimId {
        let edges: Edges = self.known();
        edges.edge(edge).latest().map_or_else(|| id("none"), |claim| claim.id.clone())
    }

    /// The command of a new agent that claims the edge, and knows what its feature waits for.
    pub(crate) fn claim_edge(&self, edge: EdgeRef) -> ClaimEdge {
        let features: Features = self.known();
        let feature = features.feature(&edge.feature);
        let after: Vec<FeatureRef> =
            feature.map(|it| it.dependencies.iter().cloned().collect()).unwrap_or_default();
        let claim = id(&format!("c{}", self.claims + 1));
        ClaimEdge { edge, agent: id("ada"), claim, after: after.try_into().unwrap() }
    }

    /// Takes a step. Returns whether it changed anything.
    pub(crate) fn take(&mut self, step: Step) -> bool {
        let before = (self.events.len(), self.now_ms);
        self.carry_out(step);
        before != (self.events.len(), self.now_ms)
    }

    fn carry_out(&mut self, step: Step) {
        let agent = id("ada");
        match step {
            Step::Claim(n) => {
                let command = self.claim_edge(edge(n));
                self.claims += 1;
                self.decide(command);
            }
            Step::Iterate(n, status) => {
                let edge = edge(n);
                let (claim, edges) = (self.claim(&edge), self.known::<Edges>());
                let iteration = edges.edge(&edge).last_iteration() + 1;
                let delta = u32::from(status != Status::Converged);
                self.decide(CompleteIteration {
                    edge,
                    agent,
                    claim: Some(claim),
                    iteration,
                    status,
                    delta,
                    checks: checks(delta).try_into().unwrap(),
                    source_findings: Vec::new().try_into().unwrap(),
                    process_gaps: Vec::new().try_into().unwrap(),
                    artifact: Some(artifact()),
                    context_hash: hash(1),
                    req_keys: vec![id("AUTH-1")].try_into().unwrap(),
                    after: Vec::new().try_into().unwrap(),
                });
            }
            Step::Renew(n) => {
                let (edge, claim) = (edge(n), Some(self.claim(&edge(n))));
                self.decide(RenewClaim { edge, agent, claim });
            }
            Step::Ask(n) => {
                let (edge, claim) = (edge(n), Some(self.claim(&edge(n))));
                self.decide(RequestReview { edge, agent, claim });
            }
            Step::Review(n, decision) => {
                let (edge, edges) = (edge(n), self.known::<Edges>());
                let (run, iteration, sha256) = edges.edge(&edge).reviewed();
                let (agent, feedback) = (id("eve"), id("seen"));
                self.decide(RecordReview {
                    edge,
                    agent,
                    run,
                    iteration,
                    sha256,
                    decision,
                    feedback,
                });
            }
            Step::Converge(n) => {
                let (edge, claim) = (edge(n), Some(self.claim(&edge(n))));
                let convergence = projects::Convergence::Standard;
                let after = Vec::new().try_into().unwrap();
                self.decide(ConvergeEdge { edge, agent, claim, convergence, after });
            }
            Step::Release(n) => {
                let (edge, claim) = (edge(n), Some(self.claim(&edge(n))));
                self.decide(ReleaseEdge { edge, agent, claim, reason: id("enough") });
            }
            Step::Force(n) => {
                let (edge, agent) = (edge(n), id("eve"));
                self.decide(ForceRelease { edge, agent, reason: id("enough") });
            }
            Step::Expire(n) => {
                let edge = edge(n);
                let epoch =
                    self.known::<Edges>().edge(&edge).latest().map_or(0, |claim| claim.epoch);
                self.decide(ExpireClaim { edge, agent, epoch });
            }
            Step::Reopen(n) => {
                self.decide(ReopenEdge { edge: edge(n), agent, reason: id("it does not work") });
            }
            Step::Spawn(n) => self.spawn(n),
            Step::Fold(n) => {
                let (edge, child) = (edge(n), id(SEARCH));
                self.decide(FoldBack { edge, agent, child, payload: artifact() });
            }
            Step::Depend => {
                let on = || id::<FeatureRef>(SEARCH);
                let reachable = vec![on()].try_into().unwrap();
                self.decide(AddDependency { feature: id(AUTH), agent, on: on(), reachable });
            }
            Step::Publish => {
                let features = vec![id(AUTH)].try_into().unwrap();
                let (project, version, notes) = (id("shop"), id("1.0.0"), id("first"));
                let dry_run = false;
                self.decide(CreateRelease { project, version, agent, features, notes, dry_run });
            }
            Step::Wait(ms) => self.now_ms += ms,
        }
    }

    /// The child has an edge alone, and follows the intent if work is stuck.
    fn spawn(&mut self, n: usize) {
        let (edge, claim) = (edge(n), Some(self.claim(&edge(n))));
        let stuck = self.events.iter().rev().find(|event| event.event_type == "EdgeStuck");
        let intent = stuck.map(|event| id(event.data["intent"].as_str().unwrap()));
        self.decide(SpawnFeature {
            edge,
            agent: id("ada"),
            claim,
            child: id(SEARCH),
            title: id("Find out"),
            kind: projects::Kind::Spike,
            priority: 1,
            blocks: true,
            reason: id("nobody knows"),
            intent,
            time_box_ms: Some(LEASE_MS),
        });
    }

    /// All edges that there are.
    pub(crate) fn edges(&self) -> Vec<EdgeRef> {
        let known: Features = self.known();
        let features = [AUTH, SEARCH].map(|feature| id::<FeatureRef>(feature));
        let names = |feature: &FeatureRef| -> Vec<EdgeName> {
            let rules = known.feature(feature).map(|it| it.rules.edges.clone());
            rules.unwrap_or_default().into_iter().map(|rule| rule.edge).collect()
        };
        let edges = features.iter().flat_map(|feature| {
            names(feature).into_iter().map(|name| feature.edge(&name)).collect::<Vec<_>>()
        });
        edges.collect()
    }

    /// Whether a new agent would get the edge, and no person has to look at it first.
    pub(crate) fn is_ready(&self, edge: &EdgeRef) -> bool {
        let command = self.claim_edge(edge.clone());
        let granted = command.decide(&self.known(), &self.context()).is_ok();
        granted && !self.known::<Edges>().edge(edge).awaits_review()
    }
}
