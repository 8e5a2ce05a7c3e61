//! What a reader of the index meets.

use ringfence_core::SequencedEvent;

use crate::checkpoint::Checkpoint;
use crate::reference::Reference;

/// One event of the feed, as its log has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The checkpoint after it, which a reader keeps when it is done with the event.
    pub checkpoint: Checkpoint,
    /// The event.
    pub event: SequencedEvent,
}

/// An entry for a reader of some events.
#[derive(Clone, Debug, PartialEq)]
pub enum FeedStep {
    /// An event that it wants.
    Event(Entry),
    /// Another event, without its body, and the checkpoint after it.
    Passed(Checkpoint, Reference),
}

impl FeedStep {
    /// The checkpoint after it.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        match self {
            Self::Event(entry) => entry.checkpoint,
            Self::Passed(checkpoint, _) => *checkpoint,
        }
    }

    /// The type of the event.
    #[must_use]
    pub fn event_type(&self) -> &str {
        match self {
            Self::Event(entry) => &entry.event.event_type,
            Self::Passed(_, reference) => &reference.event_type,
        }
    }

    /// When the event was recorded, in milliseconds since 1970.
    #[must_use]
    pub fn at(&self) -> u64 {
        match self {
            Self::Event(entry) => entry.event.at,
            Self::Passed(_, reference) => reference.at,
        }
    }

    /// The event if it is wanted.
    #[must_use]
    pub fn event(self) -> Option<Entry> {
        match self {
            Self::Event(entry) => Some(entry),
            Self::Passed(..) => None,
        }
    }
}

/// An event, and why it can't be read, if so. Then it has its place and its type alone.
pub type KnownEntry = (Entry, Option<String>);
