//! Why a command is refused.
//!
//! Each slice checks in the order that its page names, and the first check that fails answers. What must exist is
//! asked for first.

use serde::Serialize;

use crate::{
    AgentId, ClaimId, EdgeName, EdgeRef, FeatureRef, ProjectId, Reviewed, RoleName, Sha256, Version,
};

/// Why a command is refused.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Refused {
    #[error("project {project} does not exist")]
    UnknownProject { project: ProjectId },
    #[error("feature {feature} does not exist")]
    UnknownFeature { feature: FeatureRef },
    #[error("{} has no edge {}", .edge.feature, .edge.name)]
    UnknownEdge { edge: EdgeRef },

    #[error("project {project} exists with another configuration")]
    ProjectExists { project: ProjectId },
    #[error("{field} {problem}")]
    BadConfig { field: String, problem: String },
    #[error("only a caller with the role human may do this")]
    NotAllowed,

    #[error("feature {feature} exists")]
    FeatureExists { feature: FeatureRef },
    #[error("the feature depends on itself or on what does not exist: {}", list(.features))]
    UnknownDependency { features: Vec<FeatureRef> },
    #[error("a feature has at most {limit} dependencies")]
    TooManyDependencies { limit: usize },
    #[error("`reachable` must also name {}", list(.missing))]
    ReachableIncomplete { missing: Vec<FeatureRef> },
    #[error("{feature} would wait for itself through {on}")]
    DependencyCycle { feature: FeatureRef, on: FeatureRef },

    #[error("in single mode the agent is `primary`")]
    SingleMode,
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
    #[error("{holder} holds the edge by claim {claim}")]
    EdgeHeld {
        /// The agent that holds it.
        holder: AgentId,
        claim: ClaimId,
        epoch: u64,
        /// In milliseconds since 1970; absent if the lease has no end.
        #[serde(skip_serializing_if = "Option::is_none")]
        lease_until_ms: Option<u64>,
    },

    #[error(
        "claim {claim} is not the edge's current one: it was released, expired or taken over, or never made"
    )]
    StaleClaim { claim: ClaimId },
    #[error("claim {claim} was made by another caller")]
    NotYourClaim { claim: ClaimId },

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
    #[error("the caller's role may not converge this edge")]
    NotAuthorised {
        #[serde(skip_serializing_if = "Option::is_none")]
        role: Option<RoleName>,
    },

    #[error("a child is at most {limit} levels below a feature without a parent")]
    TooDeep { limit: u32 },
    #[error("the time box of a child may have at most the {limit_ms} ms of its parent's")]
    TimeBoxTooLong { limit_ms: u64 },
    #[error("a child is of its parent's project {project}")]
    OtherProject { project: ProjectId },
    #[error("{child} was not born at this edge")]
    UnknownSpawn { child: FeatureRef },
    #[error("{child} is not done, and its time box is not over")]
    ChildRuns { child: FeatureRef },

    #[error("full, partial and none add up to {sum}, and not to total")]
    CountsDiffer { sum: u64 },
    #[error("release {version} exists")]
    ReleaseExists { version: Version },
    #[error("not done: {}", list(.features))]
    NotDone { features: Vec<FeatureRef> },
}

impl Refused {
    /// What a person would look at is this now.
    pub(crate) fn stale_review((run, iteration, sha256): Reviewed) -> Self {
        Self::StaleReview { run, iteration, sha256 }
    }
}

fn list(names: &[impl ToString]) -> String {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    names.join(", ")
}
