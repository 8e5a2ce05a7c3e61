//! project-trace: which work answers to a requirement. One row for each requirement, named
//! `<project>/<requirement>`.
//!
//! A row says how far each feature has come that named the requirement, and by which files. The edges that are
//! missing are those of the feature's rules in project-features that have no stage here.

use std::collections::BTreeMap;

use ringfence::prelude::*;
use ringfence_views::View;
use serde::{Deserialize, Serialize};

use crate::{Artifact, EdgeName, EdgeRef, FeatureId, ReqKey};

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
}

impl View for ProjectTrace {
    const NAME: &'static str = "project-trace";
    type Reads = Consumed;
    type Row = Trace;

    fn rows(event: &Consumed) -> Vec<String> {
        let (Consumed::IterationCompleted { edge, req_keys, .. }
        | Consumed::EdgeConverged { edge, req_keys, .. }) = event;
        req_keys.iter().map(|key| format!("{}/{key}", edge.feature.project)).collect()
    }

    fn evolve(row: Option<Trace>, _id: &str, event: &Consumed) -> Option<Trace> {
        let (Consumed::IterationCompleted { edge, run, iteration, .. }
        | Consumed::EdgeConverged { edge, run, iteration, .. }) = event;
        let (run, iteration) = (*run, *iteration);
        let mut row = row.unwrap_or_default();
        let edges = row.features.entry(edge.feature.feature.clone()).or_default();
        let stage = match event {
            Consumed::IterationCompleted { artifact, .. } => {
                Stage { run, iteration, converged: false, artifact: artifact.clone() }
            }
            Consumed::EdgeConverged { .. } => {
                let artifact = edges.remove(&edge.name).and_then(|before| before.artifact);
                Stage { run, iteration, converged: true, artifact }
            }
        };
        edges.insert(edge.name.clone(), stage);
        Some(row)
    }
}

#[test]
fn a_requirement_names_the_edges_and_files_that_answer_to_it() {
    use crate::IterationCompleted;
    use crate::facts::*;
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
