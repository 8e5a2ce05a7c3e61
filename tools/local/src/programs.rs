//! The build of programs.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use tokio::process::Command;

/// Cargo, without the variables that cargo has set for this process. The build script of ring depends on them: with
/// other values it would run again, and everything that depends on ring would be compiled again.
#[must_use]
pub fn cargo() -> std::process::Command {
    let mut cargo = std::process::Command::new("cargo");
    let of_package =
        |name: &str| name.starts_with("CARGO_MANIFEST_") || name.starts_with("CARGO_PKG_");
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(of_package) {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Builds the binaries in one call of cargo, which shows its progress. Returns each binary's file by its name.
///
/// # Errors
/// Cargo can't be run or the build fails.
pub async fn build(
    root: &Path,
    binaries: impl Iterator<Item = &str>,
) -> Result<BTreeMap<String, PathBuf>> {
    let mut cargo = Command::from(cargo());
    // Only cargo knows the paths, because a person may have configured another target folder or target.
    cargo.args(["build", "--message-format", "json-render-diagnostics"]);
    cargo.current_dir(root).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    for binary in binaries {
        cargo.args(["--bin", binary]);
    }
    // `output` would hide the progress.
    let cargo = cargo.spawn().context("cannot run cargo")?;
    let output = cargo.wait_with_output().await.context("cannot run cargo")?;
    if !output.status.success() {
        bail!("the programs do not build");
    }
    let messages = output.stdout.split(|byte| *byte == b'\n').map(serde_json::from_slice);
    let built = messages.filter_map(|message: Result<Artifact, _>| {
        let Artifact { target: Target { name }, executable } = message.ok()?;
        Some((name, executable))
    });
    Ok(built.collect())
}

/// Cargo's message about a built program. Its other messages have no `executable`.
#[derive(Deserialize)]
struct Artifact {
    target: Target,
    executable: PathBuf,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}
