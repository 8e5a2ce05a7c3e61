//! A project, as decisions know it: its configuration, and the callers that may do everything.

use ringfence::prelude::*;

use crate::{AgentId, Config, ProjectId, Rejection};

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

    /// The configuration, and its version, if the caller may do everything.
    ///
    /// # Errors
    /// [`Rejection::UnknownProject`], [`Rejection::NotAllowed`]
    pub fn of_human(&self, project: &ProjectId, who: &str) -> Result<(&Config, u64), Rejection> {
        let (config, version) = self.config(project)?;
        if config.is_human(who) { Ok((config, version)) } else { Err(Rejection::NotAllowed) }
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
