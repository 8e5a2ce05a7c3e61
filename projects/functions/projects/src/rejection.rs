//! Why a command is rejected.
//!
//! The first check of a slice that fails gives the answer. Each slice first checks that the named things exist.

use ringfence::rfc3339;
use serde::Serialize;

use crate::{
    Act, AgentId, ClaimId, EdgeName, EdgeRef, FeatureRef, HUMAN, Met, ProjectId, Reviewed,
    RoleName, Sha256, Version,
};

/// Why a command is rejected.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    #[error("project {project} does not exist")]
    UnknownProject { project: ProjectId },
    #[error("feature {feature} does not exist")]
    UnknownFeature { feature: FeatureRef },
    #[error("{} has no edge {}", .edge.feature, .edge.name)]
    UnknownEdge { edge: EdgeRef },

    #[error("project {project} exists with another configuration")]
    ProjectExists { project: ProjectId },
    #[error("{field}: {problem}")]
    BadConfig { field: String, problem: String },
    #[error("only a caller with the role human may do this")]
    NotAllowed,
    #[error("in this project only callers with {} may do this", with_human(.roles))]
    Reserved {
        act: Act,
        /// The roles that may do it, besides `human`.
        roles: Vec<RoleName>,
    },

    #[error("feature {feature} exists")]
    FeatureExists { feature: FeatureRef },
    #[error("the feature depends on itself or on unknown features: {}", list(.features))]
    UnknownDependency { features: Vec<FeatureRef> },
    #[error("a feature has at most {limit} dependencies")]
    TooManyDependencies { limit: usize },
    #[error("`reachable` must also name {}", list(.missing))]
    ReachableIncomplete { missing: Vec<FeatureRef> },
    #[error("{feature} would wait for itself through {on}")]
    DependencyCycle { feature: FeatureRef, on: FeatureRef },

    #[error("in single mode the agent is `primary`")]
    SingleMode,
    #[error(
        "in multi mode a command names its agent in `agent`, and `primary` is the agent of single mode alone"
    )]
    AgentMissing,
    #[error("claim {claim} was made on this edge before; choose a new id")]
    ClaimIdUsed { claim: ClaimId },
    #[error("the edge is converged; reopen it to work on it again")]
    AlreadyConverged,
    #[error("`after` must name the dependencies of the feature: {}", list(.dependencies))]
    DependenciesDiffer { dependencies: Vec<FeatureRef> },
    #[error("to be done first: {}", list(.features))]
    WaitsFor { features: Vec<FeatureRef> },
    #[error("to be converged first: {}", list(.edges))]
    NotAdmissible { edges: Vec<EdgeName> },
    #[error("to be folded back first: {}", list(.children))]
    BlockedBySpawn { children: Vec<FeatureRef> },
    #[error("{}", held(.holder, .claim, *.hold, *.lease_until_ms))]
    EdgeHeld {
        /// The agent that holds it.
        holder: AgentId,
        claim: ClaimId,
        epoch: u64,
        hold: Hold,
        /// In milliseconds since 1970; absent if the lease has no end.
        #[serde(skip_serializing_if = "Option::is_none")]
        lease_until_ms: Option<u64>,
    },

    #[error(
        "claim {claim} is not the edge's current one: it was never made, or it was released, has expired, was taken over, or \
         has converged the edge"
    )]
    StaleClaim { claim: ClaimId },
    #[error(
        "claim {claim} is of the agent {agent}, and only the caller that made it works under it"
    )]
    NotYourClaim {
        claim: ClaimId,
        /// The agent that made it.
        agent: AgentId,
    },
    #[error(
        "`claim` is missing: it may be left out only in single mode, of work on an edge that `primary` holds, and of an \
         iteration or a convergence, which claim a free edge themselves"
    )]
    ClaimMissing,

    #[error("work goes on when a person has looked at the last iteration")]
    AwaitingReview,
    #[error("the next iteration is {expected}")]
    IterationOutOfOrder { expected: u32 },
    #[error("{failed} required checks failed")]
    DeltaDiffers { failed: u32 },
    #[error("required checks fail, or no iteration says that it is converged")]
    NotConverged,
    #[error("the edge has no iteration yet that a person could look at: complete one first")]
    NothingToReview,
    #[error("this was decided before")]
    AlreadyDecided,
    #[error(
        "the work to look at is iteration {iteration} of run {run}, with the artefact that this answer names"
    )]
    StaleReview {
        run: u32,
        iteration: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        sha256: Option<Sha256>,
    },
    #[error("a person has to approve iteration {iteration} of run {run} first")]
    ReviewRequired { run: u32, iteration: u32 },
    #[error("only a spike, a discovery or a poc is a question")]
    NotAQuestion,
    #[error("the time box of the feature is not over")]
    TimeBoxRuns,
    #[error("the caller's role may not converge this edge{}", changes(*.next_iteration))]
    NotAuthorised {
        #[serde(skip_serializing_if = "Option::is_none")]
        role: Option<RoleName>,
        /// The iteration after which a person is asked again; absent if no iteration changes anything.
        #[serde(skip_serializing_if = "Option::is_none")]
        next_iteration: Option<u32>,
    },

    #[error("a child is at most {limit} levels below a feature without a parent")]
    TooDeep { limit: u32 },
    #[error("the time box of a child may have at most the {limit_ms} ms of its parent's")]
    TimeBoxTooLong { limit_ms: u64 },
    #[error("a child must be in its parent's project {project}")]
    OtherProject { project: ProjectId },
    #[error("{child} was not born at this edge")]
    UnknownSpawn { child: FeatureRef },
    #[error("{child} is not done, and its time box is not over")]
    ChildRuns { child: FeatureRef },

    #[error("full, partial and none add up to {sum}, and not to total")]
    CountsDiffer { sum: u64 },
    #[error("more requirements are named as {met} than `counts` has")]
    TooManyNamed { met: Met },
    #[error("release {version} exists")]
    ReleaseExists { version: Version },
    #[error("not done: {}", list(.features))]
    NotDone { features: Vec<FeatureRef> },
}

/// The claim that keeps an edge from an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Hold {
    /// A claim that is current.
    Current,
    /// The caller's own claim.
    Yours,
    /// A claim whose lease is over, in a project where nobody takes an edge over.
    Over,
}

impl Rejection {
    /// The review names another state than this one.
    pub(crate) fn stale_review((run, iteration, sha256): Reviewed) -> Self {
        Self::StaleReview { run, iteration, sha256 }
    }
}

fn held(holder: &AgentId, claim: &ClaimId, hold: Hold, lease_until_ms: Option<u64>) -> String {
    let until = lease_until_ms.map(rfc3339);
    match (hold, until) {
        (Hold::Yours, _) => {
            format!(
                "{holder} holds the edge already, by claim {claim}: work under this claim, or give it back by \
                 release-edge"
            )
        }
        (Hold::Over, Some(until)) => {
            format!(
                "the lease of {holder}'s claim {claim} ended at {until}, and nobody may take the edge over: a person \
                 has to free it by force-release"
            )
        }
        (_, Some(until)) => {
            format!("{holder} holds the edge by claim {claim}, whose lease lasts until {until}")
        }
        (_, None) => format!("{holder} holds the edge by claim {claim}"),
    }
}

fn changes(next_iteration: Option<u32>) -> String {
    let after = |next| {
        format!(
            "; a person has looked and wants changes: complete iteration {next}, and converge then"
        )
    };
    next_iteration.map_or_else(String::new, after)
}

fn with_human(roles: &[RoleName]) -> String {
    let human = HUMAN.to_owned();
    let roles: Vec<_> = [human].into_iter().chain(roles.iter().map(ToString::to_string)).collect();
    match roles.len() {
        1 => format!("the role {}", roles[0]),
        _ => format!("one of the roles {}", list(&roles)),
    }
}

fn list(names: &[impl ToString]) -> String {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    names.join(", ")
}

#[test]
fn a_rejection_says_what_to_do_and_when_in_words() {
    let held = |hold, lease_until_ms| {
        let (holder, claim) = ("ada".parse().expect("a name"), "c1".parse().expect("a name"));
        Rejection::EdgeHeld { holder, claim, epoch: 1, hold, lease_until_ms }.to_string()
    };
    let until = Some(1_719_100_800_000);
    let time = "2024-06-23T00:00:00.000Z";
    let current = "ada holds the edge by claim c1";
    assert_eq!(held(Hold::Current, None), current);
    assert_eq!(held(Hold::Current, until), format!("{current}, whose lease lasts until {time}"));
    assert!(
        held(Hold::Yours, until)
            .ends_with("work under this claim, or give it back by release-edge")
    );
    let over = held(Hold::Over, until);
    assert!(
        over.contains(&format!("ended at {time}")) && over.ends_with("by force-release"),
        "{over}"
    );
    let not = |next_iteration| Rejection::NotAuthorised { role: None, next_iteration }.to_string();
    assert!(not(Some(2)).starts_with(&not(None)) && not(Some(2)).contains("complete iteration 2"));
    let reserved = |roles: &[&str]| {
        let roles = roles.iter().map(|role| role.parse().expect("a name")).collect();
        Rejection::Reserved { act: Act::Release, roles }.to_string()
    };
    assert!(reserved(&[]).contains("with the role human may"));
    assert!(reserved(&["lead"]).contains("with one of the roles human, lead may"));
}
