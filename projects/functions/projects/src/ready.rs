//! The edges that can be worked on now, and the state of a project: pure functions over rows of project-features.
//!
//! Rows may be older than the log. If an edge is no longer ready, its claimer gets a rejection, and that is all.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::views::project_features::{EdgeRow, FeatureRow};
use crate::{AgentId, EdgeRef, EdgeRule, FeatureCreated, FeatureRef, Kind, Mode};

/// The rows of a project's features, by their ids.
pub type FeatureRows = BTreeMap<String, FeatureRow>;

/// An edge that can be claimed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ready {
    pub edge: EdgeRef,
    /// The features for `after` of the command that claims it.
    pub after: Vec<FeatureRef>,
    pub title: String,
    pub kind: Kind,
    pub priority: i32,
    /// When the feature's time box is over, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_box_until_ms: Option<u64>,
    /// How many edges of the feature are not done.
    pub edges_left: usize,
    /// When the feature was created, in milliseconds since 1970.
    pub created_ms: u64,
}

/// How a project stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ProjectState {
    NoProject,
    NoFeatures,
    /// The work on an edge fails again and again, and no child was born to mend it.
    Stuck,
    /// There is work left, but nobody is at work, and no edge can be claimed.
    AllBlocked,
    AllDone,
    InProgress,
}

/// The edges that can be claimed at this time, in milliseconds since 1970. An edge is ready if it is not done and free
/// to claim, no child blocks it, and no person has to look at it. The edges before it must be done, and so must the
/// features that its feature waits for.
///
/// Features whose time boxes end come first, the earliest end before the others; then those with the fewest edges left,
/// with the higher priority, and the oldest.
#[must_use]
pub fn ready(features: &FeatureRows, now_ms: u64) -> Vec<Ready> {
    let mut ready: Vec<Ready> =
        features.values().flat_map(|feature| ready_of(features, feature, now_ms)).collect();
    ready.sort_by_key(|edge| (urgency(edge), edge.created_ms, edge.edge.clone()));
    ready
}

/// The same edges, in the order in which an agent tries to claim them. Many agents look at the same edges at once, and
/// each that is not the first at an edge costs a rejection. So each agent tries equally urgent edges in another order,
/// which follows from its name.
#[must_use]
pub fn ready_for(agent: &AgentId, features: &FeatureRows, now_ms: u64) -> Vec<Ready> {
    let is_multi = |edge: &Ready| {
        let row = features.get(&edge.edge.feature.to_string());
        let definition = row.and_then(|row| row.definition.as_ref());
        definition.is_some_and(|definition| definition.rules.mode == Mode::Multi)
    };
    let mut ready = ready(features, now_ms);
    ready.sort_by_cached_key(|edge| {
        let of_agent = is_multi(edge).then(|| Sha256::digest(format!("{agent} {}", edge.edge)));
        (urgency(edge), of_agent)
    });
    ready
}

/// Features whose time boxes end, features with few edges left, a high priority.
fn urgency(edge: &Ready) -> (u64, usize, Reverse<i32>) {
    (edge.time_box_until_ms.unwrap_or(u64::MAX), edge.edges_left, Reverse(edge.priority))
}

/// How the project stands at this time, in milliseconds since 1970: the first state of [`ProjectState`] that holds.
/// `exists` says whether the project has begun.
#[must_use]
pub fn status(exists: bool, features: &FeatureRows, now_ms: u64) -> ProjectState {
    let known = || features.values().filter(|feature| feature.definition.is_some());
    // Nothing more can happen on an edge that its feature's rules no longer have.
    let edges = || {
        known().flat_map(|feature| {
            let rules = feature.definition.as_ref().map(|definition| &definition.rules);
            let has_rule = move |name| rules.is_some_and(|rules| rules.edge(name).is_some());
            feature.edges.iter().filter(move |(name, _)| has_rule(name)).map(|(_, edge)| edge)
        })
    };
    if !exists {
        ProjectState::NoProject
    } else if known().next().is_none() {
        ProjectState::NoFeatures
    } else if edges().any(|edge| edge.stuck.is_some()) {
        ProjectState::Stuck
    } else if known().all(|feature| feature.edges_left() == Some(0)) {
        ProjectState::AllDone
    } else if edges().any(|edge| edge.holding.is_at_work(now_ms))
        || !ready(features, now_ms).is_empty()
    {
        ProjectState::InProgress
    } else {
        ProjectState::AllBlocked
    }
}

fn ready_of(features: &FeatureRows, feature: &FeatureRow, now_ms: u64) -> Vec<Ready> {
    let (Some(definition), Some(created_ms), Some(edges_left)) =
        (&feature.definition, feature.created_ms, feature.edges_left())
    else {
        return vec![];
    };
    let FeatureCreated { dependencies, rules, title, kind, priority, time_box_ms, .. } = definition;
    let done = |on: &FeatureRef| features.get(&on.to_string()).and_then(FeatureRow::edges_left);
    if dependencies.iter().any(|on| done(on) != Some(0)) {
        return vec![];
    }
    let can_begin = |rule: &&EdgeRule| {
        let is_open = |edge: &EdgeRow| {
            edge.converged_ms.is_none()
                && !edge.holding.lease.is_suspended()
                && edge.open_children().next().is_none()
                && edge.holding.is_free(rules.on_expiry, now_ms)
        };
        rule.after.iter().all(|before| feature.is_converged(before))
            && feature.edges.get(&rule.edge).is_none_or(is_open)
    };
    let ready = |rule: &EdgeRule| Ready {
        edge: definition.feature.edge(&rule.edge),
        after: dependencies.clone(),
        title: title.clone(),
        kind: *kind,
        priority: *priority,
        time_box_until_ms: time_box_ms.map(|time_box| created_ms.saturating_add(time_box)),
        edges_left,
        created_ms,
    };
    rules.edges.iter().filter(can_begin).map(ready).collect()
}
