//! What differs between two shapes, and for whom.
//!
//! A difference is told from the side of the values. It breaks what is stored if there is a value of the old shape that
//! the new one does not take. It wants readers first if there is a value of the new shape that a reader of the old one
//! can't read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::admits::Extra;
use crate::{Member, Shape};

/// A difference between an old shape and a new one.
#[derive(Clone, Debug, PartialEq)]
pub struct ShapeDifference {
    /// Where in a value: a JSON pointer, with `*` for each item of a list and each member of a map, and with `[name]`
    /// for one of several objects.
    pub place: String,
    /// What differs there.
    pub kind: DifferenceKind,
}

/// What differs at a place.
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
    /// A member is gone, and a required one of the same shape is new beside it.
    Renamed {
        /// The name of the new one.
        to: String,
    },
    /// A member that could be absent may not any more.
    MadeRequired,
    /// A member may be absent.
    MadeOptional,
    /// What is there is of another kind.
    Replaced {
        /// What it was, in words.
        from: String,
        /// What it is, in words.
        to: String,
    },
    /// Some values are not taken any more. In words: which.
    Narrowed(String),
    /// Values are taken that were not. In words: which.
    Widened(String),
}

impl ShapeDifference {
    /// Whether there is a value of the old shape that a reader of the new one can't read.
    #[must_use]
    pub fn breaks_readers(&self) -> bool {
        self.breaks(Extra::PassedOver)
    }

    /// Whether there is a value of the old shape that the new one, which takes no member that it does not have, refuses.
    #[must_use]
    pub fn breaks_callers(&self) -> bool {
        self.breaks(Extra::Refused)
    }

    fn breaks(&self, extra: Extra) -> bool {
        use DifferenceKind as Kind;
        match &self.kind {
            Kind::Added { is_optional } => !is_optional,
            Kind::Removed { .. } => extra == Extra::Refused,
            Kind::Renamed { .. }
            | Kind::MadeRequired
            | Kind::Replaced { .. }
            | Kind::Narrowed(_) => true,
            Kind::MadeOptional | Kind::Widened(_) => false,
        }
    }

    /// Whether there is a value of the new shape that a reader of the old one can't read.
    #[must_use]
    pub fn wants_readers_first(&self) -> bool {
        use DifferenceKind as Kind;
        match &self.kind {
            Kind::Added { .. } | Kind::MadeRequired | Kind::Narrowed(_) => false,
            Kind::Removed { was_optional } => !was_optional,
            Kind::Renamed { .. }
            | Kind::MadeOptional
            | Kind::Replaced { .. }
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
            Kind::Narrowed(how) | Kind::Widened(how) => write!(f, "{place} {how}"),
        }
    }
}

impl Shape {
    /// What differs between this shape, which is the old one, and a new one.
    #[must_use]
    pub fn differences(&self, new: &Self) -> Vec<ShapeDifference> {
        let mut found = Found(Vec::new());
        found.compare(self, new, "");
        found.0
    }

    /// The shape that takes the values of both this shape, which is the old one, and a new one. No difference between
    /// them may break readers. A member that is gone stays as an optional one.
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
            (Self::Map(old), Self::Map(new)) => Self::Map(Box::new(old.grown(new))),
            (Self::Nullable(old), Self::Nullable(new)) => Self::Nullable(Box::new(old.grown(new))),
            (old, Self::Nullable(new)) => Self::Nullable(Box::new(old.grown(new))),
            (_, new) => new.clone(),
        }
    }
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

struct Found(Vec<ShapeDifference>);

impl Found {
    fn add(&mut self, place: &str, kind: DifferenceKind) {
        self.0.push(ShapeDifference { place: place.to_owned(), kind });
    }

    fn narrowed(&mut self, place: &str, how: impl Into<String>) {
        self.add(place, DifferenceKind::Narrowed(how.into()));
    }

    fn widened(&mut self, place: &str, how: impl Into<String>) {
        self.add(place, DifferenceKind::Widened(how.into()));
    }

    fn compare(&mut self, old: &Shape, new: &Shape, place: &str) {
        match (old, new) {
            (old, new) if old == new || (takes_anything(old) && takes_anything(new)) => {}
            (_, Shape::Any) => self.widened(place, "can be anything"),
            (Shape::Any, _) => {
                self.narrowed(place, format!("is {}, and was anything", new.words()));
            }
            (Shape::Nullable(old), Shape::Nullable(new)) => self.compare(old, new, place),
            (Shape::Null, Shape::Nullable(new)) => {
                self.widened(place, format!("can be {}", new.words()));
            }
            (Shape::Nullable(_), Shape::Null) => self.narrowed(place, "can only be null"),
            (old, Shape::Nullable(new)) => {
                self.widened(place, "can be null");
                self.compare(old, new, place);
            }
            (Shape::Nullable(old), new) => {
                self.narrowed(place, "can't be null any more");
                self.compare(old, new, place);
            }
            (Shape::Whole { min, max }, Shape::Whole { min: new_min, max: new_max }) => {
                let (old, new) = (i128::from(*min), i128::from(*new_min));
                self.bound(place, old < new, old > new, &format!("from {new_min} on"));
                self.bound(place, max > new_max, max < new_max, &format!("up to {new_max}"));
            }
            (Shape::Whole { .. }, Shape::Number) => self.widened(place, "can be a fraction"),
            (Shape::Number, Shape::Whole { .. }) => {
                self.narrowed(place, "can't be a fraction any more");
            }
            (Shape::Text { min, max }, Shape::Text { min: new_min, max: new_max }) => {
                self.length(place, (*min, *max), (*new_min, *new_max), "bytes");
            }
            (Shape::Choice(names), Shape::Text { .. }) => {
                let text = |name: &String| new.admits(&name.as_str().into()).is_ok();
                let words = new.words();
                match names.iter().all(text) {
                    true => self.widened(place, format!("is {words}")),
                    false => self.narrowed(place, format!("is {words}")),
                }
            }
            (Shape::Text { .. }, Shape::Choice(_)) => {
                self.narrowed(place, format!("is {}", new.words()));
            }
            (
                Shape::List { item, min, max },
                Shape::List { item: new_item, min: new_min, max: new_max },
            ) => {
                self.length(place, (*min, *max), (*new_min, *new_max), "items");
                self.compare(item, new_item, &format!("{place}/*"));
            }
            (Shape::Map(old), Shape::Map(new)) => self.compare(old, new, &format!("{place}/*")),
            (Shape::Object(old), Shape::Object(new)) => self.members(old, new, place),
            (
                Shape::OneOf { tag: Some(tag), members },
                Shape::OneOf { tag: Some(new_tag), members: new },
            ) if tag == new_tag => {
                self.cases(members, new, place, |name| format!("{place}[{name}]"));
            }
            (old, new) => match (untagged(old), untagged(new)) {
                (Some(old), Some(new)) => {
                    self.cases(&old, &new, place, |name| format!("{place}/{name}"));
                }
                _ => {
                    let (from, to) = (old.words(), new.words());
                    self.add(place, DifferenceKind::Replaced { from, to });
                }
            },
        }
    }

    fn cases(
        &mut self,
        old: &BTreeMap<String, Shape>,
        new: &BTreeMap<String, Shape>,
        place: &str,
        at: impl Fn(&str) -> String,
    ) {
        for name in old.keys().filter(|name| !new.contains_key(*name)) {
            self.narrowed(place, format!("lacks {name}, which it could be"));
        }
        for name in new.keys().filter(|name| !old.contains_key(*name)) {
            self.widened(place, format!("can be {name}, which is new"));
        }
        for (name, old) in old {
            match new.get(name) {
                // A name alone is a text.
                Some(new) if (*old == Shape::Null) != (*new == Shape::Null) => {
                    let (from, to) = (old.words(), new.words());
                    self.add(&at(name), DifferenceKind::Replaced { from, to });
                }
                Some(new) => self.compare(old, new, &at(name)),
                None => {}
            }
        }
    }

    fn bound(&mut self, place: &str, is_narrower: bool, is_wider: bool, bound: &str) {
        if is_narrower {
            self.narrowed(place, format!("takes only {bound}"));
        } else if is_wider {
            self.widened(place, format!("takes {bound}"));
        }
    }

    fn length(
        &mut self,
        place: &str,
        (old_min, old_max): (u64, Option<u64>),
        (min, max): (u64, Option<u64>),
        of: &str,
    ) {
        let least = format!("from {min} {of} on");
        self.bound(place, old_min < min, old_min > min, &least);
        let most = |max: Option<u64>| max.unwrap_or(u64::MAX);
        let (is_narrower, is_wider) = (most(old_max) > most(max), most(old_max) < most(max));
        let bound = max
            .map_or_else(|| format!("up to any number of {of}"), |max| format!("up to {max} {of}"));
        self.bound(place, is_narrower, is_wider, &bound);
    }

    fn members(
        &mut self,
        old: &BTreeMap<String, Member>,
        new: &BTreeMap<String, Member>,
        place: &str,
    ) {
        let at = |name: &str| format!("{place}/{name}");
        let is_gone = |name: &&String| !new.contains_key(*name);
        let is_new = |name: &&String| !old.contains_key(*name);
        let gone: Vec<&String> = old.keys().filter(is_gone).collect();
        let mut added: Vec<&String> = new.keys().filter(is_new).collect();
        for name in &gone {
            let (was, is_like) = (&old[*name], |other: &&&String| old[**other] == old[*name]);
            let renamed: Vec<_> = added.iter().copied().filter(|to| new[*to] == *was).collect();
            // With several of the same shape nobody can say which became which.
            let kind = match (&renamed[..], gone.iter().filter(is_like).count()) {
                ([to], 1) if !was.is_optional => {
                    added.retain(|name| name != to);
                    DifferenceKind::Renamed { to: (*to).clone() }
                }
                _ => DifferenceKind::Removed { was_optional: was.is_optional },
            };
            self.add(&at(name), kind);
        }
        for name in added {
            self.add(&at(name), DifferenceKind::Added { is_optional: new[name].is_optional });
        }
        for (name, Member { is_optional, shape }) in old {
            let Some(now) = new.get(name) else { continue };
            match (is_optional, now.is_optional) {
                (true, false) => self.add(&at(name), DifferenceKind::MadeRequired),
                (false, true) => self.add(&at(name), DifferenceKind::MadeOptional),
                (true, true) | (false, false) => {}
            }
            self.compare(shape, &now.shape, &at(name));
        }
    }
}

fn takes_anything(shape: &Shape) -> bool {
    match shape {
        Shape::Any => true,
        Shape::Nullable(shape) => takes_anything(shape),
        _ => false,
    }
}

/// What the shape can be, by name, if that is one name, or an object of one member of that name.
fn untagged(shape: &Shape) -> Option<BTreeMap<String, Shape>> {
    match shape {
        Shape::Choice(names) => {
            Some(names.iter().map(|name| (name.clone(), Shape::Null)).collect())
        }
        Shape::OneOf { tag: None, members } => Some(members.clone()),
        _ => None,
    }
}
