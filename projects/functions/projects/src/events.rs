//! The events.
//!
//! A tag says where an event is stored: an edge is one partition, in which claim, work and end constrain each other.
//! Only events that end an edge or open it again are filed under the feature too.

use std::collections::BTreeMap;

use ringfence::Event;

use crate::{
    AgentId, Artifact, Check, ClaimId, Config, Convergence, DetectedBy, EdgeRef, FeatureRef,
    GapCounts, IntentId, Kind, Met, Otherwise, ProjectId, ReqKey, ReviewDecision, RoleName, Rules,
    Sha256, SpawnOutcome, Status, Version,
};

/// A project begins.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct ProjectInitialized {
    #[tag(key = "project", partition, cross_partition, strong)]
    pub project: ProjectId,
    pub agent: AgentId,
    pub config: Config,
}

/// A project gets another configuration. Its features keep theirs until they take the new one.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct ProjectReconfigured {
    #[tag(key = "project", partition, cross_partition, strong)]
    pub project: ProjectId,
    pub agent: AgentId,
    pub config: Config,
}

/// There is one more feature to work on.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct FeatureCreated {
    #[tag(key = "feature", partition, cross_partition, strong)]
    pub feature: FeatureRef,
    pub agent: AgentId,
    pub title: String,
    pub kind: Kind,
    /// Work with a higher one is offered first.
    pub priority: i32,
    /// The features that must be done first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<FeatureRef>,
    pub rules: Rules,
    /// The version of the configuration with the rules: 1, and one more after each change.
    pub version: u64,
    /// The feature at whose edge it was born.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<FeatureRef>,
    /// 0 without a parent, and one more than the parent's.
    pub depth: u32,
    /// How long it may take from now on, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_box_ms: Option<u64>,
}

/// A feature takes the newest configuration of its project.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct FeatureReconfigured {
    #[tag(key = "feature", partition, cross_partition, strong)]
    pub feature: FeatureRef,
    pub agent: AgentId,
    pub rules: Rules,
    pub version: u64,
}

/// A feature waits for one more feature.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct DependencyAdded {
    #[tag(key = "feature", partition, cross_partition, strong)]
    pub feature: FeatureRef,
    pub agent: AgentId,
    pub on: FeatureRef,
}

/// A feature no longer waits for another one.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct DependencyDropped {
    #[tag(key = "feature", partition, cross_partition, strong)]
    pub feature: FeatureRef,
    pub agent: AgentId,
    pub on: FeatureRef,
}

/// An agent gets an edge to itself.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct EdgeStarted {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    pub agent: AgentId,
    pub claim: ClaimId,
    /// 1 and the number of earlier claims of the edge: the fencing token for effects outside of the log.
    pub epoch: u64,
    /// 1 and the number of times the edge was opened again.
    pub run: u32,
    /// The principal that may work under the claim, if the claimer was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// How long the claim lasts after its holder's latest event, in milliseconds; in single mode it has no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// How many iterations in succession with the same number of failed checks show that work is stuck.
    pub stuck_after: u32,
}

/// A holder needs more time.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct ClaimRenewed {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    pub agent: AgentId,
    pub claim: ClaimId,
}

/// A claim is given back, or taken back.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct EdgeReleased {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    pub agent: AgentId,
    pub claim: ClaimId,
    pub reason: String,
    /// The person that took it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced_by: Option<String>,
}

/// A claim's lease is over, and its holder can't go on.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct ClaimExpired {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    pub agent: AgentId,
    pub claim: ClaimId,
    pub epoch: u64,
    /// When the lease was over, in milliseconds since 1970.
    pub lease_until_ms: u64,
    pub detected_by: DetectedBy,
}

/// One attempt at an edge is over.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct IterationCompleted {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    pub agent: AgentId,
    pub claim: ClaimId,
    pub run: u32,
    /// 1 for the first of a run.
    pub iteration: u32,
    pub status: Status,
    /// How many required checks failed.
    pub delta: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_findings: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub process_gaps: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,
    /// The hash of the agent's instructions.
    pub context_hash: Sha256,
    /// The requirements that the artefact answers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub req_keys: Vec<ReqKey>,
}

/// Several iterations in succession failed as many checks: somebody else has to look. A spawned feature may name the
/// intent.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct EdgeStuck {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    pub agent: AgentId,
    pub intent: IntentId,
    pub run: u32,
    pub iteration: u32,
    pub delta: u32,
}

/// A holder wants a person to look at the last iteration.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct ReviewRequested {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    pub agent: AgentId,
    pub claim: ClaimId,
    pub run: u32,
    pub iteration: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
}

/// A person has looked at an iteration.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct ReviewCompleted {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    pub agent: AgentId,
    pub run: u32,
    pub iteration: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
    pub decision: ReviewDecision,
    pub reviewer: String,
    pub feedback: String,
}

/// A role that may not converge the edge has tried to. A person has to look if `action` is to escalate.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct ConvergenceEscalated {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    pub agent: AgentId,
    pub claim: ClaimId,
    pub run: u32,
    pub iteration: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleName>,
    pub action: Otherwise,
    /// How the edge was to converge.
    pub convergence: Convergence,
}

/// A feature is born at an edge.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct SpawnCreated {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    pub agent: AgentId,
    pub claim: ClaimId,
    pub child: FeatureRef,
    pub kind: Kind,
    /// Whether the edge waits for it.
    pub blocks: bool,
    pub reason: String,
    /// The intent that it follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<IntentId>,
}

/// The result of a child is folded back at its edge.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct SpawnFoldedBack {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    pub agent: AgentId,
    pub child: FeatureRef,
    pub outcome: SpawnOutcome,
    pub payload: Artifact,
}

/// An edge is done.
#[derive(Clone, Debug, PartialEq, Event)]
#[tag(key = "feature", cross_partition, strong, value = edge.feature)]
pub struct EdgeConverged {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    pub agent: AgentId,
    pub claim: ClaimId,
    pub epoch: u64,
    pub run: u32,
    /// The last one of the run; 0 without any.
    pub iteration: u32,
    pub convergence: Convergence,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub req_keys: Vec<ReqKey>,
    /// Whether it was the last edge of the feature, by the rules that the feature had then.
    pub completes_feature: bool,
}

/// A converged edge needs more work.
#[derive(Clone, Debug, PartialEq, Event)]
#[tag(key = "feature", cross_partition, strong, value = edge.feature)]
pub struct EdgeReopened {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    pub agent: AgentId,
    /// The run that begins.
    pub run: u32,
    pub reason: String,
    /// Whether the feature was done, by the rules that it had then.
    pub reopens_feature: bool,
}

/// An agent did not get an edge, because another one holds it. It is in a partition for the loser, so it does not
/// conflict with the holder.
#[derive(Clone, Debug, PartialEq, Event)]
#[tag(key = "attempt", partition, value = format!("{edge}/{agent}"))]
pub struct ClaimRejected {
    pub edge: EdgeRef,
    pub agent: AgentId,
    /// The agent that holds the edge.
    pub holder: AgentId,
    pub claim: ClaimId,
    pub epoch: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_until_ms: Option<u64>,
}

/// Something is missing in a project. A spawned feature may name the intent.
#[derive(Clone, Debug, PartialEq, Event)]
#[tag(key = "intent", partition, value = format!("{project}/{intent}"))]
pub struct IntentRaised {
    pub project: ProjectId,
    pub intent: IntentId,
    pub agent: AgentId,
    pub reason: String,
}

/// The requirements of a project were compared with what is there.
#[derive(Clone, Debug, PartialEq, Event)]
#[tag(key = "intent", partition, value = format!("{project}/{intent}"))]
pub struct GapsValidated {
    pub project: ProjectId,
    /// `gaps-` and the hash of the set of gaps that was found.
    pub intent: IntentId,
    pub agent: AgentId,
    /// The state of the project that was compared: any string that names it.
    pub as_of: String,
    pub counts: GapCounts,
    /// How far each named requirement is met.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requirements: BTreeMap<ReqKey, Met>,
}

/// The state of the work is kept in a file.
#[derive(Clone, Debug, PartialEq, Event)]
#[tag(key = "checkpoint", partition, value = format!("{project}/{sha256}"))]
pub struct CheckpointCreated {
    pub project: ProjectId,
    pub sha256: Sha256,
    pub agent: AgentId,
    pub uri: String,
    pub note: String,
}

/// Features go out together.
#[derive(Clone, Debug, PartialEq, Event)]
#[tag(key = "release", partition, value = format!("{project}/{version}"))]
pub struct ReleaseCreated {
    pub project: ProjectId,
    pub version: Version,
    pub agent: AgentId,
    pub features: Vec<FeatureRef>,
    pub notes: String,
}

/// A line of an imported file that this version does not know, kept as it was.
#[derive(Clone, Debug, PartialEq, Event)]
#[tag(key = "foreign", partition, value = format!("{project}/{line}"))]
pub struct ForeignRecorded {
    pub project: ProjectId,
    /// The hash of the line, and which of equal lines it was.
    pub line: String,
    pub event_type: String,
    pub data: serde_json::Value,
    /// Why the line could not become an event of another type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}
