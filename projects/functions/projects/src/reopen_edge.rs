//! ReopenEdge: opens a converged edge again.
//!
//! A new run begins, whose iterations count from 1.

use ringfence::{Text, prelude::*};

use crate::{Act, AgentId, EdgeRef, EdgeReopened, Edges, Features, Project, Projects, Rejection};

/// Opens a converged edge again.
#[derive(Clone, Debug, PartialEq, Command)]
#[tag(key = "feature", cross_partition, value = edge.feature)]
#[tag(key = "project", cross_partition, value = edge.feature.project)]
pub struct ReopenEdge {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    #[serde(default)]
    pub agent: AgentId,
    pub reason: Text<4_000>,
}

impl Slice for ReopenEdge {
    const NAME: &'static str = "reopen-edge";
    type Context = Projects;
    type State = (Project, Features, Edges);
    type Writes = EdgeReopened;
    type Rejection = Rejection;

    fn decide(
        &self,
        (project, features, edges): &(Project, Features, Edges),
        context: &CommandContext,
    ) -> Result<Vec<EdgeReopened>, Rejection> {
        let Self { edge: of, agent, reason } = self.clone();
        project.config(&of.feature.project)?;
        let (feature, _) = features.rule(&of)?;
        project.permit(&of.feature.project, &agent, Act::Reopen, context)?;
        let edge = edges.edge(&of);
        if !edge.is_converged() {
            return Ok(vec![]);
        }
        let (run, reason, reopens_feature) = (edge.run() + 1, reason.into(), feature.is_done());
        Ok(vec![EdgeReopened { edge: of, agent, run, reason, reopens_feature }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::*;

        let reopen =
            |edge| ReopenEdge { edge: id(edge), agent: id("ada"), reason: id("it does not work") };
        vec![
            given([])
                .when(reopen(DESIGN_CODE))
                .then_rejected(Rejection::UnknownProject { project: id("shop") }),
            given(events![initialized(multi())])
                .when(reopen(DESIGN_CODE))
                .then_rejected(Rejection::UnknownFeature { feature: id(AUTH) }),
            given(ready_in(multi())).when(reopen(DESIGN_CODE)).then_nothing(),
            given(ready_in(multi()))
                .and(events![converged(DESIGN_CODE, "c1")])
                .when(reopen(DESIGN_CODE))
                .then([reopened(2)]),
            given(ready_in(multi()))
                .and(events![converged(DESIGN_CODE, "c1"), reopened(2)])
                .when(reopen(DESIGN_CODE))
                .then_nothing(),
            given(ready_in(multi()))
                .and(events![
                    converged(DESIGN_CODE, "c1"),
                    reopened(2),
                    converged(DESIGN_CODE, "c2")
                ])
                .when(reopen(DESIGN_CODE))
                .then([reopened(3)]),
            given(ready_in(reserved()))
                .and(events![converged(DESIGN_CODE, "c1")])
                .when(reopen(DESIGN_CODE))
                .then([reopened(2)]),
            given(ready_in(reserved()))
                .and(events![converged(DESIGN_CODE, "c1")])
                .when(reopen(DESIGN_CODE))
                .by("direct:carl")
                .then_rejected(Rejection::Reserved { act: Act::Reopen, roles: vec![id("coder")] }),
            given(ready_in(multi()))
                .when(ReopenEdge { agent: AgentId::default(), ..reopen(DESIGN_CODE) })
                .then_rejected(Rejection::AgentMissing),
            // The feature was not done.
            given(ready_in(multi())).when(reopen(REQUIREMENTS_DESIGN)).then([EdgeReopened {
                edge: id(REQUIREMENTS_DESIGN),
                reopens_feature: false,
                ..reopened(2)
            }]),
        ]
    }
}
