//! ForceRelease: takes an edge back from its holder.

use ringfence::{Text, prelude::*};

use crate::{AgentId, EdgeRef, EdgeReleased, Edges, OnExpiry, Project, Projects, Rejection, who};

/// Takes an edge back.
#[derive(Clone, Debug, PartialEq, Command)]
#[tag(key = "project", cross_partition, value = edge.feature.project)]
pub struct ForceRelease {
    #[tag(key = "edge", partition)]
    pub edge: EdgeRef,
    #[serde(default)]
    pub agent: AgentId,
    pub reason: Text<4_000>,
}

impl Slice for ForceRelease {
    const NAME: &'static str = "force-release";
    type Context = Projects;
    type State = (Project, Edges);
    type Writes = EdgeReleased;
    type Rejection = Rejection;

    fn decide(
        &self,
        (project, edges): &(Project, Edges),
        context: &CommandContext,
    ) -> Result<Vec<EdgeReleased>, Rejection> {
        let Self { edge: of, agent, reason } = self.clone();
        project.of_human(&of.feature.project, &agent, context)?;
        // A claim that is over still bars others if the feature's rules say so. They are not read here.
        let Some(claim) = edges.edge(&of).barring(OnExpiry::SignalOnly) else {
            return Ok(vec![]);
        };
        let (claim, reason, forced_by) =
            (claim.id.clone(), reason.into(), Some(who(context, &agent)));
        Ok(vec![EdgeReleased { edge: of, agent, claim, reason, forced_by }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{
            DESIGN_CODE, claim_expired, initialized, multi, released, single, started,
        };

        let force = |agent| ForceRelease {
            edge: id(DESIGN_CODE),
            agent: id(agent),
            reason: id("done for today"),
        };
        let by_ada = || given(events![initialized(multi()), started("ada", "c1", 1)]);
        let forced =
            |by: &str| EdgeReleased { forced_by: Some(by.to_owned()), ..released("eve", "c1") };
        vec![
            given([])
                .when(force("eve"))
                .then_rejected(Rejection::UnknownProject { project: id("shop") }),
            by_ada().when(force("eve")).then([forced("eve")]),
            by_ada().when(force("bob")).then_rejected(Rejection::NotAllowed),
            // The caller counts, and not the agent that the command names.
            by_ada().when(force("eve")).by("direct:bob").then_rejected(Rejection::NotAllowed),
            by_ada().and(events![released("ada", "c1")]).when(force("eve")).then_nothing(),
            given(events![initialized(multi())]).when(force("eve")).then_nothing(),
            by_ada()
                .and(events![claim_expired("ada", "c1", 1)])
                .when(force("eve"))
                .then([forced("eve")]),
            given(events![initialized(single()), started("primary", "c1", 1)])
                .when(force("eve"))
                .then([forced("eve")]),
        ]
    }
}
