//! A stack whose events change, in three builds of one program. The variable `BUILD` says which of them a process is:
//! so one program is linked, and a test deploys it three times.
//!
//! The second build gives a field another name. The third changes the unit of another field and its name, and the name
//! of a type.

use std::collections::BTreeMap;
use std::env;
use std::process::ExitCode;

mod first;
mod second;
mod third;

/// Runs as a function of a stack, or else as the command line. No other build starts.
#[must_use]
pub fn run() -> ExitCode {
    let variables: BTreeMap<String, String> = env::vars().collect();
    let variable = |name| variables.get(name).map(String::as_str);
    let function = variable("RINGFENCE_FUNCTION");
    match variable("BUILD") {
        Some("1") => first::run(function),
        Some("2") => second::run(function),
        Some("3") => third::run(function),
        _ => ExitCode::FAILURE,
    }
}
