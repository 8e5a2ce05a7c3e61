//! Agents share work by claims: decisions combine several boundaries by tags that are computed from a command. The
//! tests check which boundaries a command depends on, and its cost.
//!
//! A project has features, and a feature has edges. One agent at a time works on an edge. A reference is a whole
//! path: `shop/login/design` is an edge of the feature `shop/login`.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use ringfence_core::{
    Access, CommandContext, Current, Decisions, Never, NewEvent, Plan, Query, Slice, events,
    handle, prelude::*,
};

use crate::prices::{Cost, cost, metered};
use crate::stack::{Stack, envelope};

/// The parent of a feature or an edge.
fn parent(reference: &str) -> &str {
    reference.rsplit_once('/').map_or("", |(parent, _)| parent)
}

#[derive(Clone, Debug, PartialEq, Event)]
struct ProjectInitialized {
    #[tag(key = "project", partition, cross_partition, strong)]
    project: String,
}

#[derive(Clone, Debug, PartialEq, Event)]
struct FeatureCreated {
    #[tag(key = "feature", partition, cross_partition, strong)]
    feature: String,
    dependencies: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Event)]
struct EdgeStarted {
    #[tag(key = "edge", partition)]
    edge: String,
    claim: String,
}

#[derive(Clone, Debug, PartialEq, Event)]
struct ClaimExpired {
    #[tag(key = "edge", partition)]
    edge: String,
}

#[derive(Clone, Debug, PartialEq, Event)]
struct IterationCompleted {
    #[tag(key = "edge", partition)]
    edge: String,
}

/// The only event of an edge that is also filed under its feature.
#[derive(Clone, Debug, PartialEq, Event)]
#[tag(key = "feature", cross_partition, strong, value = parent(edge))]
struct EdgeConverged {
    #[tag(key = "edge", partition)]
    edge: String,
}

/// It goes to the loser's partition, so it disturbs no holder.
#[derive(Clone, Debug, PartialEq, Event)]
#[tag(key = "attempt", partition, value = format!("{edge}/{agent}"))]
struct ClaimRejected {
    edge: String,
    agent: String,
}

#[derive(Clone, Debug, PartialEq, Event)]
#[tag(key = "release", partition, value = format!("{project}/{version}"))]
struct ReleaseCreated {
    project: String,
    version: String,
}

struct Projects;

impl Context for Projects {
    const NAME: &'static str = "projects";
    type Log = ringfence_dcb_log::Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        let of_edges = [EdgeStarted::SCHEMA, ClaimExpired::SCHEMA, IterationCompleted::SCHEMA];
        let others = [ProjectInitialized::SCHEMA, FeatureCreated::SCHEMA, EdgeConverged::SCHEMA];
        let schemas = of_edges
            .into_iter()
            .chain(others)
            .chain([ClaimRejected::SCHEMA, ReleaseCreated::SCHEMA]);
        Catalog::new(Self::NAME, schemas)
    }
}

/// How many events of each type the decision has read.
type Read = BTreeMap<String, usize>;

/// The events that were read for a command.
struct ReadFor<R>(Read, PhantomData<fn(R)>);

impl<R> Default for ReadFor<R> {
    fn default() -> Self {
        Self(Read::new(), PhantomData)
    }
}

/// A slice that reads the events of some types. `$writes` makes its events from the command and the read events.
macro_rules! slice {
    ($command:ident reads $reads:ident [$($event_type:literal)*], writes $event:ty, $writes:expr) => {
        struct $reads(String);

        impl Reads for $reads {
            const TYPES: &'static [&'static str] = &[$($event_type),*];

            fn decode(event: &Current<'_>) -> Result<Self, serde_json::Error> {
                Ok(Self(event.event_type.clone()))
            }
        }

        impl State for ReadFor<$reads> {
            type Reads = $reads;

            fn evolve(mut self, event: $reads) -> Self {
                *self.0.entry(event.0).or_default() += 1;
                self
            }
        }

        impl Slice for $command {
            const NAME: &'static str = stringify!($command);
            type Context = Projects;
            type State = ReadFor<$reads>;
            type Writes = $event;
            type Rejection = Never;

            fn decide(&self, read: &Self::State, _: &CommandContext) -> Result<Vec<$event>, Never> {
                Ok($writes(self, &read.0))
            }
        }
    };
}

#[derive(Clone, Debug, PartialEq, Command)]
#[tag(key = "project", cross_partition, value = parent(feature))]
struct CreateFeature {
    #[tag(key = "feature", cross_partition)]
    feature: String,
    #[tag(key = "feature", cross_partition)]
    dependencies: Vec<String>,
}

slice!(
    CreateFeature reads Definitions ["ProjectInitialized" "FeatureCreated"],
    writes FeatureCreated, |it: &CreateFeature, read: &Read| {
        assert_eq!(read.get("FeatureCreated").copied().unwrap_or(0), it.dependencies.len());
        vec![FeatureCreated { feature: it.feature.clone(), dependencies: it.dependencies.clone() }]
    }
);

#[derive(Clone, Debug, PartialEq, Command)]
#[tag(key = "feature", cross_partition, value = parent(edge))]
#[tag(key = "attempt", value = format!("{edge}/{agent}"))]
struct ClaimEdge {
    #[tag(key = "edge")]
    edge: String,
    agent: String,
    claim: String,
    /// The features that must be done first.
    #[tag(key = "feature", cross_partition)]
    after: Vec<String>,
}

#[derive(Writes)]
enum Claimed {
    Expired(ClaimExpired),
    Started(EdgeStarted),
}

slice!(
    ClaimEdge reads Claims [
        "FeatureCreated" "EdgeStarted" "ClaimExpired" "IterationCompleted" "EdgeConverged"
        "ClaimRejected"
    ],
    writes Claimed, |it: &ClaimEdge, read: &Read| {
        assert_eq!(read["FeatureCreated"], 1 + it.after.len());
        let edge = it.edge.clone();
        let started = EdgeStarted { edge: edge.clone(), claim: it.claim.clone() };
        let expired = read.contains_key("EdgeStarted").then_some(ClaimExpired { edge });
        expired.map(Claimed::Expired).into_iter().chain([Claimed::Started(started)]).collect()
    }
);

#[derive(Clone, Debug, PartialEq, Command)]
struct CompleteIteration {
    #[tag(key = "edge", partition)]
    edge: String,
}

slice!(
    CompleteIteration reads Work [
        "EdgeStarted" "ClaimExpired" "IterationCompleted" "EdgeConverged"
    ],
    writes IterationCompleted, |it: &CompleteIteration, read: &Read| {
        assert_eq!(read["EdgeStarted"], 1);
        vec![IterationCompleted { edge: it.edge.clone() }]
    }
);

#[derive(Clone, Debug, PartialEq, Command)]
#[tag(key = "feature", cross_partition, value = parent(edge))]
#[tag(key = "project", cross_partition, value = parent(parent(edge)))]
struct ConvergeEdge {
    #[tag(key = "edge", partition)]
    edge: String,
}

slice!(
    ConvergeEdge reads Ends [
        "ProjectInitialized" "FeatureCreated" "EdgeStarted" "ClaimExpired" "IterationCompleted"
        "EdgeConverged"
    ],
    writes EdgeConverged, |it: &ConvergeEdge, read: &Read| {
        assert_eq!([read["ProjectInitialized"], read["FeatureCreated"], read["EdgeStarted"]], [1; 3]);
        vec![EdgeConverged { edge: it.edge.clone() }]
    }
);

const PROJECT: &str = "shop";
const FEATURE: &str = "shop/login";
const EDGE: &str = "shop/login/design";
const OTHERS: [&str; 2] = ["shop/search", "shop/cart"];

fn features(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn create(dependencies: &[&str]) -> CreateFeature {
    CreateFeature { feature: FEATURE.to_owned(), dependencies: features(dependencies) }
}

fn claim(claim: &str, after: &[&str]) -> ClaimEdge {
    let [edge, agent, claim] = [EDGE, "ada", claim].map(str::to_owned);
    ClaimEdge { edge, agent, claim, after: features(after) }
}

fn complete() -> CompleteIteration {
    CompleteIteration { edge: EDGE.to_owned() }
}

fn converge() -> ConvergeEdge {
    ConvergeEdge { edge: EDGE.to_owned() }
}

/// The boundaries that a command depends on if it reads these types. Partitions are marked with `=`.
fn planned(command: &impl ringfence_core::Command, types: &[&'static str]) -> Vec<String> {
    let catalog = Projects::catalog().expect("no contradictions");
    let types = types.iter().copied();
    let query = Query::of_command(command.shape(), command.tags(), types, &catalog);
    let name = |read: &ringfence_core::Read| match &read.access {
        Access::Partition => format!("={}", read.boundary),
        Access::TagItems(_) => read.boundary.to_string(),
        other => panic!("{} is read by {other:?}", read.boundary),
    };
    Plan::new(&query, &catalog).expect("a plan").reads.iter().map(name).collect()
}

/// The boundaries of a slice that can start.
#[track_caller]
fn boundaries<S: Slice>(command: &S) -> Vec<String> {
    let catalog = Projects::catalog().expect("no contradictions");
    ringfence_core::check::<S>(&catalog).expect("the slice can start");
    planned(command, ringfence_core::ReadsOf::<S>::TYPES)
}

const IS_EDGE: &str = "=edge:shop%2Flogin%2Fdesign";
const OF_FEATURE: &str = "feature:shop%2Flogin";

#[test]
fn each_command_depends_on_the_boundaries_that_its_tags_name() {
    let (search, cart) = ("feature:shop%2Fsearch", "feature:shop%2Fcart");
    assert_eq!(boundaries(&create(&[])), [OF_FEATURE, "project:shop"]);
    assert_eq!(boundaries(&create(&OTHERS)), [cart, OF_FEATURE, search, "project:shop"]);
    let attempt = "=attempt:shop%2Flogin%2Fdesign%2Fada";
    assert_eq!(boundaries(&claim("c1", &[])), [attempt, IS_EDGE, OF_FEATURE]);
    assert_eq!(boundaries(&claim("c1", &OTHERS)), [attempt, IS_EDGE, cart, OF_FEATURE, search]);
    assert_eq!(boundaries(&complete()), [IS_EDGE]);
    assert_eq!(boundaries(&converge()), [IS_EDGE, OF_FEATURE, "project:shop"]);
}

/// Ends a feature on the edge where it was born.
#[derive(Command)]
struct FoldBack {
    #[tag(key = "edge", partition)]
    edge: String,
    #[tag(key = "feature", cross_partition)]
    child: String,
}

/// A release names its features. Its name is the project's name with a version.
#[derive(Command)]
#[tag(key = "release", partition, value = format!("{project}/{version}"))]
struct CreateRelease {
    project: String,
    version: String,
    #[tag(key = "feature", cross_partition)]
    features: Vec<String>,
}

#[test]
fn a_partition_and_what_is_read_across_partitions_are_two_boundaries() {
    let fold = FoldBack { edge: EDGE.to_owned(), child: OTHERS[1].to_owned() };
    let types = ["FeatureCreated", "EdgeStarted", "EdgeConverged"];
    assert_eq!(planned(&fold, &types), [IS_EDGE, "feature:shop%2Fcart"]);
    let [project, version] = [PROJECT, "1.0.0"].map(str::to_owned);
    let release = CreateRelease { project, version, features: features(&OTHERS) };
    let types = ["ReleaseCreated", "FeatureCreated", "EdgeConverged"];
    let [search, cart] = ["feature:shop%2Fsearch", "feature:shop%2Fcart"];
    assert_eq!(planned(&release, &types), [cart, search, "=release:shop%2F1.0.0"]);
}

#[test]
fn work_on_an_edge_is_filed_under_the_edge_alone_until_it_converges() {
    let catalog = Projects::catalog().expect("no contradictions");
    let filed = |event: NewEvent| {
        let filing = catalog.filing(&event).expect("it can be filed");
        (format!("={}", filing.partition), filing.fences.iter().map(ToString::to_string).collect())
    };
    let check = |event: NewEvent, partition: &str, fences: &[&str]| {
        let fences: Vec<String> = fences.iter().map(|fence| (*fence).to_owned()).collect();
        assert_eq!(filed(event), (partition.to_owned(), fences));
    };
    let edge = || EDGE.to_owned();
    check(EdgeStarted { edge: edge(), claim: "c1".to_owned() }.into(), IS_EDGE, &[]);
    check(IterationCompleted { edge: edge() }.into(), IS_EDGE, &[]);
    check(EdgeConverged { edge: edge() }.into(), IS_EDGE, &[OF_FEATURE]);
    let agent = "ada".to_owned();
    let attempt = "=attempt:shop%2Flogin%2Fdesign%2Fada";
    check(ClaimRejected { edge: edge(), agent }.into(), attempt, &[]);
}

/// A project with some features.
async fn stack(features: &[&str]) -> Stack {
    let stack = Stack::start(Projects::catalog()).await;
    stack.seed(events![ProjectInitialized { project: PROJECT.to_owned() }]).await;
    for feature in features {
        let feature = (*feature).to_owned();
        stack.seed(events![FeatureCreated { feature, dependencies: vec![] }]).await;
    }
    stack
}

/// The cost of the command on a handler that has decided these commands before.
async fn cost_of<S: Slice>(stack: &Stack, before: &[S], command: &S) -> Cost {
    let decisions = Decisions::new(1);
    for before in before {
        let handled = handle(&stack.log(), &stack.catalog, &decisions, before, &envelope()).await;
        handled.expect("an outcome");
    }
    let log = stack.log();
    let handled = handle(&log, &stack.catalog, &decisions, command, &envelope()).await;
    assert_eq!(handled.expect("an outcome").attempts, 1);
    stack.check_fences().await;
    metered(&log.meter().snapshot())
}

#[tokio::test]
async fn a_claim_costs_a_check_of_each_boundary_that_it_does_not_write() {
    for (d, after) in [(0, &OTHERS[..0]), (1, &OTHERS[..1]), (2, &OTHERS[..])] {
        let stack = stack(&[FEATURE, OTHERS[0], OTHERS[1]]).await;
        let (reads, read) = (3 + d, 1.5 + 0.5 * f64::from(d));
        let (granted, taken_over) = (6.0 + 2.0 * f64::from(d), 8.0 + 2.0 * f64::from(d));
        let found = cost_of(&stack, &[], &claim("c1", after)).await;
        assert_eq!(found, cost((reads, read), (1, granted)), "{after:?}");
        let found = cost_of(&stack, &[], &claim("c2", after)).await;
        assert_eq!(found, cost((reads, read), (1, taken_over)), "{after:?}");
    }
}

#[tokio::test]
async fn work_on_a_claimed_edge_costs_one_put() {
    let stack = stack(&[FEATURE]).await;
    cost_of(&stack, &[], &claim("c1", &[])).await;
    let found = cost_of(&stack, &[], &complete()).await;
    assert_eq!(found, cost((1, 0.5), (1, 1.0)));
    let found = cost_of(&stack, &[complete()], &complete()).await;
    assert_eq!(found, cost((0, 0.0), (1, 1.0)));
    let found = cost_of(&stack, &[], &converge()).await;
    assert_eq!(found, cost((3, 1.5), (1, 8.0)));
}

#[tokio::test]
async fn a_new_feature_costs_its_two_copies_its_fence_and_a_check_of_each_other_boundary() {
    for (d, dependencies) in [(0, &OTHERS[..0]), (1, &OTHERS[..1]), (2, &OTHERS[..])] {
        let stack = stack(&OTHERS).await;
        let found = cost_of(&stack, &[], &create(dependencies)).await;
        let read = 1.0 + 0.5 * f64::from(d);
        let write = 8.0 + 2.0 * f64::from(d);
        assert_eq!(found, cost((2 + d, read), (1, write)), "{dependencies:?}");
    }
}
