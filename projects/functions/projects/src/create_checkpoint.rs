//! CreateCheckpoint: keeps the state of the work in a file, which the log names.

use ringfence::{Text, prelude::*};

use crate::{AgentId, CheckpointCreated, ProjectId, Projects, Sha256};

/// Keeps the state of the work.
#[derive(Clone, Debug, PartialEq, Command)]
#[tag(key = "checkpoint", partition, value = format!("{project}/{sha256}"))]
pub struct CreateCheckpoint {
    pub project: ProjectId,
    /// Of the file.
    pub sha256: Sha256,
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
    type State = Exists;
    type Writes = CheckpointCreated;
    type Rejection = Never;

    fn decide(
        &self,
        Exists(exists): &Exists,
        _: &CommandContext,
    ) -> Result<Vec<CheckpointCreated>, Never> {
        if *exists {
            return Ok(vec![]);
        }
        let Self { project, sha256, agent, uri, note } = self.clone();
        let (uri, note) = (uri.into(), note.into());
        Ok(vec![CheckpointCreated { project, sha256, agent, uri, note }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::hash;

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
        vec![
            given([]).when(create(1)).then([created(1)]),
            given(events![created(1)]).when(create(1)).then_nothing(),
            given(events![created(2)]).when(create(1)).then([created(1)]),
        ]
    }
}
