//! Features, as decisions know them.

use std::collections::{BTreeMap, BTreeSet};

use ringfence::prelude::*;

use crate::{EdgeName, EdgeRef, EdgeRule, FeatureRef, Kind, Rejection, Rules};

/// The events of features, and which of their edges are done.
#[derive(Reads)]
pub enum FeatureEvent {
    FeatureCreated {
        feature: FeatureRef,
        kind: Kind,
        rules: Rules,
        version: u64,
        #[serde(default)]
        dependencies: Vec<FeatureRef>,
        depth: u32,
        time_box_ms: Option<u64>,
        #[time]
        created_ms: u64,
    },
    FeatureReconfigured {
        feature: FeatureRef,
        rules: Rules,
        version: u64,
    },
    DependencyAdded {
        feature: FeatureRef,
        on: FeatureRef,
    },
    DependencyDropped {
        feature: FeatureRef,
        on: FeatureRef,
    },
    EdgeConverged {
        edge: EdgeRef,
    },
    EdgeReopened {
        edge: EdgeRef,
    },
}

/// A feature that was created.
pub struct Feature {
    pub kind: Kind,
    pub rules: Rules,
    /// The version of the configuration with the rules.
    pub version: u64,
    /// The features that must be done first.
    pub dependencies: BTreeSet<FeatureRef>,
    /// 0 without a parent.
    pub depth: u32,
    pub time_box_ms: Option<u64>,
    created_ms: u64,
    /// The edges that are done.
    converged: BTreeSet<EdgeName>,
}

/// The features that were created, by name.
#[derive(Default)]
pub struct Features(BTreeMap<FeatureRef, Feature>);

impl State for Features {
    type Reads = FeatureEvent;

    fn evolve(mut self, event: FeatureEvent) -> Self {
        match event {
            FeatureEvent::FeatureCreated {
                feature,
                kind,
                rules,
                version,
                dependencies,
                depth,
                time_box_ms,
                created_ms,
            } => {
                let dependencies = dependencies.into_iter().collect();
                let converged = BTreeSet::new();
                self.0.insert(
                    feature,
                    Feature {
                        kind,
                        rules,
                        version,
                        dependencies,
                        depth,
                        time_box_ms,
                        created_ms,
                        converged,
                    },
                );
            }
            FeatureEvent::FeatureReconfigured { feature, rules, version } => {
                if let Some(feature) = self.0.get_mut(&feature) {
                    (feature.rules, feature.version) = (rules, version);
                }
            }
            FeatureEvent::DependencyAdded { feature, on } => {
                if let Some(feature) = self.0.get_mut(&feature) {
                    feature.dependencies.insert(on);
                }
            }
            FeatureEvent::DependencyDropped { feature, on } => {
                if let Some(feature) = self.0.get_mut(&feature) {
                    feature.dependencies.remove(&on);
                }
            }
            FeatureEvent::EdgeConverged { edge } => {
                if let Some(feature) = self.0.get_mut(&edge.feature) {
                    feature.converged.insert(edge.name);
                }
            }
            FeatureEvent::EdgeReopened { edge } => {
                if let Some(feature) = self.0.get_mut(&edge.feature) {
                    feature.converged.remove(&edge.name);
                }
            }
        }
        self
    }
}

impl Features {
    /// The feature.
    ///
    /// # Errors
    /// [`Rejection::UnknownFeature`]
    pub fn feature(&self, feature: &FeatureRef) -> Result<&Feature, Rejection> {
        let unknown = || Rejection::UnknownFeature { feature: feature.clone() };
        self.0.get(feature).ok_or_else(unknown)
    }

    /// Whether there is such a feature.
    #[must_use]
    pub fn has(&self, feature: &FeatureRef) -> bool {
        self.0.contains_key(feature)
    }

    /// Whether the feature is done.
    #[must_use]
    pub fn is_done(&self, feature: &FeatureRef) -> bool {
        self.0.get(feature).is_some_and(Feature::is_done)
    }

    /// The feature of an edge, and its rule for the edge.
    ///
    /// # Errors
    /// [`Rejection::UnknownFeature`], [`Rejection::UnknownEdge`]
    pub fn rule(&self, edge: &EdgeRef) -> Result<(&Feature, &EdgeRule), Rejection> {
        let feature = self.feature(&edge.feature)?;
        let unknown = || Rejection::UnknownEdge { edge: edge.clone() };
        Ok((feature, feature.rules.edge(&edge.name).ok_or_else(unknown)?))
    }
}

impl Feature {
    /// Whether all of its edges are done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.rules.edges.iter().all(|rule| self.converged.contains(&rule.edge))
    }

    /// Whether it is done when this edge is done too.
    #[must_use]
    pub fn is_done_with(&self, edge: &EdgeName) -> bool {
        let mut others = self.rules.edges.iter().filter(|rule| rule.edge != *edge);
        others.all(|rule| self.converged.contains(&rule.edge))
    }

    /// The edges that must be done before this one, and are not.
    #[must_use]
    pub fn open_before(&self, rule: &EdgeRule) -> Vec<EdgeName> {
        let is_open = |edge: &&EdgeName| !self.converged.contains(*edge);
        rule.after.iter().filter(is_open).cloned().collect()
    }

    /// Whether its time box is over.
    #[must_use]
    pub fn is_box_over(&self, now_ms: u64) -> bool {
        self.time_box_ms.is_some_and(|time_box| now_ms > self.created_ms.saturating_add(time_box))
    }
}
