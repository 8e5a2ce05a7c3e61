//! `ringfence project claim`: an agent claims an edge, or the next one that is ready.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use projects::{AgentId, EdgeRef, FeatureRows, ProjectId, ready_for};
use ringfence_aws::Clock;
use ringfence_cli::remark;
use serde_json::{Value, json};

use super::act::{Caller, Settled};
use super::cache::{Cache, Folded};
use super::command::Draft;
use super::decide::Slices;
use super::folder::{Folder, Held};

#[derive(Args)]
pub(crate) struct Claim {
    /// The edge, as `<project>/<feature>/<edge>`.
    #[arg(required_unless_present = "next")]
    edge: Option<EdgeRef>,
    /// Claims the first ready edge that no other agent gets before, in the order of `ready`. In multi mode each agent
    /// tries equally urgent edges in another order.
    #[arg(long, conflicts_with = "edge")]
    next: bool,
    #[command(flatten)]
    caller: Caller,
}

pub(crate) async fn run(project: Option<&ProjectId>, arguments: &Claim) -> Result<ExitCode> {
    let Claim { edge, caller, .. } = arguments;
    let settled = match edge {
        Some(edge) => caller.claim(edge).await,
        None => caller.claim_next(&Folder::find(project)?).await,
    };
    settled.map(Settled::print)
}

impl Caller {
    /// Claims an edge. The document says the id of the claim.
    async fn claim(&self, edge: &EdgeRef) -> Result<Settled> {
        let data = json!({ "edge": edge }).to_string();
        let draft = Draft::new(Draft::CLAIM, &data, self.agent.as_ref())?;
        self.give(&Folder::of(&edge.feature.project), draft).await
    }

    /// Claims the ready edges in turn, until one is granted. If another agent has got one, others may be gone too, so
    /// the agent looks again.
    async fn claim_next(&self, folder: &Folder) -> Result<Settled> {
        let agent = &self.agent.clone().unwrap_or_default();
        let (slices, mut tried, mut last_rejection) = (Slices::all(), BTreeSet::new(), None);
        let mut can_pull = !self.offline && self.pull_if_possible(folder).await?;
        loop {
            let features = Cache::read(&folder.read()?, &slices).await?.standing.features;
            let ready = ready_for(agent, &features, Clock::system().now_ms());
            let mut edges = ready.into_iter().map(|ready| ready.edge);
            let is_left = loop {
                let Some(edge) = edges.find(|edge| tried.insert(edge.clone())) else { break false };
                let Settled { document: mut answer, code } = match self.claim(&edge).await {
                    Err(error) if error.is::<Folded>() => {
                        last_rejection = Some(json!({ "edge": edge, "detail": error.to_string() }));
                        continue;
                    }
                    settled => settled?,
                };
                // The rejection is about the agent and not about the edge, so other edges would be rejected too.
                let is_wrong = ["SingleMode", "AgentMissing"].map(|code| answer["code"] == code);
                if code == ExitCode::FAILURE && is_wrong.contains(&true) {
                    return Ok(Settled { document: answer, code });
                }
                answer["edge"] = json!(edge);
                if code != ExitCode::FAILURE {
                    return Ok(Settled { document: answer, code });
                }
                let is_held = answer["code"] == "EdgeHeld";
                last_rejection = Some(answer);
                if is_held && can_pull {
                    can_pull = self.pull_if_possible(folder).await?;
                    break true;
                }
            };
            if !is_left {
                let document = nothing_ready(agent, &features, last_rejection);
                return Ok(Settled { document, code: ExitCode::FAILURE });
            }
        }
    }

    /// Pulls, and returns whether that is possible. Without the index the copy must be enough.
    ///
    /// # Errors
    /// There is no copy, or another program holds the lock.
    async fn pull_if_possible(&self, folder: &Folder) -> Result<bool> {
        match self.pull(folder).await {
            Err(error) if folder.is_begun()? && !error.is::<Held>() => {
                remark!("warning: {error:#}");
                Ok(false)
            }
            pulled => pulled,
        }
    }
}

/// Says that an agent gets no edge, and which ones it has.
fn nothing_ready(agent: &AgentId, features: &FeatureRows, last_rejection: Option<Value>) -> Value {
    let edges = features.iter().flat_map(|(feature, row)| {
        row.edges
            .iter()
            .map(move |(name, edge)| (format!("{feature}/{name}"), &edge.holding.holder))
    });
    let holds = edges.filter_map(|(edge, holder)| Some((edge, holder.as_ref()?)));
    let holds = holds.filter(|(_, holder)| holder.agent == *agent && !holder.expired);
    let holds: Vec<_> =
        holds.map(|(edge, holder)| json!({ "edge": edge, "claim": holder.claim })).collect();
    let detail = match holds.len() {
        0 => "no edge is ready for this agent".to_owned(),
        edges => format!(
            "no further edge is ready for {agent}, which holds {edges}: work on what it `holds`, or give it back by \
             release-edge"
        ),
    };
    let mut document = json!({ "code": "NothingReady", "detail": detail });
    if !holds.is_empty() {
        document["holds"] = holds.into();
    }
    if let Some(last_rejection) = last_rejection {
        document["lastRefusal"] = last_rejection;
    }
    document
}
