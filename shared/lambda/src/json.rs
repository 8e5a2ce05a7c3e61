//! Reads the JSON of a caller so that nothing is lost. A key that is given twice and a number that can't be
//! kept as it is are refused; `serde_json` would drop a value or round.

use std::fmt::{self, Write as _};

use ringfence_dynamo::LEVELS_MAX;
use ringfence_function::Problem;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Number, Value, value::RawValue};
use serde_path_to_error::{Path, Segment};

use crate::wording::plain;

/// Reads a text of JSON.
pub(crate) fn read(text: &str) -> Result<Value, Problem> {
    Reader::default().value(parse("body", text)?, 1)
}

/// The text of the first member of this name, if the text is an object that has one.
pub(crate) fn member<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let Members(members) = serde_json::from_str(text).ok()?;
    members.into_iter().find_map(|(key, value)| (key == name).then(|| value.get()))
}

/// Reads a value as a `T`. It is the whole body, or what the payload has at `place`.
pub(crate) fn typed<T: DeserializeOwned>(place: &str, json: Value) -> Result<T, Problem> {
    serde_path_to_error::deserialize(json).map_err(|error| {
        let inside = path(error.path());
        let parts = [place, &inside].into_iter().filter(|part| !part.is_empty());
        let path = parts.collect::<Vec<_>>().join(".");
        let (field, message) = plain("body", &path, &error.inner().to_string());
        Problem::malformed(&field, message)
    })
}

/// The path of a field; empty for the whole.
fn path(path: &Path) -> String {
    let mut text = String::new();
    for segment in path {
        let dot = if text.is_empty() { "" } else { "." };
        match segment {
            Segment::Seq { index } => write!(text, "[{index}]"),
            Segment::Map { key } => write!(text, "{dot}{}", named(key)),
            Segment::Enum { variant } => write!(text, "{dot}{variant}"),
            Segment::Unknown => write!(text, "{dot}?"),
        }
        .expect("writing to a String does not fail");
    }
    text
}

/// A key as a path has it. One that is empty is shown as it is written.
fn named(key: &str) -> &str {
    if key.is_empty() { r#""""# } else { key }
}

fn parse<'t, T: Deserialize<'t>>(field: &str, text: &'t str) -> Result<T, Problem> {
    serde_json::from_str(text)
        .map_err(|error| Problem::malformed(field, format_args!("is not JSON: {error}")))
}

/// Reads level by level, so that the recursion is bounded and each number is seen as it was written.
#[derive(Default)]
struct Reader {
    /// The path of the value, such as `items[2].price`; empty for the whole.
    path: String,
}

impl Reader {
    fn value(&mut self, raw: &RawValue, level: usize) -> Result<Value, Problem> {
        let text = raw.get();
        if level > LEVELS_MAX {
            return Err(self.wrong(format_args!("nests deeper than {LEVELS_MAX} levels")));
        }
        match text.as_bytes().first() {
            Some(b'{') => {
                let mut object = Map::new();
                for (name, raw) in parse::<Members>(self.field(), text)?.0 {
                    let dot = if self.path.is_empty() { "" } else { "." };
                    let value = self.inside(&format!("{dot}{}", named(&name)), |reader| {
                        if object.contains_key(&name) {
                            return Err(reader.wrong("is given twice"));
                        }
                        reader.value(raw, level + 1)
                    })?;
                    object.insert(name, value);
                }
                Ok(Value::Object(object))
            }
            Some(b'[') => {
                let items = parse::<Vec<&RawValue>>(self.field(), text)?.into_iter().enumerate();
                let mut read = |(n, raw)| {
                    self.inside(&format!("[{n}]"), |reader| reader.value(raw, level + 1))
                };
                items.map(&mut read).collect::<Result<_, _>>().map(Value::Array)
            }
            Some(b'-' | b'0'..=b'9') => number(text).map(Value::Number).ok_or_else(|| {
                self.wrong(
                    "is a number that can't be kept as it is: a whole number has 64 bits, any \
                     other 15 to 17 digits and at most 1.7e308; send it as a text",
                )
            }),
            _ => parse(self.field(), text),
        }
    }

    /// Reads the value at `step` of the path.
    fn inside<T>(&mut self, step: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let here = self.path.len();
        self.path.push_str(step);
        let value = read(self);
        self.path.truncate(here);
        value
    }

    fn field(&self) -> &str {
        if self.path.is_empty() { "body" } else { &self.path }
    }

    fn wrong(&self, message: impl fmt::Display) -> Problem {
        Problem::malformed(self.field(), message)
    }
}

/// The members of an object, even if several have the same key.
struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;

        impl<'de> Visitor<'de> for All {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(All)
    }
}

/// The number in `text`, unless its value would change.
fn number(text: &str) -> Option<Number> {
    if let Ok(whole) = text.parse::<u64>() {
        return Some(whole.into());
    }
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    let kept = Number::from_f64(text.parse().ok()?)?;
    (digits(text) == digits(&kept.to_string())).then_some(kept)
}

/// The significant digits of a number, and the power of ten of the last one.
fn digits(number: &str) -> (String, i64) {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{}{fraction}", whole.trim_start_matches('-'));
    let significant = all.trim_end_matches('0');
    let dropped = (all.len() - significant.len()) as i64 - fraction.len() as i64;
    let digits = significant.trim_start_matches('0').to_owned();
    // Only zero can get here with an exponent of more than 64 bits.
    let power = exponent.parse::<i64>().unwrap_or(0).saturating_add(dropped);
    if digits.is_empty() { (digits, 0) } else { (digits, power) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Value) {
        assert_eq!(read(text), Ok(expected), "{text}");
    }

    #[track_caller]
    fn refuse(text: &str, expected: &str) {
        let problem = read(text).expect_err(text);
        assert_eq!(problem.status, 400);
        assert!(problem.detail().starts_with(expected), "{text}: {}", problem.detail());
    }

    #[test]
    fn json_is_read_as_it_is() {
        check(
            r#" {"a": [1, {"b": null}, "\u00e9\n", true, false], "": {}, "c": []} "#,
            json!({ "a": [1, { "b": null }, "é\n", true, false], "": {}, "c": [] }),
        );
        check(r#"[{"a": 1}, {"a": 2}]"#, json!([{ "a": 1 }, { "a": 2 }]));
    }

    #[test]
    fn a_key_that_is_given_twice_is_named_at_any_depth() {
        refuse(r#"{"a": 1, "b": 2, "a": 1}"#, "a: is given twice");
        refuse(r#"{"a": [0, {"b": {"c": 1, "c": 2}}]}"#, "a[1].b.c: is given twice");
        refuse(r#"{"": 1, "": 2}"#, r#""": is given twice"#);
        refuse(r#"{"a": {"": [{"": 1, "": 2}]}}"#, r#"a.""[0]."": is given twice"#);
        // The same key, written in two ways.
        refuse(r#"{"a": 1, "\u0061": 2}"#, "a: is given twice");
    }

    #[test]
    fn a_number_is_kept_or_refused() {
        for text in [
            "0",
            "-0",
            "-0.0",
            "0e999999999999999999999",
            "7",
            "18446744073709551615",
            "-9223372036854775808",
            "0.1",
            "0.10",
            "1.0",
            "1e2",
            "1E+2",
            "1.5e-7",
            "-1e22",
            "10000000000000000000000",
            "0.30000000000000004",
            "1.7976931348623157e308",
            "5e-324",
        ] {
            let number = read(text).expect(text);
            assert_eq!(number.as_f64(), text.parse().ok(), "{text}");
        }
        for text in [
            "18446744073709551617",
            "-9223372036854775809",
            "12345678901234567890.5",
            "0.12345678901234567890",
            "1e400",
            "-1e400",
            "1e-400",
            "1e99999999999999999999",
            "3.141592653589793238",
            "9007199254740993.1",
        ] {
            refuse(&format!(r#"{{"a": [{text}]}}"#), "a[0]: is a number that can't be kept");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let nested =
            |levels: usize| format!("{}1{}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        assert!(read(&nested(LEVELS_MAX)).is_ok());
        refuse(&nested(LEVELS_MAX + 1), "[0][0]");
        let problem = read(&nested(100_000)).expect_err("too deep");
        assert!(problem.detail().contains("nests deeper than 30 levels"), "{problem:?}");
    }

    #[test]
    fn text_that_is_not_json_is_refused_with_the_place_of_the_error() {
        refuse("{", "body: is not JSON: EOF while parsing an object at line 1 column 1");
        refuse("{} x", "body: is not JSON: trailing characters at line 1 column 4");
        refuse("", "body: is not JSON: EOF while parsing a value");
        refuse(r#"{"a": "\ud800"}"#, "a: is not JSON: ");
    }
}
