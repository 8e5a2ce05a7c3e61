//! A filter of events.

use std::collections::BTreeSet;

use ringfence_core::{SequencedEvent, Tag};

use crate::reference::Reference;

/// The events that a reader wants: of one of the types, if any is named, and with all of the tags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The event has one of these types; if empty, any type.
    pub types: BTreeSet<String>,
    /// The event has all of these tags, and perhaps others.
    pub tags: Vec<Tag>,
}

impl Filter {
    /// Says which events may match, before they are read. An entry has no tags.
    pub fn wants(&self) -> impl Fn(&Reference) -> bool + Send + Sync + use<> {
        let types = self.types.clone();
        move |it| types.is_empty() || types.contains(&it.event_type)
    }

    /// Whether it wants the event.
    #[must_use]
    pub fn matches(&self, event: &SequencedEvent) -> bool {
        (self.types.is_empty() || self.types.contains(&event.event_type))
            && self.tags.iter().all(|tag| event.tags.contains(tag))
    }
}
