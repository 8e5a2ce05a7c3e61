//! project-features: how a feature is defined, and how far each of its edges is. One row for each feature, named
//! `<project>/<feature>`.
//!
//! Events of the feature, of its edges and of releases come in any order, so a row may show edges before it shows the
//! feature itself.

use std::collections::{BTreeMap, BTreeSet};

use ringfence::prelude::*;
use ringfence::view::View;

use super::Holding;
use crate::{
    EdgeEvent, EdgeName, FeatureCreated, FeatureRef, IntentId, Rules, SpawnOutcome, Version,
};

#[derive(Debug)]
pub struct ProjectFeatures;

/// Other events that are read, besides events of edges.
#[derive(Reads)]
pub enum Consumed {
    FeatureCreated {
        #[serde(flatten)]
        created: FeatureCreated,
        #[time]
        created_ms: u64,
    },
    FeatureReconfigured {
        feature: FeatureRef,
        rules: Rules,
        version: u64,
    },
    DependencyAdded {
        feature: FeatureRef,
        on: FeatureRef,
    },
    DependencyDropped {
        feature: FeatureRef,
        on: FeatureRef,
    },
    ReleaseCreated {
        features: Vec<FeatureRef>,
        version: Version,
    },
}

/// A feature.
#[ringfence::value]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeatureRow {
    /// Its data from the creation, with the rules and dependencies of now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<FeatureCreated>,
    /// When it was created, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_ms: Option<u64>,
    /// Its edges on which something has happened.
    pub edges: BTreeMap<EdgeName, EdgeRow>,
    /// The releases that it is in.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub releases: BTreeSet<Version>,
}

/// An edge of a feature. Times are in milliseconds since 1970.
#[ringfence::value]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EdgeRow {
    #[serde(flatten)]
    pub holding: Holding,
    /// 1 and the number of times it was opened again.
    pub run: u32,
    /// The last one of the run; 0 without any.
    pub iteration: u32,
    /// How many required checks failed in the last iteration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<u32>,
    /// The intent that was raised because work is stuck; absent if it goes on, or if a child follows the intent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck: Option<IntentId>,
    /// When the run was claimed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<u64>,
    /// When the last iteration of the run was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterated_ms: Option<u64>,
    /// When it converged; absent if it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub converged_ms: Option<u64>,
    /// The features that were born here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub children: BTreeMap<FeatureRef, Child>,
}

/// A feature that was born at an edge.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// Whether the edge waits for it.
    pub blocks: bool,
    /// Its result; absent until it is folded back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<SpawnOutcome>,
}

impl FeatureRow {
    /// Whether the edge is done.
    #[must_use]
    pub fn is_converged(&self, edge: &EdgeName) -> bool {
        self.edges.get(edge).is_some_and(|edge| edge.converged_ms.is_some())
    }

    /// How many edges are not done; `None` until the row shows the feature itself.
    #[must_use]
    pub fn edges_left(&self) -> Option<usize> {
        let rules = &self.definition.as_ref()?.rules;
        Some(rules.edges.iter().filter(|rule| !self.is_converged(&rule.edge)).count())
    }

    /// The row after an event of the feature or of a release.
    fn follow(&mut self, event: &Consumed) {
        match (event, &mut self.definition) {
            (Consumed::FeatureCreated { created, created_ms }, definition) => {
                (*definition, self.created_ms) = (Some(created.clone()), Some(*created_ms));
            }
            (Consumed::FeatureReconfigured { rules, version, .. }, Some(it)) => {
                (it.rules, it.version) = (rules.clone(), *version);
            }
            (Consumed::DependencyAdded { on, .. }, Some(it)) => it.dependencies.push(on.clone()),
            (Consumed::DependencyDropped { on, .. }, Some(it)) => {
                it.dependencies.retain(|dependency| dependency != on);
            }
            (Consumed::ReleaseCreated { version, .. }, _) => {
                self.releases.insert(version.clone());
            }
            (_, None) => {}
        }
    }
}

impl EdgeRow {
    /// The children that the edge waits for.
    pub fn open_children(&self) -> impl Iterator<Item = &FeatureRef> {
        let is_open = |(_, child): &(_, &Child)| child.blocks && child.outcome.is_none();
        self.children.iter().filter(is_open).map(|(child, _)| child)
    }

    /// The edge after an event of it.
    fn follow(&mut self, event: &EdgeEvent) {
        self.holding = std::mem::take(&mut self.holding).and(event);
        match event {
            EdgeEvent::EdgeStarted { run, at_ms, .. } => {
                self.run = *run;
                self.started_ms = self.started_ms.or(Some(*at_ms));
            }
            EdgeEvent::IterationCompleted { iteration, delta, at_ms, .. } => {
                if self.delta != Some(*delta) {
                    self.stuck = None;
                }
                (self.iteration, self.delta) = (*iteration, Some(*delta));
                self.iterated_ms = Some(*at_ms);
            }
            EdgeEvent::EdgeStuck { intent, .. } => self.stuck = Some(intent.clone()),
            EdgeEvent::SpawnCreated { child, blocks, intent, .. } => {
                if intent.is_some() && self.stuck == *intent {
                    self.stuck = None;
                }
                self.children.insert(child.clone(), Child { blocks: *blocks, outcome: None });
            }
            EdgeEvent::SpawnFoldedBack { child, outcome, .. } => {
                if let Some(child) = self.children.get_mut(child) {
                    child.outcome = Some(*outcome);
                }
            }
            EdgeEvent::EdgeConverged { at_ms, .. } => {
                (self.converged_ms, self.stuck) = (Some(*at_ms), None);
            }
            EdgeEvent::EdgeReopened { run, .. } => {
                let children = std::mem::take(&mut self.children);
                *self = Self { run: *run, children, ..Self::default() };
            }
            _ => {}
        }
    }
}

impl View for ProjectFeatures {
    const NAME: &'static str = "project-features";
    type Reads = (Option<Consumed>, Option<EdgeEvent>);
    type Row = FeatureRow;

    fn rows((event, of_edge): &Self::Reads) -> Vec<String> {
        let features = match event {
            Some(Consumed::FeatureCreated { created, .. }) => vec![&created.feature],
            Some(
                Consumed::FeatureReconfigured { feature, .. }
                | Consumed::DependencyAdded { feature, .. }
                | Consumed::DependencyDropped { feature, .. },
            ) => vec![feature],
            Some(Consumed::ReleaseCreated { features, .. }) => features.iter().collect(),
            None => of_edge.iter().map(|event| &event.edge().feature).collect(),
        };
        features.into_iter().map(ToString::to_string).collect()
    }

    fn evolve(
        row: Option<FeatureRow>,
        _id: &str,
        (event, of_edge): &Self::Reads,
    ) -> Option<FeatureRow> {
        let mut row = row.unwrap_or_default();
        if let Some(event) = event {
            row.follow(event);
        }
        if let Some(event) = of_edge {
            row.edges.entry(event.edge().name.clone()).or_default().follow(event);
        }
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use ringfence::kit::BEGIN_MS;
    use ringfence::view::kit::given;
    use serde_json::{Value, json};

    use super::*;
    use crate::facts::*;
    use crate::{
        DependencyDropped, EdgeReopened, EdgeStuck, FeatureReconfigured, LEASE_MS, ReleaseCreated,
        SpawnCreated,
    };

    fn row(definition: FeatureCreated, edges: Value) -> FeatureRow {
        FeatureRow {
            definition: Some(definition),
            created_ms: Some(BEGIN_MS),
            edges: serde_json::from_value(edges).expect("edges"),
            releases: BTreeSet::new(),
        }
    }

    #[test]
    fn a_row_shows_the_feature_as_it_is_now() {
        let dependencies = |on: &[&str]| on.iter().map(|on| id(on)).collect();
        let rules = gated().rules();
        given(events![
            FeatureCreated { dependencies: dependencies(&[PAY]), ..created(AUTH) },
            waits(AUTH, SEARCH),
            DependencyDropped { feature: id(AUTH), agent: id("ada"), on: id(PAY) },
            FeatureReconfigured {
                feature: id(AUTH),
                agent: id("eve"),
                rules: rules.clone(),
                version: 2
            },
        ])
        .then::<ProjectFeatures>([(
            AUTH,
            row(
                FeatureCreated {
                    dependencies: dependencies(&[SEARCH]),
                    rules,
                    version: 2,
                    ..created(AUTH)
                },
                json!({}),
            ),
        )]);
    }

    #[test]
    fn a_row_shows_how_far_each_edge_is() {
        let stuck = EdgeStuck {
            edge: id(DESIGN_CODE),
            agent: id("ada"),
            intent: id("stuck-1"),
            run: 1,
            iteration: 1,
            delta: 2,
        };
        let worked = || {
            let first = events![created(AUTH), started("ada", "c1", 1)];
            given(first).wait(1_000).and(events![iterated("c1", 1, 2), stuck.clone()])
        };
        let edge = |rest: Value| {
            let mut edge = json!({
                "agent": "ada", "claim": "c1", "epoch": 1, "expired": false,
                "leaseMs": LEASE_MS, "leaseUntilMs": BEGIN_MS + LEASE_MS + 1_000,
                "run": 1, "iteration": 1, "delta": 2,
                "startedMs": BEGIN_MS, "iteratedMs": BEGIN_MS + 1_000,
            });
            let rest = rest.as_object().expect("a map").clone();
            edge.as_object_mut().expect("a map").extend(rest);
            row(created(AUTH), json!({ "design_code": edge }))
        };
        let shows = |case: ringfence::view::kit::GivenEvents, rest: Value| {
            case.then::<ProjectFeatures>([(AUTH, edge(rest))]);
        };
        shows(worked(), json!({ "stuck": "stuck-1" }));
        shows(worked().and(events![iterated("c1", 2, 1)]), json!({ "iteration": 2, "delta": 1 }));
        // A child follows the intent.
        let spawn = || SpawnCreated { intent: Some(id("stuck-1")), ..spawned(SEARCH, true) };
        let children = |child: Value| json!({ "children": { SEARCH: child } });
        shows(worked().and(events![spawn()]), children(json!({ "blocks": true })));
        shows(
            worked().and(events![spawn(), folded_back(SEARCH)]),
            children(json!({ "blocks": true, "outcome": "done" })),
        );
    }

    #[test]
    fn a_run_that_begins_forgets_the_one_before() {
        let done = json!({
            "run": 0, "iteration": 0, "convergedMs": BEGIN_MS,
        });
        let first = || given(events![created(AUTH), converged(DESIGN_CODE, "c1")]);
        first()
            .then::<ProjectFeatures>([(AUTH, row(created(AUTH), json!({ "design_code": done })))]);
        first().and(events![reopened(2)]).then::<ProjectFeatures>([(
            AUTH,
            row(created(AUTH), json!({ "design_code": { "run": 2, "iteration": 0 } })),
        )]);
    }

    #[test]
    fn a_release_is_shown_by_each_of_its_features() {
        let release = ReleaseCreated {
            project: id("shop"),
            version: id("1.4.0"),
            agent: id("ada"),
            features: vec![id(AUTH), id(SEARCH)],
            notes: String::new(),
        };
        let releases = || BTreeSet::from([id("1.4.0")]);
        given(events![release, created(AUTH)]).then::<ProjectFeatures>([
            (AUTH, FeatureRow { releases: releases(), ..row(created(AUTH), json!({})) }),
            (SEARCH, FeatureRow { releases: releases(), ..FeatureRow::default() }),
        ]);
    }

    #[test]
    fn an_edge_may_be_shown_before_its_feature() {
        let reopened = EdgeReopened { edge: id(DESIGN_CODE), ..reopened(2) };
        let edges = json!({ "design_code": { "run": 2, "iteration": 0 } });
        let row = FeatureRow { definition: None, created_ms: None, ..row(created(AUTH), edges) };
        given(events![converged(DESIGN_CODE, "c1"), reopened])
            .then::<ProjectFeatures>([(AUTH, row)]);
    }
}
