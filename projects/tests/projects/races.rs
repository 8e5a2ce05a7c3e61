//! Agents that want the same thing at once. Each has its own handler, and a clock that runs.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use projects::add_dependency::AddDependency;
use projects::claim_edge::ClaimEdge;
use projects::complete_iteration::CompleteIteration;
use projects::converge_edge::ConvergeEdge;
use projects::facts::{
    AUTH, REQUIREMENTS_DESIGN, SEARCH, artifact, checks, created, edge_rule, hash, initialized,
    multi,
};
use projects::init_project::InitProject;
use projects::spawn_feature::SpawnFeature;
use projects::{
    Config, Convergence, EdgeConverged, EdgeRef, EdgeStarted, FeatureCreated, FeatureRef, Kind,
    Rules, Status,
};
use ringfence_aws::Random;
use ringfence_core::kit::id;
use ringfence_core::{List, NewEvent, Outcome, Slice, events};
use ringfence_dcb_log::DcbLog;
use ringfence_harness::bound;
use serde::Deserialize;

use super::stack::{Came, Stack, came};

const AGENTS: usize = 20;

/// Rounds of a race on one table.
fn rounds() -> usize {
    bound(6, 100)
}

fn claim(edge: &EdgeRef, agent: usize, after: &[FeatureRef]) -> ClaimEdge {
    ClaimEdge {
        edge: edge.clone(),
        agent: id(&format!("agent-{agent}")),
        claim: id(&format!("claim-{agent}")),
        after: after.to_vec().try_into().unwrap(),
    }
}

#[tokio::test(start_paused = true)]
async fn of_many_agents_one_gets_the_edge_and_the_others_learn_its_holder() {
    let stack = Stack::of_races(1);
    for round in 0..rounds() {
        let feature: FeatureRef = id(&format!("shop/REQ-F-RACE-{round:03}"));
        let edge = feature.edge(&id("requirements_design"));
        stack.seed(events![FeatureCreated { feature, ..created("shop/REQ-F-RACE-000") }]).await;
        let run = async |agent| {
            let command = claim(&edge, agent, &[]);
            stack.run(&stack.running_log(), &command).await
        };
        let ended = join_all((0..AGENTS).map(run)).await;
        let granted = ended.iter().position(|it| came(it) == Ok(vec!["EdgeStarted".to_owned()]));
        let winner = granted.expect("one gets it");
        for (agent, handled) in ended.iter().enumerate().filter(|(agent, _)| *agent != winner) {
            let Outcome::Rejected { rejected, events } = &handled.outcome else {
                panic!("{agent} and {winner} have it: {handled:?}");
            };
            assert_eq!(rejected.rejection["holder"], format!("agent-{winner}"));
            assert_eq!(rejected.rejection["epoch"], 1);
            assert_eq!(events.len(), 1, "each loser is rejected once");
            assert!(handled.attempts <= 3, "{agent} decided {} times", handled.attempts);
        }
    }
    assert_eq!(stack.of_type("EdgeStarted").await.len(), rounds());
    assert_eq!(stack.of_type("ClaimRejected").await.len(), rounds() * (AGENTS - 1));
}

#[tokio::test(start_paused = true)]
async fn a_project_begins_once_and_a_child_is_born_once() {
    let stack = Stack::of_races(1);
    let begin = async |lease_ms| {
        let config = Config { lease_ms, ..multi() };
        let init = InitProject { project: id("shop"), agent: id("eve"), config };
        came(&stack.run(&stack.running_log(), &init).await)
    };
    let ended = join_all([1_000, 2_000, 3_000].map(begin)).await;
    let begun = ended.iter().filter(|it| it.is_ok()).count();
    let rejected = ended.iter().filter(|it| **it == Err("ProjectExists".to_owned())).count();
    assert_eq!((begun, rejected), (1, 2), "{ended:?}");

    let edges = [REQUIREMENTS_DESIGN, "shop/REQ-F-PAY-001/requirements_design"].map(id::<EdgeRef>);
    for edge in edges.clone() {
        stack.seed(events![created(&edge.feature.to_string())]).await;
        is(&stack, &stack.running_log(), &claim(&edge, 1, &[]), "EdgeStarted").await;
    }
    let spawn = async |edge| {
        let command = SpawnFeature {
            edge,
            agent: id("agent-1"),
            claim: Some(id("claim-1")),
            child: id(SEARCH),
            title: id("What it does"),
            kind: Kind::Spike,
            priority: 0,
            blocks: false,
            reason: id("nobody knows"),
            intent: None,
            time_box_ms: None,
        };
        came(&stack.run(&stack.running_log(), &command).await)
    };
    let ended = join_all(edges.map(spawn)).await;
    let rejected = ended.iter().filter(|it| **it == Err("FeatureExists".to_owned())).count();
    assert_eq!(rejected, 1, "{ended:?}");
    assert_eq!(stack.of_type("SpawnCreated").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn claims_of_two_edges_of_a_feature_are_decided_once_each() {
    let stack = Stack::of_races(1);
    let edges = [edge_rule("design", &[]), edge_rule("tests", &[])];
    let rules = Rules { edges: edges.into(), ..multi().rules() };
    stack.seed(events![FeatureCreated { rules, ..created(AUTH) }]).await;
    let run = async |(agent, edge): (usize, &str)| {
        let command = claim(&id::<FeatureRef>(AUTH).edge(&id(edge)), agent, &[]);
        stack.run(&stack.running_log(), &command).await
    };
    for handled in join_all([(1, "design"), (2, "tests")].map(run)).await {
        assert_eq!((came(&handled), handled.attempts), (Ok(vec!["EdgeStarted".to_owned()]), 1));
    }
}

#[tokio::test(start_paused = true)]
async fn three_dependencies_that_would_be_a_circle_are_never_all_added() {
    join_all((0..bound(2, 10)).map(race_to_a_circle)).await;
}

async fn race_to_a_circle(seed: u64) {
    let stack = Stack::of_races(seed);
    for round in 0..rounds() {
        let feature =
            |n: usize| id::<FeatureRef>(&format!("shop/REQ-F-NOTIFY{round}-{:03}", n % 3));
        for n in 0..3 {
            let feature = feature(n);
            stack
                .seed(events![FeatureCreated { feature, ..created("shop/REQ-F-NOTIFY-000") }])
                .await;
        }
        // If the rejection says that something is missing, the next try names it.
        let add = async |n: usize| {
            let mut reachable = vec![feature(n + 1)];
            loop {
                let command = AddDependency {
                    feature: feature(n),
                    agent: id(&format!("agent-{n}")),
                    on: feature(n + 1),
                    reachable: reachable.clone().try_into().unwrap(),
                };
                let handled = stack.run(&stack.running_log(), &command).await;
                let Outcome::Rejected { rejected, .. } = &handled.outcome else {
                    return came(&handled);
                };
                let missing = rejected.rejection.get("missing");
                let Some(missing) = missing else { return came(&handled) };
                reachable.extend(Vec::<FeatureRef>::deserialize(missing).unwrap());
            }
        };
        let ended = join_all((0..3).map(add)).await;
        let mut rejected = ended.iter().filter_map(|it| it.as_ref().err());
        assert_eq!(rejected.next().map(String::as_str), Some("DependencyCycle"), "{ended:?}");
        assert_eq!(rejected.next(), None, "{ended:?}");
    }
    assert_eq!(stack.of_type("DependencyAdded").await.len(), 2 * rounds());
}

/// Features of the race of workers.
fn features() -> usize {
    bound(4, 60)
}

/// The edges of each.
const EDGES: [&str; 3] = ["requirements_design", "design_code", "code_tests"];
const WORKERS: usize = 16;

struct Work {
    dependencies: BTreeMap<FeatureRef, Vec<FeatureRef>>,
    edges: Vec<EdgeRef>,
}

impl Work {
    /// Features that each wait for some of those before them.
    fn new() -> (Self, Vec<NewEvent>) {
        let rules =
            EDGES.iter().enumerate().map(|(n, edge)| edge_rule(edge, &EDGES[n.max(1) - 1..n]));
        let edges: Vec<_> = rules.collect();
        let authority = projects::Authority {
            edges: EDGES.map(id).into(),
            otherwise: projects::Otherwise::Reject,
        };
        let roles = (0..WORKERS).map(|n| (format!("agent-{n}"), id("coder")));
        let config = Config {
            edges: edges.try_into().unwrap(),
            roles: roles.chain([("eve".to_owned(), id("human"))]).collect(),
            authority: [(id("coder"), authority)].into(),
            ..multi()
        };
        let mut random = Random::new(&[7]);
        let names: Vec<FeatureRef> =
            (0..features()).map(|n| id(&format!("shop/REQ-F-WORK-{n:03}"))).collect();
        let mut events = events![initialized(config.clone())];
        let mut work = Self { dependencies: BTreeMap::new(), edges: Vec::new() };
        for (n, feature) in names.iter().enumerate() {
            let before = names[..n].iter().filter(|_| random.below(n as u64 + 1) < 2);
            let dependencies: Vec<_> = before.take(20).cloned().collect();
            events.push(
                FeatureCreated {
                    feature: feature.clone(),
                    dependencies: dependencies.clone(),
                    rules: config.rules(),
                    ..created("shop/REQ-F-WORK-000")
                }
                .into(),
            );
            work.dependencies.insert(feature.clone(), dependencies);
            work.edges.extend(EDGES.map(|edge| feature.edge(&id(edge))));
        }
        (work, events)
    }

    /// Tries all edges in turn until each is converged.
    async fn worker(&self, stack: &Stack, agent: usize) -> usize {
        let log = stack.running_log();
        let mut open: Vec<&EdgeRef> = self.edges.iter().collect();
        let mut random = Random::new(&[8, agent as u64]);
        let mut converged = 0;
        while !open.is_empty() {
            let n = usize::try_from(random.below(open.len() as u64)).unwrap();
            let edge = open[n];
            let after = &self.dependencies[&edge.feature];
            match came(&stack.run(&log, &claim(edge, agent, after)).await) {
                Ok(_) => {
                    self.finish(stack, &log, edge, agent).await;
                    converged += 1;
                }
                Err(code) if code == "AlreadyConverged" => {}
                Err(code) => {
                    let expected = ["EdgeHeld", "NotAdmissible", "WaitsFor"];
                    assert!(expected.contains(&code.as_str()), "{code}");
                    continue;
                }
            }
            open.remove(n);
        }
        converged
    }

    async fn finish(&self, stack: &Stack, log: &DcbLog, edge: &EdgeRef, agent: usize) {
        let (agent, claim) = (id(&format!("agent-{agent}")), id(&format!("claim-{agent}")));
        let iteration = CompleteIteration {
            edge: edge.clone(),
            agent,
            claim: Some(claim),
            iteration: 1,
            status: Status::Converged,
            delta: 0,
            checks: checks(0).try_into().unwrap(),
            source_findings: List::default(),
            process_gaps: List::default(),
            artifact: Some(artifact()),
            context_hash: hash(1),
            req_keys: List::default(),
            after: List::default(),
        };
        is(stack, log, &iteration, "IterationCompleted").await;
        let CompleteIteration { edge, agent, claim, after, .. } = iteration;
        let convergence = Convergence::Standard;
        let converge = ConvergeEdge { edge, agent, claim, convergence, after };
        is(stack, log, &converge, "EdgeConverged").await;
    }
}

async fn is<S: Slice>(stack: &Stack, log: &DcbLog, command: &S, event_type: &str) {
    let expected: Came = Ok(vec![event_type.to_owned()]);
    assert_eq!(came(&stack.run(log, command).await), expected);
}

#[tokio::test(start_paused = true)]
async fn many_workers_finish_all_features_and_none_before_what_it_waits_for() {
    let (work, given) = Work::new();
    let stack = Stack::of_races(1);
    stack.seed(given).await;
    let converged = join_all((0..WORKERS).map(|agent| work.worker(&stack, agent))).await;
    let edges = features() * EDGES.len();
    assert_eq!(converged.iter().sum::<usize>(), edges);
    let (mut started, mut done) = (0, BTreeSet::new());
    for event in stack.events().await {
        match event.event_type.as_str() {
            "EdgeStarted" => {
                let EdgeStarted { edge, epoch, .. } =
                    EdgeStarted::deserialize(&event.data).unwrap();
                started += 1;
                assert_eq!(epoch, 1, "{edge} is claimed once");
                let of_dependencies = work.dependencies[&edge.feature]
                    .iter()
                    .flat_map(|feature| EDGES.map(|edge| feature.edge(&id(edge))));
                let before = EDGES.iter().take_while(|name| edge.name != id(name));
                let before = before.map(|name| edge.feature.edge(&id(name)));
                for first in of_dependencies.chain(before) {
                    assert!(done.contains(&first), "{edge} was claimed before {first} was done");
                }
            }
            "EdgeConverged" => {
                let EdgeConverged { edge, .. } = EdgeConverged::deserialize(&event.data).unwrap();
                assert!(done.insert(edge), "an edge converges once");
            }
            _ => {}
        }
    }
    assert_eq!((started, done.len()), (edges, edges));
}
