//! The JSON that a store can hold, its size there, and the sizes of an event's items, by DynamoDB's rules. A value that
//! DynamoDB would refuse, or change, is refused before any request, with the path of the field.
//!
//! Sources: "Quotas in Amazon DynamoDB" and "DynamoDB item sizes and formats" in the Amazon DynamoDB Developer Guide.

use std::fmt;

use serde_json::Value;

use crate::json::{Digits, kept_number};
use crate::{BoundaryId, Filing, LogError, SequencedEvent, StoreError};

/// A number has at most this many significant digits.
const NUMBER_DIGITS_MAX: usize = 38;
/// The decimal exponents that the first digit of a number other than zero may have.
const NUMBER_EXPONENTS: std::ops::RangeInclusive<i64> = -130..=125;
/// Lists and maps may nest this deep, and the innermost value counts as a level. DynamoDB allows two more, but a page
/// of the index has each event as a map in a list.
pub const LEVELS_MAX: usize = 30;
/// The name of a field, in bytes.
const NAME_BYTES_MAX: usize = 65_535;

/// A list or a map takes this many bytes, empty or not.
pub const CONTAINER_BYTES: usize = 3;
/// Each element of a list and each pair of a map takes this many bytes more.
pub const ELEMENT_BYTES: usize = 1;

/// A value that DynamoDB cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct CodecError {
    /// The path of the field, such as `items[2].price`.
    pub path: String,
    /// The fault.
    pub problem: ValueProblem,
}

/// Why a value can't be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueProblem {
    /// Too many significant digits.
    #[error(
        "the number has {0} significant digits, at most {NUMBER_DIGITS_MAX} are stored; round it"
    )]
    Digits(usize),
    /// Too large or too small.
    #[error(
        "the number is of the order 1E{0}, the limits are 1E-130 and 9.99E+125; send it as text"
    )]
    Range(i64),
    /// Too deep.
    #[error("the value nests deeper than {LEVELS_MAX} levels; nest it less")]
    Depth,
    /// A field of an object has no name.
    #[error("a field in it has an empty name; give it a name")]
    EmptyName,
    /// The name of a field of an object is too long.
    #[error(
        "a field in it has a name of {0} bytes, the limit is {NAME_BYTES_MAX}; use a shorter name"
    )]
    LongName(usize),
    /// An attribute has no JSON form, or the image of a stream record is not an item's.
    #[error("the value cannot be converted: {0}")]
    Conversion(String),
}

impl From<CodecError> for LogError {
    fn from(error: CodecError) -> Self {
        match error.problem {
            ValueProblem::Conversion(_) => {
                StoreError::Failed { operation: "encoding an item", source: error.into() }.into()
            }
            problem => Self::Unstorable { field: error.path, reason: problem.to_string() },
        }
    }
}

/// Checks that `value` can be stored. `root` begins the path in the error.
///
/// # Errors
/// It has a number, a depth or a field name that DynamoDB refuses.
pub fn check(root: &str, value: &Value) -> Result<(), CodecError> {
    walk(&Path::Root(root), value, 1)
}

/// The path of a value. Only errors need its text.
enum Path<'a> {
    Root(&'a str),
    Field(&'a Self, &'a str),
    Index(&'a Self, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(name) => f.write_str(name),
            Self::Field(of, name) => write!(f, "{of}.{name}"),
            Self::Index(of, index) => write!(f, "{of}[{index}]"),
        }
    }
}

/// Walks the value down to the limit of depth.
fn walk(path: &Path<'_>, value: &Value, level: usize) -> Result<(), CodecError> {
    let refuse = |problem| Err(CodecError { path: path.to_string(), problem });
    if level > LEVELS_MAX {
        return refuse(ValueProblem::Depth);
    }
    let number = match value {
        // An integer of 64 bits has at most 20 digits.
        Value::Number(number) => number.is_f64().then(|| number.to_string()),
        value => kept_number(value).map(str::to_owned),
    };
    if let Some(number) = number {
        return number_problem(&number).map_or(Ok(()), refuse);
    }
    match value {
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                walk(&Path::Index(path, index), value, level + 1)?;
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.len() {
                    0 => return refuse(ValueProblem::EmptyName),
                    1..=NAME_BYTES_MAX => {}
                    bytes => return refuse(ValueProblem::LongName(bytes)),
                }
                walk(&Path::Field(path, name), value, level + 1)?;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}

fn number_problem(number: &str) -> Option<ValueProblem> {
    let Digits { significant, power, .. } = Digits::of(number);
    if significant.is_empty() {
        return None;
    }
    if significant.len() > NUMBER_DIGITS_MAX {
        return Some(ValueProblem::Digits(significant.len()));
    }
    let first = power.saturating_add(significant.len() as i64 - 1);
    (!NUMBER_EXPONENTS.contains(&first)).then_some(ValueProblem::Range(first))
}

/// The size of `value` in bytes, without its name.
#[must_use]
pub fn bytes(value: &Value) -> usize {
    if let Some(number) = kept_number(value) {
        return number_bytes(number);
    }
    match value {
        Value::Null | Value::Bool(_) => 1,
        Value::Number(number) => number_bytes(&number.to_string()),
        Value::String(text) => text.len(),
        Value::Array(values) => {
            let elements = values.iter().map(|value| ELEMENT_BYTES + bytes(value));
            CONTAINER_BYTES + elements.sum::<usize>()
        }
        Value::Object(fields) => {
            let pairs =
                fields.iter().map(|(name, value)| ELEMENT_BYTES + name.len() + bytes(value));
            CONTAINER_BYTES + pairs.sum::<usize>()
        }
    }
}

/// The size of a number in bytes: one for each two significant digits, one more, and one for a sign.
#[must_use]
pub fn number_bytes(number: &str) -> usize {
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    // Zeros at the ends carry no information, before the decimal point or after it.
    let digits = mantissa.trim_matches(|c: char| c == '0' || !c.is_ascii_digit());
    let significant = digits.bytes().filter(u8::is_ascii_digit).count();
    significant.div_ceil(2) + 1 + usize::from(number.starts_with('-'))
}

/// The size of an event's item in bytes.
#[must_use]
pub fn event_bytes(event: &SequencedEvent, filing: &Filing) -> usize {
    let indexed = filing.indexed.iter().map(|tag| "tag_".len() + tag.key.len() + tag.value.len());
    let composite = filing.composite.iter().map(|id| "tag_composite".len() + id.as_str().len());
    shared_bytes(event)
        + text("id", event.partition.as_str())
        + number("position", event.slot)
        + text("event", &event.event_type)
        + indexed.chain(composite).sum::<usize>()
}

/// The size in bytes of the index item that repeats an event under a boundary.
#[must_use]
pub fn index_item_bytes(event: &SequencedEvent, boundary: &BoundaryId) -> usize {
    shared_bytes(event)
        + text("id", "tag#")
        + boundary.as_str().len()
        + "position".len()
        + number_bytes(&event.place().index_position())
        + text("indexOf", &event.event_type)
        + text("partition", event.partition.as_str())
        + number("slot", event.slot)
}

/// The common part of an event's item and its index items.
fn shared_bytes(event: &SequencedEvent) -> usize {
    let metadata = event.metadata.iter().map(|(name, value)| name.len() + bytes(value));
    // A list of maps with two strings each.
    let tag = |key: &str, value: &str| 1 + 3 + 1 + text("key", key) + 1 + text("value", value);
    let tags = event.tags.iter().map(|of| tag(&of.key, &of.value));
    let schema =
        if event.version > 1 { 1 + 3 + 1 + number("schema", event.version.into()) } else { 0 };
    let rest = if event.rest > 0 { number("rest", event.rest) } else { 0 };
    text("context", &event.context)
        + "data".len()
        + bytes(&event.data)
        + number("at", event.at)
        + text("appendId", APPEND_ID)
        + "tags".len()
        + 3
        + tags.chain(metadata).sum::<usize>()
        + schema
        + rest
}

/// Any UUID.
const APPEND_ID: &str = "00000000-0000-0000-0000-000000000000";

fn text(name: &str, value: &str) -> usize {
    name.len() + value.len()
}

fn number(name: &str, value: u64) -> usize {
    name.len() + number_bytes(&value.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problem(value: &Value) -> Option<(String, ValueProblem)> {
        check("data", value).err().map(|error| (error.path, error.problem))
    }

    fn nested(levels: usize) -> Value {
        (1..levels).fold(json!(1), |inner, _| json!([inner]))
    }

    #[test]
    fn a_number_outside_the_range_names_its_field() {
        let value = json!({ "items": [{ "price": 1 }, { "price": 1e126 }] });
        assert_eq!(problem(&value), Some(("data.items[1].price".into(), ValueProblem::Range(126))));
        for (number, fits) in [
            (9.99e125, true),
            (1e126, false),
            (-1e126, false),
            (1e-130, true),
            (9e-131, false),
            (0.0, true),
            (1.7e308, false),
            (123_456.789, true),
        ] {
            assert_eq!(problem(&json!(number)).is_none(), fits, "{number}");
        }
    }

    #[test]
    fn a_field_whose_name_can_not_be_stored_is_refused_with_the_path_of_its_object() {
        let check = |bytes: usize, expected: Option<ValueProblem>| {
            let value = json!({ "rows": [{ "x".repeat(bytes): 1 }] });
            let expected = expected.map(|problem| ("data.rows[0]".to_owned(), problem));
            assert_eq!(problem(&value), expected, "{bytes} bytes");
        };
        check(0, Some(ValueProblem::EmptyName));
        check(1, None);
        check(NAME_BYTES_MAX, None);
        check(NAME_BYTES_MAX + 1, Some(ValueProblem::LongName(NAME_BYTES_MAX + 1)));
    }

    #[test]
    fn nesting_stops_at_the_limit() {
        assert_eq!(problem(&nested(LEVELS_MAX)), None);
        let (path, found) = problem(&nested(LEVELS_MAX + 1)).expect("too deep");
        assert_eq!(found, ValueProblem::Depth);
        assert_eq!(path, format!("data{}", "[0]".repeat(LEVELS_MAX)));
    }
}
