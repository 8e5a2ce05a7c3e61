//! The place of an event, and why an event can have none.

use std::collections::BTreeSet;

use crate::{BOUNDARY_BYTES_MAX, BoundaryId, Name, Tag};

/// The place of one event, and the boundaries by which it can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filing {
    /// The partition that stores it.
    pub partition: BoundaryId,
    /// Every boundary whose fence counts it.
    pub fences: BTreeSet<BoundaryId>,
    /// Attributes `tag_<key>`: cross-partition keys and their raw values.
    pub indexed: Vec<Tag>,
    /// Boundaries with an index item that copies the event: those of cross-partition tags that can have several values
    /// or are read strongly, and that of its type.
    pub items: BTreeSet<BoundaryId>,
    /// Attribute `tag_composite`.
    pub composite: Option<BoundaryId>,
}

/// Why an event can't be filed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilingError {
    /// The catalog does not declare the type.
    #[error("event type {0} is not in the catalog")]
    UnknownType(String),
    /// The partition tag is missing or empty.
    #[error("{event_type} needs a value for its partition tag {key}")]
    NoPartitionValue {
        /// The event type.
        event_type: Name,
        /// The tag key.
        key: Name,
    },
    /// The event has a tag that its type does not declare.
    #[error(
        "{event_type} has the tag {key}, which the type does not declare: declare a field for it, or leave the tag out"
    )]
    Undeclared {
        /// The event type.
        event_type: Name,
        /// The tag key.
        key: Name,
    },
    /// The event lacks a tag that each event of its type has.
    #[error("{event_type} has no tag {key}, which each event of the type has")]
    Lacks {
        /// The event type.
        event_type: Name,
        /// The tag key.
        key: Name,
    },
    /// A blind tag has a value that no vault has made.
    #[error(
        "the value of {event_type}'s blind tag {key} is not one of a vault: give the log a vault"
    )]
    NotBlind {
        /// The event type.
        event_type: Name,
        /// The tag key.
        key: Name,
    },
    /// A tag that may have only one value in an event has several.
    #[error("{event_type} has several values of the tag {key}, and an event may have only one")]
    SeveralValues {
        /// The event type.
        event_type: Name,
        /// The tag key.
        key: Name,
    },
    /// An event that already has a place, but whose tags or predecessors give another one.
    #[error(
        "event {event} would be {place} by its tags and the events before it; give all events of its \
         partition, as they are"
    )]
    Misplaced {
        /// Its id: partition and slot.
        event: String,
        /// The id that it would have.
        place: String,
    },
    /// A boundary's name is longer than a DynamoDB key.
    #[error("tag {key} makes a boundary of {bytes} bytes, limit {BOUNDARY_BYTES_MAX}")]
    BoundaryTooLong {
        /// The tag keys of the boundary.
        key: String,
        /// Its length after escaping, in bytes.
        bytes: usize,
    },
}

/// Checks the length of the boundary of some of these tags.
pub(crate) fn check_length(boundary: &BoundaryId, tags: &[Tag]) -> Result<(), FilingError> {
    let bytes = boundary.as_str().len();
    if bytes <= BOUNDARY_BYTES_MAX {
        return Ok(());
    }
    let text = boundary.as_str();
    let keys: Vec<&str> = match text.split_once('#') {
        // The name of a stream contains only the value of its one tag.
        Some((context, _)) if !context.contains(':') => tags.iter().map(|tag| &*tag.key).collect(),
        _ => text.split('#').filter_map(|tag| tag.split(':').next()).collect(),
    };
    Err(FilingError::BoundaryTooLong { key: keys.join(" and "), bytes })
}
