//! The stacks of this repository as their users meet them. It is one target, so that tests that wait for functions or
//! for a browser run beside each other.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

mod binaries;
mod console;
mod newcomer;

use std::path::{Path, PathBuf};

use ringfence_local::{
    stack::{RunningStack, StackOptions},
    template::Template,
    workspace_root,
};

/// The folder of the shop.
const SHOP: &str = "";
/// The folder of projects.
const PROJECTS: &str = "projects";

/// A stack of the template in this folder, with its files in `data`.
async fn start(folder: &str, data: &Path, keep: Option<PathBuf>) -> RunningStack {
    let (root, data) = (workspace_root().join(folder), data.to_owned());
    let template = Template::load(&root.join("template.yaml")).unwrap();
    RunningStack::start(&StackOptions { root, template, data, port: 0, keep }).await.unwrap()
}

/// A folder for the files of a stack. It is where the binaries are, so that stacks link them: a copy for each stack would
/// take gigabytes.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}
