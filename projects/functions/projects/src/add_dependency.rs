//! AddDependency: makes a feature wait for one more feature.
//!
//! Two agents that each add a dependency could close a circle together. So the boundary has all features to which the
//! new dependency leads. A query follows from the command alone, so the command names these features, and is rejected
//! if one is missing.

use std::collections::BTreeSet;

use ringfence::{List, prelude::*};

use crate::{
    AgentId, DEPENDENCIES_MAX, DependencyAdded, Feature, FeatureRef, Features, Projects, Rejection,
};

/// How many features a new dependency leads to at most.
pub const REACHABLE_MAX: usize = 90;

/// Makes a feature wait for another one.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct AddDependency {
    #[tag(key = "feature", cross_partition)]
    pub feature: FeatureRef,
    #[serde(default)]
    pub agent: AgentId,
    pub on: FeatureRef,
    /// `on`, the features that it waits for, the features that these wait for, and so on.
    #[tag(key = "feature", cross_partition)]
    pub reachable: List<FeatureRef, REACHABLE_MAX>,
}

impl Slice for AddDependency {
    const NAME: &'static str = "add-dependency";
    type Context = Projects;
    type State = Features;
    type Writes = DependencyAdded;
    type Rejection = Rejection;

    fn decide(
        &self,
        features: &Features,
        _: &CommandContext,
    ) -> Result<Vec<DependencyAdded>, Rejection> {
        let Self { feature, agent, on, reachable } = self.clone();
        let Feature { rules, dependencies, .. } = features.feature(&feature)?;
        rules.mode.check(&agent)?;
        if dependencies.contains(&on) {
            return Ok(vec![]);
        }
        let reachable: BTreeSet<FeatureRef> = reachable.iter().cloned().collect();
        let is_unknown = |it: &&FeatureRef| it.project != feature.project || !features.has(it);
        let unknown: Vec<_> = reachable.iter().filter(is_unknown).cloned().collect();
        if !unknown.is_empty() {
            return Err(Rejection::UnknownDependency { features: unknown });
        }
        let mut needed = BTreeSet::from([on.clone()]);
        for member in &reachable {
            needed.extend(features.feature(member)?.dependencies.iter().cloned());
        }
        let missing: Vec<_> = needed.difference(&reachable).cloned().collect();
        if !missing.is_empty() {
            return Err(Rejection::ReachableIncomplete { missing });
        }
        if reachable.contains(&feature) {
            return Err(Rejection::DependencyCycle { feature, on });
        }
        if dependencies.len() >= DEPENDENCIES_MAX {
            return Err(Rejection::TooManyDependencies { limit: DEPENDENCIES_MAX });
        }
        Ok(vec![DependencyAdded { feature, agent, on }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{AUTH, PAY, SEARCH, created, waits};
        use crate::{DependencyDropped, FeatureCreated};

        let add = |feature, on, reachable: &[&str]| {
            let reachable: Vec<FeatureRef> = reachable.iter().map(|it| id(it)).collect();
            AddDependency {
                feature: id(feature),
                agent: id("ada"),
                on: id(on),
                reachable: reachable.try_into().expect("few"),
            }
        };
        let added = |feature, on| waits(feature, on);
        let dropped =
            |feature, on| DependencyDropped { feature: id(feature), agent: id("ada"), on: id(on) };
        let all = || events![created(AUTH), created(SEARCH), created(PAY)];
        let incomplete = |feature| Rejection::ReachableIncomplete { missing: vec![id(feature)] };
        let cycle = |feature, on| Rejection::DependencyCycle { feature: id(feature), on: id(on) };
        let busy = FeatureCreated {
            dependencies: (0..20).map(|n| id(&format!("shop/REQ-F-OLD-{n:03}"))).collect(),
            ..created(PAY)
        };
        vec![
            given([])
                .when(add(PAY, AUTH, &[AUTH]))
                .then_rejected(Rejection::UnknownFeature { feature: id(PAY) }),
            given(all()).when(add(PAY, AUTH, &[AUTH])).then([added(PAY, AUTH)]),
            given(all())
                .and(events![added(PAY, AUTH)])
                .when(add(PAY, AUTH, &[AUTH]))
                .then_nothing(),
            given(all())
                .and(events![added(PAY, AUTH), dropped(PAY, AUTH)])
                .when(add(PAY, AUTH, &[AUTH]))
                .then([added(PAY, AUTH)]),
            given(events![created(PAY)])
                .when(add(PAY, AUTH, &[AUTH]))
                .then_rejected(Rejection::UnknownDependency { features: vec![id(AUTH)] }),
            given(all()).when(add(PAY, AUTH, &[SEARCH])).then_rejected(incomplete(AUTH)),
            given(all())
                .and(events![added(AUTH, SEARCH)])
                .when(add(PAY, AUTH, &[AUTH]))
                .then_rejected(incomplete(SEARCH)),
            given(all())
                .and(events![added(AUTH, SEARCH)])
                .when(add(PAY, AUTH, &[AUTH, SEARCH]))
                .then([added(PAY, AUTH)]),
            given(all()).when(add(PAY, PAY, &[PAY])).then_rejected(cycle(PAY, PAY)),
            given(all())
                .and(events![added(AUTH, PAY)])
                .when(add(PAY, AUTH, &[AUTH]))
                .then_rejected(incomplete(PAY)),
            given(all())
                .and(events![added(AUTH, PAY)])
                .when(add(PAY, AUTH, &[AUTH, PAY]))
                .then_rejected(cycle(PAY, AUTH)),
            given(all())
                .and(events![added(AUTH, SEARCH), added(SEARCH, PAY)])
                .when(add(PAY, AUTH, &[AUTH, SEARCH, PAY]))
                .then_rejected(cycle(PAY, AUTH)),
            given(all())
                .and(events![created("other/REQ-F-AUTH-001")])
                .when(add(PAY, "other/REQ-F-AUTH-001", &["other/REQ-F-AUTH-001"]))
                .then_rejected(Rejection::UnknownDependency {
                    features: vec![id("other/REQ-F-AUTH-001")],
                }),
            given(events![created(AUTH), busy])
                .when(add(PAY, AUTH, &[AUTH]))
                .then_rejected(Rejection::TooManyDependencies { limit: 20 }),
        ]
    }
}
