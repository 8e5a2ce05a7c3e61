//! FoldBack: takes in what came of a child, at the edge where it was born.

use ringfence::prelude::*;

use crate::{
    Act, AgentId, Artifact, EdgeRef, Edges, FeatureRef, Features, Project, Projects, Rejection,
    SpawnFoldedBack, SpawnOutcome,
};

/// Takes in what came of a child.
#[derive(Clone, Debug, PartialEq, Command)]
#[tag(key = "project", cross_partition, value = edge.feature.project)]
pub struct FoldBack {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    #[serde(default)]
    pub agent: AgentId,
    #[tag(key = "feature", cross_partition)]
    pub child: FeatureRef,
    /// Where the result is.
    pub payload: Artifact,
}

impl Slice for FoldBack {
    const NAME: &'static str = "fold-back";
    type Context = Projects;
    type State = (Project, Features, Edges);
    type Writes = SpawnFoldedBack;
    type Rejection = Rejection;

    fn decide(
        &self,
        (project, features, edges): &(Project, Features, Edges),
        context: &CommandContext,
    ) -> Result<Vec<SpawnFoldedBack>, Rejection> {
        let Self { edge, agent, child, payload } = self.clone();
        project.permit(&edge.feature.project, &agent, Act::FoldBack, context)?;
        match edges.edge(&edge).spawned(&child) {
            None => return Err(Rejection::UnknownSpawn { child }),
            Some(true) => return Ok(vec![]),
            Some(false) => {}
        }
        let outcome = match features.feature(&child)? {
            feature if feature.is_done() => SpawnOutcome::Done,
            feature if feature.is_box_over(context.now_ms) => SpawnOutcome::TimeBoxExpired,
            _ => return Err(Rejection::ChildRuns { child }),
        };
        Ok(vec![SpawnFoldedBack { edge, agent, child, outcome, payload }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::FeatureCreated;
        use crate::facts::*;

        let fold = || FoldBack {
            edge: id(DESIGN_CODE),
            agent: id("ada"),
            child: id(SEARCH),
            payload: artifact(),
        };
        let born = || {
            let child = FeatureCreated { time_box_ms: Some(60_000), ..created(SEARCH) };
            given(events![initialized(reserved()), started("ada", "c1", 1)])
                .and(events![spawned(SEARCH, true), child])
        };
        let done = || {
            ["requirements_design", "design_code"]
                .map(|edge| converged(&format!("{SEARCH}/{edge}"), "c7").into())
        };
        let over =
            || SpawnFoldedBack { outcome: SpawnOutcome::TimeBoxExpired, ..folded_back(SEARCH) };
        vec![
            given(events![created(SEARCH)])
                .when(fold())
                .then_rejected(Rejection::UnknownProject { project: id("shop") }),
            born().and(done()).when(fold()).by("direct:carl").then_rejected(Rejection::Reserved {
                act: Act::FoldBack,
                roles: vec![id("coder")],
            }),
            given(events![initialized(multi()), created(SEARCH)])
                .when(fold())
                .then_rejected(Rejection::UnknownSpawn { child: id(SEARCH) }),
            born().when(fold()).then_rejected(Rejection::ChildRuns { child: id(SEARCH) }),
            born().and(done()).when(fold()).then([folded_back(SEARCH)]),
            born().and(done()).and(events![folded_back(SEARCH)]).when(fold()).then_nothing(),
            born().wait(70_000).when(fold()).then([over()]),
            born().and(done()).wait(70_000).when(fold()).then([folded_back(SEARCH)]),
        ]
    }
}
