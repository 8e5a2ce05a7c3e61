//! Some of the events.

use std::collections::BTreeSet;

use ringfence::{FedEvent, Tag};

/// Which events a reader wants: one of the types, if any is named, and all of the tags. For
/// `try_filter` of a stream of entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Types, one of which the event has; none for every type.
    pub types: BTreeSet<String>,
    /// Tags that the event carries, perhaps among others.
    pub tags: Vec<Tag>,
}

impl Filter {
    /// Whether it wants the event.
    #[must_use]
    pub fn matches(&self, event: &FedEvent) -> bool {
        (self.types.is_empty() || self.types.contains(&event.event_type))
            && self.tags.iter().all(|tag| event.tags.contains(tag))
    }
}
