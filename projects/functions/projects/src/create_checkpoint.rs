//! CreateCheckpoint: keeps the state of the work in a file, which the log names.

use ringfence::{Text, prelude::*};

use crate::{AgentId, CheckpointCreated, Project, ProjectId, Projects, Rejection, Sha256};

/// Keeps the state of the work.
#[derive(Clone, Debug, PartialEq, Command)]
#[tag(key = "checkpoint", partition, value = format!("{project}/{sha256}"))]
pub struct CreateCheckpoint {
    #[tag(key = "project", cross_partition)]
    pub project: ProjectId,
    /// Of the file.
    pub sha256: Sha256,
    #[serde(default)]
    pub agent: AgentId,
    /// Where the file is.
    pub uri: Text<4_000>,
    /// What it is for.
    pub note: Text<4_000>,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    CheckpointCreated,
}

/// Whether the checkpoint exists.
#[derive(Default)]
pub struct Exists(bool);

impl State for Exists {
    type Reads = Consumed;

    fn evolve(self, Consumed::CheckpointCreated: Consumed) -> Self {
        Self(true)
    }
}

impl Slice for CreateCheckpoint {
    const NAME: &'static str = "create-checkpoint";
    type Context = Projects;
    type State = (Exists, Project);
    type Writes = CheckpointCreated;
    type Rejection = Rejection;

    fn decide(
        &self,
        (Exists(exists), of): &(Exists, Project),
        _: &CommandContext,
    ) -> Result<Vec<CheckpointCreated>, Rejection> {
        let Self { project, sha256, agent, uri, note } = self.clone();
        of.of_agent(&project, &agent)?;
        if *exists {
            return Ok(vec![]);
        }
        let (uri, note) = (uri.into(), note.into());
        Ok(vec![CheckpointCreated { project, sha256, agent, uri, note }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{hash, initialized, multi};

        let create = |n| CreateCheckpoint {
            project: id("shop"),
            sha256: hash(n),
            agent: id("ada"),
            uri: id("s3://files/shop.tar"),
            note: id("before the release"),
        };
        let created = |n| CheckpointCreated {
            project: id("shop"),
            sha256: hash(n),
            agent: id("ada"),
            uri: "s3://files/shop.tar".to_owned(),
            note: "before the release".to_owned(),
        };
        let begun = || given(events![initialized(multi())]);
        vec![
            given([])
                .when(create(1))
                .then_rejected(Rejection::UnknownProject { project: id("shop") }),
            begun().when(create(1)).then([created(1)]),
            begun().and(events![created(1)]).when(create(1)).then_nothing(),
            begun().and(events![created(2)]).when(create(1)).then([created(1)]),
        ]
    }
}
