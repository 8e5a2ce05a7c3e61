//! project-status: how a project stands, and what in it waits for somebody. One row for each project.
//!
//! Events of different partitions come in any order. So the row counts, keeps the data of each edge, and of everything
//! else the version that was recorded last. `followed` lets the row know an intent that is raised after a child
//! followed it; it grows by some fifty bytes for each such intent.

use std::collections::{BTreeMap, BTreeSet};

use ringfence::prelude::*;
use ringfence::view::View;

use crate::{
    Config, EdgeEvent, EdgeRef, FeatureRef, GapCounts, IntentId, Mode, Otherwise, ProjectId,
    Sha256, Status, Version,
};

#[derive(Debug)]
pub struct ProjectStatus;

/// Other events that are read, besides events of edges.
#[derive(Reads)]
pub enum Consumed {
    ProjectInitialized {
        project: ProjectId,
        config: Config,
    },
    ProjectReconfigured {
        project: ProjectId,
        config: Config,
    },
    FeatureCreated {
        feature: FeatureRef,
    },
    IntentRaised {
        project: ProjectId,
        intent: IntentId,
        #[time]
        raised_ms: u64,
    },
    GapsValidated {
        project: ProjectId,
        intent: IntentId,
        as_of: String,
        counts: GapCounts,
        #[time]
        validated_ms: u64,
    },
    CheckpointCreated {
        project: ProjectId,
        sha256: Sha256,
        uri: String,
        #[time]
        created_ms: u64,
    },
    ReleaseCreated {
        project: ProjectId,
        version: Version,
        #[time]
        created_ms: u64,
    },
}

/// A project. Times are in milliseconds since 1970.
#[ringfence::value]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatusRow {
    /// Whether one agent works on it or many; absent until the row shows that the project has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// How many features were created.
    pub features: u64,
    /// How many iterations were completed.
    pub iterations: u64,
    /// How many edges are done.
    pub converged_edges: u64,
    /// How often the last edge of a feature converged.
    pub completions: u64,
    /// How often an edge of a feature that was done was opened again.
    pub reopenings: u64,
    /// Gaps that no child follows: requirements that are not met, and open edges that were stuck.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub intents: BTreeMap<IntentId, Intent>,
    /// The intents that a child follows.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub followed: BTreeSet<IntentId>,
    /// The edges at which a person has to look.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pending: BTreeMap<EdgeRef, Pending>,
    /// The edges whose last iteration is converged, and which are open.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unfinished: BTreeSet<EdgeRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_checkpoint: Option<Checkpoint>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_gaps: Option<Gaps>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_release: Option<Release>,
}

/// Something that is missing.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq)]
pub struct Intent {
    pub raised_ms: u64,
    /// The edge at which work is stuck; absent if requirements are not met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge: Option<EdgeRef>,
}

/// Why a person has to look at an edge.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    pub since_ms: u64,
    pub run: u32,
    pub iteration: u32,
    /// Whether a role that may not converge the edge has tried to; otherwise a review was requested.
    pub escalated: bool,
}

/// A state of the work that is kept in a file.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Checkpoint {
    pub created_ms: u64,
    pub sha256: Sha256,
    pub uri: String,
}

/// How far the requirements are met.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gaps {
    pub validated_ms: u64,
    pub intent: IntentId,
    pub as_of: String,
    pub counts: GapCounts,
}

/// Features that went out.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    pub created_ms: u64,
    pub version: Version,
}

impl StatusRow {
    fn raise(&mut self, intent: &IntentId, raised_ms: u64, edge: Option<&EdgeRef>) {
        if !self.followed.contains(intent) {
            let edge = edge.cloned();
            self.intents.insert(intent.clone(), Intent { raised_ms, edge });
        }
    }

    /// The row after an event that is not of an edge.
    fn follow(&mut self, event: &Consumed) {
        match event {
            Consumed::ProjectInitialized { config, .. }
            | Consumed::ProjectReconfigured { config, .. } => self.mode = Some(config.mode),
            Consumed::FeatureCreated { .. } => self.features += 1,
            Consumed::IntentRaised { intent, raised_ms, .. } => {
                self.raise(intent, *raised_ms, None);
            }
            Consumed::GapsValidated { intent, as_of, counts, validated_ms, .. } => {
                let (validated_ms, intent, as_of) = (*validated_ms, intent.clone(), as_of.clone());
                latest(&mut self.last_gaps, Gaps { validated_ms, intent, as_of, counts: *counts });
            }
            Consumed::CheckpointCreated { sha256, uri, created_ms, .. } => {
                let (created_ms, sha256, uri) = (*created_ms, sha256.clone(), uri.clone());
                latest(&mut self.last_checkpoint, Checkpoint { created_ms, sha256, uri });
            }
            Consumed::ReleaseCreated { version, created_ms, .. } => {
                let (created_ms, version) = (*created_ms, version.clone());
                latest(&mut self.last_release, Release { created_ms, version });
            }
        }
    }

    /// The row after an event of an edge.
    fn follow_edge(&mut self, event: &EdgeEvent) {
        match event {
            EdgeEvent::IterationCompleted { edge, status, .. } => {
                self.iterations += 1;
                match status {
                    Status::Converged => self.unfinished.insert(edge.clone()),
                    Status::InProgress | Status::Blocked => self.unfinished.remove(edge),
                };
            }
            EdgeEvent::EdgeStuck { edge, intent, at_ms } => {
                self.raise(intent, *at_ms, Some(edge));
            }
            EdgeEvent::SpawnCreated { intent: Some(intent), .. } => {
                self.intents.remove(intent);
                self.followed.insert(intent.clone());
            }
            EdgeEvent::ReviewRequested { edge, run, iteration, at_ms } => {
                let (since_ms, run, iteration) = (*at_ms, *run, *iteration);
                let asked = Pending { since_ms, run, iteration, escalated: false };
                self.pending.insert(edge.clone(), asked);
            }
            EdgeEvent::ConvergenceEscalated {
                edge,
                run,
                iteration,
                action: Otherwise::Escalate,
                at_ms,
                ..
            } => {
                let (since_ms, run, iteration) = (*at_ms, *run, *iteration);
                let escalated = Pending { since_ms, run, iteration, escalated: true };
                self.pending.insert(edge.clone(), escalated);
            }
            EdgeEvent::ReviewCompleted { edge, .. } => drop(self.pending.remove(edge)),
            EdgeEvent::EdgeConverged { edge, completes_feature, .. } => {
                self.pending.remove(edge);
                self.unfinished.remove(edge);
                self.intents.retain(|_, intent| intent.edge.as_ref() != Some(edge));
                self.converged_edges += 1;
                self.completions += u64::from(*completes_feature);
            }
            EdgeEvent::EdgeReopened { reopens_feature, .. } => {
                self.converged_edges = self.converged_edges.saturating_sub(1);
                self.reopenings += u64::from(*reopens_feature);
            }
            _ => {}
        }
    }
}

/// Keeps the value that was recorded last.
fn latest<T: Ord>(kept: &mut Option<T>, new: T) {
    *kept = kept.take().max(Some(new));
}

impl View for ProjectStatus {
    const NAME: &'static str = "project-status";
    type Reads = (Option<Consumed>, Option<EdgeEvent>);
    type Row = StatusRow;

    fn rows((event, of_edge): &Self::Reads) -> Vec<String> {
        let project = match event {
            Some(
                Consumed::ProjectInitialized { project, .. }
                | Consumed::ProjectReconfigured { project, .. }
                | Consumed::IntentRaised { project, .. }
                | Consumed::GapsValidated { project, .. }
                | Consumed::CheckpointCreated { project, .. }
                | Consumed::ReleaseCreated { project, .. },
            ) => Some(project),
            Some(Consumed::FeatureCreated { feature }) => Some(&feature.project),
            None => of_edge.as_ref().map(|event| &event.edge().feature.project),
        };
        project.map(ToString::to_string).into_iter().collect()
    }

    fn evolve(
        row: Option<StatusRow>,
        _id: &str,
        (event, of_edge): &Self::Reads,
    ) -> Option<StatusRow> {
        let mut row = row.unwrap_or_default();
        if let Some(event) = event {
            row.follow(event);
        }
        if let Some(event) = of_edge {
            row.follow_edge(event);
        }
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use ringfence::kit::BEGIN_MS;
    use ringfence::view::kit::given;

    use super::*;
    use crate::facts::*;
    use crate::{CheckpointCreated, EdgeStuck, IntentRaised, SpawnCreated};

    #[test]
    fn a_row_counts_the_work() {
        given(ready_in(multi()))
            .and(events![iterated("c1", 1, 0), converged(DESIGN_CODE, "c1"), reopened(2)])
            .then::<ProjectStatus>([(
                "shop",
                StatusRow {
                    mode: Some(Mode::Multi),
                    features: 1,
                    iterations: 1,
                    converged_edges: 1,
                    completions: 1,
                    reopenings: 1,
                    ..StatusRow::default()
                },
            )]);
    }

    #[test]
    fn an_iteration_that_converged_is_reported_until_its_edge_does() {
        let row = StatusRow { iterations: 1, ..StatusRow::default() };
        let unfinished = BTreeSet::from([id(DESIGN_CODE)]);
        let worked = || given(events![iterated("c1", 1, 0)]);
        worked()
            .then::<ProjectStatus>([("shop", StatusRow { unfinished: unfinished.clone(), ..row })]);
        worked()
            .and(events![iterated("c1", 2, 1)])
            .then::<ProjectStatus>([("shop", StatusRow { iterations: 2, ..StatusRow::default() })]);
    }

    #[test]
    fn what_a_person_has_to_look_at_is_shown_until_it_is_decided() {
        let pending = |escalated| StatusRow {
            pending: [(
                id(DESIGN_CODE),
                Pending { since_ms: BEGIN_MS, run: 1, iteration: 1, escalated },
            )]
            .into(),
            ..StatusRow::default()
        };
        let asked = || given(events![review_requested(1)]);
        asked().then::<ProjectStatus>([("shop", pending(false))]);
        asked()
            .and(events![barred(Otherwise::Escalate)])
            .then::<ProjectStatus>([("shop", pending(true))]);
        asked().and(events![reviewed(1)]).then::<ProjectStatus>([("shop", StatusRow::default())]);
        given(events![barred(Otherwise::Warn)])
            .then::<ProjectStatus>([("shop", StatusRow::default())]);
    }

    #[test]
    fn an_intent_is_shown_until_a_child_follows_it() {
        let raised = || IntentRaised {
            project: id("shop"),
            intent: id("gaps-1"),
            agent: id("ada"),
            reason: "2 requirements are not met".to_owned(),
        };
        let follows = || SpawnCreated { intent: Some(id("gaps-1")), ..spawned(SEARCH, false) };
        let intent = Intent { raised_ms: BEGIN_MS, edge: None };
        given(events![raised()]).then::<ProjectStatus>([(
            "shop",
            StatusRow { intents: [(id("gaps-1"), intent)].into(), ..StatusRow::default() },
        )]);
        for events in [events![raised(), follows()], events![follows(), raised()]] {
            given(events).then::<ProjectStatus>([(
                "shop",
                StatusRow { followed: [id("gaps-1")].into(), ..StatusRow::default() },
            )]);
        }
    }

    #[test]
    fn an_edge_that_converges_is_not_stuck_any_more() {
        let stuck = |edge: &str| EdgeStuck {
            edge: id(edge),
            agent: id("ada"),
            intent: id(&format!("stuck-{}", edge.len())),
            run: 1,
            iteration: 3,
            delta: 2,
        };
        let other = stuck(REQUIREMENTS_DESIGN);
        let intent = Intent { raised_ms: BEGIN_MS, edge: Some(id(REQUIREMENTS_DESIGN)) };
        given(events![stuck(DESIGN_CODE), other.clone(), converged(DESIGN_CODE, "c1")])
            .then::<ProjectStatus>([(
            "shop",
            StatusRow {
                intents: [(other.intent, intent)].into(),
                converged_edges: 1,
                completions: 1,
                ..StatusRow::default()
            },
        )]);
    }

    #[test]
    fn of_checkpoints_the_last_is_shown() {
        let created = |n| CheckpointCreated {
            project: id("shop"),
            sha256: hash(n),
            agent: id("ada"),
            uri: format!("s3://files/{n}"),
            note: String::new(),
        };
        let last = Checkpoint {
            created_ms: BEGIN_MS + 1_000,
            sha256: hash(1),
            uri: "s3://files/1".to_owned(),
        };
        given(events![created(2)]).wait(1_000).and(events![created(1)]).then::<ProjectStatus>([(
            "shop",
            StatusRow { last_checkpoint: Some(last), ..StatusRow::default() },
        )]);
    }
}
