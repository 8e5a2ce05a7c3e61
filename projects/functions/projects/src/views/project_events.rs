//! project-events: what happened in a project, in the order in which it was recorded. One row for each feature,
//! edge, agent and type of an event, named `<project>/feature/<feature>/<time>/<event>`, and so on with `edge`,
//! `agent` and `type`.
//!
//! The time is RFC 3339 with milliseconds, so ids sort as times do: the list with the prefix `shop/agent/ada/`, `from`
//! and `to` days, and the order `desc` is what Ada did, the last first. A name of an edge is
//! `<feature>/<edge>`. An event has about four rows, and each costs two write units.

use ringfence::{SequencedEvent, prelude::*, rfc3339};
use ringfence_views::View;
use serde::{Deserialize, Serialize};

use crate::*; // every event type is in the list below

#[derive(Debug)]
pub struct ProjectEvents;

/// An event of the context as the view reads it.
pub struct Recorded {
    told: Told,
    /// Partition and slot.
    id: String,
    event_type: String,
    about: About,
}

/// What an event is about. Events of all types name it by the same fields.
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventRow {
    /// Its id: its partition and its number there.
    pub event: String,
    pub event_type: String,
    /// When it was recorded, in milliseconds since 1970.
    pub at_ms: u64,
    /// The edge that it is about, or else the feature, or else the project.
    pub about: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// In a few words, for people.
    pub summary: String,
}

impl Reads for Recorded {
    const TYPES: &'static [&'static str] = Fact::TYPES;

    fn decode(event: &SequencedEvent) -> Result<Self, serde_json::Error> {
        let (id, event_type) = (event.id(), event.event_type.clone());
        let (told, about) = (Told::decode(event)?, About::deserialize(&event.data)?);
        Ok(Self { told, id, event_type, about })
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
    type Reads = Recorded;
    type Row = EventRow;

    fn rows(Recorded { told, id, event_type, about }: &Recorded) -> Vec<String> {
        let Some(project) = about.project() else { return vec![] };
        let time = rfc3339(told.at_ms);
        let row = |key: &str, name: String| format!("{project}/{key}/{name}/{time}/{id}");
        let features = about.features().map(|feature| row("feature", feature.to_string()));
        let edge = about.edge.as_ref().map(|edge| {
            let EdgeRef { feature, name } = edge;
            row("edge", format!("{}/{name}", feature.feature))
        });
        let agent = about.agent.as_ref().map(|agent| row("agent", agent.to_string()));
        features.chain(edge).chain(agent).chain([row("type", event_type.clone())]).collect()
    }

    fn evolve(_: Option<EventRow>, _id: &str, recorded: &Recorded) -> Option<EventRow> {
        let Recorded { told, id, event_type, about } = recorded;
        let edge = about.edge.as_ref().map(ToString::to_string);
        let feature = || about.feature.as_ref().map(ToString::to_string);
        let project = || about.project().map(ToString::to_string);
        Some(EventRow {
            event: id.clone(),
            event_type: event_type.clone(),
            at_ms: told.at_ms,
            about: edge.or_else(feature).or_else(project)?,
            agent: about.agent.clone(),
            summary: summary(&told.fact),
        })
    }
}

/// What an event says, without what it is about and who did it.
fn summary(fact: &Fact) -> String {
    match fact {
        Fact::ProjectInitialized(it) => format!("begins with {} edges", it.config.edges.len()),
        Fact::ProjectReconfigured(it) => format!("now has {} edges", it.config.edges.len()),
        Fact::FeatureCreated(it) => it.title.clone(),
        Fact::FeatureReconfigured(it) => format!("takes configuration {}", it.version),
        Fact::DependencyAdded(it) => format!("waits for {}", it.on),
        Fact::DependencyDropped(it) => format!("no longer waits for {}", it.on),
        Fact::EdgeStarted(it) => format!("claim {}, epoch {}, run {}", it.claim, it.epoch, it.run),
        Fact::ClaimRenewed(it) => format!("claim {} goes on", it.claim),
        Fact::EdgeReleased(it) => match &it.forced_by {
            Some(who) => format!("{who} takes back claim {}", it.claim),
            None => format!("claim {} is given back", it.claim),
        },
        Fact::ClaimExpired(it) => format!("the lease of claim {} is over", it.claim),
        Fact::IterationCompleted(it) => {
            format!("iteration {} of run {}: {} checks failed", it.iteration, it.run, it.delta)
        }
        Fact::EdgeStuck(it) => format!("stuck at iteration {}: {}", it.iteration, it.intent),
        Fact::ReviewRequested(it) => format!("iteration {} waits for a review", it.iteration),
        Fact::ReviewCompleted(it) => match it.decision {
            ReviewDecision::Approved => {
                format!("{} approves iteration {}", it.reviewer, it.iteration)
            }
            ReviewDecision::ChangesRequested => {
                format!("{} wants changes of iteration {}", it.reviewer, it.iteration)
            }
        },
        Fact::ConvergenceEscalated(it) => match &it.role {
            Some(role) => format!("the role {role} may not converge it"),
            None => "who has no role may not converge it".to_owned(),
        },
        Fact::SpawnCreated(it) => format!("{} is born", it.child),
        Fact::SpawnFoldedBack(it) => format!("{} is folded back", it.child),
        Fact::EdgeConverged(it) => {
            format!("converged at iteration {} of run {}", it.iteration, it.run)
        }
        Fact::EdgeReopened(it) => format!("run {} begins", it.run),
        Fact::ClaimRejected(it) => format!("{} holds it by claim {}", it.holder, it.claim),
        Fact::IntentRaised(it) => format!("raises {}", it.intent),
        Fact::GapsValidated(it) => {
            format!("{} of {} requirements are met", it.counts.full, it.counts.total)
        }
        Fact::CheckpointCreated(it) => format!("keeps {}", it.sha256),
        Fact::ReleaseCreated(it) => {
            format!("releases {} features as {}", it.features.len(), it.version)
        }
        Fact::ForeignRecorded(it) => format!("imports {}", it.event_type),
    }
}

#[test]
fn an_event_has_a_row_for_each_feature_edge_agent_and_type() {
    use crate::facts::*;
    use ringfence::kit::BEGIN_MS;
    use ringfence_views::kit::given;

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
            ("shop/agent/ada/2024-06-23T00:00:00.000Z/dcb/1", started_row()),
            ("shop/agent/eve/2024-06-23T00:00:01.000Z/dcb/2", released_row()),
            ("shop/edge/REQ-F-AUTH-001/design_code/2024-06-23T00:00:00.000Z/dcb/1", started_row()),
            ("shop/feature/REQ-F-AUTH-001/2024-06-23T00:00:00.000Z/dcb/1", started_row()),
            ("shop/feature/REQ-F-AUTH-001/2024-06-23T00:00:01.000Z/dcb/2", released_row()),
            ("shop/type/EdgeStarted/2024-06-23T00:00:00.000Z/dcb/1", started_row()),
            ("shop/type/ReleaseCreated/2024-06-23T00:00:01.000Z/dcb/2", released_row()),
        ]);
}
