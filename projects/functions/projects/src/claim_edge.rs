//! ClaimEdge: gives an agent the sole right to work on an edge.
//!
//! The boundary is the edge, where claims and work constrain each other, the feature, and the features that it waits
//! for. A query follows from the command alone; therefore the command names the features to wait for, and the decision
//! checks them. If an agent does not get the edge, an event says so, once for each claim that bars the agent. The event
//! is in a partition for this agent, so repeated attempts do not conflict with the holder.

use std::collections::BTreeSet;

use ringfence::{List, prelude::*};

use crate::start::{check_free, held, started};
use crate::{
    AgentId, ClaimExpired, ClaimId, ClaimRejected, DEPENDENCIES_MAX, DetectedBy, EdgeRef,
    EdgeStarted, Edges, FeatureRef, Features, Mode, Projects, Rejection, principal,
};

/// Claims an edge.
#[derive(Clone, Debug, PartialEq, Command)]
#[tag(key = "feature", cross_partition, value = edge.feature)]
#[tag(key = "attempt", value = format!("{edge}/{agent}"))]
pub struct ClaimEdge {
    #[tag(key = "edge")]
    pub edge: EdgeRef,
    #[serde(default)]
    pub agent: AgentId,
    /// A new id. A repeat of the command with the same id gets the same claim.
    pub claim: ClaimId,
    /// The features that the edge's feature waits for.
    #[tag(key = "feature", cross_partition)]
    #[serde(default)]
    pub after: List<FeatureRef, DEPENDENCIES_MAX>,
}

/// The rejections of an agent that did not get the edge.
#[derive(Reads)]
pub enum Attempt {
    ClaimRejected { epoch: u64 },
}

/// The epochs of the claims that kept the agent away before.
#[derive(Default)]
pub struct Attempts(BTreeSet<u64>);

#[derive(Writes)]
pub enum Claimed {
    Expired(ClaimExpired),
    Started(EdgeStarted),
    Rejected(ClaimRejected),
}

impl State for Attempts {
    type Reads = Attempt;

    fn evolve(mut self, Attempt::ClaimRejected { epoch }: Attempt) -> Self {
        self.0.insert(epoch);
        self
    }
}

impl Slice for ClaimEdge {
    const NAME: &'static str = "claim-edge";
    type Context = Projects;
    type State = (Features, Edges, Attempts);
    type Writes = Claimed;
    type Rejection = Rejection;

    fn decide(
        &self,
        (features, edges, _): &(Features, Edges, Attempts),
        context: &CommandContext,
    ) -> Result<Vec<Claimed>, Rejection> {
        let Self { edge: of, agent, claim, after } = self;
        let (feature, _) = features.rule(of)?;
        let edge = edges.edge(of);
        let rules = &feature.rules;
        if rules.mode == Mode::Single && !agent.is_primary() {
            return Err(Rejection::SingleMode);
        }
        if let Some(before) = edge.claim(claim) {
            let is_current = edge.current() == Some(before);
            return match is_current
                && before.agent == *agent
                && before.principal == principal(context)
            {
                true => Ok(vec![]),
                false => Err(Rejection::ClaimIdUsed { claim: claim.clone() }),
            };
        }
        rules.mode.check(agent)?;
        check_free(features, edge, of, after)?;
        if let Some(held) = held(edge, agent, rules.on_expiry, context) {
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
        let started = Claimed::Started(started(of, agent, claim, rules, edge, context));
        Ok(expired.into_iter().chain([started]).collect())
    }

    fn leaves(
        &self,
        rejection: &Rejection,
        (features, _, attempts): &(Features, Edges, Attempts),
        _: &CommandContext,
    ) -> Vec<Claimed> {
        let Rejection::EdgeHeld { holder, claim, epoch, lease_until_ms, .. } = rejection.clone()
        else {
            return vec![];
        };
        let is_multi =
            features.feature(&self.edge.feature).is_ok_and(|it| it.rules.mode == Mode::Multi);
        if !is_multi || attempts.0.contains(&epoch) {
            return vec![];
        }
        let (edge, agent) = (self.edge.clone(), self.agent.clone());
        let rejected = ClaimRejected { edge, agent, holder, claim, epoch, lease_until_ms };
        vec![Claimed::Rejected(rejected)]
    }

    fn cases() -> Vec<Case<Self>> {
        use ringfence::kit::BEGIN_MS;

        use crate::facts::*;
        use crate::{FeatureCreated, GRACE_MS, Hold, LEASE_MS, OnExpiry, REVIEW_MS, Rules};

        fn claim(agent: &str, claim: &str) -> ClaimEdge {
            let (edge, agent, claim) = (id(DESIGN_CODE), id(agent), id(claim));
            ClaimEdge { edge, agent, claim, after: Default::default() }
        }

        fn after(command: ClaimEdge, on: &[&str]) -> ClaimEdge {
            let on: Vec<FeatureRef> = on.iter().map(|on| id(on)).collect();
            ClaimEdge { after: on.try_into().expect("few"), ..command }
        }

        fn granted(agent: &str, claim: &str, epoch: u64) -> Claimed {
            Claimed::Started(started(agent, claim, epoch))
        }

        fn expired(agent: &str, claim: &str, epoch: u64, lease_until_ms: u64) -> Claimed {
            Claimed::Expired(ClaimExpired {
                lease_until_ms,
                detected_by: DetectedBy::Takeover,
                ..claim_expired(agent, claim, epoch)
            })
        }

        fn held_until(lease_until_ms: u64) -> Rejection {
            held_as(Hold::Current, lease_until_ms)
        }

        fn held_as(hold: Hold, lease_until_ms: u64) -> Rejection {
            let lease_until_ms = Some(lease_until_ms);
            Rejection::EdgeHeld {
                holder: id("ada"),
                claim: id("c1"),
                epoch: 1,
                hold,
                lease_until_ms,
            }
        }

        fn kept_away(agent: &str, lease_until_ms: u64) -> Claimed {
            Claimed::Rejected(ClaimRejected {
                edge: id(DESIGN_CODE),
                agent: id(agent),
                holder: id("ada"),
                claim: id("c1"),
                epoch: 1,
                lease_until_ms: Some(lease_until_ms),
            })
        }

        /// Events of one moment have times that differ by a millisecond each. A wait makes the time of a claim exact.
        const MINUTE_MS: u64 = 60_000;

        /// When a lease ends that began a minute after the case.
        const UNTIL: u64 = BEGIN_MS + MINUTE_MS + LEASE_MS;

        /// Nobody holds the edge.
        fn free() -> Vec<Case<ClaimEdge>> {
            let signal_only = || Rules { on_expiry: OnExpiry::SignalOnly, ..multi().rules() };
            vec![
                given(ready()).when(claim("ada", "c1")).then([granted("ada", "c1", 1)]),
                given(ready()).when(claim("ada", "c1")).by("direct:key-1").then([
                    Claimed::Started(EdgeStarted {
                        principal: Some("direct:key-1".to_owned()),
                        ..started("ada", "c1", 1)
                    }),
                ]),
                given(ready())
                    .and(events![started("ada", "c1", 1), released("ada", "c1")])
                    .when(claim("bob", "c2"))
                    .then([granted("bob", "c2", 2)]),
                // The schedule has seen that the lease was over.
                given(ready())
                    .and(events![started("ada", "c1", 1), claim_expired("ada", "c1", 1)])
                    .when(claim("bob", "c2"))
                    .then([granted("bob", "c2", 2)]),
                // Such a claim bars others if the project says so, until a person releases it.
                given(ready_under(signal_only()))
                    .wait(MINUTE_MS)
                    .and(events![started("ada", "c1", 1), claim_expired("ada", "c1", 1)])
                    .when(claim("bob", "c2"))
                    .then_rejected_leaving(held_as(Hold::Over, UNTIL), [kept_away("bob", UNTIL)]),
                // The agent itself can't go on under it either.
                given(ready_under(signal_only()))
                    .wait(MINUTE_MS)
                    .and(events![started("ada", "c1", 1), claim_expired("ada", "c1", 1)])
                    .when(claim("ada", "c2"))
                    .then_rejected_leaving(held_as(Hold::Over, UNTIL), [kept_away("ada", UNTIL)]),
                given(ready_under(signal_only()))
                    .and(events![
                        started("ada", "c1", 1),
                        claim_expired("ada", "c1", 1),
                        released("ada", "c1")
                    ])
                    .when(claim("bob", "c2"))
                    .then([granted("bob", "c2", 2)]),
                // A new run begins where a converged edge was opened again.
                given(ready())
                    .and(events![
                        started("ada", "c1", 1),
                        converged(DESIGN_CODE, "c1"),
                        reopened(2)
                    ])
                    .when(claim("bob", "c2"))
                    .then([Claimed::Started(EdgeStarted { run: 2, ..started("bob", "c2", 2) })]),
                // In single mode the lease has no end, and nobody else takes part.
                given(ready_under(single().rules())).when(claim("primary", "c1")).then([
                    Claimed::Started(EdgeStarted { lease_ms: None, ..started("primary", "c1", 1) }),
                ]),
                given(ready_under(single().rules()))
                    .when(claim("ada", "c1"))
                    .then_rejected(Rejection::SingleMode),
                given(ready_under(single().rules()))
                    .and(events![EdgeStarted { lease_ms: None, ..started("primary", "c1", 1) }])
                    .wait(100 * LEASE_MS)
                    .when(claim("primary", "c2"))
                    .then_rejected(Rejection::EdgeHeld {
                        holder: id("primary"),
                        claim: id("c1"),
                        epoch: 1,
                        hold: Hold::Yours,
                        lease_until_ms: None,
                    }),
                given(ready()).when(claim("primary", "c1")).then_rejected(Rejection::AgentMissing),
                // A feature whose project has changed to multi mode keeps its holder.
                given(ready())
                    .and(events![EdgeStarted { lease_ms: None, ..started("primary", "c1", 1) }])
                    .wait(100 * LEASE_MS)
                    .when(claim("primary", "c1"))
                    .then_nothing(),
            ]
        }

        /// Somebody holds it.
        fn held() -> Vec<Case<ClaimEdge>> {
            let by_ada = || given(ready()).wait(MINUTE_MS).and(events![started("ada", "c1", 1)]);
            vec![
                by_ada().when(claim("ada", "c1")).then_nothing(),
                by_ada()
                    .when(claim("bob", "c2"))
                    .then_rejected_leaving(held_until(UNTIL), [kept_away("bob", UNTIL)]),
                // The rejection is recorded once for each claim and agent.
                by_ada()
                    .and(events![ClaimRejected {
                        edge: id(DESIGN_CODE),
                        agent: id("bob"),
                        holder: id("ada"),
                        claim: id("c1"),
                        epoch: 1,
                        lease_until_ms: Some(UNTIL),
                    }])
                    .when(claim("bob", "c2"))
                    .then_rejected(held_until(UNTIL)),
                // Rejections of another agent do not count.
                by_ada()
                    .and(events![ClaimRejected {
                        edge: id(DESIGN_CODE),
                        agent: id("carl"),
                        holder: id("ada"),
                        claim: id("c1"),
                        epoch: 1,
                        lease_until_ms: Some(UNTIL),
                    }])
                    .when(claim("bob", "c2"))
                    .then_rejected_leaving(held_until(UNTIL), [kept_away("bob", UNTIL)]),
                // The id of another's claim, of the same agent under another caller, and of a claim that is over.
                by_ada()
                    .when(claim("bob", "c1"))
                    .then_rejected(Rejection::ClaimIdUsed { claim: id("c1") }),
                by_ada()
                    .when(claim("ada", "c1"))
                    .by("direct:key-1")
                    .then_rejected(Rejection::ClaimIdUsed { claim: id("c1") }),
                by_ada()
                    .and(events![released("ada", "c1")])
                    .when(claim("ada", "c1"))
                    .then_rejected(Rejection::ClaimIdUsed { claim: id("c1") }),
                // Its own holder gets no second claim either.
                by_ada()
                    .when(claim("ada", "c2"))
                    .then_rejected_leaving(held_as(Hold::Yours, UNTIL), [kept_away("ada", UNTIL)]),
                // An agent of the same name under another caller is another one.
                by_ada()
                    .when(claim("ada", "c2"))
                    .by("direct:key-1")
                    .then_rejected_leaving(held_until(UNTIL), [kept_away("ada", UNTIL)]),
                by_ada()
                    .and(events![converged(DESIGN_CODE, "c1")])
                    .when(claim("bob", "c2"))
                    .then_rejected(Rejection::AlreadyConverged),
            ]
        }

        /// Its holder is late.
        fn overdue() -> Vec<Case<ClaimEdge>> {
            let by_ada = || given(ready()).wait(MINUTE_MS).and(events![started("ada", "c1", 1)]);
            let late = LEASE_MS + GRACE_MS;
            let in_review = || {
                let worked = by_ada().wait(MINUTE_MS).and(events![iterated("c1", 1, 0)]);
                worked.wait(MINUTE_MS).and(events![review_requested(1)])
            };
            let until_review = UNTIL + 2 * MINUTE_MS;
            let mut cases = vec![
                by_ada()
                    .wait(late)
                    .when(claim("bob", "c2"))
                    .then_rejected_leaving(held_until(UNTIL), [kept_away("bob", UNTIL)]),
                by_ada()
                    .wait(late + 1)
                    .when(claim("bob", "c2"))
                    .then([expired("ada", "c1", 1, UNTIL), granted("bob", "c2", 2)]),
                // Its own claim is not taken over by a repeat.
                by_ada().wait(late + 1).when(claim("ada", "c1")).then_nothing(),
                given(ready_under(Rules { on_expiry: OnExpiry::SignalOnly, ..multi().rules() }))
                    .wait(MINUTE_MS)
                    .and(events![started("ada", "c1", 1)])
                    .wait(late + 1)
                    .when(claim("bob", "c2"))
                    .then_rejected_leaving(held_as(Hold::Over, UNTIL), [kept_away("bob", UNTIL)]),
                // Its own holder can go on, however late.
                given(ready_under(Rules { on_expiry: OnExpiry::SignalOnly, ..multi().rules() }))
                    .wait(MINUTE_MS)
                    .and(events![started("ada", "c1", 1)])
                    .wait(late + 1)
                    .when(claim("ada", "c2"))
                    .then_rejected_leaving(held_as(Hold::Yours, UNTIL), [kept_away("ada", UNTIL)]),
                // After a review the lease starts again.
                in_review()
                    .wait(REVIEW_MS / 2)
                    .and(events![reviewed(1)])
                    .wait(late)
                    .when(claim("bob", "c2"))
                    .then_rejected_leaving(
                        held_until(until_review + REVIEW_MS / 2),
                        [kept_away("bob", until_review + REVIEW_MS / 2)],
                    ),
                // A person who takes longer than seven days does not hold the edge for ever.
                in_review().wait(REVIEW_MS + late + 1).when(claim("bob", "c2")).then([
                    expired("ada", "c1", 1, until_review + REVIEW_MS),
                    granted("bob", "c2", 2),
                ]),
                in_review()
                    .wait(2 * REVIEW_MS)
                    .and(events![reviewed(1)])
                    .when(claim("bob", "c2"))
                    .then([
                        expired("ada", "c1", 1, until_review + REVIEW_MS),
                        granted("bob", "c2", 2),
                    ]),
            ];
            // Every act of the holder shows that it is at work.
            for work in [
                events![iterated("c1", 1, 2)],
                events![renewed("ada", "c1")],
                events![barred(crate::Otherwise::Warn)],
                events![spawned(SEARCH, false)],
            ] {
                let worked = || by_ada().wait(LEASE_MS / 2).and(work.clone());
                let until = UNTIL + LEASE_MS / 2;
                cases.push(
                    worked()
                        .wait(late)
                        .when(claim("bob", "c2"))
                        .then_rejected_leaving(held_until(until), [kept_away("bob", until)]),
                );
                cases.push(
                    worked()
                        .wait(late + 1)
                        .when(claim("bob", "c2"))
                        .then([expired("ada", "c1", 1, until), granted("bob", "c2", 2)]),
                );
            }
            cases
        }

        /// Something else comes first.
        fn first() -> Vec<Case<ClaimEdge>> {
            let pay = || {
                events![
                    created(AUTH),
                    FeatureCreated { dependencies: vec![id(AUTH)], ..created(PAY) },
                ]
            };
            let on_pay = |command: ClaimEdge| ClaimEdge {
                edge: id(&format!("{PAY}/requirements_design")),
                ..command
            };
            let done = || {
                events![
                    converged(&format!("{AUTH}/requirements_design"), "c8"),
                    converged(&format!("{AUTH}/design_code"), "c9"),
                ]
            };
            let of_pay = |event: EdgeStarted| {
                let edge: EdgeRef = id(&format!("{PAY}/requirements_design"));
                Claimed::Started(EdgeStarted { edge, ..event })
            };
            vec![
                given([])
                    .when(claim("ada", "c1"))
                    .then_rejected(Rejection::UnknownFeature { feature: id(AUTH) }),
                given(ready())
                    .when(ClaimEdge {
                        edge: id(&format!("{AUTH}/code_tests")),
                        ..claim("ada", "c1")
                    })
                    .then_rejected(Rejection::UnknownEdge {
                        edge: id(&format!("{AUTH}/code_tests")),
                    }),
                given(events![created(AUTH)]).when(claim("ada", "c1")).then_rejected(
                    Rejection::NotAdmissible { edges: vec![id("requirements_design")] },
                ),
                given(ready())
                    .when(after(claim("ada", "c1"), &[SEARCH]))
                    .then_rejected(Rejection::DependenciesDiffer { dependencies: vec![] }),
                given(pay())
                    .when(on_pay(claim("ada", "c1")))
                    .then_rejected(Rejection::DependenciesDiffer { dependencies: vec![id(AUTH)] }),
                given(pay())
                    .when(after(on_pay(claim("ada", "c1")), &[AUTH]))
                    .then_rejected(Rejection::WaitsFor { features: vec![id(AUTH)] }),
                given(pay())
                    .and(done())
                    .when(after(on_pay(claim("ada", "c1")), &[AUTH]))
                    .then([of_pay(started("ada", "c1", 1))]),
                // A feature is not done if one of its edges was opened again.
                given(pay())
                    .and(done())
                    .and(events![reopened(2)])
                    .when(after(on_pay(claim("ada", "c1")), &[AUTH]))
                    .then_rejected(Rejection::WaitsFor { features: vec![id(AUTH)] }),
                given(ready())
                    .and(events![
                        started("ada", "c1", 1),
                        spawned(SEARCH, true),
                        released("ada", "c1")
                    ])
                    .when(claim("bob", "c2"))
                    .then_rejected(Rejection::BlockedBySpawn { children: vec![id(SEARCH)] }),
                given(ready())
                    .and(events![
                        started("ada", "c1", 1),
                        spawned(SEARCH, true),
                        released("ada", "c1"),
                        folded_back(SEARCH)
                    ])
                    .when(claim("bob", "c2"))
                    .then([granted("bob", "c2", 2)]),
            ]
        }

        [free(), held(), overdue(), first()].into_iter().flatten().collect()
    }
}
