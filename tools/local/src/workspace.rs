//! The folders of the stack and of its workspace.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The folder of the stack: the nearest folder with a `template.yaml`, from the current package or the working
/// directory upwards. If there is none, the working directory.
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

/// The nearest folder that `is_it` accepts, from `here` upwards. If there is none, `here`.
fn nearest(here: &Path, is_it: impl Fn(&Path) -> bool) -> PathBuf {
    here.ancestors().find(|folder| is_it(folder)).unwrap_or(here).to_owned()
}
