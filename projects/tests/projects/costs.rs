//! The exact cost of each command, in requests and capacity units, without an idempotency key. Items have at most 1 KB,
//! unless a test says otherwise.

use projects::add_dependency::AddDependency;
use projects::claim_edge::ClaimEdge;
use projects::complete_iteration::CompleteIteration;
use projects::converge_edge::ConvergeEdge;
use projects::create_checkpoint::CreateCheckpoint;
use projects::create_feature::CreateFeature;
use projects::create_release::CreateRelease;
use projects::drop_dependency::DropDependency;
use projects::expire_claim::ExpireClaim;
use projects::facts::*;
use projects::fold_back::FoldBack;
use projects::force_release::ForceRelease;
use projects::init_project::InitProject;
use projects::reconfigure_feature::ReconfigureFeature;
use projects::reconfigure_project::ReconfigureProject;
use projects::record_review::RecordReview;
use projects::release_edge::ReleaseEdge;
use projects::renew_claim::RenewClaim;
use projects::reopen_edge::ReopenEdge;
use projects::request_review::RequestReview;
use projects::spawn_feature::SpawnFeature;
use projects::validate_gaps::ValidateGaps;
use projects::{
    Config, Convergence, DEPENDENCIES_MAX, EdgeStarted, FeatureCreated, FeatureRef, GRACE_MS,
    GapCounts, Kind, LEASE_MS, ReviewDecision, Rules, Status,
};
use ringfence_core::kit::id;
use ringfence_core::{Decisions, List, NewEvent, Slice, events, handle};

use super::stack::{Stack, came, envelope};

/// (requests, units) for reads and for writes.
type Cost = ((u32, f64), (u32, f64));

/// The cost of a command after the facts, which leads to these events or this rejection. The handler is cold, or has
/// carried out the commands `before`, and then waited.
#[track_caller]
fn cost<S: Slice>(
    given: Vec<NewEvent>,
    before: Vec<S>,
    after_ms: u64,
    command: S,
    expected: Result<&'static [&'static str], &'static str>,
) -> impl Future<Output = Cost> {
    let at = std::panic::Location::caller();
    async move {
        let stack = Stack::start();
        stack.seed(given).await;
        let decisions = Decisions::new(1);
        for before in &before {
            let log = stack.log();
            handle(&log, &stack.catalog, &decisions, before, &envelope(0)).await.unwrap();
        }
        let log = stack.log();
        let envelope = envelope(after_ms);
        let handled = handle(&log, &stack.catalog, &decisions, &command, &envelope).await.unwrap();
        assert_eq!(handled.attempts, 1, "{at}");
        let expected = expected.map_err(str::to_owned);
        let expected = expected.map(|types| types.iter().map(|it| (*it).to_owned()).collect());
        assert_eq!(came(&handled), expected, "{at}");
        let usage = log.meter().snapshot();
        assert!(usage.indexes.is_empty(), "no index of the table is kept or read");
        ((usage.reads, usage.total().read), (usage.writes, usage.tables.write))
    }
}

/// Cold.
#[track_caller]
fn cold<S: Slice>(
    given: Vec<NewEvent>,
    command: S,
    types: &'static [&'static str],
) -> impl Future<Output = Cost> {
    cost(given, vec![], 0, command, Ok(types))
}

fn refs<const MAX: usize>(features: &[String]) -> List<FeatureRef, MAX> {
    let features: Vec<FeatureRef> = features.iter().map(|it| id(it)).collect();
    features.try_into().unwrap()
}

/// The names of other features.
fn others(n: usize) -> Vec<String> {
    (0..n).map(|n| format!("shop/REQ-F-OTHER-{n:03}")).collect()
}

/// These features, with all edges done.
fn done(features: &[String]) -> Vec<NewEvent> {
    let of = |feature: &String| {
        let edge = |name: &str| converged(&format!("{feature}/{name}"), "c7");
        events![created(feature), edge("requirements_design"), edge("design_code")]
    };
    features.iter().flat_map(of).collect()
}

fn and(given: Vec<NewEvent>, more: Vec<NewEvent>) -> Vec<NewEvent> {
    given.into_iter().chain(more).collect()
}

fn claim(agent: &str, claim: &str, after: &[String]) -> ClaimEdge {
    let (edge, agent, claim, after) = (id(DESIGN_CODE), id(agent), id(claim), refs(after));
    ClaimEdge { edge, agent, claim, after }
}

fn complete(iteration: u32, delta: u32) -> CompleteIteration {
    CompleteIteration {
        edge: id(DESIGN_CODE),
        agent: id("ada"),
        claim: Some(id("c1")),
        iteration,
        status: if delta == 0 { Status::Converged } else { Status::InProgress },
        delta,
        checks: checks(delta).try_into().unwrap(),
        source_findings: List::default(),
        process_gaps: List::default(),
        artifact: Some(artifact()),
        context_hash: hash(1),
        req_keys: vec![id("AUTH-1")].try_into().unwrap(),
        after: List::default(),
    }
}

fn half(n: usize) -> f64 {
    0.5 * f64::from(u32::try_from(n).unwrap())
}

fn twice(n: usize) -> f64 {
    2.0 * f64::from(u32::try_from(n).unwrap())
}

#[tokio::test(start_paused = true)]
async fn work_on_an_edge_is_one_conditional_put() {
    let by_ada = || events![started("ada", "c1", 1)];
    let put = ((1, 0.5), (1, 1.0));
    assert_eq!(cold(by_ada(), complete(1, 0), &["IterationCompleted"]).await, put);
    let renew = RenewClaim { edge: id(DESIGN_CODE), agent: id("ada"), claim: Some(id("c1")) };
    let renewed = cost(by_ada(), vec![], LEASE_MS, renew, Ok(&["ClaimRenewed"])).await;
    assert_eq!(renewed, put);
    let (edge, agent, claim) = (id(DESIGN_CODE), id("ada"), Some(id("c1")));
    let release = ReleaseEdge { edge, agent, claim, reason: id("done for today") };
    assert_eq!(cold(by_ada(), release, &["EdgeReleased"]).await, put);
    let expire = ExpireClaim { edge: id(DESIGN_CODE), agent: id("sweep"), epoch: 1 };
    let late = LEASE_MS + GRACE_MS + 1_000;
    assert_eq!(cost(by_ada(), vec![], late, expire, Ok(&["ClaimExpired"])).await, put);
    let worked = || and(by_ada(), events![iterated("c1", 1, 0)]);
    let ask = RequestReview { edge: id(DESIGN_CODE), agent: id("ada"), claim: Some(id("c1")) };
    assert_eq!(cold(worked(), ask, &["ReviewRequested"]).await, put);
    // A warm handler does not read.
    let warm = cost(by_ada(), vec![complete(1, 0)], 0, complete(2, 0), Ok(&["IterationCompleted"]));
    assert_eq!(warm.await, ((0, 0.0), (1, 1.0)));
    // Without a claim the feature is checked too, because the work may have to begin.
    let alone = || CompleteIteration { agent: id("primary"), claim: None, ..complete(1, 0) };
    let begins = &["EdgeStarted", "IterationCompleted"];
    let single = || ready_under(single().rules());
    assert_eq!(cold(single(), alone(), begins).await, ((2, 1.0), (1, 6.0)));
    let held = EdgeStarted { lease_ms: None, ..started("primary", "c1", 1) };
    let goes_on = cold(and(single(), events![held]), alone(), &["IterationCompleted"]);
    assert_eq!(goes_on.await, ((2, 1.0), (1, 4.0)));
    // The third equal delta writes two events of one partition.
    let plateau = and(by_ada(), events![iterated("c1", 1, 2), iterated("c1", 2, 2)]);
    let types = &["IterationCompleted", "EdgeStuck"];
    assert_eq!(cold(plateau, complete(3, 2), types).await, ((1, 0.5), (1, 4.0)));
}

#[tokio::test(start_paused = true)]
async fn a_claim_checks_its_feature_and_what_that_waits_for() {
    for d in [0, 1, 2, 20] {
        let others = others(d);
        let dependencies = others.iter().map(|on| id(on)).collect();
        let feature = FeatureCreated { dependencies, ..created(AUTH) };
        let ready = events![feature, converged(REQUIREMENTS_DESIGN, "c0")];
        let given = || and(ready.clone(), done(&others));
        let reads = u32::try_from(3 + d).unwrap();
        let found = cold(given(), claim("ada", "c1", &others), &["EdgeStarted"]).await;
        assert_eq!(found, ((reads, 1.5 + half(d)), (1, 6.0 + twice(d))), "{d}");
        let held = and(given(), events![started("ada", "c1", 1)]);
        let late = LEASE_MS + GRACE_MS + 1_000;
        let types = &["ClaimExpired", "EdgeStarted"];
        let found = cost(held.clone(), vec![], late, claim("bob", "c2", &others), Ok(types)).await;
        assert_eq!(found, ((reads, 1.5 + half(d)), (1, 8.0 + twice(d))), "{d}");
        // A rejected claim writes into the agent's own partition, and checks the rest.
        let rejected =
            cost(held.clone(), vec![], 0, claim("bob", "c2", &others), Err("EdgeHeld")).await;
        assert_eq!(rejected, ((reads, 1.5 + half(d)), (1, 6.0 + twice(d))), "{d}");
        // A second try writes nothing. A warm handler checks its facts in one transaction, where a read costs two
        // units.
        let polls = vec![claim("bob", "c2", &others)];
        let again = cost(held, polls, 0, claim("bob", "c3", &others), Err("EdgeHeld")).await;
        assert_eq!(again, ((1, 6.0 + twice(d)), (0, 0.0)), "{d}");
    }
}

fn creates(dependencies: List<FeatureRef, DEPENDENCIES_MAX>) -> CreateFeature {
    CreateFeature {
        feature: id(AUTH),
        agent: id("ada"),
        title: id("What it does"),
        kind: Kind::Feature,
        priority: 0,
        dependencies,
        time_box_ms: None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_feature_is_created_beside_checks_of_what_it_waits_for() {
    for d in [0, 1, 2, 20] {
        let others = others(d);
        let given = and(events![initialized(multi())], done(&others));
        let create = creates(refs(&others));
        let reads = u32::try_from(2 + d).unwrap();
        let found = cold(given, create, &["FeatureCreated"]).await;
        assert_eq!(found, ((reads, 1.0 + half(d)), (1, 8.0 + twice(d))), "{d}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dependency_checks_all_that_it_leads_to() {
    for r in [1, 2, 90] {
        let others = others(r);
        let add = AddDependency {
            feature: id(AUTH),
            agent: id("ada"),
            on: id(&others[0]),
            reachable: refs(&others),
        };
        let reads = u32::try_from(1 + r).unwrap();
        let found = cold(and(ready(), done(&others)), add, &["DependencyAdded"]).await;
        assert_eq!(found, ((reads, half(1 + r)), (1, 6.0 + twice(r))), "{r}");
    }
    let drop = DropDependency { feature: id(PAY), agent: id("ada"), on: id(AUTH) };
    let given = events![created(PAY), waits(PAY, AUTH)];
    assert_eq!(cold(given, drop, &["DependencyDropped"]).await, ((1, 0.5), (1, 6.0)));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_edge_is_filed_under_its_feature() {
    let work = |agent| events![started(agent, "c1", 1), iterated("c1", 1, 0)];
    let worked_by = |agent| and(ready_in(multi()), work(agent));
    let worked = || worked_by("ada");
    let converge = |agent: &str| ConvergeEdge {
        edge: id(DESIGN_CODE),
        agent: id(agent),
        claim: Some(id("c1")),
        convergence: Convergence::Standard,
        after: List::default(),
    };
    let ended = ((3, 1.5), (1, 8.0));
    assert_eq!(cold(worked(), converge("ada"), &["EdgeConverged"]).await, ended);
    let approve = RecordReview {
        edge: id(DESIGN_CODE),
        agent: id("eve"),
        run: 1,
        iteration: 1,
        sha256: Some(hash(2)),
        decision: ReviewDecision::Approved,
        feedback: id("well done"),
    };
    let types = &["ReviewCompleted", "EdgeConverged"];
    assert_eq!(cold(worked(), approve, types).await, ((3, 1.5), (1, 10.0)));
    // A role that may not converge the edge is noted there, beside checks of the feature and the project.
    let barred = ((3, 1.5), (1, 6.0));
    let noted = Ok(&["ConvergenceEscalated"][..]);
    let escalated = cost(worked_by("dora"), vec![], 0, converge("dora"), noted);
    assert_eq!(escalated.await, barred);
    let rejected = cost(worked_by("carl"), vec![], 0, converge("carl"), Err("NotAuthorised"));
    assert_eq!(rejected.await, barred);
    let converged = and(worked(), events![converged(DESIGN_CODE, "c1")]);
    let reopen = ReopenEdge { edge: id(DESIGN_CODE), agent: id("ada"), reason: id("it is wrong") };
    assert_eq!(cold(converged, reopen, &["EdgeReopened"]).await, ((3, 1.5), (1, 8.0)));
    let force = ForceRelease { edge: id(DESIGN_CODE), agent: id("eve"), reason: id("holiday") };
    assert_eq!(cold(worked(), force, &["EdgeReleased"]).await, ((2, 1.0), (1, 4.0)));
}

#[tokio::test(start_paused = true)]
async fn a_child_costs_a_feature_and_an_event_at_the_edge() {
    let by_ada = and(ready_in(multi()), events![started("ada", "c1", 1)]);
    let spawn = SpawnFeature {
        edge: id(DESIGN_CODE),
        agent: id("ada"),
        claim: Some(id("c1")),
        child: id(SEARCH),
        title: id("What it does"),
        kind: Kind::Spike,
        priority: 0,
        blocks: true,
        reason: id("nobody knows"),
        intent: None,
        time_box_ms: None,
    };
    let types = &["SpawnCreated", "FeatureCreated"];
    assert_eq!(cold(by_ada, spawn, types).await, ((4, 2.0), (1, 12.0)));
    let (edge, agent, child) = (id(DESIGN_CODE), id("ada"), id(SEARCH));
    let fold = FoldBack { edge, agent, child, payload: artifact() };
    let born = events![initialized(multi()), started("ada", "c1", 1), spawned(SEARCH, true)];
    let given = and(born, done(&[SEARCH.to_owned()]));
    assert_eq!(cold(given, fold, &["SpawnFoldedBack"]).await, ((3, 1.5), (1, 6.0)));
}

#[tokio::test(start_paused = true)]
async fn projects_checkpoints_gaps_and_releases_are_seldom_written() {
    let project = || id("shop");
    let init = InitProject { project: project(), agent: id("ada"), config: multi() };
    assert_eq!(cold(vec![], init, &["ProjectInitialized"]).await, ((1, 0.5), (1, 6.0)));
    let config = Config { lease_ms: 1_000, ..multi() };
    let again = ReconfigureProject { project: project(), agent: id("eve"), config: config.clone() };
    let known = events![initialized(multi())];
    let found = cold(known, again, &["ProjectReconfigured"]).await;
    assert_eq!(found, ((1, 0.5), (1, 6.0)));
    let take = ReconfigureFeature { feature: id(AUTH), agent: id("eve") };
    let changed = projects::ProjectReconfigured { project: project(), agent: id("eve"), config };
    let given = events![initialized(multi()), created(AUTH), changed];
    let found = cold(given, take, &["FeatureReconfigured"]).await;
    assert_eq!(found, ((2, 1.0), (1, 8.0)));
    let checkpoint = CreateCheckpoint {
        project: project(),
        sha256: hash(1),
        agent: id("ada"),
        uri: id("s3://files/shop.tar"),
        note: id("before the release"),
    };
    // An event alone in its partition, beside a check that there is such a project.
    let checked = ((2, 1.0), (1, 4.0));
    let begun = || events![initialized(multi())];
    assert_eq!(cold(begun(), checkpoint, &["CheckpointCreated"]).await, checked);
    let validate = |full, partial| ValidateGaps {
        project: project(),
        gaps: hash(1),
        agent: id("ada"),
        as_of: id("monday"),
        counts: GapCounts { total: 10, full, partial, none: 0 },
        requirements: List::default(),
    };
    assert_eq!(cold(begun(), validate(10, 0), &["GapsValidated"]).await, checked);
    let types = &["GapsValidated", "IntentRaised"];
    assert_eq!(cold(begun(), validate(5, 5), types).await, ((2, 1.0), (1, 6.0)));
    for n in [1, 2, 10] {
        let features = others(n);
        let release = CreateRelease {
            project: project(),
            version: id("1.4.0"),
            agent: id("ada"),
            features: refs(&features),
            notes: id("all of it"),
            dry_run: false,
        };
        let reads = u32::try_from(2 + n).unwrap();
        let found = cold(and(begun(), done(&features)), release, &["ReleaseCreated"]).await;
        assert_eq!(found, ((reads, half(2 + n)), (1, 4.0 + twice(n))), "{n}");
    }
}

/// A feature's rules are copied into its event. A graph of some 25 edges is more than 1 KB.
#[tokio::test(start_paused = true)]
async fn a_large_graph_costs_a_unit_more_for_each_copy() {
    let names: Vec<String> = (0..30).map(|n| format!("edge_{n:02}")).collect();
    let rule = |n: usize| {
        let after: Vec<&str> =
            n.checked_sub(1).map(|before| names[before].as_str()).into_iter().collect();
        edge_rule(&names[n], &after)
    };
    let edges: Vec<_> = (0..30).map(rule).collect();
    let large = Config { edges: edges.try_into().unwrap(), ..multi() };
    let create = creates(List::default());
    let found = cold(events![initialized(large.clone())], create, &["FeatureCreated"]).await;
    // The event and its index item have 2 KB each; the fence and the check of the project's stay small.
    assert_eq!(found, ((2, 1.0), (1, 12.0)));
    let rules = Rules { edges: large.edges.to_vec(), ..multi().rules() };
    let given = events![FeatureCreated { rules, ..created(AUTH) }];
    let claim = ClaimEdge { edge: id(&format!("{AUTH}/edge_00")), ..claim("ada", "c1", &[]) };
    // Claims copy nothing of it.
    assert_eq!(cold(given, claim, &["EdgeStarted"]).await, ((3, 1.5), (1, 6.0)));
}
