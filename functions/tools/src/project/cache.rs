//! What the files of a project tell, folded.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use anyhow::{Context, Result, ensure};
use projects::views::project_features::ProjectFeatures;
use projects::{
    AgentId, ClaimExpired, EdgeRef, Fact, FeatureRef, Features, Known, Mode, Ready, Told, ready,
};
use ringfence::{Event, FilingError, MemoryLog, SequencedEvent};
use ringfence_dynamo::ms_of_rfc3339;
use ringfence_views::fold;
use serde_json::Value;

use super::decide::{Decided, Slices, envelope};
use super::file_log::FileLog;
use super::folder::{End, Reading, Writing};
use super::outbox::{Outbox, Queued};

/// What is known of a project, here.
pub(crate) struct Cache {
    /// The commands that wait.
    pub(crate) outbox: Outbox,
    /// The events, and the effects of the commands that wait. A refused one among them has none.
    events: Vec<SequencedEvent>,
    known: Known,
    /// As whom the stack knows each agent: the caller of the agent's last event that is here.
    principals: BTreeMap<AgentId, String>,
    /// Where the file ends.
    end: End,
}

impl Cache {
    /// # Errors
    /// A line is damaged, or an event does not have the shape of its type.
    pub(crate) async fn read(folder: &Reading<'_>, slices: &Slices) -> Result<Self> {
        let (mut events, mut principals) = (Vec::new(), BTreeMap::new());
        let end = folder.events(|event| {
            // The end of a lease names the agent whose claim it was, and another one has seen it.
            if event.event_type != ClaimExpired::NAME {
                let principal = event.metadata.text("principal").map(str::to_owned);
                principals.extend(agent(&event.data).zip(principal));
            }
            events.push(event);
            Ok(())
        })?;
        let (outbox, known) = (Outbox::read(folder)?, Known::default());
        let mut cache = Self { outbox, events, known, principals, end };
        if cache.outbox.len() > 0
            && let Ok(log) = log(slices, cache.events.clone())
        {
            for waiting in cache.outbox.iter() {
                // Whatever becomes of it: its turn to be refused is when it is sent.
                drop(cache.decide(slices, &log, waiting).await);
            }
            cache.events = log.events();
        }
        for event in cache.events.iter().filter(|event| is_known(event)) {
            let wrong = || format!("this version can't read {} ({})", event.id(), event.event_type);
            let fact = Fact::decode(event).with_context(wrong)?;
            cache.known = cache.known.and(Told { fact, at_ms: event.at });
        }
        Ok(cache)
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

    /// What would become of a command, behind those that wait. The events are used up for it.
    ///
    /// # Errors
    /// Some events are of a newer version, so that nothing can be decided here.
    pub(crate) async fn try_out(&mut self, slices: &Slices, queued: &Queued) -> Result<Decided> {
        let log = self.log(slices)?;
        Ok(self.decide(slices, &log, queued).await)
    }

    /// The log of a local project, or of one that is to be. The events are used up for it.
    ///
    /// # Errors
    /// The project is a copy, or some events are of a newer version.
    pub(crate) fn file_log<'a>(
        mut self,
        folder: &'a Writing<'a>,
        slices: &Slices,
    ) -> Result<FileLog<'a>> {
        let is_new = self.end.last.is_none() && self.outbox.len() == 0;
        let is_local = self.end.last.as_ref().is_some_and(|line| line.rest.is_some());
        ensure!(
            is_new || is_local,
            "{} is a copy of a stack's project: a local project begins in an empty folder",
            folder.path("").display()
        );
        let log = self.log(slices)?;
        Ok(FileLog::new(folder, self.end, log))
    }

    /// The events and commands as a log.
    fn log(&mut self, slices: &Slices) -> Result<MemoryLog> {
        log(slices, mem::take(&mut self.events)).context(
            "commands can't be decided here, because some events are of types that this version does not know: take \
             a newer version",
        )
    }

    async fn decide(&self, slices: &Slices, log: &MemoryLog, queued: &Queued) -> Decided {
        let Queued { slice, data, key, effective_at } = queued;
        let now_ms = ms_of_rfc3339(effective_at).unwrap_or_default();
        let principal = agent(data).and_then(|agent| self.principals.get(&agent).cloned());
        let envelope = envelope(key.as_str(), now_ms, principal, Some(effective_at));
        slices.decide(log, slice, data.clone(), &envelope).await
    }
}

/// A log on which commands are tried out.
fn log(slices: &Slices, events: Vec<SequencedEvent>) -> Result<MemoryLog, FilingError> {
    MemoryLog::of(slices.catalog().clone(), events.into_iter().filter(is_known))
}

fn is_known(event: &SequencedEvent) -> bool {
    Fact::TYPES.contains(&event.event_type.as_str())
}

/// Who gave a command, or the command of an event, by its payload.
fn agent(data: &Value) -> Option<AgentId> {
    data.get("agent")?.as_str()?.parse().ok()
}
