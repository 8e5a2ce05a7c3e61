//! The events of edges, as decisions and views read them.

use ringfence::prelude::*;

use crate::{
    AgentId, Artifact, ClaimId, Convergence, EdgeRef, FeatureRef, IntentId, Otherwise, ReqKey,
    ReviewDecision, Sha256, SpawnOutcome, Status,
};

/// An event of an edge. `at_ms` is when it was recorded, in milliseconds since 1970.
#[derive(Reads)]
pub enum EdgeEvent {
    EdgeStarted {
        edge: EdgeRef,
        agent: AgentId,
        claim: ClaimId,
        epoch: u64,
        run: u32,
        principal: Option<String>,
        lease_ms: Option<u64>,
        stuck_after: u32,
        #[time]
        at_ms: u64,
    },
    ClaimRenewed {
        edge: EdgeRef,
        #[time]
        at_ms: u64,
    },
    EdgeReleased {
        edge: EdgeRef,
    },
    ClaimExpired {
        edge: EdgeRef,
    },
    IterationCompleted {
        edge: EdgeRef,
        claim: ClaimId,
        iteration: u32,
        status: Status,
        delta: u32,
        artifact: Option<Artifact>,
        #[serde(default)]
        req_keys: Vec<ReqKey>,
        #[time]
        at_ms: u64,
    },
    EdgeStuck {
        edge: EdgeRef,
        intent: IntentId,
        #[time]
        at_ms: u64,
    },
    ReviewRequested {
        edge: EdgeRef,
        run: u32,
        iteration: u32,
        #[time]
        at_ms: u64,
    },
    ReviewCompleted {
        edge: EdgeRef,
        run: u32,
        iteration: u32,
        sha256: Option<Sha256>,
        decision: ReviewDecision,
        #[time]
        at_ms: u64,
    },
    ConvergenceEscalated {
        edge: EdgeRef,
        claim: ClaimId,
        run: u32,
        iteration: u32,
        action: Otherwise,
        convergence: Convergence,
        #[time]
        at_ms: u64,
    },
    SpawnCreated {
        edge: EdgeRef,
        child: FeatureRef,
        blocks: bool,
        intent: Option<IntentId>,
        #[time]
        at_ms: u64,
    },
    SpawnFoldedBack {
        edge: EdgeRef,
        child: FeatureRef,
        outcome: SpawnOutcome,
    },
    EdgeConverged {
        edge: EdgeRef,
        completes_feature: bool,
        #[time]
        at_ms: u64,
    },
    EdgeReopened {
        edge: EdgeRef,
        run: u32,
        reopens_feature: bool,
    },
}

impl EdgeEvent {
    /// The edge.
    #[must_use]
    pub fn edge(&self) -> &EdgeRef {
        match self {
            Self::EdgeStarted { edge, .. }
            | Self::ClaimRenewed { edge, .. }
            | Self::EdgeReleased { edge, .. }
            | Self::ClaimExpired { edge, .. }
            | Self::IterationCompleted { edge, .. }
            | Self::EdgeStuck { edge, .. }
            | Self::ReviewRequested { edge, .. }
            | Self::ReviewCompleted { edge, .. }
            | Self::ConvergenceEscalated { edge, .. }
            | Self::SpawnCreated { edge, .. }
            | Self::SpawnFoldedBack { edge, .. }
            | Self::EdgeConverged { edge, .. }
            | Self::EdgeReopened { edge, .. } => edge,
        }
    }
}
