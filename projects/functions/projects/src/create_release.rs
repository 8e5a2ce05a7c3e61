//! CreateRelease: releases features that are done, under a version that is used once.

use ringfence::{List, Text, prelude::*};

use crate::{
    Act, AgentId, FeatureRef, Features, Project, ProjectId, Projects, Rejection, ReleaseCreated,
    Version,
};

/// How many features a release has at most.
pub const FEATURES_MAX: usize = 90;

/// Releases features.
#[derive(Clone, Debug, PartialEq, Command)]
#[tag(key = "release", partition, value = format!("{project}/{version}"))]
pub struct CreateRelease {
    #[tag(key = "project", cross_partition)]
    pub project: ProjectId,
    pub version: Version,
    #[serde(default)]
    pub agent: AgentId,
    #[tag(key = "feature", cross_partition)]
    pub features: List<FeatureRef, FEATURES_MAX>,
    pub notes: Text<4_000>,
    /// Only asks whether it can be done.
    #[serde(default)]
    pub dry_run: bool,
}

/// What the decision reads besides the features.
#[derive(Reads)]
pub enum Consumed {
    ReleaseCreated,
}

/// Whether the version was used before.
#[derive(Default)]
pub struct Exists(bool);

impl State for Exists {
    type Reads = Consumed;

    fn evolve(self, Consumed::ReleaseCreated: Consumed) -> Self {
        Self(true)
    }
}

impl Slice for CreateRelease {
    const NAME: &'static str = "create-release";
    type Context = Projects;
    type State = (Exists, Project, Features);
    type Writes = ReleaseCreated;
    type Rejection = Rejection;

    fn decide(
        &self,
        (Exists(exists), of, known): &(Exists, Project, Features),
        context: &CommandContext,
    ) -> Result<Vec<ReleaseCreated>, Rejection> {
        let Self { project, version, agent, features, notes, dry_run } = self.clone();
        of.permit(&project, &agent, Act::Release, context)?;
        let features: Vec<FeatureRef> = features.into();
        if let Some(other) = features.iter().find(|it| it.project != project) {
            return Err(Rejection::UnknownFeature { feature: other.clone() });
        }
        features.iter().try_for_each(|feature| known.feature(feature).map(drop))?;
        if *exists {
            return Err(Rejection::ReleaseExists { version });
        }
        let open = features.iter().filter(|feature| !known.is_done(feature));
        let open: Vec<_> = open.cloned().collect();
        if !open.is_empty() {
            return Err(Rejection::NotDone { features: open });
        }
        if dry_run {
            return Ok(vec![]);
        }
        Ok(vec![ReleaseCreated { project, version, agent, features, notes: notes.into() }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::*;

        let refs = |features: &[&str]| features.iter().map(|it| id(it)).collect::<Vec<_>>();
        let release = |features: &[&str]| CreateRelease {
            project: id("shop"),
            version: id("1.4.0"),
            agent: id("ada"),
            features: refs(features).try_into().expect("few"),
            notes: id("who may do what"),
            dry_run: false,
        };
        let released = |features: &[&str]| ReleaseCreated {
            project: id("shop"),
            version: id("1.4.0"),
            agent: id("ada"),
            features: refs(features),
            notes: "who may do what".to_owned(),
        };
        let done = || given(ready_in(multi())).and(events![converged(DESIGN_CODE, "c1")]);
        let open = |feature| Rejection::NotDone { features: vec![id(feature)] };
        vec![
            done().when(release(&[AUTH])).then([released(&[AUTH])]),
            done()
                .and(events![released(&[AUTH])])
                .when(release(&[AUTH]))
                .then_rejected(Rejection::ReleaseExists { version: id("1.4.0") }),
            done()
                .when(release(&[AUTH, SEARCH]))
                .then_rejected(Rejection::UnknownFeature { feature: id(SEARCH) }),
            done()
                .and(events![created(SEARCH)])
                .when(release(&[AUTH, SEARCH]))
                .then_rejected(open(SEARCH)),
            done().and(events![reopened(2)]).when(release(&[AUTH])).then_rejected(open(AUTH)),
            done().when(CreateRelease { dry_run: true, ..release(&[AUTH]) }).then_nothing(),
            given(ready_in(multi()))
                .when(CreateRelease { dry_run: true, ..release(&[AUTH]) })
                .then_rejected(open(AUTH)),
            done()
                .and(events![created("other/REQ-F-AUTH-001")])
                .when(release(&["other/REQ-F-AUTH-001"]))
                .then_rejected(Rejection::UnknownFeature { feature: id("other/REQ-F-AUTH-001") }),
            given([])
                .when(release(&[]))
                .then_rejected(Rejection::UnknownProject { project: id("shop") }),
            given(events![initialized(reserved())]).when(release(&[])).then([released(&[])]),
            given(events![initialized(reserved())])
                .when(release(&[]))
                .by("direct:carl")
                .then_rejected(Rejection::Reserved { act: Act::Release, roles: vec![id("coder")] }),
        ]
    }
}
