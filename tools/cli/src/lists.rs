//! The lists of the stack that a command line is for.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use ringfence_core::{Catalog, CatalogError, CurrentError, LogKind, SequencedEvent};
use ringfence_feed::{Entry, FeedError, KnownEntry};
use ringfence_new::near;
use ringfence_schemas::{Contract, Lock, PayloadTags, Readers, present};
use ringfence_services::deadlines::Deadlines;
use ringfence_stack::{ContextInfo, Members, Stack};
use serde_json::json;

use crate::explain::Slices;
use crate::shown::ShownEvent;
use crate::tables::log_name;

/// The lists of a stack that commands need. They contain the code of each slice and view, so functions of a stack use
/// [`Stack`] alone.
pub struct Lists {
    /// The stack in plain values.
    pub stack: Stack,
    /// The slices, with the code that makes dry runs of their commands.
    pub slices: Slices,
    /// The deadlines, with the code that sends their commands.
    pub(crate) deadlines: Deadlines,
    pub(crate) readers: Readers,
    /// Makes tags of payloads.
    pub(crate) tags: PayloadTags,
    /// The lock of each context, computed from the code.
    pub locks: fn() -> BTreeMap<&'static str, Lock>,
    contract: fn() -> Result<Contract, CatalogError>,
}

impl Lists {
    /// The lists of the stack that `M` lists.
    ///
    /// # Errors
    /// Two contexts contradict each other.
    pub fn of<M: Members>() -> Result<Self> {
        let (stack, slices) = (Stack::of::<M>()?, Slices::of::<M>());
        Ok(Self {
            stack,
            slices,
            deadlines: Deadlines::of::<M>(),
            readers: Readers::of::<M>(),
            tags: PayloadTags::of::<M>(),
            locks: present::<M>,
            contract: Contract::of::<M>,
        })
    }

    /// The API for callers and the events for consumers.
    ///
    /// # Errors
    /// Two contexts contradict each other.
    pub fn contract(&self) -> Result<Contract> {
        Ok((self.contract)()?)
    }

    /// The context of this name.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn context(&self, name: &str) -> Result<&ContextInfo> {
        self.stack.context(name).with_context(|| {
            let names: BTreeSet<_> = self.stack.contexts.iter().map(|it| it.name).collect();
            let near = near(name, &names);
            let names = Vec::from_iter(names).join(", ");
            format!("this build has no context {name}: its contexts are {names}{near}")
        })
    }

    /// The context of this name, which is on this log.
    ///
    /// # Errors
    /// No context of the log has the name.
    pub(crate) fn context_on(&self, name: &str, log: LogKind) -> Result<&ContextInfo> {
        let context = self.stack.context(name).filter(|context| context.log == log);
        context.with_context(|| {
            let contexts = self.stack.contexts.iter().filter(|context| context.log == log);
            let names: Vec<_> = contexts.map(|context| context.name).collect();
            let log = log_name(log);
            match names.is_empty() {
                true => {
                    format!("this build has no context on the {log} log, so {name} is not there")
                }
                false => format!(
                    "this build has no context {name} on the {log} log: its contexts are {}",
                    names.join(", ")
                ),
            }
        })
    }

    /// The catalog that declares an event type of a context.
    pub(crate) fn catalog(&self, context: &str, event_type: &str) -> Option<&Catalog> {
        self.stack.catalogs.0.iter().find(|catalog| catalog.context(event_type) == Some(context))
    }

    /// The event for a list of events: if `newest`, in the newest version of its type. If this program can't make that
    /// version, the event is as it is stored.
    #[must_use]
    pub fn shown(&self, event: SequencedEvent, newest: bool) -> ShownEvent {
        match newest.then(|| self.newest(&event)) {
            Some(Ok(shown)) => shown,
            Some(Err(_)) | None => event.into(),
        }
    }

    /// The event in the newest version of its type. If this build does not have the type, the event is as it is stored.
    ///
    /// # Errors
    /// The event has a newer version than this build knows, or an upcast fails.
    pub(crate) fn newest(&self, event: &SequencedEvent) -> Result<ShownEvent, CurrentError> {
        let Some(catalog) = self.catalog(&event.context, &event.event_type) else {
            return Ok(event.clone().into());
        };
        let current = catalog.current(event)?.into_event();
        let stored = (current.version != event.version).then_some(event.version);
        Ok(ShownEvent { event: current, stored })
    }
}

/// An entry for a list. If its event can't be read, the reason takes the place of the payload.
///
/// # Errors
/// Any other error of the index.
pub fn listed(entry: Result<Entry, FeedError>) -> Result<Entry, FeedError> {
    Ok(readable(Entry::or_known(entry)?))
}

/// The same of an event that was read.
#[must_use]
pub fn readable((mut entry, unread): KnownEntry) -> Entry {
    if let Some(why) = unread {
        entry.event.data = json!({ "unreadable": why });
    }
    entry
}
