//! Payloads like a sample, which a log may have too.

use ringfence_core::personal::{Form, OF, SEALED, form};
use serde_json::{Value, json};

use crate::Shape;

/// A payload like a sample, and its difference from the sample, in words. The text is empty for the sample itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Variation {
    pub(crate) how: String,
    pub(crate) data: Value,
}

pub(crate) const A_SEALED_VALUE: &str = "a sealed value";

/// The sample, and variations with one change each: an optional member left out, null in place of a value that can be
/// null, another choice, or a sealed value in place of a personal one.
pub(crate) fn variations(shape: &Shape, sample: &Value) -> Vec<Variation> {
    let mut all = vec![Variation { how: String::new(), data: sample.clone() }];
    let mut set = |place: &str, value: Value| {
        let mut data = sample.clone();
        if let Some(at) = data.pointer_mut(place) {
            let how = match form(&value) {
                Form::Sealed => format!(" with {A_SEALED_VALUE} at {place}"),
                _ => format!(" with {value} at {place}"),
            };
            *at = value;
            all.push(Variation { how, data });
        }
    };
    let mut optional = Vec::new();
    walk(shape, sample, "", &mut |place, shape, value| match (shape, value) {
        (Shape::Nullable(_), value) if !value.is_null() => set(place, Value::Null),
        (Shape::Personal(_), _) => set(place, sealed()),
        (Shape::Choice(names), value) => {
            let others = names.iter().filter(|name| value != name.as_str());
            others.for_each(|name| set(place, name.as_str().into()));
        }
        (Shape::OneOf { tag: None, members }, Value::String(name)) => {
            let is_other = |other: &(&String, &Shape)| other.0 != name && *other.1 == Shape::Null;
            let others = members.iter().filter(is_other);
            others.for_each(|(name, _)| set(place, name.as_str().into()));
        }
        (Shape::Object(members), Value::Object(object)) => {
            let absent = members.iter().filter(|(_, member)| member.is_optional);
            let there = absent.filter(|(name, _)| object.contains_key(*name));
            optional.extend(there.map(|(name, _)| (place.to_owned(), name.clone())));
        }
        _ => {}
    });
    for (pointer, name) in optional {
        let mut data = sample.clone();
        let object = data.pointer_mut(&pointer).and_then(Value::as_object_mut);
        object.map(|object| object.remove(&name));
        all.push(Variation { how: format!(" without {pointer}/{name}"), data });
    }
    all
}

/// A sealed value.
fn sealed() -> Value {
    json!({ SEALED: "", OF: "sample", "k": 1 })
}

impl Shape {
    /// Whether a personal value of a payload is in clear.
    #[must_use]
    pub fn is_in_clear(&self, data: &Value) -> bool {
        let is_there = |place: &String| data.pointer(place).is_some_and(|value| !value.is_null());
        in_clear(self, data).iter().any(is_there)
    }
}

/// Seals each personal value, as it is before a payload is stored.
pub(crate) fn seal(shape: &Shape, data: &mut Value) {
    for place in in_clear(shape, data) {
        data.pointer_mut(&place).into_iter().for_each(|value| *value = sealed());
    }
}

/// The places of the personal values that are in clear.
fn in_clear(shape: &Shape, data: &Value) -> Vec<String> {
    let mut places = Vec::new();
    walk(shape, data, "", &mut |place, shape, value| {
        if matches!(shape, Shape::Personal(_)) && form(value) == Form::Plain {
            places.push(place.to_owned());
        }
    });
    places
}

/// Visits each value within `value` with its shape and its place, a JSON pointer. It passes over values of another
/// shape.
fn walk(shape: &Shape, value: &Value, place: &str, visit: &mut impl FnMut(&str, &Shape, &Value)) {
    visit(place, shape, value);
    let mut step = |shape: &Shape, name: &str, value: &Value| {
        let name = name.replace('~', "~0").replace('/', "~1");
        walk(shape, value, &format!("{place}/{name}"), visit);
    };
    match (shape, value) {
        (Shape::Nullable(shape), value) if !value.is_null() => walk(shape, value, place, visit),
        (Shape::Personal(shape), value) => walk(shape, value, place, visit),
        (Shape::List { item, .. }, Value::Array(list)) => {
            list.iter().enumerate().for_each(|(n, value)| step(item, &n.to_string(), value));
        }
        (Shape::Tuple(items), Value::Array(list)) => {
            let items = items.iter().zip(list).enumerate();
            items.for_each(|(n, (item, value))| step(item, &n.to_string(), value));
        }
        (Shape::AnyOf(shapes), value) => {
            let of = shapes.iter().find(|shape| shape.admits(value).is_ok());
            of.into_iter().for_each(|shape| walk(shape, value, place, visit));
        }
        (Shape::Map { value: shape, .. }, Value::Object(map)) => {
            map.iter().for_each(|(key, value)| step(shape, key, value));
        }
        (Shape::Object(members), Value::Object(object)) => {
            for (name, value) in object {
                members.get(name).into_iter().for_each(|of| step(&of.shape, name, value));
            }
        }
        (Shape::OneOf { tag: Some(tag), members }, value) => {
            let name = value.get(tag).and_then(Value::as_str);
            let rest = name.and_then(|name| members.get(name));
            rest.into_iter().for_each(|rest| walk(rest, value, place, visit));
        }
        (Shape::OneOf { tag: None, members }, Value::Object(object)) => {
            for (name, value) in object {
                members.get(name).into_iter().for_each(|shape| step(shape, name, value));
            }
        }
        _ => {}
    }
}
