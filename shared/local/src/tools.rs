//! The tools of the stack: the build of the functions' binaries, and cargo-lambda.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use tokio::process::Command;

/// The version of cargo-lambda that the stack is written for.
pub const CARGO_LAMBDA_VERSION: &str = "1.9.2";

/// Builds the binaries, all in one call of cargo, which shows its progress. Each binary's file, by its name.
///
/// # Errors
/// Cargo can't be run or the build fails.
pub async fn build(
    root: &Path,
    binaries: impl Iterator<Item = &str>,
) -> Result<BTreeMap<String, PathBuf>> {
    let mut cargo = Command::new("cargo");
    // Cargo says where they are: a person may have set another target folder, or another target.
    cargo.args(["build", "--message-format", "json-render-diagnostics"]);
    cargo.current_dir(root).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    for binary in binaries {
        cargo.args(["--bin", binary]);
    }
    // `output` would take what cargo shows as well.
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

/// What cargo says of a program that is built. Its other messages have no `executable`.
#[derive(Deserialize)]
struct Artifact {
    target: Target,
    executable: PathBuf,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

/// Where programs are kept that stacks of this user fetch once: `XDG_CACHE_HOME`, or `.cache` in the home folder. On a
/// machine without either, it is the stack's own `target/tools`.
fn cache(cache_home: Option<OsString>, home: Option<OsString>, root: &Path) -> PathBuf {
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    let of_home = || home.and_then(absolute).map(|home| home.join(".cache"));
    let cache = cache_home.and_then(absolute).or_else(of_home);
    cache.map_or_else(|| root.join("target/tools"), |cache| cache.join("ringfence"))
}

/// The path of cargo-lambda at its pinned version: the installed one, or else the user's own, which pip fetches the
/// first time that a stack needs it.
///
/// # Errors
/// pip can't fetch it.
pub async fn cargo_lambda(root: &Path) -> Result<PathBuf> {
    let tools = cache(env::var_os("XDG_CACHE_HOME"), env::var_os("HOME"), root);
    let own = tools.join(format!("cargo-lambda-{CARGO_LAMBDA_VERSION}"));
    let program = own.join("bin/cargo-lambda");
    let installed = env::var_os("PATH");
    let installed =
        installed.iter().flat_map(env::split_paths).map(|path| path.join("cargo-lambda"));
    for candidate in installed.chain([program.clone()]).filter(|path| path.is_file()) {
        if is_pinned(&candidate).await {
            return Ok(candidate);
        }
    }
    eprintln!("fetching cargo-lambda {CARGO_LAMBDA_VERSION} into {}", own.display());
    // Several stacks may fetch at once, so it is fetched beside its place and then moved there.
    fs::create_dir_all(&tools).with_context(|| format!("cannot make {}", tools.display()))?;
    let fetched = tempfile::tempdir_in(&tools)
        .with_context(|| format!("cannot make a folder in {}", tools.display()))?;
    let status = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(["--root-user-action", "ignore", "--no-deps", "--target"])
        .arg(fetched.path())
        .arg(format!("cargo-lambda=={CARGO_LAMBDA_VERSION}"))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .status()
        .await
        .context("cannot run python3, whose pip fetches cargo-lambda")?;
    if !status.success() {
        bail!("pip did not install cargo-lambda {CARGO_LAMBDA_VERSION}");
    }
    // If another stack was first, its copy stays and this one is removed.
    if fs::rename(fetched.path(), &own).is_ok() {
        let _ = fetched.keep();
    }
    if !is_pinned(&program).await {
        bail!("{} is not version {CARGO_LAMBDA_VERSION}", program.display());
    }
    Ok(program)
}

async fn is_pinned(program: &Path) -> bool {
    let output = Command::new(program).args(["lambda", "--version"]).output().await;
    let version = format!(" {CARGO_LAMBDA_VERSION} ");
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(&version))
}

#[test]
fn all_stacks_of_a_user_share_what_is_fetched() {
    let cache = |cache_home: Option<&str>, home: Option<&str>| {
        cache(cache_home.map(Into::into), home.map(Into::into), Path::new("/shop"))
    };
    for (cache_home, home, expected) in [
        (Some("/var/cache"), Some("/of-a-user"), "/var/cache/ringfence"),
        (None, Some("/of-a-user"), "/of-a-user/.cache/ringfence"),
        // A relative one says nothing, by the rules for these folders.
        (Some(""), Some("/of-a-user"), "/of-a-user/.cache/ringfence"),
        (None, None, "/shop/target/tools"),
    ] {
        assert_eq!(cache(cache_home, home), Path::new(expected));
    }
}
