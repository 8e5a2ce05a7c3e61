//! Boundaries that differ only in the values of their tags.

use std::collections::BTreeSet;
use std::fmt;

use ringfence_core::{Boundary, BoundaryId, Name, Tag};

/// The common shape of boundaries that differ only in the values of their tags.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BoundaryShape {
    /// In the DCB log: the keys of its tags and their kind (one tag, a partition of several tags, or a set), or the
    /// type.
    Boundary(String),
    /// A stream of this context.
    Stream(String),
}

impl fmt::Display for BoundaryShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boundary(keys) if keys.starts_with('$') || keys == "dcb" => f.write_str(keys),
            Self::Boundary(keys) => write!(f, "{keys}:…"),
            Self::Stream(context) => write!(f, "a stream of {context}"),
        }
    }
}

impl BoundaryShape {
    /// The shape of a boundary of the DCB log; `None` if the text is not the id of a boundary.
    pub fn of(boundary: &BoundaryId) -> Option<Self> {
        let keys = |tags: &[Tag], between: &str| {
            tags.iter().map(|tag| &*tag.key).collect::<Vec<_>>().join(between)
        };
        Some(Self::Boundary(match boundary.decode()? {
            Boundary::Tag(tag) => tag.key.into_owned(),
            Boundary::CompositePartition(tags, _) => keys(&tags, "+"),
            Boundary::Composite(tags) => keys(&tags, "#"),
            Boundary::Tagless | Boundary::EventType(_) => boundary.to_string(),
        }))
    }
}

/// How decisions read the boundaries of a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependence {
    /// The way of the read, in words.
    pub by: String,
    /// The types of the events that they read there.
    pub types: BTreeSet<Name>,
}
