//! What the tests in `tests/acceptance/tests` share.

use std::collections::BTreeSet;

/// One line for each thing that is missing, by what to write, and one for each that nothing asks for.
pub fn differences<T: Ord>(
    found: &BTreeSet<T>,
    expected: &BTreeSet<T>,
    missing: impl Fn(&T) -> String,
    extra: impl Fn(&T) -> String,
) -> Vec<String> {
    let missing = expected.difference(found).map(missing);
    missing.chain(found.difference(expected).map(extra)).collect()
}

/// Panics with the lines, if there are any.
#[track_caller]
pub fn check_none(lines: &[String]) {
    assert!(lines.is_empty(), "\n{}", lines.join("\n"));
}
