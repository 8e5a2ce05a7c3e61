//! Whether a value has a shape.

use serde_json::{Map, Value};

use crate::{Member, Shape};

/// A value that does not have the shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{why}", if place.is_empty() { String::new() } else { format!("{place}: ") })]
pub struct Mismatch {
    /// Where in the value, as a JSON pointer.
    pub place: String,
    /// What is wrong there.
    pub why: String,
}

/// What is made of a member that an object's shape does not have.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Extra {
    /// It is refused, as in a command.
    Refused,
    /// It is passed over, as by what reads an event.
    PassedOver,
}

impl Shape {
    /// Whether the value has exactly this shape.
    ///
    /// # Errors
    /// It does not. The first place that differs is named.
    pub fn admits(&self, value: &Value) -> Result<(), Mismatch> {
        admits(self, value, Extra::Refused, "")
    }

    /// Whether a reader of this shape can read the value. It passes over members that it does not know.
    ///
    /// # Errors
    /// It can't. The first place that differs is named.
    pub fn reads(&self, value: &Value) -> Result<(), Mismatch> {
        admits(self, value, Extra::PassedOver, "")
    }
}

fn admits(shape: &Shape, value: &Value, extra: Extra, place: &str) -> Result<(), Mismatch> {
    let is = |fits: bool, why: &dyn Fn() -> String| match fits {
        true => Ok(()),
        false => Err(Mismatch { place: place.to_owned(), why: why() }),
    };
    let is_not = || format!("{} is not {}", shown(value), shape.words());
    let inside = |shape, value, step: &str| admits(shape, value, extra, &format!("{place}/{step}"));
    match (shape, value) {
        (Shape::Any, _)
        | (Shape::Null | Shape::Nullable(_), Value::Null)
        | (Shape::Truth, Value::Bool(_)) => Ok(()),
        (Shape::Nullable(shape), value) => admits(shape, value, extra, place),
        (Shape::Whole { min, max }, value) if value.is_i64() || value.is_u64() => {
            let fits = value.as_i64().is_none_or(|value| value >= *min)
                && value.as_u64().is_none_or(|value| value <= *max);
            is(fits, &is_not)
        }
        (Shape::Number, Value::Number(_)) => Ok(()),
        // No text has fewer bytes than characters, and a type may count these.
        (Shape::Text { min, max }, Value::String(text)) => {
            is(within(text.chars().count(), *min, *max), &is_not)
        }
        (Shape::Choice(names), Value::String(text)) => is(names.contains(text), &is_not),
        (Shape::List { item, min, max }, Value::Array(list)) => {
            is(within(list.len(), *min, *max), &is_not)?;
            let mut items = list.iter().enumerate();
            items.try_for_each(|(n, value)| inside(item, value, &n.to_string()))
        }
        (Shape::Map(shape), Value::Object(map)) => {
            map.iter().try_for_each(|(key, value)| inside(shape, value, key))
        }
        (Shape::Object(members), Value::Object(object)) => {
            for (name, Member { is_optional, shape }) in members {
                match object.get(name) {
                    Some(value) => inside(shape, value, name)?,
                    None => is(*is_optional, &|| format!("`{name}` is missing"))?,
                }
            }
            let unknown = object.keys().find(|name| !members.contains_key(*name));
            match unknown.filter(|_| extra == Extra::Refused) {
                Some(name) => is(false, &|| format!("`{name}` is not expected")),
                None => Ok(()),
            }
        }
        (Shape::OneOf { tag: Some(tag), members }, Value::Object(object)) => {
            let name = object.get(tag).and_then(Value::as_str);
            match name.and_then(|name| members.get(name)) {
                Some(rest) => admits(rest, &without(object, tag), extra, place),
                None => is(false, &is_not),
            }
        }
        (Shape::OneOf { tag: None, members }, Value::String(name)) => {
            is(members.get(name) == Some(&Shape::Null), &is_not)
        }
        (Shape::OneOf { tag: None, members }, Value::Object(object)) => {
            let only = object.iter().next().filter(|_| object.len() == 1);
            let of = |name| members.get(name).filter(|shape| **shape != Shape::Null);
            match only.and_then(|(name, value)| Some((of(name)?, name, value))) {
                Some((shape, name, value)) => inside(shape, value, name),
                None => is(false, &is_not),
            }
        }
        _ => is(false, &is_not),
    }
}

fn without(object: &Map<String, Value>, name: &str) -> Value {
    let mut rest = object.clone();
    rest.remove(name);
    Value::Object(rest)
}

fn within(length: usize, min: u64, max: Option<u64>) -> bool {
    let length = length as u64;
    min <= length && max.is_none_or(|max| length <= max)
}

/// A value in few words.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(list) => format!("a list of {}", list.len()),
        scalar => scalar.to_string(),
    }
}

impl Shape {
    /// In words, for messages.
    pub(crate) fn words(&self) -> String {
        let between = |min: u64, max: Option<u64>| match (min, max) {
            (0, None) => String::new(),
            (min, None) => format!(" of at least {min}"),
            (0, Some(max)) => format!(" of at most {max}"),
            (min, Some(max)) => format!(" of {min} to {max}"),
        };
        match self {
            Self::Any => "anything".to_owned(),
            Self::Null => "null".to_owned(),
            Self::Truth => "true or false".to_owned(),
            Self::Whole { min, max } => format!("a whole number from {min} to {max}"),
            Self::Number => "a number".to_owned(),
            Self::Text { min, max } => match between(*min, *max) {
                length if length.is_empty() => "a text".to_owned(),
                length => format!("a text{length} bytes"),
            },
            Self::Choice(names) => format!("one of {}", names.join(", ")),
            Self::List { item, min, max } => match between(*min, *max) {
                length if length.is_empty() => format!("a list, each {}", item.words()),
                length => format!("a list{length}, each {}", item.words()),
            },
            Self::Map(value) => format!("an object whose members are each {}", value.words()),
            Self::Object(members) => {
                let names = members.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                format!("an object of {names}")
            }
            Self::OneOf { tag, members } => {
                let names = members.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                match tag {
                    Some(tag) => format!("an object whose `{tag}` is one of {names}"),
                    None => format!("an object with one of {names}"),
                }
            }
            Self::Nullable(shape) => format!("{}, or null", shape.words()),
        }
    }
}
