//! A feature, as decisions know it.

use std::collections::BTreeSet;

use crate::{EdgeName, EdgeRule, FeatureCreated, FeatureRef, Kind, Rules};

/// A feature that was created.
pub struct Feature {
    pub kind: Kind,
    pub rules: Rules,
    /// Of the configuration that the rules are from.
    pub version: u64,
    /// The features that must be done first.
    pub dependencies: BTreeSet<FeatureRef>,
    /// 0 without a parent.
    pub depth: u32,
    pub time_box_ms: Option<u64>,
    created_ms: u64,
    /// The edges that are done.
    pub converged: BTreeSet<EdgeName>,
}

impl Feature {
    pub(crate) fn new(created: FeatureCreated, created_ms: u64) -> Self {
        let FeatureCreated { kind, rules, version, dependencies, depth, time_box_ms, .. } = created;
        let dependencies = dependencies.into_iter().collect();
        let converged = BTreeSet::new();
        Self { kind, rules, version, dependencies, depth, time_box_ms, created_ms, converged }
    }

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
