//! The ground that every function stands on: how it starts, its variables, its problems and answers, its log, and the
//! letters that it keeps for a person. It knows no slice and no log.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod answer;
mod bounded;
mod config;
mod logs;
mod problem;
#[cfg(feature = "reactions")]
pub mod reactions;
mod start;

pub use answer::http;
pub use bounded::bounded;
pub use config::{ConfigError, VariableNames, Variables};
pub use logs::{LOGGED_BYTES_MAX, chain};
pub use problem::Problem;
pub use start::{main, time_left, until_the_end};
