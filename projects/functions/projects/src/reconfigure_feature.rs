//! ReconfigureFeature: gives a feature the newest rules of its project.
//!
//! New rules can make a feature done, or undone, without an event of an edge. An edge that they lack keeps its claim.
//! Its holder can work and release the edge, but the edge no longer converges.

use ringfence::prelude::*;

use crate::{AgentId, FeatureReconfigured, FeatureRef, Features, Project, Projects, Rejection};

/// Gives a feature the newest rules of its project.
#[derive(Clone, Debug, PartialEq, Command)]
#[tag(key = "project", cross_partition, value = feature.project)]
pub struct ReconfigureFeature {
    #[tag(key = "feature", cross_partition)]
    pub feature: FeatureRef,
    #[serde(default)]
    pub agent: AgentId,
}

impl Slice for ReconfigureFeature {
    const NAME: &'static str = "reconfigure-feature";
    type Context = Projects;
    type State = (Project, Features);
    type Writes = FeatureReconfigured;
    type Rejection = Rejection;

    fn decide(
        &self,
        (project, features): &(Project, Features),
        context: &CommandContext,
    ) -> Result<Vec<FeatureReconfigured>, Rejection> {
        let Self { feature, agent } = self.clone();
        project.config(&feature.project)?;
        let of_now = features.feature(&feature)?;
        let (config, version) = project.of_human(&feature.project, &agent, context)?;
        if of_now.version == version {
            return Ok(vec![]);
        }
        Ok(vec![FeatureReconfigured { feature, agent, rules: config.rules(), version }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{AUTH, created, initialized, multi};
        use crate::{Config, ProjectReconfigured};

        let command = || ReconfigureFeature { feature: id(AUTH), agent: id("eve") };
        let short = || Config { lease_ms: 1_000, ..multi() };
        let changed =
            || ProjectReconfigured { project: id("shop"), agent: id("eve"), config: short() };
        let taken = || FeatureReconfigured {
            feature: id(AUTH),
            agent: id("eve"),
            rules: short().rules(),
            version: 2,
        };
        vec![
            given([])
                .when(command())
                .then_rejected(Rejection::UnknownProject { project: id("shop") }),
            given(events![initialized(multi())])
                .when(command())
                .by("direct:eve")
                .then_rejected(Rejection::UnknownFeature { feature: id(AUTH) }),
            given(events![initialized(multi()), created(AUTH)])
                .when(command())
                .by("direct:eve")
                .then_nothing(),
            given(events![initialized(multi()), created(AUTH), changed()])
                .when(command())
                .by("direct:eve")
                .then([taken()]),
            given(events![initialized(multi()), created(AUTH), changed()])
                .when(command())
                .by("direct:ada")
                .then_rejected(Rejection::NotAllowed),
            given(events![initialized(multi()), created(AUTH), changed(), taken()])
                .when(command())
                .by("direct:eve")
                .then_nothing(),
        ]
    }
}
