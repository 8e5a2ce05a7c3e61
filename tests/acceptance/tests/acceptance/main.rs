//! The stack of the template as its users meet it, and what its commands cost. It is one target, so that tests that wait
//! for functions or for a browser run beside those that compute.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

mod binaries;
mod console;
mod newcomer;
mod projects;

/// A folder for the files of a stack. It is where the binaries are, so that stacks link them: a copy for each stack would
/// take gigabytes.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}
