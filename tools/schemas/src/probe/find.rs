//! The shape of a place, of what is asked for there, and of what is taken there.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::place::{Asked, Place, Step};
use super::why::{Buffered, duplicate, fields, missing, variants};
use crate::{Member, Shape};

/// How deep shapes are looked for; what lies deeper is [`Shape::Any`].
const LEVELS_MAX: usize = 12;
/// The longest text that is tried, in bytes: an item holds less. The longest list, in elements: each try makes them all.
const TEXT_MAX: usize = 1 << 19;
const LIST_MAX: usize = 1 << 13;
/// What no variant and no member is called.
const NO_NAME: &str = "_";
/// Numbers of which a type takes one, if it does not take its least or largest.
const NUMBERS: [i64; 12] = [1, 0, -1, 2, 5, 10, 18, 50, 100, 1_000, 2_000, 1_000_000];
/// Texts of which a type takes one, if it does not take letters.
const TEXTS: [&str; 12] = [
    "1",
    "0.5",
    "true",
    "#000000",
    "2024-06-23",
    "12:00:00",
    "2024-06-23T00:00:00Z",
    "00000000-0000-4000-8000-000000000000",
    "a@example.com",
    "https://example.com",
    "127.0.0.1",
    "EUR",
];

/// The shape of a place.
pub(super) fn shape(place: &dyn Place) -> Shape {
    Search { open: Vec::new() }.find(place).shape
}

/// A shape, and a value of it that is taken.
struct Found {
    shape: Shape,
    sample: Option<Value>,
}

impl Found {
    fn new(shape: Shape, sample: impl Into<Option<Value>>) -> Self {
        Self { shape, sample: sample.into() }
    }
}

struct Search {
    /// What is asked for around the place: a type that is in itself is not followed.
    open: Vec<Asked>,
}

impl Search {
    fn find(&mut self, place: &dyn Place) -> Found {
        let asked = place.asks().unwrap_or(Asked::Any);
        let takes_null = place.takes(&Value::Null).is_ok();
        let is_named = matches!(asked, Asked::Object(..) | Asked::OneOf(..));
        if self.open.len() == LEVELS_MAX || is_named && self.open.contains(&asked) {
            return Found::new(Shape::Any, takes_null.then_some(Value::Null));
        }
        self.open.push(asked.clone());
        let Found { shape, sample } = match asked {
            Asked::Any => self.by_errors(place),
            Asked::Unit => Found::new(Shape::Null, Value::Null),
            Asked::Truth => Found::new(Shape::Truth, json!(true)),
            Asked::Whole { min, max } => whole(place, min, max),
            Asked::Number => {
                let mut numbers = NUMBERS.into_iter().map(Value::from);
                Found::new(Shape::Number, numbers.find(|number| place.takes(number).is_ok()))
            }
            Asked::Character => Found::new(Shape::Text { min: 1, max: Some(1) }, json!("a")),
            Asked::Text => text(place),
            Asked::List => self.list(place),
            Asked::Tuple(length) => self.tuple(place, length),
            Asked::Map => self.map(place),
            Asked::Object(_, names) => self.object(place, names),
            Asked::OneOf(_, names) => self.one_of(place, names),
        };
        self.open.pop();
        match shape {
            shape @ (Shape::Any | Shape::Null) => Found { shape, sample },
            shape if takes_null => {
                Found::new(Shape::Nullable(Box::new(shape)), sample.unwrap_or_default())
            }
            shape => Found { shape, sample },
        }
    }

    fn list(&mut self, place: &dyn Place) -> Found {
        let Found { shape, sample } = self.find(&*place.inside(Step::Element(Vec::new())));
        let of = |length: usize| match (&sample, length) {
            (_, 0) => Some(json!([])),
            (Some(item), _) => Some(vec![item.clone(); length].into()),
            (None, _) => None,
        };
        let takes = |length| of(length).is_some_and(|list| place.takes(&list).is_ok());
        let found = sample.is_some().then(|| list_lengths(takes)).flatten();
        let (min, max) = found.unwrap_or_default();
        let least = usize::try_from(min).unwrap_or_default();
        let sample =
            of(least.max(1)).or_else(|| of(least)).filter(|list| place.takes(list).is_ok());
        Found::new(Shape::List { item: Box::new(shape), min, max }, sample)
    }

    fn tuple(&mut self, place: &dyn Place, length: usize) -> Found {
        let (mut shapes, mut sample) = (Vec::new(), Vec::new());
        while shapes.len() < length && sample.len() == shapes.len() {
            let found = self.find(&*place.inside(Step::Element(sample.clone())));
            shapes.push(found.shape);
            sample.extend(found.sample);
        }
        let is_whole = sample.len() == length;
        shapes.dedup();
        let item = if is_whole && shapes.len() == 1 { shapes.remove(0) } else { Shape::Any };
        let shape =
            Shape::List { item: Box::new(item), min: length as u64, max: Some(length as u64) };
        Found::new(shape, is_whole.then(|| sample.into()))
    }

    fn map(&mut self, place: &dyn Place) -> Found {
        if place.takes(&json!({})).is_err_and(|why| missing(&why).is_some()) {
            return self.by_errors(place);
        }
        let odd = place.takes(&json!({ NO_NAME: null })).err().unwrap_or_default();
        if let Some(names) = variants(&odd) {
            let member = |name: String| {
                let shape = self.find(&*place.inside(Step::Member(name.clone()))).shape;
                (name, Member { is_optional: true, shape })
            };
            return Found::new(Shape::Object(names.into_iter().map(member).collect()), json!({}));
        }
        for key in ["a"].iter().chain(&TEXTS) {
            let inside = place.inside(Step::Member((*key).to_owned()));
            if inside.asks().is_some() {
                let Found { shape, sample } = self.find(&*inside);
                let sample = sample.map_or_else(|| json!({}), |value| json!({ *key: value }));
                return Found::new(Shape::Map(Box::new(shape)), sample);
            }
        }
        Found::new(Shape::Map(Box::new(Shape::Any)), json!({}))
    }

    fn object(&mut self, place: &dyn Place, names: &[&'static str]) -> Found {
        let find = |name: &&'static str| {
            (*name, self.find(&*place.inside(Step::Member((*name).to_owned()))))
        };
        let members = without_aliases(place, names.iter().map(find).collect());
        if let Some((tag, names)) = tag(&members) {
            let found = self.tagged(place, tag, names.to_vec());
            if is_by_tag(&found.shape) {
                return found;
            }
        }
        let whole = samples(&members);
        let takes = |json: &Map<String, Value>| place.takes(&json.clone().into());
        let member = |(name, found): (&str, Found)| {
            let mut without = whole.clone();
            without.remove(name);
            let why = takes(&without).err();
            let is_optional = match why.as_deref().and_then(missing) {
                // No value of the other one is known.
                Some(other) if other != name => matches!(found.shape, Shape::Nullable(_)),
                found => found.is_none(),
            };
            (name.to_owned(), Member { is_optional, shape: found.shape })
        };
        let members: BTreeMap<_, _> = members.into_iter().map(member).collect();
        let mut least = whole.clone();
        least.retain(|name, _| !members[name].is_optional);
        let sample = [whole, least].into_iter().find(|sample| takes(sample).is_ok());
        Found::new(Shape::Object(members), sample.map(Value::Object))
    }

    fn one_of(&mut self, place: &dyn Place, names: Vec<String>) -> Found {
        if names.is_empty() || place.takes(&json!(NO_NAME)).is_ok() {
            return Found::new(Shape::Text { min: 0, max: None }, json!(NO_NAME));
        }
        let (mut members, mut samples) = (BTreeMap::new(), Vec::new());
        for name in &names {
            if place.takes(&json!(name)).is_ok() {
                members.insert(name.clone(), Shape::Null);
                samples.push(json!(name));
            } else {
                let found = self.find(&*place.inside(Step::Member(name.clone())));
                members.insert(name.clone(), found.shape);
                samples.extend(found.sample.map(|value| json!({ name: value })));
            }
        }
        let is_choice = members.values().all(|shape| *shape == Shape::Null);
        let shape =
            if is_choice { Shape::Choice(names) } else { Shape::OneOf { tag: None, members } };
        Found::new(shape, samples.into_iter().next())
    }

    /// A place whose questions are not seen.
    fn by_errors(&mut self, place: &dyn Place) -> Found {
        let why = |json: Value| place.takes(&json).err().unwrap_or_default();
        let empty = why(json!({}));
        let Some(tag) = missing(&empty) else {
            let is_closed = fields(&why(json!({ NO_NAME: null }))).is_some();
            return match is_closed {
                true => self.members(place, Map::new()),
                false => {
                    Found::new(Shape::Any, place.takes(&Value::Null).ok().map(|()| Value::Null))
                }
            };
        };
        let Some(names) = variants(&why(json!({ tag: NO_NAME }))) else {
            return self.members(place, Map::new());
        };
        self.tagged(place, tag, names)
    }

    /// An object whose tag has one of these names.
    fn tagged(&mut self, place: &dyn Place, tag: &str, names: Vec<String>) -> Found {
        let (mut members, mut samples) = (BTreeMap::new(), Vec::new());
        for name in names {
            let tagged = Map::from_iter([(tag.to_owned(), json!(name))]);
            let Found { shape, sample } = self.members(place, tagged);
            members.insert(name, shape);
            samples.extend(sample);
        }
        Found::new(Shape::OneOf { tag: Some(tag.to_owned()), members }, samples.into_iter().next())
    }

    /// An object that has at least these members, with the others that its errors name.
    fn members(&mut self, place: &dyn Place, tagged: Map<String, Value>) -> Found {
        let (mut members, mut sample) = (BTreeMap::new(), tagged.clone());
        let why = |sample: &Map<String, Value>| place.takes(&sample.clone().into()).err();
        let mut find = |name: &str, beside: &Map<String, Value>, is_optional| {
            let Found { shape, sample } = self.find(&Buffered::member(place, beside.clone(), name));
            members.insert(name.to_owned(), Member { is_optional, shape });
            sample
        };
        let mut left = why(&sample);
        while let Some(name) = left.as_deref().and_then(missing).map(str::to_owned) {
            let Some(value) = find(&name, &sample, false) else { break };
            if sample.insert(name, value).is_some() {
                break;
            }
            left = why(&sample);
        }
        let mut odd = sample.clone();
        odd.insert(NO_NAME.to_owned(), Value::Null);
        let known = why(&odd).as_deref().and_then(fields).unwrap_or_default();
        let more = known.into_iter().filter(|name| !sample.contains_key(name)).collect::<Vec<_>>();
        let mut full = sample.clone();
        for name in more {
            let value = find(&name, &sample, true);
            full.extend(value.map(|value| (name, value)));
        }
        let sample = [full, sample].into_iter().find(|sample| why(sample).is_none());
        Found::new(Shape::Object(members), sample.map(Value::Object))
    }
}

/// An object with a sample of each member.
fn samples(members: &[(&'static str, Found)]) -> Map<String, Value> {
    let sample = |(name, found): &(&str, Found)| Some(((*name).to_owned(), found.sample.clone()?));
    members.iter().filter_map(sample).collect()
}

/// The members without those that are other names of one of them, which is written under one name.
fn without_aliases(
    place: &dyn Place,
    mut members: Vec<(&'static str, Found)>,
) -> Vec<(&'static str, Found)> {
    let whole = samples(&members);
    let twice = |json: Map<String, Value>| -> Option<String> {
        let why = place.takes(&json.into()).err()?;
        duplicate(&why).map(str::to_owned)
    };
    if twice(whole.clone()).is_some() {
        let names: Vec<_> = members.iter().map(|(name, _)| *name).collect();
        members.retain(|(alias, _)| {
            let is_of = |name: &&str| {
                let mut both = whole.clone();
                both.retain(|it, _| it == alias || it == name);
                name != alias && twice(both).as_deref() == Some(*name)
            };
            !names.iter().any(is_of)
        });
    }
    members
}

/// The member that may be a tag, with its names: serde asks for an enum with a tag and a content as for an object of
/// these two, and the content is buffered.
fn tag<'m>(members: &'m [(&'static str, Found)]) -> Option<(&'static str, &'m [String])> {
    let [(one, of_one), (other, of_other)] = members else { return None };
    match (&of_one.shape, &of_other.shape) {
        (Shape::Choice(names), Shape::Any) => Some((*one, names)),
        (Shape::Any, Shape::Choice(names)) => Some((*other, names)),
        _ => None,
    }
}

/// Whether the shape of some member depends on the tag.
fn is_by_tag(shape: &Shape) -> bool {
    let Shape::OneOf { members, .. } = shape else { return false };
    let mut all = members.values();
    let first = all.next();
    all.any(|shape| Some(shape) != first)
}

/// A whole number, whose type has these limits at least.
fn whole(place: &dyn Place, min: i64, max: u64) -> Found {
    let (least, most) = (i128::from(min), i128::from(max));
    let json = |n: i128| match (u64::try_from(n), i64::try_from(n)) {
        (Ok(n), _) => Value::from(n),
        (_, Ok(n)) => Value::from(n),
        _ => Value::Null,
    };
    let takes = |n: i128| place.takes(&json(n)).is_ok();
    let tried = NUMBERS
        .into_iter()
        .map(i128::from)
        .filter(|n| (least..=most).contains(n))
        .chain([most, least]);
    let Some(taken) = tried.into_iter().find(|n| takes(*n)) else {
        return Found::new(Shape::Whole { min, max }, None);
    };
    let end = |end: i128| if takes(end) { end } else { last(taken, end, takes) };
    let shape = Shape::Whole {
        min: end(least).try_into().unwrap_or(min),
        max: end(most).try_into().unwrap_or(max),
    };
    Found::new(shape, json(taken))
}

fn text(place: &dyn Place) -> Found {
    let of = |length: usize| json!("a".repeat(length));
    match lengths(TEXT_MAX, |length| place.takes(&of(length)).is_ok()) {
        Some((min, max)) => {
            let least = usize::try_from(min).unwrap_or_default();
            Found::new(Shape::Text { min, max }, of(least.max(1)))
        }
        None => {
            let taken = TEXTS.into_iter().map(Value::from).find(|text| place.takes(text).is_ok());
            Found::new(Shape::Text { min: 0, max: None }, taken)
        }
    }
}

/// The least and the largest length of a list that is taken.
pub(crate) fn list_lengths(takes: impl Fn(usize) -> bool) -> Option<(u64, Option<u64>)> {
    lengths(LIST_MAX, takes)
}

/// The least and the largest length that is taken, up to a power of two above which none is tried.
fn lengths(tried_max: usize, takes: impl Fn(usize) -> bool) -> Option<(u64, Option<u64>)> {
    let doubled = |from: usize| {
        std::iter::successors(Some(from), |n| Some((n * 2).max(1))).take_while(|n| *n <= tried_max)
    };
    let between = |taken: usize, refused: usize| {
        let takes = |n: i128| usize::try_from(n).is_ok_and(&takes);
        usize::try_from(last(taken as i128, refused as i128, takes)).unwrap_or(taken)
    };
    let taken = doubled(0).find(|n| takes(*n))?;
    let min = if taken < 2 { taken } else { between(taken, taken / 2) };
    let refused = doubled(taken).skip(1).find(|n| !takes(*n));
    let max = refused.map(|refused| between(refused / 2, refused) as u64);
    Some((min as u64, max))
}

/// The last number that is taken on the way from one that is to one that is not.
fn last(mut taken: i128, mut refused: i128, takes: impl Fn(i128) -> bool) -> i128 {
    while (taken - refused).abs() > 1 {
        let between = taken + (refused - taken) / 2;
        *(if takes(between) { &mut taken } else { &mut refused }) = between;
    }
    taken
}
