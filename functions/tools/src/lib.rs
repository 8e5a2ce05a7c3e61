//! What a person runs: the command line, the stack on one machine, and the walk through the shop.
//!
//! The programs are functions here, so that what they need of each slice of the stack is compiled once for all of them.

use std::convert::Infallible;
use std::process::ExitCode;

mod walk;

pub use walk::walk;

/// The console of the stack.
pub static CONSOLE: ringfence_local::Console = ringfence_cli::console::<stack::Shop, Infallible>;

/// The program `ringfence`.
#[must_use]
pub fn ringfence() -> ExitCode {
    ringfence_cli::run::<stack::Shop>()
}

/// The program `ringfence-local`.
#[must_use]
pub fn ringfence_local() -> ExitCode {
    ringfence_local::run(walk, CONSOLE)
}
