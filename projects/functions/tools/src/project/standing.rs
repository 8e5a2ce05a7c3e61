//! The standing of a project: the lines of its file, folded. A compacted copy begins with a [`Snapshot`], in place of
//! lines that are gone.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use projects::views::project_claims::ProjectClaims;
use projects::views::project_features::{FeatureRow, ProjectFeatures};
use projects::views::project_status::{ProjectStatus, StatusRow};
use projects::views::project_trace::{ProjectTrace, Trace};
use projects::views::{Holder, Holding};
use projects::{AgentId, ClaimExpired, EdgeRef, FeatureId, FeatureRef, FeatureRows, Projects};
use ringfence_core::prelude::*;
use ringfence_core::{Metadata, SequencedEvent};
use ringfence_views::{ViewError, fold};
use serde_json::Value;

use super::folder::{End, Reading, Snapshot};
use super::json;
use projects::line::Line;

/// A part of a [`Standing`] that follows the events.
pub(crate) type Part = fn(&mut Standing, &Current<'_>) -> Result<(), ViewError>;

pub(crate) const CLAIMS: Part = |it, event| fold::<ProjectClaims>(&mut it.claims, event);
pub(crate) const FEATURES: Part = |it, event| fold::<ProjectFeatures>(&mut it.features, event);
pub(crate) const STATUS: Part = |it, event| fold::<ProjectStatus>(&mut it.status, event);
pub(crate) const TRACES: Part = |it, event| fold::<ProjectTrace>(&mut it.traces, event);

/// The rows of the stack's views, folded here. Only the parts that are asked for are up to date.
#[ringfence::value]
#[derive(Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Standing {
    pub(crate) claims: BTreeMap<String, Holding>,
    pub(crate) features: FeatureRows,
    /// The principal of each agent: the caller of its last event.
    pub(crate) principals: BTreeMap<AgentId, String>,
    pub(crate) status: BTreeMap<String, StatusRow>,
    pub(crate) traces: BTreeMap<String, Trace>,
}

/// The version of the folds. The number after the program's version grows with each change of a view's fold.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "/2");

impl Standing {
    /// # Errors
    /// Another version has folded the events.
    fn of(snapshot: Snapshot) -> Result<Self> {
        let Snapshot { standing, version, .. } = snapshot;
        ensure!(
            version == VERSION,
            "version {version} has compacted the copy, and this is version {VERSION}, which may read events otherwise: \
             `ringfence project reconstruct` writes a new copy"
        );
        Ok(serde_json::from_value(standing)?)
    }

    /// Reads the file for some parts, and passes on each of its lines with its event. Returns the folded features too.
    ///
    /// # Errors
    /// A line is damaged, an event does not have the shape of its type, or another version has compacted the copy.
    pub(crate) fn read(
        folder: &Reading<'_>,
        parts: &[Part],
        mut each: impl FnMut(Line, SequencedEvent),
    ) -> Result<(Self, BTreeSet<FeatureId>, End)> {
        let (mut standing, mut folded, mut behind) = Default::default();
        if let Some(snapshot) = folder.snapshot()? {
            (folded, behind) = (snapshot.folded.clone(), snapshot.last.checkpoint);
            standing = Self::of(snapshot)?;
        }
        let catalog = Projects::catalog()?;
        let end = folder.lines(|line| {
            let event = line.event()?;
            if line.checkpoint > behind {
                let current = catalog.current(&event)?;
                let followed = standing.follow(parts, &current);
                followed
                    .map_err(|error| json::payload(&current).unwrap_or_else(|| error.into()))?;
            }
            each(line, event);
            Ok(())
        })?;
        Ok((standing, folded, end))
    }

    /// The standing after an event.
    ///
    /// # Errors
    /// The event does not have the shape of its type.
    pub(crate) fn follow(&mut self, parts: &[Part], event: &Current<'_>) -> Result<(), ViewError> {
        // The end of a lease names the agent of the claim, but another agent has noticed it.
        if event.event_type != ClaimExpired::NAME {
            let principal = event.metadata.text(Metadata::PRINCIPAL).map(str::to_owned);
            self.principals.extend(agent(&event.data).zip(principal));
        }
        parts.iter().try_for_each(|part| part(self, event))
    }

    pub(crate) fn feature(&self, feature: &FeatureRef) -> Option<&FeatureRow> {
        self.features.get(&feature.to_string())
    }

    /// The holder of an edge.
    pub(crate) fn holder(&self, edge: &EdgeRef) -> Option<&Holder> {
        let edge = self.feature(&edge.feature)?.edges.get(&edge.name)?;
        edge.holding.holder.as_ref().filter(|holder| !holder.expired)
    }

    /// The features that a feature waits for.
    pub(crate) fn dependencies(&self, feature: &FeatureRef) -> BTreeSet<FeatureRef> {
        let definition = self.feature(feature).and_then(|row| row.definition.as_ref());
        definition.into_iter().flat_map(|it| it.dependencies.iter().cloned()).collect()
    }

    /// A feature, the features that it waits for, the features that these wait for, and so on.
    pub(crate) fn reachable(&self, from: &FeatureRef) -> BTreeSet<FeatureRef> {
        let (mut reachable, mut next) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(feature) = next.pop() {
            if reachable.insert(feature.clone()) {
                next.extend(self.dependencies(&feature));
            }
        }
        reachable
    }
}

/// The agent that gave a command, or the command of an event, by its payload.
pub(crate) fn agent(data: &Value) -> Option<AgentId> {
    data.get("agent")?.as_str()?.parse().ok()
}
