//! What the files of a project tell, folded.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use projects::views::project_features::ProjectFeatures;
use projects::{EdgeRef, Fact, FeatureRef, Features, Known, Mode, Ready, Told, ready};
use ringfence::{MemoryLog, SequencedEvent};
use ringfence_dynamo::ms_of_rfc3339;
use ringfence_views::fold;
use serde_json::Value;

use super::decide::{Decided, Slices, envelope};
use super::folder::Reading;
use super::outbox::{Outbox, Queued};

/// What is known of a project, here.
pub(crate) struct Cache {
    /// The commands that wait.
    pub(crate) outbox: Outbox,
    /// The events, and the effects of the commands that wait. A refused one among them has none.
    events: Vec<SequencedEvent>,
    known: Known,
}

impl Cache {
    /// # Errors
    /// A line is damaged, or an event does not have the shape of its type.
    pub(crate) async fn read(folder: &Reading<'_>, slices: &Slices) -> Result<Self> {
        let mut events = Vec::new();
        folder.events(|event| {
            events.push(event);
            Ok(())
        })?;
        let mut cache = Self { outbox: Outbox::read(folder)?, events, known: Known::default() };
        if cache.outbox.len() > 0
            && let Ok(log) = cache.log(slices)
        {
            for waiting in cache.outbox.iter() {
                // Whatever becomes of it: its turn to be refused is when it is sent.
                drop(cache.decide(slices, &log, waiting).await);
            }
            cache.events = log.events();
        }
        for event in cache.events.iter().filter(known_type) {
            let wrong = || format!("this version can't read {} ({})", event.id(), event.event_type);
            let fact = Fact::decode(event).with_context(wrong)?;
            cache.known = cache.known.and(Told { fact, at_ms: event.at });
        }
        Ok(cache)
    }

    /// A log of its own with the events.
    fn log(&self, slices: &Slices) -> Result<MemoryLog> {
        let events = self.events.iter().filter(known_type).cloned();
        MemoryLog::of(slices.catalog().clone(), events).context(
            "commands can't be decided here, because some events are of types that this version does not know: take \
             a newer version",
        )
    }

    /// The current claim of this agent on an edge.
    pub(crate) fn claim(&self, edge: &EdgeRef, agent: &str) -> Option<String> {
        let claim = self.known.edge(edge).current()?;
        (claim.agent.to_string() == agent).then(|| claim.id.to_string())
    }

    /// The edges that can be claimed at this time, in milliseconds since 1970.
    pub(crate) fn ready(&self, now_ms: u64) -> Result<Vec<Ready>> {
        let mut features = Features::new();
        for event in &self.events {
            fold::<ProjectFeatures>(&mut features, event)?;
        }
        Ok(ready(&features, now_ms))
    }

    /// The features that a feature waits for.
    pub(crate) fn dependencies(&self, feature: &FeatureRef) -> BTreeSet<FeatureRef> {
        self.known.feature(feature).map(|it| it.dependencies.clone()).unwrap_or_default()
    }

    /// A feature, those that it waits for, those that they wait for, and so on.
    pub(crate) fn reachable(&self, from: &FeatureRef) -> BTreeSet<FeatureRef> {
        let (mut reachable, mut next) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(feature) = next.pop() {
            if reachable.insert(feature.clone()) {
                next.extend(self.dependencies(&feature));
            }
        }
        reachable
    }

    /// Whether only one agent works on the feature of an edge.
    pub(crate) fn is_single(&self, edge: &EdgeRef) -> bool {
        self.known.feature(&edge.feature).is_ok_and(|it| it.rules.mode == Mode::Single)
    }

    /// As whom the stack knows an agent: the caller of the last event of the agent that is here.
    fn principal(&self, agent: Option<&str>) -> Option<String> {
        let is_of = |event: &&SequencedEvent| {
            agent.is_some() && event.data.get("agent").and_then(Value::as_str) == agent
        };
        let last = self.events.iter().rev().find(is_of)?;
        last.metadata.text("principal").map(str::to_owned)
    }

    /// What would become of a command, behind those that wait.
    ///
    /// # Errors
    /// Some events are of a newer version, so that nothing can be decided here.
    pub(crate) async fn try_out(&self, slices: &Slices, queued: &Queued) -> Result<Decided> {
        Ok(self.decide(slices, &self.log(slices)?, queued).await)
    }

    async fn decide(&self, slices: &Slices, log: &MemoryLog, queued: &Queued) -> Decided {
        let Queued { slice, data, key, effective_at } = queued;
        let now_ms = ms_of_rfc3339(effective_at).unwrap_or_default();
        let principal = self.principal(data.get("agent").and_then(Value::as_str));
        let envelope = envelope(key.as_str(), now_ms, principal, Some(effective_at));
        slices.decide(log, slice, data.clone(), &envelope).await
    }
}

fn known_type(event: &&SequencedEvent) -> bool {
    Fact::TYPES.contains(&event.event_type.as_str())
}
