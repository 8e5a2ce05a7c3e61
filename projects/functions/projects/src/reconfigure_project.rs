//! ReconfigureProject: gives a project another configuration.
//!
//! Its features keep the rules that they have, so that no claim changes under its holder.

use ringfence::prelude::*;

use crate::{AgentId, Config, Project, ProjectId, ProjectReconfigured, Projects, Rejection};

/// Gives a project another configuration.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct ReconfigureProject {
    #[tag(key = "project", cross_partition)]
    pub project: ProjectId,
    #[serde(default)]
    pub agent: AgentId,
    pub config: Config,
}

impl Slice for ReconfigureProject {
    const NAME: &'static str = "reconfigure-project";
    type Context = Projects;
    type State = Project;
    type Writes = ProjectReconfigured;
    type Rejection = Rejection;

    fn decide(
        &self,
        known: &Project,
        context: &CommandContext,
    ) -> Result<Vec<ProjectReconfigured>, Rejection> {
        let Self { project, agent, config } = self.clone();
        let (of_now, _) = known.of_human(&project, &agent, context)?;
        if *of_now == config {
            return Ok(vec![]);
        }
        config.check()?;
        Ok(vec![ProjectReconfigured { project, agent, config }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{initialized, multi, single};

        let to = |config| ReconfigureProject { project: id("shop"), agent: id("eve"), config };
        let shorter = || Config { lease_ms: 1_000, ..multi() };
        let reconfigured =
            |config| ProjectReconfigured { project: id("shop"), agent: id("eve"), config };
        vec![
            given([])
                .when(to(multi()))
                .then_rejected(Rejection::UnknownProject { project: id("shop") }),
            given(events![initialized(multi())])
                .when(to(shorter()))
                .by("direct:eve")
                .then([reconfigured(shorter())]),
            given(events![initialized(multi())]).when(to(multi())).by("direct:eve").then_nothing(),
            // The caller counts, and not the agent that the command names.
            given(events![initialized(multi())])
                .when(to(shorter()))
                .by("direct:ada")
                .then_rejected(Rejection::NotAllowed),
            // Roles do not count in single mode.
            given(events![initialized(single())])
                .when(to(multi()))
                .by("direct:ada")
                .then([reconfigured(multi())]),
            given(events![initialized(multi()), reconfigured(single())])
                .when(to(Config { stuck_after: 0, ..multi() }))
                .by("direct:eve")
                .then_rejected(Rejection::BadConfig {
                    field: "stuckAfter".to_owned(),
                    problem: "must be at least 1".to_owned(),
                }),
        ]
    }
}
