//! A project, as decisions know it: its configuration, and the callers that may do everything.

use ringfence::prelude::*;

use crate::{Act, AgentId, Config, ProjectId, Rejection};

/// The events of a project.
#[derive(Reads)]
pub enum ProjectEvent {
    ProjectInitialized { config: Config },
    ProjectReconfigured { config: Config },
}

/// The configuration of a project and its version, which begins with 1.
#[derive(Default)]
pub struct Project(Option<(Config, u64)>);

impl State for Project {
    type Reads = ProjectEvent;

    fn evolve(self, event: ProjectEvent) -> Self {
        let (ProjectEvent::ProjectInitialized { config }
        | ProjectEvent::ProjectReconfigured { config }) = event;
        let version = self.0.map_or(0, |(_, version)| version);
        Self(Some((config, version + 1)))
    }
}

impl Project {
    /// The configuration, and its version.
    ///
    /// # Errors
    /// [`Rejection::UnknownProject`]
    pub fn config(&self, project: &ProjectId) -> Result<(&Config, u64), Rejection> {
        let unknown = || Rejection::UnknownProject { project: project.clone() };
        let (config, version) = self.0.as_ref().ok_or_else(unknown)?;
        Ok((config, *version))
    }

    /// The same for a command of this agent.
    ///
    /// # Errors
    /// [`Rejection::UnknownProject`], [`Rejection::AgentMissing`]
    pub fn of_agent(
        &self,
        project: &ProjectId,
        agent: &AgentId,
    ) -> Result<(&Config, u64), Rejection> {
        let (config, version) = self.config(project)?;
        config.mode.check(agent)?;
        Ok((config, version))
    }

    /// The same, if the agent's caller may do everything.
    ///
    /// # Errors
    /// [`Rejection::UnknownProject`], [`Rejection::AgentMissing`], [`Rejection::NotAllowed`]
    pub fn of_human(
        &self,
        project: &ProjectId,
        agent: &AgentId,
        context: &CommandContext,
    ) -> Result<(&Config, u64), Rejection> {
        let (config, version) = self.of_agent(project, agent)?;
        let is_human = config.is_human(&who(context, agent));
        if is_human { Ok((config, version)) } else { Err(Rejection::NotAllowed) }
    }

    /// Checks that the agent's caller may do an act that a project can reserve.
    ///
    /// # Errors
    /// [`Rejection::UnknownProject`], [`Rejection::AgentMissing`], [`Rejection::Reserved`]
    pub fn permit(
        &self,
        project: &ProjectId,
        agent: &AgentId,
        act: Act,
        context: &CommandContext,
    ) -> Result<(), Rejection> {
        self.of_agent(project, agent)?.0.permit(&who(context, agent), act)
    }
}

/// The name of a command's caller: its principal, or, without one, the agent that the command names.
#[must_use]
pub fn who(context: &CommandContext, agent: &AgentId) -> String {
    principal(context).unwrap_or_else(|| agent.to_string())
}

/// The principal of a command, as events of the context and the roles of a configuration have it.
#[must_use]
pub fn principal(context: &CommandContext) -> Option<String> {
    context.principal.as_ref().map(Principal::to_string)
}
