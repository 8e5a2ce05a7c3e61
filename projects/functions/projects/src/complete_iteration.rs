//! CompleteIteration: reports one attempt at an edge.
//!
//! The boundary is the edge alone, so the most frequent command is one conditional put. A command without a claim may
//! have to begin the work, as in single mode. Then the boundary also has the feature and the features that it waits
//! for.

use ringfence::{List, Text, prelude::*};

use crate::start::{Working, working};
use crate::{
    AgentId, Artifact, Check, ClaimId, DEPENDENCIES_MAX, EdgeRef, EdgeStarted, EdgeStuck, Edges,
    FeatureRef, Features, IntentId, IterationCompleted, Projects, Rejection, ReqKey, Sha256,
    Status,
};

/// Reports an attempt.
#[derive(Clone, Debug, PartialEq, Command)]
#[tag(
    key = "feature",
    cross_partition,
    optional,
    value = claim.is_none().then_some(&edge.feature)
)]
pub struct CompleteIteration {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    #[serde(default)]
    pub agent: AgentId,
    /// The current claim. In single mode it may be left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimId>,
    /// One more than the last one of the run; the first is 1.
    pub iteration: u32,
    pub status: Status,
    /// How many required checks failed.
    pub delta: u32,
    pub checks: List<Check, 200>,
    /// What the agent found in its sources; empty if nothing.
    pub source_findings: List<Text<4_000>, 20>,
    /// Where the way of working fell short; empty if nowhere.
    pub process_gaps: List<Text<4_000>, 20>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,
    /// The hash of the agent's instructions.
    pub context_hash: Sha256,
    /// The requirements that the artefact answers to.
    #[serde(default)]
    pub req_keys: List<ReqKey, 50>,
    /// The features that the edge's feature waits for, if no claim is named and nobody holds the edge.
    #[tag(key = "feature", cross_partition)]
    #[serde(default)]
    pub after: List<FeatureRef, DEPENDENCIES_MAX>,
}

#[derive(Writes)]
pub enum Completed {
    Started(EdgeStarted),
    Iteration(IterationCompleted),
    Stuck(EdgeStuck),
}

/// The id of the intent that a plateau raises.
fn intent(edge: &EdgeRef, run: u32, iteration: u32) -> IntentId {
    IntentId::of("stuck", &Sha256::of(&format!("{edge}/{run}/{iteration}")))
}

impl Slice for CompleteIteration {
    const NAME: &'static str = "complete-iteration";
    type Context = Projects;
    type State = (Features, Edges);
    type Writes = Completed;
    type Rejection = Rejection;

    fn decide(
        &self,
        (features, edges): &(Features, Edges),
        context: &CommandContext,
    ) -> Result<Vec<Completed>, Rejection> {
        let Self { edge: of, agent, claim, iteration, status, delta, .. } = self.clone();
        let edge = edges.edge(&of);
        let by = (&agent, claim.as_ref());
        let Working { claim, started, .. } =
            working((features, edges), &of, by, &self.after, context)?;
        if edge.awaits_review() {
            return Err(Rejection::AwaitingReview);
        }
        let expected = edge.last_iteration() + 1;
        if iteration != expected {
            return Err(Rejection::IterationOutOfOrder { expected });
        }
        let failed = self.checks.iter().filter(|check| check.required && !check.passed).count();
        let failed = u32::try_from(failed).unwrap_or(u32::MAX);
        if delta != failed {
            return Err(Rejection::DeltaDiffers { failed });
        }
        if status == Status::Converged && delta > 0 {
            return Err(Rejection::NotConverged);
        }
        let run = edge.run();
        let stuck_after = started.as_ref().map_or(edge.stuck_after(), |it| it.stuck_after);
        let stuck = edge.gets_stuck(delta, stuck_after).then(|| {
            let intent = intent(&of, run, iteration);
            let (edge, agent) = (of.clone(), agent.clone());
            Completed::Stuck(EdgeStuck { edge, agent, intent, run, iteration, delta })
        });
        let texts = |texts: &List<Text<4_000>, 20>| texts.iter().cloned().map(Into::into).collect();
        let completed = Completed::Iteration(IterationCompleted {
            edge: of,
            agent,
            claim,
            run,
            iteration,
            status,
            delta,
            checks: self.checks.to_vec(),
            source_findings: texts(&self.source_findings),
            process_gaps: texts(&self.process_gaps),
            artifact: self.artifact.clone(),
            context_hash: self.context_hash.clone(),
            req_keys: self.req_keys.to_vec(),
        });
        let started = started.map(Completed::Started);
        Ok(started.into_iter().chain([completed]).chain(stuck).collect())
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::*;
        use crate::{FeatureCreated, Otherwise};

        let complete = |claim, iteration, delta| CompleteIteration {
            edge: id(DESIGN_CODE),
            agent: id("ada"),
            claim: Some(id(claim)),
            iteration,
            status: if delta == 0 { Status::Converged } else { Status::InProgress },
            delta,
            checks: checks(delta).try_into().expect("few"),
            source_findings: List::default(),
            process_gaps: List::default(),
            artifact: Some(artifact()),
            context_hash: hash(1),
            req_keys: vec![id("AUTH-1")].try_into().expect("few"),
            after: List::default(),
        };
        let alone = |iteration, delta| CompleteIteration {
            agent: AgentId::default(),
            claim: None,
            ..complete("c1", iteration, delta)
        };
        // The iteration of an agent that works alone, and the claim that begins with it.
        let by_primary = |claim: &str, iteration, delta| {
            let agent = AgentId::default();
            Completed::Iteration(IterationCompleted { agent, ..iterated(claim, iteration, delta) })
        };
        let begins = |claim: &str, epoch| {
            let lease_ms = None;
            Completed::Started(EdgeStarted { lease_ms, ..started("primary", claim, epoch) })
        };
        let held = |claim: &str| EdgeStarted { lease_ms: None, ..started("primary", claim, 1) };
        let single_ready = || given(ready_under(single().rules()));
        let done = |iteration, delta| Completed::Iteration(iterated("c1", iteration, delta));
        let is_stuck = |iteration, delta| {
            let (edge, agent) = (id(DESIGN_CODE), id("ada"));
            let intent = intent(&edge, 1, iteration);
            EdgeStuck { edge, agent, intent, run: 1, iteration, delta }
        };
        let stuck = |iteration, delta| Completed::Stuck(is_stuck(iteration, delta));
        let plateau = |iteration, delta| ringfence::NewEvent::from(is_stuck(iteration, delta));
        let by_ada = || given(events![started("ada", "c1", 1)]);
        let stale = |claim| Rejection::StaleClaim { claim: id(claim) };
        let not_yours = |agent| Rejection::NotYourClaim { claim: id("c1"), agent: id(agent) };
        vec![
            given([]).when(complete("c1", 1, 0)).then_rejected(stale("c1")),
            by_ada().when(complete("c1", 1, 0)).then([done(1, 0)]),
            by_ada().when(complete("c2", 1, 0)).then_rejected(stale("c2")),
            by_ada()
                .and(events![claim_expired("ada", "c1", 1), started("bob", "c2", 2)])
                .when(complete("c1", 1, 0))
                .then_rejected(stale("c1")),
            // Only a claim's agent works under it, even if others know the id.
            by_ada()
                .when(CompleteIteration { agent: id("bob"), ..complete("c1", 1, 0) })
                .then_rejected(not_yours("ada")),
            // Convergence ends the claim.
            by_ada()
                .and(events![iterated("c1", 1, 0), converged(DESIGN_CODE, "c1")])
                .when(complete("c1", 2, 0))
                .then_rejected(stale("c1")),
            // Late work counts while nobody has taken the edge over.
            by_ada().wait(9 * crate::LEASE_MS).when(complete("c1", 1, 0)).then([done(1, 0)]),
            by_ada()
                .and(events![iterated("c1", 1, 2)])
                .when(complete("c1", 3, 0))
                .then_rejected(Rejection::IterationOutOfOrder { expected: 2 }),
            // A check that is not required does not count.
            by_ada()
                .when(CompleteIteration {
                    checks: vec![Check { name: id("lint"), required: false, passed: false }]
                        .try_into()
                        .expect("one"),
                    ..complete("c1", 1, 1)
                })
                .then_rejected(Rejection::DeltaDiffers { failed: 0 }),
            // The next holder goes on counting.
            by_ada()
                .and(events![
                    iterated("c1", 1, 2),
                    claim_expired("ada", "c1", 1),
                    started("bob", "c2", 2)
                ])
                .when(CompleteIteration { agent: id("bob"), ..complete("c2", 1, 0) })
                .then_rejected(Rejection::IterationOutOfOrder { expected: 2 }),
            // A new run counts from 1.
            by_ada()
                .and(events![
                    iterated("c1", 1, 0),
                    converged(DESIGN_CODE, "c1"),
                    reopened(2),
                    crate::EdgeStarted { run: 2, ..started("ada", "c2", 2) }
                ])
                .when(complete("c2", 1, 1))
                .then([Completed::Iteration(IterationCompleted {
                    run: 2,
                    ..iterated("c2", 1, 1)
                })]),
            by_ada()
                .and(events![iterated("c1", 1, 0), review_requested(1)])
                .when(complete("c1", 2, 0))
                .then_rejected(Rejection::AwaitingReview),
            by_ada()
                .and(events![iterated("c1", 1, 0), review_requested(1), reviewed(1)])
                .when(complete("c1", 2, 0))
                .then([done(2, 0)]),
            by_ada()
                .and(events![iterated("c1", 1, 0), barred(Otherwise::Escalate)])
                .when(complete("c1", 2, 0))
                .then_rejected(Rejection::AwaitingReview),
            by_ada()
                .and(events![iterated("c1", 1, 0), barred(Otherwise::Reject)])
                .when(complete("c1", 2, 0))
                .then([done(2, 0)]),
            by_ada()
                .when(CompleteIteration { delta: 1, ..complete("c1", 1, 2) })
                .then_rejected(Rejection::DeltaDiffers { failed: 2 }),
            by_ada()
                .when(CompleteIteration { status: Status::Converged, ..complete("c1", 1, 2) })
                .then_rejected(Rejection::NotConverged),
            // The third equal delta in succession shows that work is stuck, and no later one.
            by_ada()
                .and(events![iterated("c1", 1, 2), iterated("c1", 2, 2)])
                .when(complete("c1", 3, 2))
                .then([done(3, 2), stuck(3, 2)]),
            by_ada()
                .and(events![iterated("c1", 1, 2), iterated("c1", 2, 2), iterated("c1", 3, 2)])
                .and([plateau(3, 2)])
                .when(complete("c1", 4, 2))
                .then([done(4, 2)]),
            // Another plateau after it.
            by_ada()
                .and(events![iterated("c1", 1, 2), iterated("c1", 2, 2), iterated("c1", 3, 2)])
                .and([plateau(3, 2)])
                .and(events![iterated("c1", 4, 1), iterated("c1", 5, 1)])
                .when(complete("c1", 6, 1))
                .then([done(6, 1), stuck(6, 1)]),
            // The next holder came under other rules, by which the plateau is long enough already.
            by_ada()
                .and(events![iterated("c1", 1, 2), iterated("c1", 2, 2), iterated("c1", 3, 2)])
                .and(events![
                    claim_expired("ada", "c1", 1),
                    crate::EdgeStarted { stuck_after: 2, ..started("ada", "c2", 2) }
                ])
                .when(complete("c2", 4, 2))
                .then([Completed::Iteration(iterated("c2", 4, 2)), stuck(4, 2)]),
            by_ada()
                .and(events![iterated("c1", 1, 2), iterated("c1", 2, 1), iterated("c1", 3, 2)])
                .when(complete("c1", 4, 2))
                .then([done(4, 2)]),
            by_ada()
                .and(events![iterated("c1", 1, 0), iterated("c1", 2, 0)])
                .when(complete("c1", 3, 0))
                .then([done(3, 0)]),
            // In single mode the work itself claims a free edge, and goes on under the claim.
            single_ready()
                .when(alone(1, 2))
                .then([begins("primary-1", 1), by_primary("primary-1", 1, 2)]),
            single_ready()
                .and(events![held("c1"), iterated("c1", 1, 2)])
                .when(alone(2, 0))
                .then([by_primary("c1", 2, 0)]),
            // No other agent works under it, whether it names the claim or not.
            single_ready()
                .and(events![held("c1")])
                .when(CompleteIteration { agent: id("ada"), ..alone(1, 0) })
                .then_rejected(not_yours("primary")),
            single_ready()
                .and(events![held("c1")])
                .when(complete("c1", 1, 0))
                .then_rejected(not_yours("primary")),
            // Somebody has chosen the id.
            single_ready()
                .and(events![held("primary-2"), released("primary", "primary-2")])
                .when(alone(1, 0))
                .then([begins("primary-3", 2), by_primary("primary-3", 1, 0)]),
            single_ready()
                .and(events![held("c1"), converged(DESIGN_CODE, "c1")])
                .when(alone(1, 0))
                .then_rejected(Rejection::AlreadyConverged),
            given(events![FeatureCreated { rules: single().rules(), ..created(AUTH) }])
                .when(alone(1, 0))
                .then_rejected(Rejection::NotAdmissible { edges: vec![id("requirements_design")] }),
            single_ready()
                .and(events![waits(AUTH, SEARCH), created(SEARCH)])
                .when(alone(1, 0))
                .then_rejected(Rejection::DependenciesDiffer { dependencies: vec![id(SEARCH)] }),
            single_ready()
                .and(events![waits(AUTH, SEARCH), created(SEARCH)])
                .when(CompleteIteration {
                    after: vec![id(SEARCH)].try_into().expect("one"),
                    ..alone(1, 0)
                })
                .then_rejected(Rejection::WaitsFor { features: vec![id(SEARCH)] }),
            given([])
                .when(alone(1, 0))
                .then_rejected(Rejection::UnknownFeature { feature: id(AUTH) }),
            single_ready()
                .when(CompleteIteration { agent: id("ada"), ..alone(1, 0) })
                .then_rejected(Rejection::SingleMode),
            // Where many agents work, the agent is named, and a claim comes first.
            given(ready()).when(alone(1, 0)).then_rejected(Rejection::AgentMissing),
            given(ready())
                .when(CompleteIteration { agent: id("ada"), ..alone(1, 0) })
                .then_rejected(Rejection::ClaimMissing),
            given(ready())
                .and(events![started("ada", "c1", 1)])
                .when(CompleteIteration { agent: id("ada"), ..alone(1, 0) })
                .then_rejected(Rejection::ClaimMissing),
            by_ada()
                .when(CompleteIteration { agent: AgentId::default(), ..complete("c1", 1, 0) })
                .then_rejected(Rejection::AgentMissing),
        ]
    }
}

#[test]
fn what_an_agent_found_is_asked_for_even_if_it_is_nothing() {
    let command = serde_json::json!({
        "edge": crate::facts::DESIGN_CODE,
        "agent": "ada",
        "claim": "c1",
        "iteration": 1,
        "status": "converged",
        "delta": 0,
        "checks": [],
        "sourceFindings": [],
        "processGaps": [],
        "contextHash": crate::facts::hash(1),
    });
    let parse = |command: &serde_json::Value| {
        serde_json::from_value::<CompleteIteration>(command.clone()).map_err(|it| it.to_string())
    };
    assert!(parse(&command).is_ok());
    for field in ["sourceFindings", "processGaps"] {
        let mut without = command.clone();
        without.as_object_mut().expect("an object").remove(field);
        assert_eq!(parse(&without).unwrap_err(), format!("missing field `{field}`"));
    }
}
