//! The whole stack on one machine, made from `template.yaml`: an embedded DynamoDB with streams, the real
//! function binaries under a Lambda runtime API, the template's routes, event source mappings, bus, rules,
//! schedules, queues and buckets. It needs no AWS account, no Docker and no Java.
//!
//! The template says what is started. Anything in it that is not understood is an error that names the
//! resource and the property; nothing is guessed.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

use std::path::{Path, PathBuf};
use std::{env, fs};

pub mod api;
pub mod bridge;
pub mod buckets;
pub mod bus;
mod clock;
mod cloudformation;
mod delivery;
pub mod destinations;
pub mod embedded;
pub mod engine;
pub mod environment;
mod forward;
pub mod functions;
mod guard;
pub mod invoke;
mod kept;
pub mod node;
pub mod notices;
pub mod pattern;
mod port;
pub mod programs;
pub mod queues;
mod run;
mod runtime;
pub mod s3;
mod sam;
pub mod schedule;
pub mod services;
pub mod stack;
pub mod stream;
pub mod template;
pub mod walker;

pub use run::{Console, run};

/// The folder of the stack: the nearest folder with a `template.yaml`, from the current package or the
/// working directory upwards. If there is none, the working directory.
#[must_use]
pub fn stack_root() -> PathBuf {
    let here = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = here.or_else(|| env::current_dir().ok()).unwrap_or_default();
    nearest(&here, |folder| folder.join("template.yaml").exists())
}

/// The folder of cargo's workspace, which may have several stacks: the nearest one from the stack's folder upwards
/// whose manifest says so. If there is none, the stack's folder.
#[must_use]
pub fn workspace_root() -> PathBuf {
    let is_workspace = |manifest: String| manifest.lines().any(|line| line == "[workspace]");
    let manifest = |folder: &Path| fs::read_to_string(folder.join("Cargo.toml"));
    nearest(&stack_root(), |folder| manifest(folder).is_ok_and(is_workspace))
}

/// The nearest folder of which this holds, from `here` upwards. If there is none, `here`.
fn nearest(here: &Path, is_it: impl Fn(&Path) -> bool) -> PathBuf {
    here.ancestors().find(|folder| is_it(folder)).unwrap_or(here).to_owned()
}
