//! project-trace: which work answers to a requirement. One row for each requirement, named
//! `<project>/<requirement>`.
//!
//! A row says how far each feature has come that named the requirement, and by which files. The edges that are
//! missing are those of the feature's rules in project-features that have no stage here.

use std::collections::BTreeMap;

use ringfence_views::View;
use serde::{Deserialize, Serialize};

use crate::{
    Artifact, EdgeConverged, EdgeName, EdgeRef, Fact, FeatureId, IterationCompleted, OfEdge, ReqKey,
};

#[derive(Debug)]
pub struct ProjectTrace;

/// A requirement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    /// The features that named it, each with the edges at which it did.
    pub features: BTreeMap<FeatureId, BTreeMap<EdgeName, Stage>>,
}

/// The latest work at an edge that named the requirement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
    pub run: u32,
    /// The iteration of the run; 0 if the edge converged without any.
    pub iteration: u32,
    /// Whether the edge converged with it.
    pub converged: bool,
    /// What it made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,
}

/// The edge and the requirements that an event of work names.
fn named(fact: &Fact) -> Option<(&EdgeRef, &[ReqKey])> {
    match fact {
        Fact::IterationCompleted(done) => Some((&done.edge, &done.req_keys)),
        Fact::EdgeConverged(converged) => Some((&converged.edge, &converged.req_keys)),
        _ => None,
    }
}

impl View for ProjectTrace {
    const NAME: &'static str = "project-trace";
    type Reads = OfEdge;
    type Row = Trace;

    fn rows(OfEdge(told): &OfEdge) -> Vec<String> {
        let Some((edge, keys)) = named(&told.fact) else { return vec![] };
        keys.iter().map(|key| format!("{}/{key}", edge.feature.project)).collect()
    }

    fn evolve(row: Option<Trace>, _id: &str, OfEdge(told): &OfEdge) -> Option<Trace> {
        let (edge, _) = named(&told.fact)?;
        let mut row = row.unwrap_or_default();
        let edges = row.features.entry(edge.feature.feature.clone()).or_default();
        let before = edges.remove(&edge.name);
        let stage = match &told.fact {
            Fact::IterationCompleted(IterationCompleted { run, iteration, artifact, .. }) => {
                let (run, iteration, artifact) = (*run, *iteration, artifact.clone());
                Some(Stage { run, iteration, converged: false, artifact })
            }
            Fact::EdgeConverged(EdgeConverged { run, iteration, .. }) => {
                let (run, iteration) = (*run, *iteration);
                let artifact = before.and_then(|stage| stage.artifact);
                Some(Stage { run, iteration, converged: true, artifact })
            }
            _ => before,
        };
        edges.extend(stage.map(|stage| (edge.name.clone(), stage)));
        Some(row)
    }
}

#[test]
fn a_requirement_names_the_edges_and_files_that_answer_to_it() {
    use crate::facts::*;
    use ringfence::{events, kit::id};
    use ringfence_views::kit::given;

    let stage = |run, converged, artifact| Stage { run, iteration: 1, converged, artifact };
    let trace = |stages: [(&str, Stage); 2]| Trace {
        features: [(id("REQ-F-AUTH-001"), stages.map(|(edge, stage)| (id(edge), stage)).into())]
            .into(),
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
