//! ConvergeEdge: ends the work on an edge.
//!
//! Only this slice checks the caller's role. If the role may not converge the edge, the project says what follows: a
//! rejection, an escalation to a person, or only a note.

use ringfence::{List, prelude::*};

use crate::start::{Working, working};
use crate::{
    AgentId, Claim, ClaimId, Convergence, ConvergenceEscalated, DEPENDENCIES_MAX, Edge,
    EdgeConverged, EdgeRef, EdgeStarted, Edges, FeatureRef, Features, Gate, Mode, Otherwise,
    Project, Projects, Rejection, ReviewDecision, RoleName, Status, ended, who,
};

/// Ends the work on an edge.
#[derive(Clone, Debug, PartialEq, Command)]
#[tag(key = "feature", cross_partition, value = edge.feature)]
#[tag(key = "project", cross_partition, value = edge.feature.project)]
pub struct ConvergeEdge {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    #[serde(default)]
    pub agent: AgentId,
    /// The current claim. In single mode it may be left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimId>,
    pub convergence: Convergence,
    /// The features that the edge's feature waits for, if no claim is named and nobody holds the edge.
    #[tag(key = "feature", cross_partition)]
    #[serde(default)]
    pub after: List<FeatureRef, DEPENDENCIES_MAX>,
}

#[derive(Writes)]
pub enum Ended {
    Started(EdgeStarted),
    Converged(EdgeConverged),
    Escalated(ConvergenceEscalated),
}

impl ConvergeEdge {
    /// Whether the edge has converged by this command.
    fn has_ended(&self, edge: &Edge, mode: Mode) -> bool {
        match &self.claim {
            Some(claim) => edge.latest().is_some_and(|latest| latest.id == *claim),
            None => mode == Mode::Single,
        }
    }

    /// The event of a try by a role that may not converge the edge.
    fn note(
        &self,
        claim: ClaimId,
        edge: &Edge,
        role: Option<RoleName>,
        action: Otherwise,
    ) -> Ended {
        let Self { edge: of, agent, convergence, .. } = self.clone();
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
    type State = (Project, Features, Edges);
    type Writes = Ended;
    type Rejection = Rejection;

    fn decide(
        &self,
        (project, features, edges): &(Project, Features, Edges),
        context: &CommandContext,
    ) -> Result<Vec<Ended>, Rejection> {
        let Self { edge: of, agent, convergence, .. } = self;
        let (config, _) = project.config(&of.feature.project)?;
        let (feature, rule) = features.rule(of)?;
        let edge = edges.edge(of);
        if edge.is_converged() && self.has_ended(edge, feature.rules.mode) {
            return Ok(vec![]);
        }
        let who = who(context, agent);
        let Working { claim, epoch, started } = match (convergence, &self.claim) {
            // Where many agents work, a person answers a question under the claim of the agent that asked it.
            (Convergence::QuestionAnswered, Some(claim))
                if config.mode == Mode::Multi && config.is_human(&who) =>
            {
                config.mode.check(agent)?;
                let Claim { id, epoch, .. } = edge.check_current(claim)?.clone();
                Working { claim: id, epoch, started: None }
            }
            (_, claim) => {
                let by = (agent, claim.as_ref());
                working((features, edges), of, by, &self.after, context)?
            }
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
        let before = edge.barred(&claim, edge.last_iteration());
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
        let noted = noted.map(|(role, action)| self.note(claim.clone(), edge, role, action));
        let ended = ends
            .then(|| ended(of, agent, feature, edge, (claim, epoch), *convergence))
            .map(Ended::Converged);
        Ok(started.map(Ended::Started).into_iter().chain(noted).chain(ended).collect())
    }

    fn leaves(
        &self,
        rejection: &Rejection,
        (_, _, edges): &(Project, Features, Edges),
        _: &CommandContext,
    ) -> Vec<Ended> {
        let Rejection::NotAuthorised { role, .. } = rejection else { return vec![] };
        let edge = edges.edge(&self.edge);
        // Only in multi mode a role is asked for, and there the claim is current.
        let Some(claim) = edge.current().map(|claim| claim.id.clone()) else { return vec![] };
        match edge.barred(&claim, edge.last_iteration()) {
            None => vec![self.note(claim, edge, role.clone(), Otherwise::Reject)],
            Some(_) => vec![],
        }
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::*;
        use crate::{Authority, Config, FeatureCreated, IterationCompleted, Kind, ReviewCompleted};

        fn converge(agent: &str, claim: &str, convergence: Convergence) -> ConvergeEdge {
            ConvergeEdge {
                edge: id(DESIGN_CODE),
                agent: id(agent),
                claim: Some(id(claim)),
                convergence,
                after: List::default(),
            }
        }

        fn standard() -> ConvergeEdge {
            converge("ada", "c1", Convergence::Standard)
        }

        fn done() -> Ended {
            Ended::Converged(converged(DESIGN_CODE, "c1"))
        }

        fn answered(by: &str, convergence: Convergence, iteration: u32) -> Ended {
            let req_keys = if iteration == 0 { vec![] } else { vec![id("AUTH-1")] };
            let of_ada = converged(DESIGN_CODE, "c1");
            Ended::Converged(EdgeConverged {
                agent: id(by),
                convergence,
                iteration,
                req_keys,
                ..of_ada
            })
        }

        fn note(role: Option<&str>, action: Otherwise) -> Ended {
            Ended::Escalated(ConvergenceEscalated { role: role.map(id), ..barred(action) })
        }

        /// A project in which coders may converge nothing.
        fn strict(otherwise: Otherwise) -> Config {
            let nothing = Authority { edges: [].into(), otherwise };
            Config { authority: [(id("coder"), nothing)].into(), ..multi() }
        }

        fn worked_in(config: Config) -> Vec<ringfence::NewEvent> {
            let work = events![started("ada", "c1", 1), iterated("c1", 1, 0)];
            ready_in(config).into_iter().chain(work).collect()
        }

        fn of_holder() -> Vec<Case<ConvergeEdge>> {
            let worked = || given(worked_in(multi()));
            vec![
                given([])
                    .when(standard())
                    .then_rejected(Rejection::UnknownProject { project: id("shop") }),
                given(events![initialized(multi())])
                    .when(standard())
                    .then_rejected(Rejection::UnknownFeature { feature: id(AUTH) }),
                given(ready_in(multi()))
                    .when(standard())
                    .then_rejected(Rejection::StaleClaim { claim: id("c1") }),
                worked().when(standard()).then([done()]),
                worked().and(events![converged(DESIGN_CODE, "c1")]).when(standard()).then_nothing(),
                // Only the claim that has converged it repeats that.
                worked()
                    .and(events![converged(DESIGN_CODE, "c1")])
                    .when(converge("ada", "c2", Convergence::Standard))
                    .then_rejected(Rejection::StaleClaim { claim: id("c2") }),
                // Opened again, it needs a new claim.
                worked()
                    .and(events![converged(DESIGN_CODE, "c1"), reopened(2)])
                    .when(standard())
                    .then_rejected(Rejection::StaleClaim { claim: id("c1") }),
                worked()
                    .and(events![claim_expired("ada", "c1", 1), started("bob", "c2", 2)])
                    .when(standard())
                    .then_rejected(Rejection::StaleClaim { claim: id("c1") }),
                // The next holder may rest on what was done before.
                worked()
                    .and(events![claim_expired("ada", "c1", 1), started("bob", "c2", 2)])
                    .when(converge("bob", "c2", Convergence::Standard))
                    .then([Ended::Converged(EdgeConverged {
                        agent: id("bob"),
                        claim: id("c2"),
                        epoch: 2,
                        ..converged(DESIGN_CODE, "c1")
                    })]),
                worked()
                    .and(events![iterated("c1", 2, 1)])
                    .when(standard())
                    .then_rejected(Rejection::NotConverged),
                // No check failed, but the agent did not say that it is done.
                worked()
                    .and(events![IterationCompleted {
                        status: Status::InProgress,
                        ..iterated("c1", 2, 0)
                    }])
                    .when(standard())
                    .then_rejected(Rejection::NotConverged),
                given(ready_in(multi()))
                    .and(events![started("ada", "c1", 1)])
                    .when(standard())
                    .then_rejected(Rejection::NotConverged),
                worked()
                    .and(events![spawned(SEARCH, true)])
                    .when(standard())
                    .then_rejected(Rejection::BlockedBySpawn { children: vec![id(SEARCH)] }),
                // New rules lack the edge.
                worked()
                    .and(events![crate::FeatureReconfigured {
                        feature: id(AUTH),
                        agent: id("eve"),
                        rules: crate::Rules { edges: vec![], ..multi().rules() },
                        version: 2,
                    }])
                    .when(standard())
                    .then_rejected(Rejection::UnknownEdge { edge: id(DESIGN_CODE) }),
                worked().and(events![spawned(SEARCH, false)]).when(standard()).then([done()]),
                worked()
                    .and(events![spawned(SEARCH, true), folded_back(SEARCH)])
                    .when(standard())
                    .then([done()]),
                // The other edge is open again, so the feature is not done with this one.
                worked()
                    .and(events![crate::EdgeReopened {
                        edge: id(REQUIREMENTS_DESIGN),
                        ..reopened(2)
                    }])
                    .when(standard())
                    .then([Ended::Converged(EdgeConverged {
                        completes_feature: false,
                        ..converged(DESIGN_CODE, "c1")
                    })]),
            ]
        }

        /// The edge has a gate.
        fn of_gate() -> Vec<Case<ConvergeEdge>> {
            let worked = || given(worked_in(gated()));
            let approved = || ReviewCompleted { decision: ReviewDecision::Approved, ..reviewed(1) };
            let required = |iteration| Rejection::ReviewRequired { run: 1, iteration };
            vec![
                worked().when(standard()).then_rejected(required(1)),
                worked().and(events![reviewed(1)]).when(standard()).then_rejected(required(1)),
                worked().and(events![approved()]).when(standard()).then([done()]),
                // The approved state has changed.
                worked()
                    .and(events![approved(), iterated("c1", 2, 0)])
                    .when(standard())
                    .then_rejected(required(2)),
                worked()
                    .and(events![ReviewCompleted { sha256: Some(hash(9)), ..approved() }])
                    .when(standard())
                    .then_rejected(required(1)),
                // Not even a person goes past a gate without a review.
                worked().when(standard()).by("direct:eve").then_rejected(required(1)),
            ]
        }

        /// The role may not converge the edge.
        fn of_authority() -> Vec<Case<ConvergeEdge>> {
            let in_strict = |otherwise| given(worked_in(strict(otherwise)));
            let not = |role: Option<&str>, next_iteration| Rejection::NotAuthorised {
                role: role.map(id),
                next_iteration,
            };
            vec![
                in_strict(Otherwise::Escalate)
                    .when(standard())
                    .then([note(Some("coder"), Otherwise::Escalate)]),
                in_strict(Otherwise::Escalate)
                    .and(events![barred(Otherwise::Escalate)])
                    .when(standard())
                    .then_nothing(),
                // A person has looked and wants changes: the agent has to go on.
                in_strict(Otherwise::Escalate)
                    .and(events![barred(Otherwise::Escalate), reviewed(1)])
                    .when(standard())
                    .then_rejected(not(Some("coder"), Some(2))),
                // A person has approved it while it waited for a child.
                in_strict(Otherwise::Escalate)
                    .and(events![
                        barred(Otherwise::Escalate),
                        spawned(SEARCH, true),
                        ReviewCompleted { decision: ReviewDecision::Approved, ..reviewed(1) },
                        folded_back(SEARCH)
                    ])
                    .when(standard())
                    .then([done()]),
                // The project asked people only later.
                in_strict(Otherwise::Escalate)
                    .and(events![barred(Otherwise::Reject)])
                    .when(standard())
                    .then([note(Some("coder"), Otherwise::Escalate)]),
                // The next holder asks for itself.
                in_strict(Otherwise::Escalate)
                    .and(events![
                        barred(Otherwise::Escalate),
                        reviewed(1),
                        released("ada", "c1"),
                        started("bob", "c2", 2)
                    ])
                    .when(converge("bob", "c2", Convergence::Standard))
                    .then([Ended::Escalated(ConvergenceEscalated {
                        agent: id("bob"),
                        claim: id("c2"),
                        role: Some(id("coder")),
                        ..barred(Otherwise::Escalate)
                    })]),
                in_strict(Otherwise::Warn)
                    .when(standard())
                    .then([note(Some("coder"), Otherwise::Warn), done()]),
                in_strict(Otherwise::Reject).when(standard()).then_rejected_leaving(
                    not(Some("coder"), None),
                    [note(Some("coder"), Otherwise::Reject)],
                ),
                in_strict(Otherwise::Reject)
                    .and(events![barred(Otherwise::Reject)])
                    .when(standard())
                    .then_rejected(not(Some("coder"), None)),
                // Each iteration is a new try.
                in_strict(Otherwise::Reject)
                    .and(events![barred(Otherwise::Reject), iterated("c1", 2, 0)])
                    .when(standard())
                    .then_rejected_leaving(
                        not(Some("coder"), None),
                        [Ended::Escalated(ConvergenceEscalated {
                            role: Some(id("coder")),
                            iteration: 2,
                            ..barred(Otherwise::Reject)
                        })],
                    ),
                // The role of the caller counts, and not the role of the agent that the command names.
                given(worked_in(multi())).when(standard()).by("direct:carl").then_rejected_leaving(
                    not(Some("guest"), None),
                    [note(Some("guest"), Otherwise::Reject)],
                ),
                // A caller without a role is escalated.
                given(worked_in(multi()))
                    .when(standard())
                    .by("direct:dora")
                    .then([note(None, Otherwise::Escalate)]),
                in_strict(Otherwise::Reject).when(standard()).by("direct:eve").then([done()]),
                given(worked_in(single())).when(standard()).by("direct:dora").then([done()]),
            ]
        }

        /// One agent works alone, and names no claim.
        fn alone() -> Vec<Case<ConvergeEdge>> {
            let converge = |convergence| ConvergeEdge {
                agent: AgentId::default(),
                claim: None,
                ..converge("primary", "c1", convergence)
            };
            let standard = || converge(Convergence::Standard);
            let held = || EdgeStarted { lease_ms: None, ..started("primary", "c1", 1) };
            let worked = || given(ready_in(single())).and(events![held(), iterated("c1", 1, 0)]);
            let ended = || EdgeConverged { agent: id("primary"), ..converged(DESIGN_CODE, "c1") };
            let begins = || EdgeStarted { lease_ms: None, ..started("primary", "primary-2", 2) };
            let not_yours = || Rejection::NotYourClaim { claim: id("c1"), agent: id("primary") };
            let spike =
                FeatureCreated { kind: Kind::Spike, rules: single().rules(), ..created(AUTH) };
            vec![
                worked().when(standard()).then([Ended::Converged(ended())]),
                worked().and(events![converged(DESIGN_CODE, "c1")]).when(standard()).then_nothing(),
                // Nobody holds the edge, so its end is preceded by a claim.
                worked().and(events![released("primary", "c1")]).when(standard()).then([
                    Ended::Started(begins()),
                    Ended::Converged(EdgeConverged { claim: id("primary-2"), epoch: 2, ..ended() }),
                ]),
                given(ready_in(single())).when(standard()).then_rejected(Rejection::NotConverged),
                given(events![initialized(single()), spike])
                    .and(events![converged(REQUIREMENTS_DESIGN, "c0")])
                    .when(converge(Convergence::QuestionAnswered))
                    .then([
                        Ended::Started(EdgeStarted {
                            claim: id("primary-1"),
                            epoch: 1,
                            ..begins()
                        }),
                        Ended::Converged(EdgeConverged {
                            claim: id("primary-1"),
                            convergence: Convergence::QuestionAnswered,
                            iteration: 0,
                            req_keys: vec![],
                            ..ended()
                        }),
                    ]),
                given(worked_in(multi()))
                    .when(ConvergeEdge { agent: id("ada"), ..standard() })
                    .then_rejected(Rejection::ClaimMissing),
                given(worked_in(multi()))
                    .and(events![converged(DESIGN_CODE, "c1")])
                    .when(ConvergeEdge { agent: id("ada"), ..standard() })
                    .then_rejected(Rejection::ClaimMissing),
                given(worked_in(multi())).when(standard()).then_rejected(Rejection::AgentMissing),
                // Only a claim's agent works under it, also in single mode.
                worked()
                    .when(ConvergeEdge { agent: id("ada"), ..standard() })
                    .then_rejected(not_yours()),
                worked()
                    .when(ConvergeEdge {
                        agent: id("ada"),
                        claim: Some(id("c1")),
                        ..converge(Convergence::QuestionAnswered)
                    })
                    .then_rejected(not_yours()),
                // A feature whose project has changed to multi mode keeps its holder, whose role counts now.
                given(ready_in(multi()))
                    .and(events![held(), iterated("c1", 1, 0)])
                    .when(standard())
                    .then([Ended::Escalated(ConvergenceEscalated {
                        agent: id("primary"),
                        role: None,
                        ..barred(Otherwise::Escalate)
                    })]),
            ]
        }

        /// A question or a time box ends.
        fn of_questions() -> Vec<Case<ConvergeEdge>> {
            let question = |kind, time_box_ms| {
                let feature = FeatureCreated { kind, time_box_ms, ..created(AUTH) };
                given(events![
                    initialized(multi()),
                    feature,
                    converged(REQUIREMENTS_DESIGN, "c0"),
                    started("ada", "c1", 1)
                ])
            };
            let answer = || converge("eve", "c1", Convergence::QuestionAnswered);
            let over = || converge("ada", "c1", Convergence::TimeBoxExpired);
            let mut cases: Vec<_> = [Kind::Spike, Kind::Discovery, Kind::Poc]
                .map(|kind| {
                    let ended = answered("eve", Convergence::QuestionAnswered, 0);
                    question(kind, None).when(answer()).then([ended])
                })
                .into();
            cases.extend([Kind::Feature, Kind::Fix].map(|kind| {
                question(kind, None).when(answer()).then_rejected(Rejection::NotAQuestion)
            }));
            cases.extend([
                // A person answers under the claim of the agent that asked.
                given(events![
                    initialized(multi()),
                    FeatureCreated { kind: Kind::Spike, ..created(AUTH) },
                    converged(REQUIREMENTS_DESIGN, "c0"),
                    crate::EdgeStarted {
                        principal: Some("direct:ada".to_owned()),
                        ..started("ada", "c1", 1)
                    }
                ])
                .when(answer())
                .by("direct:eve")
                .then([answered("eve", Convergence::QuestionAnswered, 0)]),
                question(Kind::Spike, None)
                    .when(ConvergeEdge { agent: id("ada"), ..answer() })
                    .then_rejected(Rejection::NotAllowed),
                // The person's word counts, whatever checks have failed.
                question(Kind::Spike, None)
                    .and(events![iterated("c1", 1, 1)])
                    .when(answer())
                    .then([answered("eve", Convergence::QuestionAnswered, 1)]),
                // A person has to look, and there is nothing to look at.
                given(events![
                    initialized(gated()),
                    FeatureCreated { kind: Kind::Spike, rules: gated().rules(), ..created(AUTH) },
                    converged(REQUIREMENTS_DESIGN, "c0"),
                    started("ada", "c1", 1)
                ])
                .when(answer())
                .then_rejected(Rejection::NothingToReview),
                question(Kind::Spike, None).when(over()).then_rejected(Rejection::TimeBoxRuns),
                question(Kind::Spike, Some(60_000))
                    .wait(50_000)
                    .when(over())
                    .then_rejected(Rejection::TimeBoxRuns),
                question(Kind::Feature, Some(60_000))
                    .and(events![iterated("c1", 1, 2)])
                    .wait(70_000)
                    .when(over())
                    .then([answered("ada", Convergence::TimeBoxExpired, 1)]),
            ]);
            cases
        }

        let cases = [of_holder(), of_gate(), of_authority(), alone(), of_questions()];
        cases.into_iter().flatten().collect()
    }
}
