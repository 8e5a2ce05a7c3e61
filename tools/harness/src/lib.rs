//! Shared tools of the tests in all rooms: the bounds of tests, and programs from npm and pip that the machine may
//! lack.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod left_out;
mod node;
mod pip;

pub use left_out::left_out;
pub use node::{Driver, NodeProgram};
pub use pip::PipProgram;

/// The variable with which `cargo proof` makes tests run to their full bound.
pub const PROOF: &str = "RINGFENCE_PROOF";

/// The bound of a test: `quick` in `cargo test`, `full` in `cargo proof`.
#[must_use]
pub fn bound<T>(quick: T, full: T) -> T {
    if std::env::var_os(PROOF).is_some() { full } else { quick }
}
