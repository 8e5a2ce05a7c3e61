//! SpawnFeature: creates a feature at an edge whose work needs it, first or beside it.
//!
//! One append creates the child and files it at its parent's edge. So the edge knows each of its children. A second
//! child with the same name is rejected.

use ringfence::{Text, prelude::*};

use crate::{
    AgentId, ClaimId, EdgeRef, Edges, FeatureCreated, FeatureRef, Features, IntentId, Kind,
    Project, Projects, Rejection, SpawnCreated,
};

/// How many levels a child is at most below a feature without a parent.
pub const DEPTH_MAX: u32 = 3;

/// Creates a feature at an edge.
#[derive(Clone, Debug, PartialEq, Command)]
#[tag(key = "feature", cross_partition, value = edge.feature)]
#[tag(key = "project", cross_partition, value = edge.feature.project)]
pub struct SpawnFeature {
    #[tag(key = "edge")]
    pub edge: EdgeRef,
    #[serde(default)]
    pub agent: AgentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimId>,
    #[tag(key = "feature", cross_partition)]
    pub child: FeatureRef,
    pub title: Text<200>,
    pub kind: Kind,
    #[serde(default)]
    pub priority: i32,
    /// Whether the edge waits for the child.
    pub blocks: bool,
    pub reason: Text<4_000>,
    /// The intent that it follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<IntentId>,
    /// How long it may take, in milliseconds; without one, as long as its parent from its own start on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_box_ms: Option<u64>,
}

#[derive(Writes)]
pub enum Spawned {
    Spawn(SpawnCreated),
    Feature(FeatureCreated),
}

impl Slice for SpawnFeature {
    const NAME: &'static str = "spawn-feature";
    type Context = Projects;
    type State = (Project, Features, Edges);
    type Writes = Spawned;
    type Rejection = Rejection;

    fn decide(
        &self,
        (project, features, edges): &(Project, Features, Edges),
        context: &CommandContext,
    ) -> Result<Vec<Spawned>, Rejection> {
        let Self { edge: of, agent, claim, child, title, kind, priority, .. } = self.clone();
        let (config, version) = project.config(&of.feature.project)?;
        if child.project != of.feature.project {
            return Err(Rejection::OtherProject { project: of.feature.project });
        }
        let (parent, _) = features.rule(&of)?;
        let edge = edges.edge(&of);
        let claim = edge.check_claim(claim.as_ref(), &agent, context)?.id.clone();
        if features.has(&child) {
            return Err(Rejection::FeatureExists { feature: child });
        }
        let depth = parent.depth + 1;
        if depth > DEPTH_MAX {
            return Err(Rejection::TooDeep { limit: DEPTH_MAX });
        }
        let time_box_ms = self.time_box_ms.or(parent.time_box_ms);
        if let Some((limit_ms, wanted)) = parent.time_box_ms.zip(time_box_ms)
            && wanted > limit_ms
        {
            return Err(Rejection::TimeBoxTooLong { limit_ms });
        }
        let born = FeatureCreated {
            feature: child.clone(),
            agent: agent.clone(),
            title: title.into(),
            kind,
            priority,
            dependencies: vec![],
            rules: config.rules(),
            version,
            parent: Some(of.feature.clone()),
            depth,
            time_box_ms,
        };
        let (blocks, reason, intent) =
            (self.blocks, self.reason.clone().into(), self.intent.clone());
        let spawn = SpawnCreated { edge: of, agent, claim, child, kind, blocks, reason, intent };
        Ok(vec![Spawned::Spawn(spawn), Spawned::Feature(born)])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::facts::*;

        let spawn = |child| SpawnFeature {
            edge: id(DESIGN_CODE),
            agent: id("ada"),
            claim: Some(id("c1")),
            child: id(child),
            title: id("What it does"),
            kind: Kind::Spike,
            priority: 0,
            blocks: true,
            reason: id("nobody knows"),
            intent: None,
            time_box_ms: None,
        };
        let boxed = |time_box_ms| SpawnFeature { time_box_ms: Some(time_box_ms), ..spawn(SEARCH) };
        let born = || FeatureCreated {
            kind: Kind::Spike,
            parent: Some(id(AUTH)),
            depth: 1,
            ..created(SEARCH)
        };
        let by_ada = || given(ready_in(multi())).and(events![started("ada", "c1", 1)]);
        let under = |parent| {
            given(events![
                initialized(multi()),
                parent,
                converged(REQUIREMENTS_DESIGN, "c0"),
                started("ada", "c1", 1)
            ])
        };
        let in_box = || FeatureCreated { time_box_ms: Some(60_000), ..created(AUTH) };
        let spawned = || Spawned::Spawn(spawned(SEARCH, true));
        vec![
            given([])
                .when(spawn(SEARCH))
                .then_rejected(Rejection::UnknownProject { project: id("shop") }),
            by_ada().when(spawn(SEARCH)).then([spawned(), Spawned::Feature(born())]),
            given(ready_in(single()))
                .and(events![crate::EdgeStarted { lease_ms: None, ..started("primary", "c1", 1) }])
                .when(SpawnFeature { agent: AgentId::default(), claim: None, ..spawn(SEARCH) })
                .then([
                    Spawned::Spawn(SpawnCreated {
                        agent: AgentId::default(),
                        ..crate::facts::spawned(SEARCH, true)
                    }),
                    Spawned::Feature(FeatureCreated {
                        agent: AgentId::default(),
                        rules: single().rules(),
                        ..born()
                    }),
                ]),
            by_ada().when(SpawnFeature { intent: Some(id("stuck-1")), ..spawn(SEARCH) }).then([
                Spawned::Spawn(SpawnCreated {
                    intent: Some(id("stuck-1")),
                    ..crate::facts::spawned(SEARCH, true)
                }),
                Spawned::Feature(born()),
            ]),
            given(ready_in(multi()))
                .when(spawn(SEARCH))
                .then_rejected(Rejection::StaleClaim { claim: id("c1") }),
            by_ada()
                .and(events![created(SEARCH)])
                .when(spawn(SEARCH))
                .then_rejected(Rejection::FeatureExists { feature: id(SEARCH) }),
            by_ada()
                .when(spawn(AUTH))
                .then_rejected(Rejection::FeatureExists { feature: id(AUTH) }),
            by_ada()
                .when(spawn("other/REQ-F-SEARCH-001"))
                .then_rejected(Rejection::OtherProject { project: id("shop") }),
            under(FeatureCreated { depth: 2, ..created(AUTH) })
                .when(spawn(SEARCH))
                .then([spawned(), Spawned::Feature(FeatureCreated { depth: 3, ..born() })]),
            under(FeatureCreated { depth: 3, ..created(AUTH) })
                .when(spawn(SEARCH))
                .then_rejected(Rejection::TooDeep { limit: 3 }),
            under(in_box())
                .when(boxed(60_001))
                .then_rejected(Rejection::TimeBoxTooLong { limit_ms: 60_000 }),
            under(in_box()).when(spawn(SEARCH)).then([
                spawned(),
                Spawned::Feature(FeatureCreated { time_box_ms: Some(60_000), ..born() }),
            ]),
            by_ada().when(boxed(1)).then([
                spawned(),
                Spawned::Feature(FeatureCreated { time_box_ms: Some(1), ..born() }),
            ]),
        ]
    }
}
