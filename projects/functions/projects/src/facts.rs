//! Facts that the cases of several slices begin with: the project `shop`, whose features have two edges, one after
//! the other.

use ringfence::feed::Entry;
use ringfence::kit::{BEGIN_MS, id};
use ringfence::{BoundaryId, NewEvent, SequencedEvent, events};

use crate::*; // facts of most types

pub const AUTH: &str = "shop/REQ-F-AUTH-001";
pub const SEARCH: &str = "shop/REQ-F-SEARCH-001";
pub const PAY: &str = "shop/REQ-F-PAY-001";
pub const REQUIREMENTS_DESIGN: &str = "shop/REQ-F-AUTH-001/requirements_design";
/// The edge that most cases are about.
pub const DESIGN_CODE: &str = "shop/REQ-F-AUTH-001/design_code";

/// An edge without a gate.
#[must_use]
pub fn edge_rule(edge: &str, after: &[&str]) -> EdgeRule {
    let after = after.iter().map(|edge| id(edge)).collect();
    EdgeRule { edge: id(edge), after, gate: Gate::None }
}

/// A project of `primary` alone.
#[must_use]
pub fn single() -> Config {
    let edges = vec![
        edge_rule("requirements_design", &[]),
        edge_rule("design_code", &["requirements_design"]),
    ];
    Config {
        mode: Mode::Single,
        lease_ms: LEASE_MS,
        on_expiry: OnExpiry::Takeable,
        stuck_after: 3,
        edges: edges.try_into().expect("few edges"),
        roles: [].into(),
        authority: [].into(),
        reserved: Reserved::default(),
    }
}

/// A project of many agents. `eve` is a person. `ada` and `bob` may converge the edges, `carl` may not, and is
/// barred.
#[must_use]
pub fn multi() -> Config {
    let roles = [("eve", HUMAN), ("ada", "coder"), ("bob", "coder"), ("carl", "guest")];
    let edges = ["requirements_design", "design_code"].map(id).into();
    let coder = Authority { edges, otherwise: Otherwise::Escalate };
    let guest = Authority { edges: [].into(), otherwise: Otherwise::Reject };
    Config {
        mode: Mode::Multi,
        // A caller without a principal is the agent that its command names.
        roles: roles
            .into_iter()
            .flat_map(|(who, role)| {
                [who.to_owned(), format!("direct:{who}")].map(|who| (who, id(role)))
            })
            .collect(),
        authority: [(id("coder"), coder), (id("guest"), guest)].into(),
        ..single()
    }
}

/// The same, with the acts that a project can reserve left to coders.
#[must_use]
pub fn reserved() -> Config {
    let coder = || Some([id("coder")].into());
    let reserved =
        Reserved { init: coder(), reopen: coder(), fold_back: coder(), release: coder() };
    Config { reserved, ..multi() }
}

/// The same with a gate at the second edge.
#[must_use]
pub fn gated() -> Config {
    let mut edges = multi().edges.to_vec();
    edges[1].gate = Gate::Human;
    Config { edges: edges.try_into().expect("few edges"), ..multi() }
}

#[must_use]
pub fn initialized(config: Config) -> ProjectInitialized {
    ProjectInitialized { project: id("shop"), agent: id("ada"), config }
}

#[must_use]
pub fn created(feature: &str) -> FeatureCreated {
    FeatureCreated {
        feature: id(feature),
        agent: id("ada"),
        title: "What it does".to_owned(),
        kind: Kind::Feature,
        priority: 0,
        dependencies: vec![],
        rules: multi().rules(),
        version: 1,
        parent: None,
        depth: 0,
        time_box_ms: None,
    }
}

#[must_use]
pub fn waits(feature: &str, on: &str) -> DependencyAdded {
    DependencyAdded { feature: id(feature), agent: id("ada"), on: id(on) }
}

/// The feature exists, and its first edge is done.
#[must_use]
pub fn ready() -> Vec<NewEvent> {
    ready_under(multi().rules())
}

/// The same under other rules.
#[must_use]
pub fn ready_under(rules: Rules) -> Vec<NewEvent> {
    events![FeatureCreated { rules, ..created(AUTH) }, converged(REQUIREMENTS_DESIGN, "c0")]
}

/// The same of a project with this configuration.
#[must_use]
pub fn ready_in(config: Config) -> Vec<NewEvent> {
    let rules = config.rules();
    events![initialized(config)].into_iter().chain(ready_under(rules)).collect()
}

#[must_use]
pub fn started(agent: &str, claim: &str, epoch: u64) -> EdgeStarted {
    EdgeStarted {
        edge: id(DESIGN_CODE),
        agent: id(agent),
        claim: id(claim),
        epoch,
        run: 1,
        principal: None,
        lease_ms: Some(LEASE_MS),
        stuck_after: 3,
    }
}

#[must_use]
pub fn renewed(agent: &str, claim: &str) -> ClaimRenewed {
    ClaimRenewed { edge: id(DESIGN_CODE), agent: id(agent), claim: id(claim) }
}

#[must_use]
pub fn released(agent: &str, claim: &str) -> EdgeReleased {
    EdgeReleased {
        edge: id(DESIGN_CODE),
        agent: id(agent),
        claim: id(claim),
        reason: "done for today".to_owned(),
        forced_by: None,
    }
}

/// The schedule has recorded the end of a lease that began with the case.
#[must_use]
pub fn claim_expired(agent: &str, claim: &str, epoch: u64) -> ClaimExpired {
    ClaimExpired {
        edge: id(DESIGN_CODE),
        agent: id(agent),
        claim: id(claim),
        epoch,
        lease_until_ms: BEGIN_MS + LEASE_MS,
        detected_by: DetectedBy::Sweep,
    }
}

/// An iteration of `ada`, in which this many required checks failed.
#[must_use]
pub fn iterated(claim: &str, iteration: u32, delta: u32) -> IterationCompleted {
    IterationCompleted {
        edge: id(DESIGN_CODE),
        agent: id("ada"),
        claim: id(claim),
        run: 1,
        iteration,
        status: if delta == 0 { Status::Converged } else { Status::InProgress },
        delta,
        checks: checks(delta),
        source_findings: vec![],
        process_gaps: vec![],
        artifact: Some(artifact()),
        context_hash: hash(1),
        req_keys: vec![id("AUTH-1")],
    }
}

/// One check that is passed, and required ones that are not.
#[must_use]
pub fn checks(failed: u32) -> Vec<Check> {
    let check = |n: u32| Check { name: id(&format!("check {n}")), required: true, passed: n == 0 };
    (0..=failed).map(check).collect()
}

#[must_use]
pub fn artifact() -> Artifact {
    Artifact { uri: id("s3://files/auth"), sha256: hash(2) }
}

#[must_use]
pub fn hash(n: u8) -> Sha256 {
    id(&format!("{n:064x}"))
}

#[must_use]
pub fn review_requested(iteration: u32) -> ReviewRequested {
    ReviewRequested {
        edge: id(DESIGN_CODE),
        agent: id("ada"),
        claim: id("c1"),
        run: 1,
        iteration,
        sha256: Some(hash(2)),
    }
}

/// `eve` wants changes.
#[must_use]
pub fn reviewed(iteration: u32) -> ReviewCompleted {
    ReviewCompleted {
        edge: id(DESIGN_CODE),
        agent: id("eve"),
        run: 1,
        iteration,
        sha256: Some(hash(2)),
        decision: ReviewDecision::ChangesRequested,
        reviewer: "eve".to_owned(),
        feedback: "more tests".to_owned(),
    }
}

/// `ada`, in a role that may not, has tried to converge the edge after its first iteration.
#[must_use]
pub fn barred(action: Otherwise) -> ConvergenceEscalated {
    ConvergenceEscalated {
        edge: id(DESIGN_CODE),
        agent: id("ada"),
        claim: id("c1"),
        run: 1,
        iteration: 1,
        role: Some(id("guest")),
        action,
        convergence: Convergence::Standard,
    }
}

#[must_use]
pub fn spawned(child: &str, blocks: bool) -> SpawnCreated {
    SpawnCreated {
        edge: id(DESIGN_CODE),
        agent: id("ada"),
        claim: id("c1"),
        child: id(child),
        kind: Kind::Spike,
        blocks,
        reason: "nobody knows".to_owned(),
        intent: None,
    }
}

#[must_use]
pub fn folded_back(child: &str) -> SpawnFoldedBack {
    SpawnFoldedBack {
        edge: id(DESIGN_CODE),
        agent: id("ada"),
        child: id(child),
        outcome: SpawnOutcome::Done,
        payload: artifact(),
    }
}

/// An edge is done, after one iteration.
#[must_use]
pub fn converged(edge: &str, claim: &str) -> EdgeConverged {
    EdgeConverged {
        edge: id(edge),
        agent: id("ada"),
        claim: id(claim),
        epoch: 1,
        run: 1,
        iteration: 1,
        convergence: Convergence::Standard,
        req_keys: vec![id("AUTH-1")],
        completes_feature: edge == DESIGN_CODE,
    }
}

/// The edge is opened again for this run.
#[must_use]
pub fn reopened(run: u32) -> EdgeReopened {
    EdgeReopened {
        edge: id(DESIGN_CODE),
        agent: id("ada"),
        run,
        reason: "it does not work".to_owned(),
        reopens_feature: true,
    }
}

/// The start of an edge as the index has it, with the last claims' epochs before it.
pub fn entry(checkpoint: i64, slot: u64) -> Entry {
    let NewEvent { event_type, tags, data } = started("ada", &format!("c{slot}"), slot).into();
    let metadata = serde_json::json!({ "principal": "ada", "commandId": "é" });
    let metadata = serde_json::from_value(metadata).expect("it is well-formed");
    let event = SequencedEvent {
        partition: BoundaryId::tag("edge", DESIGN_CODE),
        slot,
        at: 1_719_100_800_000 + slot,
        rest: 0,
        event_type: event_type.into_owned(),
        context: "projects".to_owned(),
        tags,
        version: 1,
        data,
        metadata,
    };
    Entry { checkpoint: checkpoint.try_into().expect("it is well-formed"), event }
}
