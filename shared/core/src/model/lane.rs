//! Lanes: events of one lane are handled one after another.

use crate::{BoundaryId, SequencedEvent};

/// Events of one lane are handled one after another, each after the effects of the one before it. Different lanes are
/// handled concurrently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// The events of a partition, in the order of their slots.
    Partition,
    /// The events that have the same value of the tag with this key, in the order of the index. The order within each
    /// partition is kept. The order between partitions may differ from the events' times.
    Tag(&'static str),
}

impl Lane {
    /// The name of an event's lane. An event without the tag is in the lane of its partition.
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
