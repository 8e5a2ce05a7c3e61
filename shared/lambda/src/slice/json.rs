//! Parses the JSON of a caller, and explains a fault in a problem.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::Problem;
use ringfence_core::json::JsonError;
use serde::de::DeserializeOwned;
use serde_json::{Value, value::RawValue};
use serde_path_to_error::{Path, Segment};

use crate::slice::wording::plain;

/// Parses a text, at most `levels_max` deep.
pub(crate) fn read(text: &str, levels_max: usize) -> Result<Value, Problem> {
    ringfence_core::json::read(text, levels_max).map_err(|JsonError { path, problem }| {
        Problem::malformed(if path.is_empty() { "body" } else { &path }, problem)
    })
}

/// The text of the member of this name, if the text is an object that has one. Other members may be repeated.
pub(crate) fn member<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
    members.get(name).map(|value| value.get())
}

/// Decodes a value as a `T`. It is the whole body, or a part of the payload at `place`.
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

/// A key in a path. An empty one is shown in quotation marks.
fn named(key: &str) -> &str {
    if key.is_empty() { r#""""# } else { key }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_refused_by_its_field() {
        for (text, expected) in [
            ("{", "body: is not JSON: EOF while parsing an object at line 1 column 1"),
            (r#"{"a": {"b": 1, "b": 2}}"#, "a.b: is given twice"),
            (r#"{"a": 1584097275961.1234}"#, "a: is a number that can't be kept"),
            ("\u{feff}{}", "body: begins with a byte order mark"),
            ("[[[1]]]", "[0][0][0]: nests deeper than 3 levels"),
        ] {
            let problem = read(text, 3).expect_err(text);
            assert_eq!(problem.status, 400);
            assert!(problem.detail().starts_with(expected), "{text}: {}", problem.detail());
        }
    }
}
