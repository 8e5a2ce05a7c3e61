//! `ringfence new`, `new-context`, `new-slice`, `new-view` and `new-version`: they write all parts of a stack, a
//! context, a slice, a view or a version of an event.
//!
//! They edit text, so everything that a person wrote around a part stays. They write only missing parts, so a second
//! run changes nothing.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod context;
mod declared;
mod due;
mod edit;
mod ids;
pub mod marks;
mod names;
mod plan;
mod slice;
mod source;
mod stack;
#[cfg(test)]
mod tests;
mod version;
mod view;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};

use anyhow::{Context as _, Result, ensure};
use clap::{Args, Subcommand};
use heck::ToSnakeCase;

use crate::context::Log;
use crate::due::After;
use crate::plan::Plan;
use crate::slice::Begins;
use crate::stack::Auth;
use crate::version::Begun;

pub use crate::ids::{is_written, written_ids};
pub use crate::names::near;

/// What is written for a stack, a context, a slice, a view or a version of an event.
#[derive(Subcommand)]
pub enum NewCommand {
    /// Creates a new stack with one example context. Status 0: it is there, 2: error, and nothing is written.
    New(NewStack),
    /// Adds a context to the stack in this folder. Status 0: it is there, 2: error, and nothing is written.
    NewContext(NewContext),
    /// Adds a slice to a context of the stack in this folder. Status 0: it is there, 2: error, and nothing is
    /// written.
    NewSlice(NewSlice),
    /// Adds a view of an event to a context of the stack in this folder. Status 0: it is there, 2: error, and nothing
    /// is written.
    NewView(NewView),
    /// Begins the next version of a type of events, which is read and not written yet: its number, its upcast, its
    /// downcast, and their test. In a later release, --write lets the type write it. Status 0: it is there, 2: error,
    /// and nothing is written.
    NewVersion(NewVersion),
}

impl NewCommand {
    /// Writes the files. Returns lines for a person that name the files and the next steps.
    ///
    /// # Errors
    /// A name is wrong, the command needs something that does not exist, or a file can't be written. Then nothing is
    /// written.
    pub fn run(&self) -> Result<String> {
        match self {
            Self::New(stack) => stack.write(),
            Self::NewContext(context) => context.write(),
            Self::NewSlice(slice) => slice.write(),
            Self::NewView(view) => view.write(),
            Self::NewVersion(version) => version.write(),
        }
    }
}

/// The command line that creates a stack.
#[derive(Args)]
pub struct NewStack {
    /// Its name, in kebab case: the name of its folder, and the beginning of its stacks' names on AWS.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    #[command(flatten)]
    source: stack::Source,
    /// Who may use its HTTP API: who signs with IAM, or who has a token.
    #[arg(long, value_enum, default_value_t)]
    auth: Auth,
}

/// The command line that adds a context.
#[derive(Args)]
pub struct NewContext {
    /// Its name, in kebab case: the name of its crate and the first part of its paths.
    name: String,
    /// The log that its events are on.
    #[arg(long, value_enum)]
    log: Log,
}

/// The command line that adds a slice.
#[derive(Args)]
pub struct NewSlice {
    /// Its context and its name, such as orders/cancel-order.
    #[arg(value_name = "CONTEXT/SLICE")]
    slice: String,
    /// The event that it reacts to, such as carts/CheckedOut.
    #[arg(long, value_name = "CONTEXT/EVENT")]
    on: Option<String>,
    /// Its command is sent so long after an event, such as 15m.
    #[arg(long, value_name = "TIME", requires = "of", conflicts_with = "on")]
    after: Option<After>,
    /// The event, such as carts/CheckedOut, of the slice's own context.
    #[arg(long, value_name = "CONTEXT/EVENT", requires = "after")]
    of: Option<String>,
}

/// The command line that adds a view.
#[derive(Args)]
pub struct NewView {
    /// Its context and its name, such as rooms/bookings.
    #[arg(value_name = "CONTEXT/VIEW")]
    view: String,
    /// An event that it reads, such as rooms/RoomBooked.
    #[arg(long, value_name = "CONTEXT/EVENT")]
    on: String,
}

/// The command line that begins a version of an event.
#[derive(Args)]
pub struct NewVersion {
    /// The context and the type of events, such as ordering/OrderPlaced.
    #[arg(value_name = "CONTEXT/EVENT")]
    event: String,
    /// Writes the newest version from now on. Before, deploy a release that reads it.
    #[arg(long)]
    write: bool,
}

/// The folder of the stack in which the command runs.
///
/// # Errors
/// The command runs elsewhere.
pub fn root() -> Result<PathBuf> {
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

impl NewStack {
    /// Writes the stack into its folder. Returns lines that name the files and the next steps.
    ///
    /// # Errors
    /// The folder is not empty, its name is not in kebab case, or a file can't be written. Then nothing is written.
    pub fn write(&self) -> Result<String> {
        let Self { folder, source, auth } = self;
        // The folder of `.` has a name too.
        let found = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        let name = found.file_name().unwrap_or_default().to_string_lossy();
        let is_empty = fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none());
        ensure!(
            !folder.exists() || (folder.is_dir() && is_empty),
            "{} is there already: name a folder that is not there, or an empty one",
            folder.display()
        );
        let mut plan = Plan::new(folder.clone());
        stack::add(&mut plan, &name, source, *auth)?;
        let next = format!("Next, in {}: `cargo test` or `cargo local`.\n", found.display());
        let written = write(plan, &next)?;
        Ok(match source.target()? {
            None => written,
            Some(target) => format!(
                "{written}\nWith CARGO_TARGET_DIR={} in the environment, cargo uses the dependencies that are built there.\n",
                target.display()
            ),
        })
    }
}

impl NewContext {
    fn write(&self) -> Result<String> {
        let Self { name, log } = self;
        let mut plan = Plan::new(root()?);
        context::add(&mut plan, name, *log)?;
        write(plan, &format!("Next: `cargo ringfence new-slice {name}/<slice>`.\n"))
    }
}

impl NewSlice {
    fn write(&self) -> Result<String> {
        let Self { slice, on, after, of } = self;
        let form = || format!("{slice} is not <context>/<slice>, such as orders/cancel-order");
        let (context, name) = slice.split_once('/').with_context(form)?;
        let mut plan = Plan::new(root()?);
        let begins = match (on, after, of) {
            (Some(on), ..) => Begins::On(on),
            (None, Some(after), Some(of)) => Begins::After(after.clone(), of),
            (None, ..) => Begins::WhenSent,
        };
        slice::add(&mut plan, context, name, begins)?;
        let file = format!("functions/{context}/src/{}.rs", name.to_snake_case());
        let next = format!(
            "Next: write its rules and their cases in {file}, and run `UPDATE=1 cargo test`. It adds the command and the \
             event to schemas/{context}.json, and the function to template.yaml.\n"
        );
        write(plan, &next)
    }
}

impl NewView {
    fn write(&self) -> Result<String> {
        let Self { view, on } = self;
        let form = || format!("{view} is not <context>/<view>, such as rooms/bookings");
        let (context, name) = view.split_once('/').with_context(form)?;
        let mut plan = Plan::new(root()?);
        view::add(&mut plan, context, name, on)?;
        let file = format!("functions/{context}/src/views/{}.rs", name.to_snake_case());
        let next = format!(
            "Next: write its rows and their test in {file}, and run `UPDATE=1 cargo test`. It adds the view to \
             schemas/{context}.json.\n"
        );
        write(plan, &next)
    }
}

impl NewVersion {
    fn write(&self) -> Result<String> {
        let Self { event, write: is_written } = self;
        let form = || format!("{event} is not <context>/<Event>, such as ordering/OrderPlaced");
        let (context, name) = event.split_once('/').with_context(form)?;
        let mut plan = Plan::new(root()?);
        if *is_written {
            let Begun { number, .. } = version::write(&mut plan, context, name)?;
            let next = format!(
                "Next: run `cargo test`. New events of {name} have version {number}, so deploy it after a release that \
                 reads them.\n"
            );
            return write(plan, &next);
        }
        let Begun { number, file, lock } = version::add(&mut plan, context, name)?;
        let next = format!(
            "Next: change {name}, its upcast, its downcast and the test in {file}, and run `cargo test`. Then \
             `UPDATE=1 cargo test` writes version {number} into {lock}. This release reads the version. A later one \
             writes it: `cargo ringfence new-version {event} --write`.\n"
        );
        write(plan, &next)
    }
}

/// Writes the files of a plan. Returns lines that name them, an empty line, and the next steps.
fn write(plan: Plan, next: &str) -> Result<String> {
    let root = plan.root().to_owned();
    let written = plan.write()?;
    settle_lock(&root);
    Ok(format!("{written}\n{next}"))
}

/// Lets cargo write the dependencies of the manifests into its lock file, so the first build does not change the file.
fn settle_lock(root: &Path) {
    let mut cargo = process::Command::new("cargo");
    cargo.args(["update", "--workspace", "--offline"]).current_dir(root);
    // Cargo needs an index of the dependencies on this machine. Without one, the first build changes the lock file.
    let _ = cargo.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}
