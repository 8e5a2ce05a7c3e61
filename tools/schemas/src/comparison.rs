//! The comparison of two shapes, place by place.

use std::collections::BTreeMap;

use crate::{DifferenceKind, Member, Shape, ShapeDifference};

impl Shape {
    /// The differences between this shape, the old one, and a new one.
    #[must_use]
    pub fn differences(&self, new: &Self) -> Vec<ShapeDifference> {
        let mut found = Found(Vec::new());
        found.compare(self, new, "");
        found.0
    }
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
            (Shape::Personal(old), Shape::Personal(new)) => self.compare(old, new, place),
            (Shape::Personal(old), new) => {
                self.add(place, DifferenceKind::Personal { is_now: false });
                self.compare(old, new, place);
            }
            (old, Shape::Personal(new)) => {
                self.add(place, DifferenceKind::Personal { is_now: true });
                self.compare(old, new, place);
            }
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
            (Shape::Integer { min, max }, Shape::Integer { min: new_min, max: new_max }) => {
                self.bound(place, min < new_min, min > new_min, &format!("from {new_min} on"));
                self.bound(place, max > new_max, max < new_max, &format!("up to {new_max}"));
            }
            (Shape::Number { min, max }, Shape::Number { min: new_min, max: new_max }) => {
                self.bounds(place, (*min, *max), (*new_min, *new_max));
            }
            (Shape::Integer { min, max }, Shape::Number { min: new_min, max: new_max }) => {
                self.widened(place, "can be a fraction");
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "limits of fractions are fractions"
                )]
                self.bounds(place, (Some(*min as f64), Some(*max as f64)), (*new_min, *new_max));
            }
            (Shape::Number { .. }, Shape::Integer { .. }) => {
                self.narrowed(place, "can't be a fraction any more");
            }
            (
                Shape::String { min, max, pattern, format },
                Shape::String {
                    min: new_min,
                    max: new_max,
                    pattern: new_pattern,
                    format: new_format,
                },
            ) => {
                self.length(place, (*min, *max), (*new_min, *new_max), "bytes");
                self.form(place, "the pattern", pattern, new_pattern);
                self.form(place, "the format", format, new_format);
            }
            (Shape::Choice(names), Shape::String { .. }) => {
                let text = |name: &String| new.admits(&name.as_str().into()).is_ok();
                let words = new.words();
                match names.iter().all(text) {
                    true => self.widened(place, format!("is {words}")),
                    false => self.narrowed(place, format!("is {words}")),
                }
            }
            (Shape::String { .. }, Shape::Choice(_)) => {
                self.narrowed(place, format!("is {}", new.words()));
            }
            (
                Shape::List { item, min, max },
                Shape::List { item: new_item, min: new_min, max: new_max },
            ) => {
                self.length(place, (*min, *max), (*new_min, *new_max), "items");
                self.compare(item, new_item, &format!("{place}/*"));
            }
            (Shape::Tuple(old), Shape::Tuple(new)) if old.len() == new.len() => {
                for (n, (old, new)) in old.iter().zip(new).enumerate() {
                    self.compare(old, new, &format!("{place}/{n}"));
                }
            }
            (
                Shape::Map { keys, value, min, max },
                Shape::Map { keys: new_keys, value: new_value, min: new_min, max: new_max },
            ) => {
                self.length(place, (*min, *max), (*new_min, *new_max), "members");
                self.form(place, "the pattern of keys", keys, new_keys);
                self.compare(value, new_value, &format!("{place}/*"));
            }
            (Shape::AnyOf(_), _) | (_, Shape::AnyOf(_)) => {
                self.alternatives(old.alternatives(), new.alternatives(), place);
            }
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
                // A variant without a value is a string, and one with a value is an object.
                Some(new) if (*old == Shape::Null) != (*new == Shape::Null) => {
                    let (from, to) = (old.words(), new.words());
                    self.add(&at(name), DifferenceKind::Replaced { from, to });
                }
                Some(new) => self.compare(old, new, &at(name)),
                None => {}
            }
        }
    }

    /// For each old shape, one new shape must take all its values. For each new shape, one old shape must read all its
    /// values.
    fn alternatives(&mut self, old: &[Shape], new: &[Shape], place: &str) {
        let is_in = |one: &Shape, other: &Shape, breaks: fn(&ShapeDifference) -> bool| {
            !one.differences(other).iter().any(breaks)
        };
        let mut gone = Vec::new();
        for old in old {
            let taken = new.iter().any(|new| is_in(old, new, ShapeDifference::breaks_callers));
            let read = new.iter().find(|new| is_in(old, new, ShapeDifference::breaks_readers));
            match read {
                _ if taken => {}
                Some(new) => self.compare(old, new, place),
                None => gone.push(old),
            }
        }
        let is_read =
            |new: &Shape| old.iter().any(|old| is_in(new, old, ShapeDifference::breaks_readers));
        let mut added: Vec<_> = new.iter().filter(|new| !is_read(new)).collect();
        // One old shape became the one new shape.
        if let ([was], [is]) = (&gone[..], &added[..]) {
            self.compare(was, is, place);
            gone.clear();
            added.clear();
        }
        for gone in gone {
            self.narrowed(place, format!("can't be {} any more", gone.words()));
        }
        for added in added {
            self.widened(place, format!("can be {}", added.words()));
        }
    }

    fn form(&mut self, place: &str, what: &str, old: &Option<String>, new: &Option<String>) {
        match (old, new) {
            (Some(old), Some(new)) if old != new => {
                let (from, to) = (format!("{what} `{old}`"), format!("{what} `{new}`"));
                self.add(place, DifferenceKind::Reformed { from, to });
            }
            (None, Some(new)) => {
                let (from, to) = ("none".to_owned(), format!("{what} `{new}`"));
                self.add(place, DifferenceKind::Reformed { from, to });
            }
            (Some(old), None) => self.widened(place, format!("need not have {what} `{old}`")),
            (Some(_), Some(_)) | (None, None) => {}
        }
    }

    fn bounds(
        &mut self,
        place: &str,
        (old_min, old_max): (Option<f64>, Option<f64>),
        (min, max): (Option<f64>, Option<f64>),
    ) {
        let least = |min: Option<f64>| min.unwrap_or(f64::NEG_INFINITY);
        let most = |max: Option<f64>| max.unwrap_or(f64::INFINITY);
        let (is_narrower, is_wider) = (least(old_min) < least(min), least(old_min) > least(min));
        let from =
            min.map_or_else(|| "any smaller number".to_owned(), |min| format!("from {min} on"));
        self.bound(place, is_narrower, is_wider, &from);
        let (is_narrower, is_wider) = (most(old_max) > most(max), most(old_max) < most(max));
        let to = max.map_or_else(|| "any larger number".to_owned(), |max| format!("up to {max}"));
        self.bound(place, is_narrower, is_wider, &to);
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
            // With several members of the same shape it is unknown which became which.
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

/// The variants of an enum without a tag, by name. `None` for another shape.
fn untagged(shape: &Shape) -> Option<BTreeMap<String, Shape>> {
    match shape {
        Shape::Choice(names) => {
            Some(names.iter().map(|name| (name.clone(), Shape::Null)).collect())
        }
        Shape::OneOf { tag: None, members } => Some(members.clone()),
        _ => None,
    }
}
