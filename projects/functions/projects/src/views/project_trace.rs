//! project-trace: which work answers to a requirement. One row for each requirement, named
//! `<project>/<requirement>`.
//!
//! A row says how far each feature has come that named the requirement, and by which files. An edge of the feature's
//! rules, which are in project-features, is missing if it has no stage here. Releases are in project-features too,
//! because a release names features.

use std::collections::BTreeMap;

use ringfence::prelude::*;
use ringfence::view::View;

use crate::{Artifact, EdgeName, EdgeRef, FeatureId, IntentId, Met, ProjectId, ReqKey};

#[derive(Debug)]
pub struct ProjectTrace;

/// A requirement.
#[ringfence::value]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The features that named it, each with the edges at which it did.
    pub features: BTreeMap<FeatureId, BTreeMap<EdgeName, Stage>>,
    /// How far it was met at the last comparison; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Gap>,
}

/// How far a requirement is met.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    pub met: Met,
    /// The state of the project that was compared.
    pub as_of: String,
    /// `gaps-` and the hash of the set of gaps that was found.
    pub intent: IntentId,
    /// When it was compared, in milliseconds since 1970.
    pub at_ms: u64,
}

/// The latest work at an edge that named the requirement.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    pub run: u32,
    /// The iteration of the run; 0 if the edge converged without any.
    pub iteration: u32,
    /// Whether the edge converged with it.
    pub converged: bool,
    /// Its artefact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,
}

/// The events that name requirements.
#[derive(Reads)]
pub enum Consumed {
    IterationCompleted {
        edge: EdgeRef,
        run: u32,
        iteration: u32,
        artifact: Option<Artifact>,
        #[serde(default)]
        req_keys: Vec<ReqKey>,
    },
    EdgeConverged {
        edge: EdgeRef,
        run: u32,
        iteration: u32,
        #[serde(default)]
        req_keys: Vec<ReqKey>,
    },
    GapsValidated {
        project: ProjectId,
        intent: IntentId,
        as_of: String,
        #[serde(default)]
        requirements: BTreeMap<ReqKey, Met>,
        #[time]
        at_ms: u64,
    },
}

impl View for ProjectTrace {
    const NAME: &'static str = "project-trace";
    type Reads = Consumed;
    type Row = Trace;

    fn rows(event: &Consumed) -> Vec<String> {
        let (project, keys): (_, Vec<_>) = match event {
            Consumed::IterationCompleted { edge, req_keys, .. }
            | Consumed::EdgeConverged { edge, req_keys, .. } => {
                (&edge.feature.project, req_keys.iter().collect())
            }
            Consumed::GapsValidated { project, requirements, .. } => {
                (project, requirements.keys().collect())
            }
        };
        keys.into_iter().map(|key| format!("{project}/{key}")).collect()
    }

    fn evolve(row: Option<Trace>, id: &str, event: &Consumed) -> Option<Trace> {
        let mut row = row.unwrap_or_default();
        match event {
            Consumed::IterationCompleted { edge, run, iteration, artifact, .. } => {
                let artifact = artifact.clone();
                let stage = Stage { run: *run, iteration: *iteration, converged: false, artifact };
                row.edges(edge).insert(edge.name.clone(), stage);
            }
            Consumed::EdgeConverged { edge, run, iteration, .. } => {
                let edges = row.edges(edge);
                let artifact = edges.remove(&edge.name).and_then(|before| before.artifact);
                let stage = Stage { run: *run, iteration: *iteration, converged: true, artifact };
                edges.insert(edge.name.clone(), stage);
            }
            Consumed::GapsValidated { project, intent, as_of, requirements, at_ms } => {
                let key = id.strip_prefix(&format!("{project}/"))?.parse().ok()?;
                let (intent, as_of, at_ms) = (intent.clone(), as_of.clone(), *at_ms);
                // Comparisons are in several partitions, whose events come in any order.
                if row.gap.as_ref().is_none_or(|gap| (gap.at_ms, &gap.intent) <= (at_ms, &intent)) {
                    let met = *requirements.get(&key)?;
                    row.gap = Some(Gap { met, as_of, intent, at_ms });
                }
            }
        }
        Some(row)
    }
}

impl Trace {
    /// The stages of an edge's feature.
    fn edges(&mut self, edge: &EdgeRef) -> &mut BTreeMap<EdgeName, Stage> {
        self.features.entry(edge.feature.feature.clone()).or_default()
    }
}

#[test]
fn a_requirement_names_the_edges_and_files_that_answer_to_it() {
    use crate::IterationCompleted;
    use crate::facts::*;
    use ringfence::view::kit::given;

    let stage = |run, converged, artifact| Stage { run, iteration: 1, converged, artifact };
    let trace = |stages: [(&str, Stage); 2]| Trace {
        features: [(id("REQ-F-AUTH-001"), stages.map(|(edge, stage)| (id(edge), stage)).into())]
            .into(),
        gap: None,
    };
    let first = || ("requirements_design", stage(1, true, None));
    let worked = || {
        let none = IterationCompleted { req_keys: vec![], ..iterated("c1", 2, 0) };
        given(events![converged(REQUIREMENTS_DESIGN, "c0"), iterated("c1", 1, 2), none])
    };
    worked().then::<ProjectTrace>([(
        "shop/AUTH-1",
        trace([first(), ("design_code", stage(1, false, Some(artifact())))]),
    )]);
    worked().and(events![converged(DESIGN_CODE, "c1")]).then::<ProjectTrace>([(
        "shop/AUTH-1",
        trace([first(), ("design_code", stage(1, true, Some(artifact())))]),
    )]);
}

#[test]
fn a_requirement_says_how_far_it_was_met_when_that_was_last_compared() {
    use crate::{GapCounts, GapsValidated};
    use ringfence::kit::BEGIN_MS;
    use ringfence::view::kit::given;

    let validated = |intent: &str, as_of: &str, met| GapsValidated {
        project: id("shop"),
        intent: id(intent),
        agent: id("ada"),
        as_of: as_of.to_owned(),
        counts: GapCounts { total: 1, full: 0, partial: 1, none: 0 },
        requirements: [(id("AUTH-1"), met)].into(),
    };
    given(events![validated("gaps-2", "monday", Met::None)])
        .wait(1_000)
        .and(events![validated("gaps-1", "tuesday", Met::Partial)])
        .then::<ProjectTrace>([(
            "shop/AUTH-1",
            Trace {
                features: [].into(),
                gap: Some(Gap {
                    met: Met::Partial,
                    as_of: "tuesday".to_owned(),
                    intent: id("gaps-1"),
                    at_ms: BEGIN_MS + 1_000,
                }),
            },
        )]);
}
