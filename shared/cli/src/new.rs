//! `ringfence new`, `new-context`, `new-slice` and `new-view`: what is to be written everywhere for a stack, a context,
//! a slice or a view.
//!
//! They change text, so that what a person wrote around it stays. A second run changes nothing: a part that is
//! there is left as it is, and a part that is missing is written.

mod context;
mod edit;
mod names;
mod plan;
mod slice;
mod stack;
mod template;
#[cfg(test)]
mod tests;
mod view;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use self::context::Log;
use self::plan::Plan;
use crate::say;

#[derive(Args)]
pub(crate) struct New {
    /// Its name, in kebab case: the name of its folder, and the beginning of its stacks' names on AWS.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    #[command(flatten)]
    source: stack::Source,
}

#[derive(Args)]
pub(crate) struct NewContext {
    /// Its name, in kebab case: the name of its crate and the first part of its paths.
    name: String,
    /// The log that its events are on.
    #[arg(long, value_enum)]
    log: Log,
    /// Writes although the git tree has changes that are not committed.
    #[arg(long)]
    allow_dirty: bool,
}

#[derive(Args)]
pub(crate) struct NewSlice {
    /// Its context and its name, such as orders/cancel-order.
    #[arg(value_name = "CONTEXT/SLICE")]
    slice: String,
    /// The event that it reacts to, such as carts/CheckedOut.
    #[arg(long, value_name = "CONTEXT/EVENT")]
    on: Option<String>,
    /// Writes although the git tree has changes that are not committed.
    #[arg(long)]
    allow_dirty: bool,
}

#[derive(Args)]
pub(crate) struct NewView {
    /// Its context and its name, such as rooms/bookings.
    #[arg(value_name = "CONTEXT/VIEW")]
    view: String,
    /// An event that it reads, such as rooms/RoomBooked.
    #[arg(long, value_name = "CONTEXT/EVENT")]
    on: String,
    /// Writes although the git tree has changes that are not committed.
    #[arg(long)]
    allow_dirty: bool,
}

/// The folder of the stack that the command is called in.
fn root() -> Result<PathBuf> {
    let here = env::current_dir().context("there is no working directory")?;
    let is_stack = |folder: &&Path| {
        ["template.yaml", "functions/stack/src/lib.rs"]
            .iter()
            .all(|file| folder.join(file).is_file())
    };
    here.ancestors().find(is_stack).map(Path::to_owned).with_context(|| {
        format!(
            "neither {} nor a folder above it is a stack, with template.yaml and functions/stack: change into one",
            here.display()
        )
    })
}

/// Writes a stack into a new folder.
pub(crate) async fn stack(arguments: &New) -> Result<ExitCode> {
    let New { folder, source } = arguments;
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_empty = fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none());
    ensure!(
        !folder.exists() || (folder.is_dir() && is_empty),
        "{} is there already: name a folder that is not there, or an empty one",
        folder.display()
    );
    let mut plan = Plan::new(folder.clone());
    stack::add(&mut plan, name, source)?;
    plan.write(true)?;
    settle_lock(folder);
    say!("");
    say!("Next: `cd {}`, and `cargo test` or `cargo local`.", folder.display());
    if let Some(target) = source.target()? {
        say!("");
        say!(
            "With CARGO_TARGET_DIR={} in the environment, cargo uses the dependencies that are built there.",
            target.display()
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds a context.
pub(crate) async fn context(arguments: &NewContext) -> Result<ExitCode> {
    let NewContext { name, log, allow_dirty } = arguments;
    let mut plan = Plan::new(root()?);
    context::add(&mut plan, name, *log)?;
    write(plan, *allow_dirty)?;
    say!("");
    say!("Next: `cargo ringfence new-slice {name}/<slice>`.");
    Ok(ExitCode::SUCCESS)
}

/// Adds a slice.
pub(crate) async fn slice(arguments: &NewSlice) -> Result<ExitCode> {
    let NewSlice { slice, on, allow_dirty } = arguments;
    let form = || format!("{slice} is not <context>/<slice>, such as orders/cancel-order");
    let (context, name) = slice.split_once('/').with_context(form)?;
    let mut plan = Plan::new(root()?);
    slice::add(&mut plan, context, name, on.as_deref())?;
    write(plan, *allow_dirty)?;
    let file = format!("functions/{context}/src/{}.rs", names::snake(name));
    say!("");
    say!("Next: write its rules and their cases in {file}, and run `cargo test`.");
    Ok(ExitCode::SUCCESS)
}

/// Adds a view.
pub(crate) async fn view(arguments: &NewView) -> Result<ExitCode> {
    let NewView { view, on, allow_dirty } = arguments;
    let form = || format!("{view} is not <context>/<view>, such as rooms/bookings");
    let (context, name) = view.split_once('/').with_context(form)?;
    let mut plan = Plan::new(root()?);
    view::add(&mut plan, context, name, on)?;
    write(plan, *allow_dirty)?;
    let file = format!("functions/{context}/src/views/{}.rs", names::snake(name));
    say!("");
    say!("Next: write its rows and their test in {file}, and run `cargo test`.");
    Ok(ExitCode::SUCCESS)
}

fn write(plan: Plan, allow_dirty: bool) -> Result<()> {
    let root = plan.root().to_owned();
    plan.write(allow_dirty)?;
    settle_lock(&root);
    Ok(())
}

/// Lets cargo write into its lock file what the manifests say, so that the first build does not change it.
fn settle_lock(root: &Path) {
    let mut cargo = Command::new("cargo");
    cargo.args(["update", "--workspace", "--offline"]).current_dir(root);
    // Without an index of the dependencies on this machine it can't. Then the first build does it.
    let _ = cargo.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}
