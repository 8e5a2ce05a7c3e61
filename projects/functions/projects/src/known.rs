//! What decisions know: the fold of the events of the context.
//!
//! Each slice reads a part of the events, and all fold them by the same rules. What is known is kept by the thing
//! that it is about, so the order of events of different boundaries does not matter.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::ops::Deref;

use ringfence::{SequencedEvent, prelude::*};
use serde::{Deserialize, de::Error as _};

use crate::*; // every event type is in the list below

/// Lists the events of the context, in groups that slices read together.
macro_rules! facts {
    ($($group:ident { $($event:ident)* })*) => {
        /// An event of the context, as decisions and views read it.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Fact {
            $($($event($event),)*)*
        }

        impl Fact {
            /// All types.
            pub const TYPES: &'static [&'static str] = &[$($(stringify!($event),)*)*];

            /// Decodes an event of one of the types.
            ///
            /// # Errors
            /// The event is of another type, or does not have the shape of its type.
            pub fn decode(event: &SequencedEvent) -> Result<Self, serde_json::Error> {
                match event.event_type.as_str() {
                    $($(stringify!($event) => $event::deserialize(&event.data).map(Self::$event),)*)*
                    other => Err(serde_json::Error::unknown_variant(other, Self::TYPES)),
                }
            }
        }

        $($(
            impl From<$event> for Fact {
                fn from(event: $event) -> Self {
                    Self::$event(event)
                }
            }
        )*)*

        $(
            /// The types of a group.
            pub const $group: &[&str] = &[$(stringify!($event),)*];
        )*
    };
}

facts! {
    PROJECT { ProjectInitialized ProjectReconfigured }
    FEATURE { FeatureCreated FeatureReconfigured DependencyAdded DependencyDropped }
    ENDS { EdgeConverged EdgeReopened }
    EDGE {
        EdgeStarted ClaimRenewed EdgeReleased ClaimExpired IterationCompleted EdgeStuck ReviewRequested
        ReviewCompleted ConvergenceEscalated SpawnCreated SpawnFoldedBack
    }
    ATTEMPT { ClaimRejected }
    INTENT { IntentRaised GapsValidated }
    CHECKPOINT { CheckpointCreated }
    RELEASE { ReleaseCreated }
    FOREIGN { ForeignRecorded }
}

impl Fact {
    /// The edge in whose partition the event lies.
    #[must_use]
    pub fn edge(&self) -> Option<&EdgeRef> {
        match self {
            Self::EdgeConverged(EdgeConverged { edge, .. })
            | Self::EdgeReopened(EdgeReopened { edge, .. })
            | Self::EdgeStarted(EdgeStarted { edge, .. })
            | Self::ClaimRenewed(ClaimRenewed { edge, .. })
            | Self::EdgeReleased(EdgeReleased { edge, .. })
            | Self::ClaimExpired(ClaimExpired { edge, .. })
            | Self::IterationCompleted(IterationCompleted { edge, .. })
            | Self::EdgeStuck(EdgeStuck { edge, .. })
            | Self::ReviewRequested(ReviewRequested { edge, .. })
            | Self::ReviewCompleted(ReviewCompleted { edge, .. })
            | Self::ConvergenceEscalated(ConvergenceEscalated { edge, .. })
            | Self::SpawnCreated(SpawnCreated { edge, .. })
            | Self::SpawnFoldedBack(SpawnFoldedBack { edge, .. }) => Some(edge),
            _ => None,
        }
    }
}

/// An event that a slice or a view has read, and when it was recorded, in milliseconds since 1970.
pub struct Told {
    pub fact: Fact,
    pub at_ms: u64,
}

impl Told {
    pub(crate) fn decode(event: &SequencedEvent) -> Result<Self, serde_json::Error> {
        match event.at {
            0 => Err(serde_json::Error::custom("the time at which it was recorded can't be read")),
            at_ms => Ok(Self { fact: Fact::decode(event)?, at_ms }),
        }
    }
}

/// Declares what a slice or a view reads, by groups of events.
macro_rules! reads {
    ($(#[$doc:meta])* $name:ident: $($group:ident)*) => {
        $(#[$doc])*
        pub struct $name(pub Told);

        impl Reads for $name {
            const TYPES: &'static [&'static str] = &join::<{ 0 $(+ $group.len())* }>(&[$($group),*]);

            fn decode(event: &SequencedEvent) -> Result<Self, serde_json::Error> {
                Told::decode(event).map(Self)
            }
        }

        impl State for About<$name> {
            type Reads = $name;

            fn evolve(self, $name(told): $name) -> Self {
                Self(self.0.and(told), PhantomData)
            }
        }
    };
}

/// The groups as one list of `N` types.
const fn join<const N: usize>(groups: &[&[&'static str]]) -> [&'static str; N] {
    let (mut types, mut n, mut group) = ([""; N], 0, 0);
    while group < groups.len() {
        let mut of = 0;
        while of < groups[group].len() {
            types[n] = groups[group][of];
            (n, of) = (n + 1, of + 1);
        }
        group += 1;
    }
    types
}

reads! {
    /// The configuration of a project.
    OfProject: PROJECT
}
reads! {
    /// Features, and which of their edges are done.
    OfFeatures: FEATURE ENDS
}
reads! {
    /// A project and features.
    OfProjectAndFeatures: PROJECT FEATURE ENDS
}
reads! {
    /// An edge.
    OfEdge: ENDS EDGE
}
reads! {
    /// An edge and the project.
    OfEdgeAndProject: PROJECT ENDS EDGE
}
reads! {
    /// An edge and features.
    OfEdgeAndFeatures: FEATURE ENDS EDGE
}
reads! {
    /// An edge, features and the project.
    OfEdgeFeaturesAndProject: PROJECT FEATURE ENDS EDGE
}
reads! {
    /// An edge, features, and what an agent was told when it did not get the edge.
    OfClaim: FEATURE ENDS EDGE ATTEMPT
}
reads! {
    /// A set of gaps.
    OfIntent: INTENT
}
reads! {
    /// A checkpoint.
    OfCheckpoint: CHECKPOINT
}
reads! {
    /// A release and features.
    OfRelease: RELEASE FEATURE ENDS
}
reads! {
    /// Features, their edges and releases.
    OfWork: FEATURE ENDS EDGE RELEASE
}
reads! {
    /// A project with all of its work.
    OfProjectAndWork: PROJECT FEATURE ENDS EDGE INTENT CHECKPOINT RELEASE
}

/// What is known of what a slice reads.
pub struct About<R>(Known, PhantomData<fn(R)>);

impl<R> Default for About<R> {
    fn default() -> Self {
        Self(Known::default(), PhantomData)
    }
}

impl<R> Deref for About<R> {
    type Target = Known;

    fn deref(&self) -> &Known {
        &self.0
    }
}

/// What is known of projects, features and edges.
#[derive(Default)]
pub struct Known {
    /// The configuration and its version, which begins with 1.
    project: Option<(Config, u64)>,
    features: BTreeMap<FeatureRef, Feature>,
    edges: BTreeMap<EdgeRef, Edge>,
    /// The epochs of the claims by which an agent was rejected before.
    rejected: BTreeSet<u64>,
}

/// Who gives a command: the caller's principal, or, if it has none, the agent that the command names.
#[must_use]
pub fn who(context: &CommandContext, agent: &AgentId) -> String {
    context.principal.clone().unwrap_or_else(|| agent.to_string())
}

impl Known {
    /// What is known after one more event.
    #[must_use]
    pub fn and(mut self, Told { fact, at_ms }: Told) -> Self {
        if let Some(edge) = fact.edge() {
            self.edge_mut(edge).lease.follow(&fact, at_ms);
        }
        match fact {
            Fact::ProjectInitialized(ProjectInitialized { config, .. }) => {
                self.project = Some((config, 1));
            }
            Fact::ProjectReconfigured(ProjectReconfigured { config, .. }) => {
                let version = self.project.map_or(0, |(_, version)| version);
                self.project = Some((config, version + 1));
            }
            Fact::FeatureCreated(created) => {
                self.features.insert(created.feature.clone(), Feature::new(created, at_ms));
            }
            Fact::FeatureReconfigured(FeatureReconfigured { feature, rules, version, .. }) => {
                if let Some(feature) = self.features.get_mut(&feature) {
                    (feature.rules, feature.version) = (rules, version);
                }
            }
            Fact::DependencyAdded(DependencyAdded { feature, on, .. }) => {
                if let Some(feature) = self.features.get_mut(&feature) {
                    feature.dependencies.insert(on);
                }
            }
            Fact::DependencyDropped(DependencyDropped { feature, on, .. }) => {
                if let Some(feature) = self.features.get_mut(&feature) {
                    feature.dependencies.remove(&on);
                }
            }
            Fact::EdgeConverged(converged) => {
                if let Some(feature) = self.features.get_mut(&converged.edge.feature) {
                    feature.converged.insert(converged.edge.name.clone());
                }
                self.edge_mut(&converged.edge).converge(converged);
            }
            Fact::EdgeReopened(EdgeReopened { edge, run, .. }) => {
                if let Some(feature) = self.features.get_mut(&edge.feature) {
                    feature.converged.remove(&edge.name);
                }
                self.edge_mut(&edge).reopen(run);
            }
            Fact::EdgeStarted(started) => self.edge_mut(&started.edge).start(&started),
            Fact::EdgeReleased(released) => self.edge_mut(&released.edge).release(),
            Fact::ClaimExpired(expired) => self.edge_mut(&expired.edge).expire(),
            Fact::IterationCompleted(done) => self.edge_mut(&done.edge.clone()).iterate(done),
            Fact::ReviewRequested(asked) => self.edge_mut(&asked.edge).ask(),
            Fact::ReviewCompleted(review) => self.edge_mut(&review.edge.clone()).review(review),
            Fact::ConvergenceEscalated(it) => self.edge_mut(&it.edge.clone()).escalate(it),
            Fact::SpawnCreated(spawn) => self.edge_mut(&spawn.edge.clone()).spawn(spawn),
            Fact::SpawnFoldedBack(folded) => self.edge_mut(&folded.edge).fold_back(&folded.child),
            Fact::ClaimRejected(ClaimRejected { epoch, .. }) => {
                self.rejected.insert(epoch);
            }
            Fact::EdgeStuck(stuck) => self.edge_mut(&stuck.edge).get_stuck(),
            Fact::ClaimRenewed(_)
            | Fact::IntentRaised(_)
            | Fact::GapsValidated(_)
            | Fact::CheckpointCreated(_)
            | Fact::ReleaseCreated(_)
            | Fact::ForeignRecorded(_) => {}
        }
        self
    }

    fn edge_mut(&mut self, edge: &EdgeRef) -> &mut Edge {
        self.edges.entry(edge.clone()).or_default()
    }

    /// The configuration of the project, and its version.
    ///
    /// # Errors
    /// [`Rejection::UnknownProject`]
    pub fn project(&self, project: &ProjectId) -> Result<(&Config, u64), Rejection> {
        let (config, version) = self
            .project
            .as_ref()
            .ok_or_else(|| Rejection::UnknownProject { project: project.clone() })?;
        Ok((config, *version))
    }

    /// The configuration of the project, if the caller may do everything.
    ///
    /// # Errors
    /// [`Rejection::UnknownProject`], [`Rejection::NotAllowed`]
    pub fn of_human(&self, project: &ProjectId, who: &str) -> Result<(&Config, u64), Rejection> {
        let (config, version) = self.project(project)?;
        if config.is_human(who) { Ok((config, version)) } else { Err(Rejection::NotAllowed) }
    }

    /// The feature.
    ///
    /// # Errors
    /// [`Rejection::UnknownFeature`]
    pub fn feature(&self, feature: &FeatureRef) -> Result<&Feature, Rejection> {
        let unknown = || Rejection::UnknownFeature { feature: feature.clone() };
        self.features.get(feature).ok_or_else(unknown)
    }

    /// Whether there is such a feature.
    #[must_use]
    pub fn has(&self, feature: &FeatureRef) -> bool {
        self.features.contains_key(feature)
    }

    /// Whether the feature is done.
    #[must_use]
    pub fn is_done(&self, feature: &FeatureRef) -> bool {
        self.features.get(feature).is_some_and(Feature::is_done)
    }

    /// The edge, of a feature that was read and that has such an edge.
    ///
    /// # Errors
    /// [`Rejection::UnknownFeature`], [`Rejection::UnknownEdge`]
    pub fn edge_of(&self, edge: &EdgeRef) -> Result<(&Feature, &EdgeRule, &Edge), Rejection> {
        let feature = self.feature(&edge.feature)?;
        let unknown = || Rejection::UnknownEdge { edge: edge.clone() };
        let rule = feature.rules.edge(&edge.name).ok_or_else(unknown)?;
        Ok((feature, rule, self.edge(edge)))
    }

    /// The edge as far as it is known; nothing has happened on one that nobody claimed.
    #[must_use]
    pub fn edge(&self, edge: &EdgeRef) -> &Edge {
        static NEW: Edge = Edge::NEW;
        self.edges.get(edge).unwrap_or(&NEW)
    }

    /// Whether the agent was told before that the claim of this epoch holds the edge.
    #[must_use]
    pub fn was_rejected(&self, epoch: u64) -> bool {
        self.rejected.contains(&epoch)
    }
}
