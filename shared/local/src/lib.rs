//! The whole stack on one machine, provisioned from `template.yaml`: an embedded DynamoDB with
//! streams, the real function binaries behind a Lambda runtime API, the template's routes, event
//! source mappings, bus, rules, queues and buckets. No AWS account, no Docker, no Java.
//!
//! What is started here is what the template says; what is not understood is an error that names
//! the resource and the property, never a guess.

use std::path::{Path, PathBuf};

pub mod api;
pub mod bridge;
pub mod buckets;
pub mod bus;
mod clock;
mod cloudformation;
pub mod demo;
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
pub mod s3;
mod sam;
pub mod services;
pub mod stack;
pub mod stream;
pub mod template;
pub mod tools;

/// The folder of the workspace that this crate was built from.
#[must_use]
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}
