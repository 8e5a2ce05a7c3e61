//! Claims on the work of a project: commands about few edges by few agents, with leases of a second, and rules for the
//! events of every edge.

use std::collections::BTreeMap;

use projects::claim_edge::ClaimEdge;
use projects::complete_iteration::CompleteIteration;
use projects::converge_edge::ConvergeEdge;
use projects::create_feature::CreateFeature;
use projects::expire_claim::ExpireClaim;
use projects::facts::{checks, hash, multi};
use projects::force_release::ForceRelease;
use projects::init_project::InitProject;
use projects::record_review::RecordReview;
use projects::release_edge::ReleaseEdge;
use projects::renew_claim::RenewClaim;
use projects::reopen_edge::ReopenEdge;
use projects::request_review::RequestReview;
use projects::spawn_feature::SpawnFeature;
use projects::{
    AgentId, ClaimId, Config, Convergence, EdgeRef, Kind, LEASE_MS_MIN, ReviewDecision, Status,
};
use ringfence_aws::Random;
use ringfence_core::kit::id;
use ringfence_core::{List, SequencedEvent};

use crate::commands::{Command, name};

/// The project, then its first feature.
pub(crate) fn first(number: usize) -> Command {
    let agent = id("eve");
    match number {
        0 => {
            let config = Config { lease_ms: LEASE_MS_MIN, ..multi() };
            Command::InitProject(InitProject { project: id("shop"), agent, config })
        }
        _ => Command::CreateFeature(CreateFeature {
            feature: id("shop/REQ-F-WORK-000"),
            agent,
            title: id("Work"),
            kind: Kind::Feature,
            priority: 0,
            dependencies: List::default(),
            time_box_ms: None,
        }),
    }
}

/// A command of an agent. Most concern the feature's first edge. Some name the claim of another agent.
pub(crate) fn command(random: &mut Random) -> Command {
    let edge = match random.below(4) {
        0 => "shop/REQ-F-WORK-000/design_code",
        _ => "shop/REQ-F-WORK-000/requirements_design",
    };
    let edge: EdgeRef = id(edge);
    let number = random.below(3);
    let agent: AgentId = id(["ada", "bob", "carl"][usize::try_from(number).unwrap_or(0)]);
    let claim: ClaimId = match random.below(4) {
        0 => name(random, "c", 3),
        _ => id(&format!("c{number}")),
    };
    let reason = id("enough");
    match random.below(16) {
        0..=4 => Command::ClaimEdge(ClaimEdge { edge, agent, claim, after: List::default() }),
        5..=8 => {
            let delta = u32::try_from(random.below(2)).unwrap_or(0);
            Command::CompleteIteration(CompleteIteration {
                edge,
                agent,
                claim: Some(claim),
                iteration: u32::try_from(1 + random.below(2)).unwrap_or(1),
                status: if delta == 0 { Status::Converged } else { Status::InProgress },
                delta,
                checks: checks(delta).try_into().expect("few"),
                source_findings: List::default(),
                process_gaps: List::default(),
                artifact: None,
                context_hash: hash(1),
                req_keys: List::default(),
                after: List::default(),
            })
        }
        9..=10 => {
            let (convergence, after) = (Convergence::Standard, List::default());
            let claim = Some(claim);
            Command::ConvergeEdge(ConvergeEdge { edge, agent, claim, convergence, after })
        }
        11 => Command::ReleaseEdge(ReleaseEdge { edge, agent, claim: Some(claim), reason }),
        12 => Command::ExpireClaim(ExpireClaim { edge, agent, epoch: 1 + random.below(3) }),
        13 if random.chance(50) => {
            Command::RenewClaim(RenewClaim { edge, agent, claim: Some(claim) })
        }
        13 if random.chance(50) => {
            Command::RequestReview(RequestReview { edge, agent, claim: Some(claim) })
        }
        13 => Command::RecordReview(RecordReview {
            edge,
            agent: id("eve"),
            run: 1,
            iteration: u32::try_from(1 + random.below(2)).unwrap_or(1),
            sha256: None,
            decision: match random.below(2) {
                0 => ReviewDecision::Approved,
                _ => ReviewDecision::ChangesRequested,
            },
            feedback: id("read"),
        }),
        14 if random.chance(50) => Command::ReopenEdge(ReopenEdge { edge, agent, reason }),
        14 => Command::ForceRelease(ForceRelease { edge, agent: id("eve"), reason }),
        _ => Command::SpawnFeature(SpawnFeature {
            edge,
            agent,
            claim: Some(claim),
            child: id("shop/REQ-F-WORK-001"),
            title: id("A question"),
            kind: Kind::Spike,
            priority: 0,
            blocks: random.chance(50),
            reason,
            intent: None,
            time_box_ms: None,
        }),
    }
}

/// The claim under which a command works.
pub(crate) fn named(command: &Command) -> Option<&ClaimId> {
    match command {
        Command::CompleteIteration(CompleteIteration { claim, .. })
        | Command::ConvergeEdge(ConvergeEdge { claim, .. })
        | Command::ReleaseEdge(ReleaseEdge { claim, .. })
        | Command::RenewClaim(RenewClaim { claim, .. })
        | Command::RequestReview(RequestReview { claim, .. })
        | Command::SpawnFeature(SpawnFeature { claim, .. }) => claim.as_ref(),
        _ => None,
    }
}

/// The state of an edge.
#[derive(Default)]
struct Edge<'e> {
    epoch: u64,
    /// The claim that is current.
    claim: Option<&'e str>,
    /// The expired claim, until another one begins. It can be taken back.
    expired: Option<&'e str>,
}

/// Checks events in the order of partition and slot. The claims of an edge are numbered from 1 on. A claim begins only
/// after the previous one has ended. Each event of work belongs to the current claim.
///
/// # Errors
/// The first event that breaks this.
pub fn check(events: &BTreeMap<String, SequencedEvent>) -> Result<(), String> {
    let mut in_order: Vec<&SequencedEvent> = events.values().collect();
    in_order.sort_by_key(|event| (event.partition.to_string(), event.slot));
    let mut edges: BTreeMap<&str, Edge> = BTreeMap::new();
    for event in in_order {
        let data = &event.data;
        let (Some(of), Some(claim)) = (data["edge"].as_str(), data["claim"].as_str()) else {
            continue;
        };
        let edge = edges.entry(of).or_default();
        let wrong = |what: String| Err(format!("{} {}: {what}", event.event_type, event.id()));
        match event.event_type.as_str() {
            "EdgeStarted" => {
                let epoch = data["epoch"].as_u64();
                if epoch != Some(edge.epoch + 1) {
                    return wrong(format!("epoch {epoch:?} follows {}", edge.epoch));
                }
                if let Some(current) = edge.claim {
                    return wrong(format!("{current} holds the edge"));
                }
                *edge = Edge { epoch: edge.epoch + 1, claim: Some(claim), expired: None };
            }
            "ClaimRejected" => {}
            // A review ends the edge under its latest claim, which may have been given back.
            "EdgeConverged" if data["agent"] == "eve" => edge.claim = None,
            "EdgeReleased" if data["forcedBy"].is_string() && edge.expired == Some(claim) => {
                edge.expired = None;
            }
            end => {
                if edge.claim != Some(claim) {
                    return wrong(format!("{claim} works, {:?} holds the edge", edge.claim));
                }
                if ["EdgeReleased", "ClaimExpired", "EdgeConverged"].contains(&end) {
                    edge.claim = None;
                    edge.expired = (end == "ClaimExpired").then_some(claim);
                }
            }
        }
    }
    Ok(())
}
