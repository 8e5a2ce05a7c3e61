//! The whole stack on one machine, provisioned from `template.yaml`: an embedded DynamoDB with
//! streams, the real function binaries behind a Lambda runtime API, the template's routes, event
//! source mappings, bus, rules, queues and buckets. No AWS account, no Docker, no Java.
//!
//! What is started here is what the template says; what is not understood is an error that names
//! the resource and the property, never a guess.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

use std::env;
use std::path::{Path, PathBuf};

pub mod api;
pub mod bridge;
pub mod buckets;
pub mod bus;
mod clock;
mod cloudformation;
pub mod destinations;
pub mod embedded;
pub mod engine;
pub mod environment;
pub mod functions;
pub mod invoke;
pub mod node;
pub mod notices;
pub mod pattern;
mod port;
pub mod queues;
mod run;
pub mod s3;
mod sam;
pub mod services;
pub mod stack;
pub mod stream;
pub mod template;
pub mod tools;

pub use run::run;

/// The folder of the stack: the nearest one, from the package under way or the working directory
/// upwards, that has a `template.yaml`; the working directory if there is none.
#[must_use]
pub fn workspace_root() -> PathBuf {
    let here = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = here.or_else(|| env::current_dir().ok()).unwrap_or_default();
    let is_it = |folder: &&Path| folder.join("template.yaml").exists();
    here.ancestors().find(is_it).unwrap_or(&here).to_owned()
}
