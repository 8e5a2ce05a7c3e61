//! Where the stack is.

use std::env;
use std::path::{Path, PathBuf};

/// The folder of the stack: the nearest folder with a `template.yaml`, from the current package or the
/// working directory upwards. If there is none, the working directory.
#[must_use]
pub fn workspace_root() -> PathBuf {
    let here = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = here.or_else(|| env::current_dir().ok()).unwrap_or_default();
    let is_it = |folder: &&Path| folder.join("template.yaml").exists();
    here.ancestors().find(is_it).unwrap_or(&here).to_owned()
}
