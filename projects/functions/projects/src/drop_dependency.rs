//! DropDependency: makes a feature no longer wait for another one.

use ringfence::prelude::*;

use crate::{AgentId, DependencyDropped, Feature, FeatureRef, Features, Projects, Rejection};

/// Makes a feature no longer wait for another one.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct DropDependency {
    #[tag(key = "feature", cross_partition)]
    pub feature: FeatureRef,
    #[serde(default)]
    pub agent: AgentId,
    pub on: FeatureRef,
}

impl Slice for DropDependency {
    const NAME: &'static str = "drop-dependency";
    type Context = Projects;
    type State = Features;
    type Writes = DependencyDropped;
    type Rejection = Rejection;

    fn decide(
        &self,
        features: &Features,
        _: &CommandContext,
    ) -> Result<Vec<DependencyDropped>, Rejection> {
        let Self { feature, agent, on } = self.clone();
        let Feature { rules, dependencies, .. } = features.feature(&feature)?;
        rules.mode.check(&agent)?;
        match dependencies.contains(&on) {
            true => Ok(vec![DependencyDropped { feature, agent, on }]),
            false => Ok(vec![]),
        }
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{AUTH, PAY, created, waits};

        let drop = || DropDependency { feature: id(PAY), agent: id("ada"), on: id(AUTH) };
        let dropped = || DependencyDropped { feature: id(PAY), agent: id("ada"), on: id(AUTH) };
        let both = || events![created(AUTH), created(PAY), waits(PAY, AUTH)];
        vec![
            given([]).when(drop()).then_rejected(Rejection::UnknownFeature { feature: id(PAY) }),
            given(both()).when(drop()).then([dropped()]),
            given(both()).and(events![dropped()]).when(drop()).then_nothing(),
        ]
    }
}
