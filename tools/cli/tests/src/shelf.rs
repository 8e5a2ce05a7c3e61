//! A stack whose events change, in four builds of one program. The variable `BUILD` says which build a process runs,
//! so one program is linked, and a test deploys it several times.
//!
//! The second build renames a field. The third reads another unit and name of a field, and another name of a type. The
//! fourth writes them.
//!
//! Each build is whole in its file, as programs of different times are, although the files repeat each other.
//! `stack.rs` has the code that no build changes.

use std::collections::BTreeMap;
use std::env;
use std::process::ExitCode;

mod first;
mod fourth;
mod second;
mod third;

/// Runs as a function of a stack, or else as the command line. Other values of `BUILD` fail.
#[must_use]
pub fn run() -> ExitCode {
    let variables: BTreeMap<String, String> = env::vars().collect();
    let variable = |name| variables.get(name).map(String::as_str);
    let function = variable("RINGFENCE_FUNCTION");
    match variable("BUILD") {
        Some("1") => first::run(function),
        Some("2") => second::run(function),
        Some("3") => third::run(function),
        Some("4") => fourth::run(function),
        _ => ExitCode::FAILURE,
    }
}
