//! project-events: what happened in a project, in the order in which it was recorded. One row for each feature,
//! edge, agent and type of an event, named `<project>/feature/<feature>/<time>/<event>`, and so on with `edge`,
//! `agent` and `type`. Two more rows have the whole project, `<project>/time/<time>/<event>`, and what an agent did in
//! all projects, `*/agent/<agent>/<time>/<event>`.
//!
//! The time is RFC 3339 with milliseconds, so ids sort as times do: the list with the prefix `shop/agent/ada/`, `from`
//! and `to` days, and the order `desc` is what Ada did, the last first. A name of an edge is
//! `<feature>/<edge>`, and no project is called `*`. An event has about six rows, and each costs two write units.

use ringfence::view::View;
use ringfence::{prelude::*, rfc3339};
use serde::Deserialize;

use crate::{
    AgentId, ClaimId, Config, EdgeRef, FeatureId, FeatureRef, GapCounts, IntentId, ProjectId,
    ReviewDecision, RoleName, Sha256, Version,
};

#[derive(Debug)]
pub struct ProjectEvents;

/// An event of the context, as the view reads it.
pub struct Recorded {
    said: Said,
    /// Partition and slot.
    id: String,
    /// When it was recorded, in milliseconds since 1970.
    at_ms: u64,
    event_type: String,
    about: About,
}

/// The contents of an event, without its subject and its agent.
#[derive(Reads)]
enum Said {
    ProjectInitialized { config: Config },
    ProjectReconfigured { config: Config },
    FeatureCreated { title: String },
    FeatureReconfigured { version: u64 },
    DependencyAdded { on: FeatureRef },
    DependencyDropped { on: FeatureRef },
    EdgeStarted { claim: ClaimId, epoch: u64, run: u32 },
    ClaimRenewed { claim: ClaimId },
    EdgeReleased { claim: ClaimId, forced_by: Option<String> },
    ClaimExpired { claim: ClaimId },
    IterationCompleted { run: u32, iteration: u32, delta: u32 },
    EdgeStuck { iteration: u32, intent: IntentId },
    ReviewRequested { iteration: u32 },
    ReviewCompleted { iteration: u32, decision: ReviewDecision, reviewer: String },
    ConvergenceEscalated { role: Option<RoleName> },
    SpawnCreated { child: FeatureRef },
    SpawnFoldedBack { child: FeatureRef },
    EdgeConverged { run: u32, iteration: u32 },
    EdgeReopened { run: u32 },
    ClaimRejected { holder: AgentId, claim: ClaimId },
    IntentRaised { intent: IntentId },
    GapsValidated { counts: GapCounts },
    CheckpointCreated { sha256: Sha256 },
    ReleaseCreated { features: Vec<FeatureRef>, version: Version },
    ForeignRecorded { event_type: String },
}

/// The subject of an event. Events of all types name it by the same fields.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct About {
    project: Option<ProjectId>,
    feature: Option<FeatureRef>,
    #[serde(default)]
    features: Vec<FeatureRef>,
    edge: Option<EdgeRef>,
    agent: Option<AgentId>,
}

/// An event.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq)]
pub struct EventRow {
    /// Its id: its partition and its number there.
    pub event: String,
    pub event_type: String,
    /// When it was recorded, in milliseconds since 1970.
    pub at_ms: u64,
    /// Its subject: the edge, or else the feature, or else the project.
    pub about: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// In a few words, for people.
    pub summary: String,
}

impl Reads for Recorded {
    const TYPES: &'static [&'static str] = Said::TYPES;

    fn decode(event: &Current<'_>) -> Result<Self, serde_json::Error> {
        let (id, at_ms, event_type) = (event.id(), event.at, event.event_type.clone());
        let (said, about) = (Said::decode(event)?, About::deserialize(&event.data)?);
        Ok(Self { said, id, at_ms, event_type, about })
    }
}

impl About {
    fn project(&self) -> Option<&ProjectId> {
        let of_feature = self.feature.as_ref().map(|feature| &feature.project);
        let of_edge = self.edge.as_ref().map(|edge| &edge.feature.project);
        self.project.as_ref().or(of_feature).or(of_edge)
    }

    fn features(&self) -> impl Iterator<Item = &FeatureId> {
        let of_edge = self.edge.as_ref().map(|edge| &edge.feature);
        self.feature.iter().chain(&self.features).chain(of_edge).map(|it| &it.feature)
    }
}

impl View for ProjectEvents {
    const NAME: &'static str = "project-events";
    const VERSION: u32 = 1;
    type Reads = Recorded;
    type Row = EventRow;

    fn rows(Recorded { id, at_ms, event_type, about, .. }: &Recorded) -> Vec<String> {
        let Some(project) = about.project() else { return vec![] };
        let event = format!("{}/{id}", rfc3339(*at_ms));
        let row = |key: &str, name: String| format!("{project}/{key}/{name}/{event}");
        let features = about.features().map(|feature| row("feature", feature.to_string()));
        let edge = about.edge.as_ref().map(|edge| {
            let EdgeRef { feature, name } = edge;
            row("edge", format!("{}/{name}", feature.feature))
        });
        let agent = about.agent.iter().flat_map(|agent| {
            [row("agent", agent.to_string()), format!("*/agent/{agent}/{event}")]
        });
        let all = [row("type", event_type.clone()), format!("{project}/time/{event}")];
        features.chain(edge).chain(agent).chain(all).collect()
    }

    fn evolve(_: Option<EventRow>, _id: &str, recorded: &Recorded) -> Option<EventRow> {
        let Recorded { said, id, at_ms, event_type, about } = recorded;
        let edge = about.edge.as_ref().map(ToString::to_string);
        let feature = || about.feature.as_ref().map(ToString::to_string);
        let project = || about.project().map(ToString::to_string);
        Some(EventRow {
            event: id.clone(),
            event_type: event_type.clone(),
            at_ms: *at_ms,
            about: edge.or_else(feature).or_else(project)?,
            agent: about.agent.clone(),
            summary: said.summary(),
        })
    }
}

impl Said {
    /// In a few words, for people.
    fn summary(&self) -> String {
        match self {
            Self::ProjectInitialized { config } => {
                format!("begins with {} edges", config.edges.len())
            }
            Self::ProjectReconfigured { config } => {
                format!("now has {} edges", config.edges.len())
            }
            Self::FeatureCreated { title } => title.clone(),
            Self::FeatureReconfigured { version } => format!("takes configuration {version}"),
            Self::DependencyAdded { on } => format!("waits for {on}"),
            Self::DependencyDropped { on } => format!("no longer waits for {on}"),
            Self::EdgeStarted { claim, epoch, run } => {
                format!("claim {claim}, epoch {epoch}, run {run}")
            }
            Self::ClaimRenewed { claim } => format!("claim {claim} goes on"),
            Self::EdgeReleased { claim, forced_by: Some(who) } => {
                format!("{who} takes back claim {claim}")
            }
            Self::EdgeReleased { claim, forced_by: None } => format!("claim {claim} is given back"),
            Self::ClaimExpired { claim } => format!("the lease of claim {claim} is over"),
            Self::IterationCompleted { run, iteration, delta } => {
                format!("iteration {iteration} of run {run}: {delta} checks failed")
            }
            Self::EdgeStuck { iteration, intent } => {
                format!("stuck at iteration {iteration}: {intent}")
            }
            Self::ReviewRequested { iteration } => {
                format!("iteration {iteration} waits for a review")
            }
            Self::ReviewCompleted { iteration, decision, reviewer } => match decision {
                ReviewDecision::Approved => format!("{reviewer} approves iteration {iteration}"),
                ReviewDecision::ChangesRequested => {
                    format!("{reviewer} wants changes of iteration {iteration}")
                }
            },
            Self::ConvergenceEscalated { role: Some(role) } => {
                format!("the role {role} may not converge it")
            }
            Self::ConvergenceEscalated { role: None } => {
                "a caller without a role may not converge it".to_owned()
            }
            Self::SpawnCreated { child } => format!("{child} is born"),
            Self::SpawnFoldedBack { child } => format!("{child} is folded back"),
            Self::EdgeConverged { run, iteration } => {
                format!("converged at iteration {iteration} of run {run}")
            }
            Self::EdgeReopened { run } => format!("run {run} begins"),
            Self::ClaimRejected { holder, claim } => format!("{holder} holds it by claim {claim}"),
            Self::IntentRaised { intent } => format!("raises {intent}"),
            Self::GapsValidated { counts } => {
                format!("{} of {} requirements are met", counts.full, counts.total)
            }
            Self::CheckpointCreated { sha256 } => format!("keeps {sha256}"),
            Self::ReleaseCreated { features, version } => {
                format!("releases {} features as {version}", features.len())
            }
            Self::ForeignRecorded { event_type } => format!("imports {event_type}"),
        }
    }
}

#[test]
fn an_event_has_rows_for_each_feature_edge_agent_and_type_and_for_the_project() {
    use crate::ReleaseCreated;
    use crate::facts::*;
    use ringfence::kit::BEGIN_MS;
    use ringfence::view::kit::given;

    let release = ReleaseCreated {
        project: id("shop"),
        version: id("1.4.0"),
        agent: id("eve"),
        features: vec![id(AUTH)],
        notes: String::new(),
    };
    let row = |n: u64, event_type: &str, about: &str, agent: &str, summary: &str| EventRow {
        event: format!("dcb/{n}"),
        event_type: event_type.to_owned(),
        at_ms: BEGIN_MS + 1_000 * (n - 1),
        about: about.to_owned(),
        agent: Some(id(agent)),
        summary: summary.to_owned(),
    };
    let started_row = || row(1, "EdgeStarted", DESIGN_CODE, "ada", "claim c1, epoch 1, run 1");
    let released_row = || row(2, "ReleaseCreated", "shop", "eve", "releases 1 features as 1.4.0");
    given(events![started("ada", "c1", 1)])
        .wait(1_000)
        .and(events![release])
        .then::<ProjectEvents>([
            ("*/agent/ada/2024-06-23T00:00:00.000Z/dcb/1", started_row()),
            ("*/agent/eve/2024-06-23T00:00:01.000Z/dcb/2", released_row()),
            ("shop/agent/ada/2024-06-23T00:00:00.000Z/dcb/1", started_row()),
            ("shop/agent/eve/2024-06-23T00:00:01.000Z/dcb/2", released_row()),
            ("shop/edge/REQ-F-AUTH-001/design_code/2024-06-23T00:00:00.000Z/dcb/1", started_row()),
            ("shop/feature/REQ-F-AUTH-001/2024-06-23T00:00:00.000Z/dcb/1", started_row()),
            ("shop/feature/REQ-F-AUTH-001/2024-06-23T00:00:01.000Z/dcb/2", released_row()),
            ("shop/time/2024-06-23T00:00:00.000Z/dcb/1", started_row()),
            ("shop/time/2024-06-23T00:00:01.000Z/dcb/2", released_row()),
            ("shop/type/EdgeStarted/2024-06-23T00:00:00.000Z/dcb/1", started_row()),
            ("shop/type/ReleaseCreated/2024-06-23T00:00:01.000Z/dcb/2", released_row()),
        ]);
}

#[test]
fn events_of_all_types_have_rows() {
    let catalog = crate::Projects::catalog().expect("the types do not contradict each other");
    let of_context: Vec<_> = catalog.schemas().map(|schema| &*schema.name).collect();
    let mut read = Said::TYPES.to_vec();
    read.sort_unstable();
    assert_eq!(read, of_context);
}
