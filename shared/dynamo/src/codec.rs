//! JSON to attribute values and back. What DynamoDB would refuse, or store as something else, is
//! refused here, with the path of the field, before any request.

use std::fmt::Write;

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence::{LogError, StoreError};
use serde_json::{Number, Value};

/// A number has at most this many significant digits.
const NUMBER_DIGITS_MAX: usize = 38;
/// The decimal exponents of the first digit that a number other than zero may have.
const NUMBER_EXPONENTS: std::ops::RangeInclusive<i64> = -130..=125;
/// Lists and maps may nest this deep, the value inside counted as a level: two levels less than
/// DynamoDB takes, because a page of the index has each event as a map in a list.
pub const LEVELS_MAX: usize = 30;
/// The name of a field, in bytes.
const NAME_BYTES_MAX: usize = 65_535;

/// A value that DynamoDB cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct CodecError {
    /// The path of the field, such as `items[2].price`.
    pub path: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// Why a value cannot be held.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
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
    /// The bridge to the SDK's types failed.
    #[error("the value cannot be converted: {0}")]
    Conversion(String),
}

impl From<CodecError> for LogError {
    fn from(error: CodecError) -> Self {
        match error.problem {
            Problem::Conversion(_) => {
                StoreError::Failed { operation: "encoding an item", source: error.into() }.into()
            }
            problem => Self::Unstorable { field: error.path, reason: problem.to_string() },
        }
    }
}

/// The attribute that holds `value`; `root` begins the path in an error.
///
/// # Errors
/// A number, a depth or the name of a field that DynamoDB refuses.
pub fn to_attribute(root: &str, value: &Value) -> Result<AttributeValue, CodecError> {
    check(&mut root.to_owned(), value, 1)?;
    serde_dynamo::to_attribute_value(value).map_err(|error| conversion(root, &error))
}

/// The JSON that `attribute` holds; `root` begins the path in an error.
///
/// # Errors
/// An attribute without a JSON form, such as binary.
pub fn from_attribute(root: &str, attribute: AttributeValue) -> Result<Value, CodecError> {
    serde_dynamo::from_attribute_value(attribute).map_err(|error| conversion(root, &error))
}

fn conversion(root: &str, error: &serde_dynamo::Error) -> CodecError {
    CodecError { path: root.to_owned(), problem: Problem::Conversion(error.to_string()) }
}

/// Walks through the value with one path that grows and shrinks, and stops at the limit of depth.
fn check(path: &mut String, value: &Value, level: usize) -> Result<(), CodecError> {
    let refuse = |path: &str, problem| Err(CodecError { path: path.to_owned(), problem });
    if level > LEVELS_MAX {
        return refuse(path, Problem::Depth);
    }
    let here = path.len();
    match value {
        Value::Number(number) => match number_problem(number) {
            Some(problem) => return refuse(path, problem),
            None => return Ok(()),
        },
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                // Writing to a string cannot fail.
                let _ = write!(path, "[{index}]");
                check(path, value, level + 1)?;
                path.truncate(here);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.len() {
                    0 => return refuse(path, Problem::EmptyName),
                    1..=NAME_BYTES_MAX => {}
                    bytes => return refuse(path, Problem::LongName(bytes)),
                }
                path.push('.');
                path.push_str(name);
                check(path, value, level + 1)?;
                path.truncate(here);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
    Ok(())
}

fn number_problem(number: &Number) -> Option<Problem> {
    let text = number.to_string();
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{}{fraction}", whole.trim_start_matches('-'));
    let leading = digits.len() - digits.trim_start_matches('0').len();
    let significant = digits.trim_matches('0').len();
    if significant == 0 {
        return None;
    }
    if significant > NUMBER_DIGITS_MAX {
        return Some(Problem::Digits(significant));
    }
    let whole_digits = digits.len() - fraction.len();
    let shift = i64::try_from(whole_digits).ok()? - 1 - i64::try_from(leading).ok()?;
    let first = exponent.parse::<i64>().ok().and_then(|exponent| exponent.checked_add(shift));
    let first = first.unwrap_or(i64::MAX);
    (!NUMBER_EXPONENTS.contains(&first)).then_some(Problem::Range(first))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problem(value: &Value) -> Option<(String, Problem)> {
        to_attribute("data", value).err().map(|error| (error.path, error.problem))
    }

    fn nested(levels: usize) -> Value {
        (1..levels).fold(json!(1), |inner, _| json!([inner]))
    }

    #[test]
    fn json_is_read_back_as_it_was_written() {
        let value = json!({
            "text": "4-byte 🎈, NUL \u{0}", "empty": "", "null": null, "yes": true,
            "numbers": [0, -1, 1250, 0.5, u64::MAX, i64::MIN, 1e100], "map": {}, "list": [],
        });
        let attribute = to_attribute("data", &value).expect("it fits");
        assert_eq!(from_attribute("data", attribute), Ok(value));
    }

    #[test]
    fn a_number_outside_the_range_names_its_field() {
        let value = json!({ "items": [{ "price": 1 }, { "price": 1e126 }] });
        assert_eq!(problem(&value), Some(("data.items[1].price".into(), Problem::Range(126))));
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
        let check = |bytes: usize, expected: Option<Problem>| {
            let value = json!({ "rows": [{ "x".repeat(bytes): 1 }] });
            let expected = expected.map(|problem| ("data.rows[0]".to_owned(), problem));
            assert_eq!(problem(&value), expected, "{bytes} bytes");
        };
        check(0, Some(Problem::EmptyName));
        check(1, None);
        check(NAME_BYTES_MAX, None);
        check(NAME_BYTES_MAX + 1, Some(Problem::LongName(NAME_BYTES_MAX + 1)));
    }

    #[test]
    fn nesting_stops_at_the_limit() {
        assert_eq!(problem(&nested(LEVELS_MAX)), None);
        let (path, found) = problem(&nested(LEVELS_MAX + 1)).expect("too deep");
        assert_eq!(found, Problem::Depth);
        assert_eq!(path, format!("data{}", "[0]".repeat(LEVELS_MAX)));
    }
}
