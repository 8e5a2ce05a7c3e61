//! Values of events and commands, besides names.

use std::fmt;

use ringfence::Text;

use crate::Sha256;

/// The purpose of a feature.
#[ringfence::value]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    Feature,
    Fix,
    /// To find out how something can be done.
    Spike,
    /// To find out what is wanted.
    Discovery,
    /// To show that something can be done.
    Poc,
}

impl Kind {
    /// Whether its result is an answer.
    #[must_use]
    pub fn is_question(self) -> bool {
        matches!(self, Self::Spike | Self::Discovery | Self::Poc)
    }
}

/// How an iteration went.
#[ringfence::value]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum Status {
    InProgress,
    Converged,
    Blocked,
}

/// A check of an iteration.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Check {
    pub name: Text<200>,
    pub required: bool,
    pub passed: bool,
}

/// A file: the log holds its name and its hash.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    pub uri: Text<4_000>,
    pub sha256: Sha256,
}

/// How the end of a lease was noticed.
#[ringfence::value]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum DetectedBy {
    /// The next claimer.
    Takeover,
    /// The schedule.
    Sweep,
}

/// A person's decision about an iteration.
#[ringfence::value]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum ReviewDecision {
    Approved,
    ChangesRequested,
}

/// The state of the work that a person looks at: the run, its last iteration, and the artefact.
pub type Reviewed = (u32, u32, Option<Sha256>);

/// Why an edge is done.
#[ringfence::value]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum Convergence {
    /// The last iteration passed its checks.
    Standard,
    /// A question has its answer.
    QuestionAnswered,
    TimeBoxExpired,
}

/// The result of a child.
#[ringfence::value]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum SpawnOutcome {
    Done,
    TimeBoxExpired,
}

/// How far a requirement is met.
#[ringfence::value]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub enum Met {
    Full,
    Partial,
    None,
}

impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::None => "none",
        })
    }
}

/// How many requirements were found in the work.
#[ringfence::value]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[serde(deny_unknown_fields)]
pub struct GapCounts {
    pub total: u32,
    pub full: u32,
    pub partial: u32,
    pub none: u32,
}
