//! Reports tests that need a program which the machine lacks.

use std::env;
use std::io::{Write, stderr};

/// Reports on standard error that tests are left out on this machine, and why.
///
/// # Panics
/// If the variable `required` is `1`.
pub fn left_out(tests: &str, why: &str, required: &str) {
    let is_required = env::var_os(required).is_some_and(|set| set == "1");
    assert!(!is_required, "{required}=1, but {tests} can't run: {why}");
    // A passing test would swallow the output of a macro.
    let _ = stderr().write_all(format!("LEFT OUT, {tests}: {why}\n").as_bytes());
}
