//! The messages of failed checks: an error, or two values as JSON with their differences.

use std::error::Error;
use std::fmt::Display;

use serde::Serialize;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::chain;

/// Panics with a description of the step, and the error with its causes.
#[track_caller]
pub fn fail(what: impl Display, error: impl Into<Box<dyn Error>>) -> ! {
    panic!("{what}: {}", chain(&*error.into()))
}

/// Panics unless both have the same JSON. The message begins with `what` and shows both, line by line. A line with
/// `-` was expected and not found; a line with `+` was found and not expected.
#[track_caller]
pub fn assert_same(what: impl Display, expected: &impl Serialize, found: &impl Serialize) {
    if let Some(difference) = difference(expected, found) {
        panic!("{what}\n  - expected\n  + found\n{difference}");
    }
}

/// Both as JSON, line by line; `None` if they are equal. `-` marks lines of the first, `+` lines of the second.
pub(super) fn difference(first: &impl Serialize, second: &impl Serialize) -> Option<String> {
    let json = |value: Result<Value, serde_json::Error>| value.unwrap_or_else(|e| fail("JSON", e));
    let [first, second] = [serde_json::to_value(first), serde_json::to_value(second)].map(json);
    let [old, new] = [&first, &second].map(|value| format!("{value:#}\n"));
    let diff = TextDiff::from_lines(&old, &new);
    let line = |change: similar::Change<&str>| {
        let mark = match change.tag() {
            ChangeTag::Equal => ' ',
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        format!("  {mark} {change}")
    };
    (first != second).then(|| diff.iter_all_changes().map(line).collect())
}
