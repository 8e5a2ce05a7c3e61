//! Lanes: which events are handled one after another.

use crate::{BoundaryId, SequencedEvent};

/// Which events are handled one after another, each after the effects of the one before it. Events of different lanes
/// are handled side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Those of a partition, in the order of their slots.
    Partition,
    /// Those that have the same value of the tag with this key, in the order of the index. That keeps the order within
    /// each partition. Between partitions it need not be the order of the events' times.
    Tag(&'static str),
}

impl Lane {
    /// The lane of an event, by its name. An event without the tag is in the lane of its partition.
    #[must_use]
    pub fn of(self, event: &SequencedEvent) -> BoundaryId {
        let tag = match self {
            Self::Partition => None,
            Self::Tag(key) => event.tags.iter().find(|tag| tag.key == key),
        };
        tag.map_or_else(
            || event.partition.clone(),
            |tag| BoundaryId::tag(&tag.key, tag.value.as_str()),
        )
    }
}
