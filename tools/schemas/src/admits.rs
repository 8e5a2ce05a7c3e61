//! Checks a value against a shape.

use regex_lite::Regex;
use ringfence_core::personal::{Form, MARKED, form};
use serde_json::{Map, Value};

use crate::declared::integer;
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

/// How a check treats a member that an object's shape does not have.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Extra {
    /// It is refused, as in a command.
    Refused,
    /// It is passed over, as by a reader of events.
    PassedOver,
}

impl Shape {
    /// Whether the value has exactly this shape.
    ///
    /// # Errors
    /// It does not. The error names the first place that differs.
    pub fn admits(&self, value: &Value) -> Result<(), Mismatch> {
        admits(self, value, Extra::Refused, "")
    }

    /// Whether a reader of this shape can read the value. It passes over members that it does not know.
    ///
    /// # Errors
    /// It can't. The error names the first place that differs.
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
        | (Shape::Boolean, Value::Bool(_)) => Ok(()),
        (Shape::Nullable(shape), value) => admits(shape, value, extra, place),
        (Shape::Personal(shape), value) => match form(value) {
            Form::Sealed | Form::Forgotten => Ok(()),
            Form::Marked => admits(shape, &value[MARKED], extra, place),
            Form::Plain => admits(shape, value, extra, place),
        },
        (Shape::Integer { min, max }, value) if integer(value).is_some() => {
            is(integer(value).is_some_and(|value| (*min..=*max).contains(&value)), &is_not)
        }
        (Shape::Number { min, max }, Value::Number(number)) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            let fits = min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max);
            is(fits, &is_not)
        }
        // A type may count characters. A string has at least as many bytes.
        (Shape::String { min, max, pattern, .. }, Value::String(text)) => {
            let fits = within(text.chars().count(), *min, *max) && matches(pattern, text);
            is(fits, &is_not)
        }
        (Shape::Choice(names), Value::String(text)) => is(names.contains(text), &is_not),
        (Shape::List { item, min, max }, Value::Array(list)) => {
            is(within(list.len(), *min, *max), &is_not)?;
            let mut items = list.iter().enumerate();
            items.try_for_each(|(n, value)| inside(item, value, &n.to_string()))
        }
        (Shape::Tuple(items), Value::Array(list)) => {
            is(list.len() == items.len(), &is_not)?;
            let mut items = items.iter().zip(list).enumerate();
            items.try_for_each(|(n, (item, value))| inside(item, value, &n.to_string()))
        }
        (Shape::Map { keys, value, min, max }, Value::Object(map)) => {
            is(within(map.len(), *min, *max), &is_not)?;
            if let Some(key) = map.keys().find(|key| !matches(keys, key)) {
                is(false, &|| format!("the key `{key}` is not expected"))?;
            }
            map.iter().try_for_each(|(key, inner)| inside(value, inner, key))
        }
        (Shape::AnyOf(shapes), value) => {
            let fits = shapes.iter().any(|shape| admits(shape, value, extra, place).is_ok());
            is(fits, &is_not)
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

fn matches(pattern: &Option<String>, text: &str) -> bool {
    let matches = |pattern: &String| Regex::new(pattern).is_ok_and(|regex| regex.is_match(text));
    pattern.as_ref().is_none_or(matches)
}

fn within(length: usize, min: u64, max: Option<u64>) -> bool {
    let length = length as u64;
    min <= length && max.is_none_or(|max| length <= max)
}

/// A short text for a value.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) if form(value) != Form::Plain => "a personal value".to_owned(),
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
            Self::Boolean => "a boolean".to_owned(),
            Self::Integer { min, max } => format!("an integer from {min} to {max}"),
            Self::Number { min, max } => {
                let bound = |word: &str, bound: &Option<f64>| {
                    bound.map_or_else(String::new, |bound| format!(" {word} {bound}"))
                };
                format!("a number{}{}", bound("from", min), bound("to", max))
            }
            Self::String { min, max, pattern, format } => {
                let length = match between(*min, *max) {
                    length if length.is_empty() => length,
                    length => format!("{length} bytes"),
                };
                let said = |how: &str, of: &Option<String>| {
                    of.as_ref().map_or_else(String::new, |of| format!(" {how} `{of}`"))
                };
                format!(
                    "a string{length}{}{}",
                    said("of the format", format),
                    said("like", pattern)
                )
            }
            Self::Choice(names) => format!("one of {}", listed(names)),
            Self::List { item, min, max } => match between(*min, *max) {
                length if length.is_empty() => format!("a list, each {}", item.words()),
                length => format!("a list{length}, each {}", item.words()),
            },
            Self::Tuple(items) => {
                let items: Vec<_> = items.iter().map(Self::words).collect();
                format!("a list of {}: {}", items.len(), items.join(", "))
            }
            Self::Map { keys, value, min, max } => {
                let count = match between(*min, *max) {
                    count if count.is_empty() => count,
                    count => format!("{count} members"),
                };
                let keys = keys.as_ref();
                let keys = keys
                    .map_or_else(String::new, |keys| format!("keys are like `{keys}` and whose "));
                format!("an object{count} whose {keys}members are each {}", value.words())
            }
            Self::Object(members) => {
                format!("an object of {}", listed(members.keys()))
            }
            Self::OneOf { tag, members } => {
                let names = listed(members.keys());
                match tag {
                    Some(tag) => format!("an object whose `{tag}` is one of {names}"),
                    None => format!("an object with one of {names}"),
                }
            }
            Self::AnyOf(shapes) => {
                let shapes: Vec<_> = shapes.iter().map(Self::words).collect();
                shapes.join(", or ")
            }
            Self::Nullable(shape) => format!("{}, or null", shape.words()),
            Self::Personal(shape) => shape.words(),
        }
    }
}

fn listed<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    names.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}
