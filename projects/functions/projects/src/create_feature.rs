//! CreateFeature: adds a feature to a project.
//!
//! The boundaries are the feature, whose name is used once, the features that it waits for, and the project, whose
//! rules it copies.

use ringfence::{List, Text, prelude::*};

use crate::{AgentId, FeatureCreated, FeatureRef, Features, Kind, Project, Projects, Rejection};

/// How many features one feature waits for at most.
pub const DEPENDENCIES_MAX: usize = 20;

/// Adds a feature to a project.
#[derive(Clone, Debug, PartialEq, Command)]
#[tag(key = "project", cross_partition, value = feature.project)]
pub struct CreateFeature {
    #[tag(key = "feature", cross_partition)]
    pub feature: FeatureRef,
    #[serde(default)]
    pub agent: AgentId,
    pub title: Text<200>,
    pub kind: Kind,
    /// Work with a higher one is offered first.
    #[serde(default)]
    pub priority: i32,
    /// The features that must be done first.
    #[tag(key = "feature", cross_partition)]
    #[serde(default)]
    pub dependencies: List<FeatureRef, DEPENDENCIES_MAX>,
    /// How long it may take from now on, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_box_ms: Option<u64>,
}

impl Slice for CreateFeature {
    const NAME: &'static str = "create-feature";
    type Context = Projects;
    type State = (Project, Features);
    type Writes = FeatureCreated;
    type Rejection = Rejection;

    fn decide(
        &self,
        (project, features): &(Project, Features),
        _: &CommandContext,
    ) -> Result<Vec<FeatureCreated>, Rejection> {
        let Self { feature, agent, title, kind, priority, dependencies, time_box_ms } =
            self.clone();
        let (config, version) = project.of_agent(&feature.project, &agent)?;
        if features.has(&feature) {
            return Err(Rejection::FeatureExists { feature });
        }
        let is_wrong = |on: &&FeatureRef| {
            **on == feature || on.project != feature.project || !features.has(on)
        };
        let wrong: Vec<_> = dependencies.iter().filter(is_wrong).cloned().collect();
        if !wrong.is_empty() {
            return Err(Rejection::UnknownDependency { features: wrong });
        }
        let (rules, dependencies) = (config.rules(), dependencies.into());
        let (title, parent, depth) = (title.into(), None, 0);
        Ok(vec![FeatureCreated {
            feature,
            agent,
            title,
            kind,
            priority,
            dependencies,
            rules,
            version,
            parent,
            depth,
            time_box_ms,
        }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::{AUTH, PAY, SEARCH, created, initialized, multi, single};
        use crate::{Config, ProjectReconfigured};

        let create = |feature, on: &[&str]| {
            let on: Vec<FeatureRef> = on.iter().map(|on| id(on)).collect();
            CreateFeature {
                feature: id(feature),
                agent: id("ada"),
                title: id("What it does"),
                kind: Kind::Feature,
                priority: 0,
                dependencies: on.try_into().expect("few"),
                time_box_ms: None,
            }
        };
        let waits = |feature, on: &[&str]| FeatureCreated {
            dependencies: on.iter().map(|on| id(on)).collect(),
            ..created(feature)
        };
        let unknown = |feature| Rejection::UnknownDependency { features: vec![id(feature)] };
        let short = || Config { lease_ms: 1_000, ..multi() };
        let changed =
            ProjectReconfigured { project: id("shop"), agent: id("eve"), config: short() };
        vec![
            given([])
                .when(create(AUTH, &[]))
                .then_rejected(Rejection::UnknownProject { project: id("shop") }),
            given(events![initialized(multi())]).when(create(AUTH, &[])).then([created(AUTH)]),
            given(events![initialized(multi())])
                .when(CreateFeature { agent: AgentId::default(), ..create(AUTH, &[]) })
                .then_rejected(Rejection::AgentMissing),
            given(events![initialized(multi()), created(AUTH)])
                .when(create(AUTH, &[]))
                .then_rejected(Rejection::FeatureExists { feature: id(AUTH) }),
            given(events![initialized(multi()), created(AUTH), created(SEARCH)])
                .when(create(PAY, &[AUTH, SEARCH]))
                .then([waits(PAY, &[AUTH, SEARCH])]),
            given(events![initialized(multi()), created(AUTH)])
                .when(create(PAY, &[AUTH, SEARCH]))
                .then_rejected(unknown(SEARCH)),
            given(events![initialized(multi())])
                .when(create(PAY, &[PAY]))
                .then_rejected(unknown(PAY)),
            given(events![initialized(multi()), created("other/REQ-F-AUTH-001")])
                .when(create(PAY, &["other/REQ-F-AUTH-001"]))
                .then_rejected(unknown("other/REQ-F-AUTH-001")),
            given(events![initialized(single())])
                .when(CreateFeature { time_box_ms: Some(1), priority: -1, ..create(AUTH, &[]) })
                .then([FeatureCreated {
                    rules: single().rules(),
                    time_box_ms: Some(1),
                    priority: -1,
                    ..created(AUTH)
                }]),
            // It copies the newest rules.
            given(events![initialized(multi()), changed])
                .when(create(AUTH, &[]))
                .then([FeatureCreated { rules: short().rules(), version: 2, ..created(AUTH) }]),
        ]
    }
}
