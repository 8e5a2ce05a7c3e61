//! The programs for people: the command line, the stack on one machine, and the walk through the shop.
//!
//! The programs are functions of one library, so the code of each slice is compiled once for all of them.

use std::process::ExitCode;

mod walk;

pub use walk::walk;

/// The console of the stack.
#[must_use]
pub fn console() -> ringfence_local::Console {
    ringfence_console::console::<stack::Shop>(&[])
}

/// The program `ringfence`.
#[must_use]
pub fn ringfence() -> ExitCode {
    ringfence_cli::run::<stack::Shop, ringfence_console::ConsoleCommand>()
}

/// The program `ringfence-local`.
#[must_use]
pub fn ringfence_local() -> ExitCode {
    ringfence_local::run(ringfence_services::program::function::<stack::Shop>, walk, console())
}
