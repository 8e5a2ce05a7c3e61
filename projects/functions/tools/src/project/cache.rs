//! The files of a project, folded.

use std::collections::BTreeSet;
use std::mem;

use anyhow::{Context, Result, bail, ensure};
use projects::{EdgeRef, FeatureId, FeatureRef, Mode};
use ringfence_aws::ms_of_rfc3339;
use ringfence_core::{Catalog, MemoryLog, SequencedEvent};
use serde_json::Value;

use super::decide::{Decided, Slices, envelope};
use super::file_log::FileLog;
use super::folder::{End, Reading, Writing};
use super::outbox::{Outbox, Queued};
use super::standing::{FEATURES, Standing, agent};
use projects::line::{About, named};

/// Events that a command depends on are folded, so it can't be decided here.
#[derive(Debug, thiserror::Error)]
#[error(
    "the events of {feature} are folded, and {what} needs them: {or}, or bring the events back by `ringfence project \
     reconstruct`"
)]
pub(crate) struct Folded {
    feature: FeatureRef,
    what: &'static str,
    /// Another way out.
    or: &'static str,
}

/// The known state of a project.
pub(crate) struct Cache {
    /// The commands that wait.
    pub(crate) outbox: Outbox,
    /// The state of the project, with the effects of waiting commands. A rejected command has no effect.
    pub(crate) standing: Standing,
    /// The events that are here, with those effects.
    events: Vec<SequencedEvent>,
    /// The features whose events are folded: only their standing is here.
    folded: BTreeSet<FeatureId>,
    /// The end of the file.
    end: End,
}

impl Cache {
    /// # Errors
    /// A line is damaged, or an event does not have the shape of its type.
    pub(crate) async fn read(folder: &Reading<'_>, slices: &Slices) -> Result<Self> {
        let mut events = Vec::new();
        let (standing, folded, end) =
            Standing::read(folder, &[FEATURES], |_, event| events.push(event))?;
        let outbox = Outbox::read(folder)?;
        let mut cache = Self { outbox, standing, events, folded, end };
        if cache.outbox.len() > 0
            && let Ok(log) = cache.log(slices, cache.events.clone())
        {
            let waiting = cache.outbox.iter();
            for waiting in waiting.filter(|it| cache.lacks(&it.data).is_none()) {
                // The outcome does not matter here: a rejection counts only when the command is sent.
                drop(cache.decide(slices, &log, waiting).await);
            }
            let known: BTreeSet<String> = cache.events.iter().map(SequencedEvent::id).collect();
            for event in log.events().into_iter().filter(|event| !known.contains(&event.id())) {
                cache.standing.follow(&[FEATURES], &slices.catalog().current(&event)?)?;
                cache.events.push(event);
            }
        }
        Ok(cache)
    }

    /// The mode of an edge's feature; `None` if the feature is not known here.
    pub(crate) fn mode(&self, edge: &EdgeRef) -> Option<Mode> {
        let definition = self.standing.feature(&edge.feature)?.definition.as_ref();
        definition.map(|it| it.rules.mode)
    }

    /// Tries a command after the waiting ones. This uses up the events.
    ///
    /// # Errors
    /// Some events are missing or of a newer version. Or [`Folded`]: the command, or a waiting one, names a folded
    /// feature.
    pub(crate) async fn try_out(&mut self, slices: &Slices, queued: &Queued) -> Result<Decided> {
        if let Some(feature) = self.lacks(&queued.data) {
            bail!(Folded { feature, what: "the command", or: "give it to the stack" });
        }
        if let Some(feature) = self.outbox.iter().find_map(|waiting| self.lacks(&waiting.data)) {
            let or = "send it by `ringfence project push`";
            bail!(Folded { feature, what: "a command that waits", or });
        }
        let events = mem::take(&mut self.events);
        let log = self.log(slices, events)?;
        Ok(self.decide(slices, &log, queued).await)
    }

    /// The log of a local project, or of a new one. This uses up the events.
    ///
    /// # Errors
    /// The project is a copy, or some events are missing or of a newer version.
    pub(crate) fn file_log<'a>(
        mut self,
        folder: &'a Writing<'a>,
        slices: &Slices,
    ) -> Result<FileLog<'a>> {
        let is_new = self.end.place().is_none() && self.outbox.len() == 0;
        let is_local = self.end.last.as_ref().is_some_and(|line| line.rest.is_some());
        ensure!(
            is_new || is_local,
            "{} is a copy of a stack's project: a local project begins in an empty folder",
            folder.path("").display()
        );
        let events = mem::take(&mut self.events);
        let log = self.log(slices, events)?;
        Ok(FileLog::new(folder, self.end, log))
    }

    /// A log on which commands are decided. It leaves out the folded features, because only some of their events may be
    /// here.
    fn log(&self, slices: &Slices, events: Vec<SequencedEvent>) -> Result<MemoryLog> {
        let is_whole = |event: &SequencedEvent| {
            let feature = About::of(&event.data).feature;
            feature.is_none_or(|feature| !self.folded.contains(&feature.feature))
        };
        let catalog = slices.catalog();
        let events = events.into_iter();
        let events = events.filter(|event| is_known(catalog, event) && is_whole(event));
        MemoryLog::of(catalog.clone(), events).context(
            "commands can't be decided here: some events are missing, or are of types that this version does not know. \
             Take a newer version. `ringfence project reconstruct` writes a new copy of a stack's project",
        )
    }

    /// A folded feature that a command names. A decision reads only what its command names.
    fn lacks(&self, data: &Value) -> Option<FeatureRef> {
        named(data).into_iter().find(|feature| self.folded.contains(&feature.feature))
    }

    async fn decide(&self, slices: &Slices, log: &MemoryLog, queued: &Queued) -> Decided {
        let Queued { slice, data, key, effective_at } = queued;
        // The command was given before all of the events were known here. It will be decided after them.
        let now_ms = ms_of_rfc3339(effective_at).unwrap_or_default().max(log.newest_ms());
        let principal = agent(data).and_then(|agent| self.standing.principals.get(&agent).cloned());
        let envelope = envelope(key.as_str(), now_ms, principal, Some(effective_at));
        slices.decide(log, slice, data.clone(), &envelope).await
    }
}

/// Whether this version knows the type of an event.
pub(crate) fn is_known(catalog: &Catalog, event: &SequencedEvent) -> bool {
    catalog.schema(&event.event_type).is_some()
}
