//! Contradictions between the schemas of a catalog.

use crate::Name;

/// A contradiction in the catalog, found when a function starts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// Two types share a name.
    #[error("event type {name} is declared by {first} and {second}; a type name is unique")]
    DuplicateType {
        /// The name.
        name: Name,
        /// The context that declared it first.
        first: Name,
        /// The other context.
        second: Name,
    },
    /// A key is cross-partition, or read by index items, in one place and not in another.
    #[error(
        "tag key {key} is declared differently in {event_type} and {other}, but a key is cross-partition \
         everywhere or nowhere: write #[tag(cross_partition)] at each or at none, and \
         #[tag(cross_partition, strong)] at each if one event can have several values of it; or give one of \
         them another key: #[tag(key = \"…\")]"
    )]
    ScopeDiffers {
        /// The tag key.
        key: Name,
        /// The type at which it was noticed.
        event_type: Name,
        /// The first type that has the key with the other scope.
        other: Name,
    },
    /// A key that looks like one of the table's marks.
    #[error("tag key {key:?} of {event_type}: a key matches [a-z][A-Za-z0-9]*")]
    InvalidKey {
        /// The tag key.
        key: Name,
        /// The type that carries it.
        event_type: Name,
    },
    /// A type has tags but no partition tag.
    #[error("{0} has tags but no partition tag; mark the field with #[tag(partition)]")]
    NoPartition(Name),
    /// A partition tag that an event may lack or have twice.
    #[error("partition tag {key} of {event_type} is a list or optional; it needs one value")]
    PartitionNotSingle {
        /// The tag key.
        key: Name,
        /// The type that carries it.
        event_type: Name,
    },
    /// A partition tag of a personal value.
    #[error(
        "partition tag {key} of {event_type} is blind, but a partition's name has its value in clear: mark an id \
         #[tag(partition)]"
    )]
    PartitionBlind {
        /// The tag key.
        key: Name,
        /// The type that carries it.
        event_type: Name,
    },
    /// A key is blind in one place and not in another, so equal values have different tags.
    #[error(
        "tag key {key} is blind in one of {event_type} and {other}, and not in the other: mark both fields \
         #[tag(blind)], or give one of them another key"
    )]
    BlindDiffers {
        /// The tag key.
        key: Name,
        /// The type at which it was noticed.
        event_type: Name,
        /// The other type.
        other: Name,
    },
    /// A type on a log of single streams has more than the tag that names its stream.
    #[error(
        "{event_type} is on a log of streams, where an event has one tag: the one that names its stream, marked \
         #[tag(partition)] and nothing else. Mark all other fields #[tag(skip)], and the type with no #[event(…)] that \
         asks for another way to read it; or put its context on the DCB log"
    )]
    NotOfOneStream {
        /// The type.
        event_type: Name,
    },
    /// Contexts that read events of each other, or a context that lists itself.
    #[error(
        "the contexts {} read events of each other, so each needs the catalog of the other first. Make them one \
         context, or let one of them react to events of the other instead of reading them",
        contexts.join(", ")
    )]
    Circle {
        /// Their names. Each reads the next one, and the last is the first again.
        contexts: Vec<&'static str>,
    },
    /// Two types that one fence counts declare different numbers of copies.
    #[error(
        "{event_type} declares {} copies and {other} {}, but one fence counts both: declare the same `copies` at \
         each `fenced` type of the partition. If a cross-partition tag has the key of the partition, give it another",
        copies[0], copies[1]
    )]
    CopiesDiffer {
        /// The type at which it was noticed.
        event_type: Name,
        /// The other type.
        other: Name,
        /// Their numbers.
        copies: [u16; 2],
    },
    /// A type declares a number of copies that its fence can't have.
    #[error("{event_type} declares {copies} copies of its fence: declare 2 to 64, or no `copies`")]
    Copies {
        /// The type.
        event_type: Name,
        /// Their number.
        copies: u16,
    },
    /// A type read as a composite has a tag that an event may lack or have twice.
    #[error("{0} is read as a composite: each of its tags needs exactly one value")]
    CompositeNotSingle(Name),
}
