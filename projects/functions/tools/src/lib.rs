//! The programs for people: the command line, the stack on one machine, and the walk through a project.
//!
//! The programs are functions of one library, so the code of each slice is compiled once for all of them.

use std::process::ExitCode;

pub mod project;
mod walk;

use stack::SharedProjects;

pub use walk::walk;

/// The console of the stack.
#[must_use]
pub fn console() -> ringfence_local::Console {
    ringfence_console::console::<SharedProjects>(&[project::PAGE])
}

/// The program `projects-ringfence`.
#[must_use]
pub fn ringfence() -> ExitCode {
    ringfence_cli::run::<SharedProjects, project::Own>()
}

/// The program `projects-ringfence-local`.
#[must_use]
pub fn ringfence_local() -> ExitCode {
    ringfence_local::run(ringfence_services::program::function::<SharedProjects>, walk, console())
}
