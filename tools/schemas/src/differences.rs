//! The differences between two shapes, and whom they break.
//!
//! Values decide. A difference breaks stored values if the new shape does not take some value of the old one. It wants
//! readers first if a reader of the old shape can't read some value of the new one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::slice;

use crate::admits::Extra;
use crate::{Member, Shape};

/// A difference between an old shape and a new one.
#[derive(Clone, Debug, PartialEq)]
pub struct ShapeDifference {
    /// Where in a value: a JSON pointer, with `*` for each item of a list and each member of a map, and with `[name]`
    /// for one of several objects.
    pub place: String,
    /// The difference there.
    pub kind: DifferenceKind,
}

/// The difference at a place.
#[derive(Clone, Debug, PartialEq)]
pub enum DifferenceKind {
    /// A member is new.
    Added {
        /// Whether it may be absent.
        is_optional: bool,
    },
    /// A member is gone.
    Removed {
        /// Whether it could be absent.
        was_optional: bool,
    },
    /// A member is gone, and a required member of the same shape is new beside it.
    Renamed {
        /// The name of the new member.
        to: String,
    },
    /// A member could be absent, and is required now.
    MadeRequired,
    /// A member may be absent.
    MadeOptional,
    /// The value is of another kind.
    Replaced {
        /// The old kind, in words.
        from: String,
        /// The new kind, in words.
        to: String,
    },
    /// A string has another pattern or format. No program can tell whether the new one takes all strings of the old
    /// one.
    Reformed {
        /// The old one, in words.
        from: String,
        /// The new one, in words.
        to: String,
    },
    /// Some values are not taken any more; in words.
    Narrowed(String),
    /// More values are taken; in words.
    Widened(String),
    /// The value is personal, or not any more. What is stored in clear is read as a personal value.
    Personal {
        /// Whether the new value is personal.
        is_now: bool,
    },
}

impl ShapeDifference {
    /// Whether a reader of the new shape can't read some value of the old one.
    #[must_use]
    pub fn breaks_readers(&self) -> bool {
        self.breaks(Extra::PassedOver)
    }

    /// Whether the new shape refuses some value of the old one. It refuses members that it does not have.
    #[must_use]
    pub fn breaks_callers(&self) -> bool {
        self.breaks(Extra::Refused)
    }

    /// Whether a value becomes personal, or ends to be.
    pub(crate) fn is_of_personal(&self) -> bool {
        matches!(self.kind, DifferenceKind::Personal { .. })
    }

    fn breaks(&self, extra: Extra) -> bool {
        use DifferenceKind as Kind;
        match &self.kind {
            Kind::Added { is_optional } => !is_optional,
            Kind::Removed { .. } => extra == Extra::Refused,
            Kind::Renamed { .. }
            | Kind::MadeRequired
            | Kind::Replaced { .. }
            | Kind::Reformed { .. }
            | Kind::Narrowed(_) => true,
            Kind::MadeOptional | Kind::Widened(_) | Kind::Personal { is_now: true } => false,
            Kind::Personal { is_now: false } => true,
        }
    }

    /// Whether a reader of the old shape can't read some value of the new one.
    #[must_use]
    pub fn wants_readers_first(&self) -> bool {
        use DifferenceKind as Kind;
        match &self.kind {
            Kind::Added { .. } | Kind::MadeRequired | Kind::Narrowed(_) => false,
            Kind::Personal { is_now } => *is_now,
            Kind::Removed { was_optional } => !was_optional,
            Kind::Renamed { .. }
            | Kind::MadeOptional
            | Kind::Replaced { .. }
            | Kind::Reformed { .. }
            | Kind::Widened(_) => true,
        }
    }
}

impl fmt::Display for ShapeDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use DifferenceKind as Kind;
        let place = if self.place.is_empty() { "the whole" } else { &self.place };
        match &self.kind {
            Kind::Added { is_optional: true } => write!(f, "{place} is new and optional"),
            Kind::Added { is_optional: false } => write!(f, "{place} is new and required"),
            Kind::Removed { .. } => write!(f, "{place} is gone"),
            Kind::Renamed { to } => write!(f, "{place} is gone, and `{to}` is new beside it"),
            Kind::MadeRequired => write!(f, "{place} is required, and was optional"),
            Kind::MadeOptional => write!(f, "{place} is optional, and was required"),
            Kind::Replaced { from, to } => write!(f, "{place} is {to}, and was {from}"),
            Kind::Reformed { from, to } => write!(f, "{place} has {to}, and had {from}"),
            Kind::Narrowed(how) | Kind::Widened(how) => write!(f, "{place} {how}"),
            Kind::Personal { is_now: true } => write!(f, "{place} is personal, and was not"),
            Kind::Personal { is_now: false } => write!(f, "{place} is not personal any more"),
        }
    }
}

impl Shape {
    /// The shapes of a [`Shape::AnyOf`]; otherwise the shape alone.
    pub(crate) fn alternatives(&self) -> &[Self] {
        match self {
            Self::AnyOf(shapes) => shapes,
            shape => slice::from_ref(shape),
        }
    }

    /// The shape that takes the values of this shape, the old one, and of a new one. No difference between them may
    /// break readers. A member that is gone becomes optional.
    #[must_use]
    pub fn grown(&self, new: &Self) -> Self {
        match (self, new) {
            (Self::Object(old), Self::Object(new)) => Self::Object(grown_members(old, new)),
            (Self::OneOf { members: old, .. }, Self::OneOf { tag, members: new }) => {
                let mut members = old.clone();
                for (name, shape) in new {
                    let grown = old.get(name).map_or_else(|| shape.clone(), |old| old.grown(shape));
                    members.insert(name.clone(), grown);
                }
                Self::OneOf { tag: tag.clone(), members }
            }
            (Self::List { item: old, .. }, Self::List { item, min, max }) => {
                Self::List { item: Box::new(old.grown(item)), min: *min, max: *max }
            }
            (Self::Tuple(old), Self::Tuple(new)) => {
                Self::Tuple(old.iter().zip(new).map(|(old, new)| old.grown(new)).collect())
            }
            (Self::Map { value: old, .. }, Self::Map { keys, value, min, max }) => {
                let value = Box::new(old.grown(value));
                Self::Map { keys: keys.clone(), value, min: *min, max: *max }
            }
            (Self::Personal(old), Self::Personal(new)) => Self::Personal(Box::new(old.grown(new))),
            (old, Self::Personal(new)) => Self::Personal(Box::new(old.grown(new))),
            (Self::Nullable(old), Self::Nullable(new)) => Self::Nullable(Box::new(old.grown(new))),
            (old, Self::Nullable(new)) => Self::Nullable(Box::new(old.grown(new))),
            (old, Self::AnyOf(new)) => {
                let grown = |new: &Self| old.alternatives().iter().fold(new.clone(), grown_by);
                Self::AnyOf(new.iter().map(grown).collect())
            }
            (Self::AnyOf(old), new) => old.iter().fold(new.clone(), grown_by),
            (_, new) => new.clone(),
        }
    }
}

/// A new shape, grown by an old one if the old one became it.
fn grown_by(new: Shape, old: &Shape) -> Shape {
    let breaks = old.differences(&new).iter().any(ShapeDifference::breaks_readers);
    if breaks { new } else { old.grown(&new) }
}

fn grown_members(
    old: &BTreeMap<String, Member>,
    new: &BTreeMap<String, Member>,
) -> BTreeMap<String, Member> {
    let names: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let grown = |name: &String| match (old.get(name), new.get(name)) {
        (Some(old), Some(new)) => Member {
            is_optional: old.is_optional || new.is_optional,
            shape: old.shape.grown(&new.shape),
        },
        (one, other) => Member {
            is_optional: true,
            shape: one.or(other).map_or(Shape::Any, |member| member.shape.clone()),
        },
    };
    names.into_iter().map(|name| (name.clone(), grown(name))).collect()
}
