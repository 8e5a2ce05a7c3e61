//! `ringfence-new`, and in a stack `cargo new-context`, `new-slice`, `new-reactor`, `new-view` and `new-version`: they
//! write all parts of a stack, a context, slices, a reactor, views or a version of an event.
//!
//! In a stack, aliases of cargo run a program that depends on this library alone, so it is built in seconds.
//!
//! They edit text, so everything that a person wrote around a part stays. They write only missing parts, so a second
//! run changes nothing.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod context;
mod declared;
mod due;
mod edit;
mod follow;
mod ids;
pub mod marks;
mod names;
mod plan;
pub mod pool;
mod reactor;
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
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use clap::{ArgGroup, Args, Parser, Subcommand};
use heck::ToSnakeCase;
use ringfence_core::visible_lines;

use crate::context::Log;
use crate::due::After;
use crate::plan::{Plan, settle_lock};
use crate::reactor::Sends;
use crate::slice::Begins;
use crate::stack::Auth;
use crate::version::Begun;

pub use crate::follow::Lacking;
pub use crate::ids::{is_written, written_ids};
pub use crate::names::near;

/// What is written for a context, a slice, a view or a version of an event. A stack has an alias of cargo for each.
#[derive(Subcommand)]
pub(crate) enum NewCommand {
    /// Adds a context to the stack in this folder. Status 0: it is there, 2: error, and nothing is written.
    NewContext(NewContext),
    /// Adds slices to contexts of the stack in this folder. Status 0: they are there, 2: error, and nothing is
    /// written.
    NewSlice(NewSlice),
    /// Adds a reactor that sends a mail or a webhook to a context of the stack in this folder. Status 0: it is there,
    /// 2: error, and nothing is written.
    NewReactor(NewReactor),
    /// Adds views of an event to contexts of the stack in this folder. Status 0: they are there, 2: error, and nothing
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
    fn run(&self) -> Result<String> {
        match self {
            Self::NewContext(context) => context.write(),
            Self::NewSlice(slices) => slices.write(),
            Self::NewReactor(reactor) => reactor.write(),
            Self::NewView(views) => views.write(),
            Self::NewVersion(version) => version.write(),
        }
    }
}

/// The command line that creates a stack.
#[derive(Args)]
pub struct NewStack {
    /// Its name, in kebab case: the name of its folder, and the beginning of its stacks' names on AWS.
    // It is missing only beside a command.
    #[arg(value_name = "FOLDER", required = true)]
    folder: Option<PathBuf>,
    #[command(flatten)]
    source: stack::Source,
    /// Who may use its HTTP API: who signs with IAM, or who has a token.
    #[arg(long, value_enum, default_value_t)]
    auth: Auth,
    /// Leaves out the example context.
    #[arg(long)]
    empty: bool,
}

/// The command line that adds a context.
#[derive(Args)]
pub(crate) struct NewContext {
    /// Its name, in kebab case: the name of its crate and the first part of its paths.
    name: String,
    /// The log that its events are on.
    #[arg(long, value_enum)]
    log: Log,
}

/// The command line that adds slices.
#[derive(Args)]
pub(crate) struct NewSlice {
    /// The context and the name of each, such as orders/cancel-order. The flags apply to all of them.
    #[arg(value_name = "CONTEXT/SLICE", required = true)]
    slices: Vec<String>,
    /// The event that they react to, such as carts/CheckedOut.
    #[arg(long, value_name = "CONTEXT/EVENT")]
    on: Option<String>,
    /// They react to the events of a partition one after another.
    #[arg(long, requires = "on")]
    in_order: bool,
    /// Their commands are sent this long after an event, such as 15m.
    #[arg(long, value_name = "TIME", requires = "of", conflicts_with = "on")]
    after: Option<After>,
    /// The event, such as carts/CheckedOut, of the slices' own context.
    #[arg(long, value_name = "CONTEXT/EVENT", requires = "after")]
    of: Option<String>,
}

/// The command line that adds a reactor.
#[derive(Args)]
#[command(group(ArgGroup::new("sends").args(["mail", "webhook"]).required(true)))]
pub(crate) struct NewReactor {
    /// Its context and its name, such as rooms/mail-confirmation.
    #[arg(value_name = "CONTEXT/REACTOR")]
    reactor: String,
    /// The event of its own context that it responds to, such as rooms/RoomBooked.
    #[arg(long, value_name = "CONTEXT/EVENT")]
    on: String,
    /// It sends a mail.
    #[arg(long)]
    mail: bool,
    /// It sends a webhook.
    #[arg(long)]
    webhook: bool,
}

/// The command line that adds views.
#[derive(Args)]
pub(crate) struct NewView {
    /// The context and the name of each, such as rooms/bookings.
    #[arg(value_name = "CONTEXT/VIEW", required = true)]
    views: Vec<String>,
    /// An event that they read, such as rooms/RoomBooked.
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
        let Self { folder, source, auth, empty } = self;
        let folder = folder.as_ref().context("name the folder")?;
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
        stack::add(&mut plan, &name, source, *auth, *empty)?;
        let first = if *empty { "`cargo new-context <context> --log dcb`" } else { "`cargo test`" };
        let next = format!("Next, in {}: {first} or `cargo local`.\n", found.display());
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
        write(plan, &format!("Next: `cargo new-slice {name}/<slice>`.\n"))
    }
}

/// The context and the name of a thing, such as `orders/cancel-order`.
fn place<'t>(text: &'t str, what: &str, such_as: &str) -> Result<(&'t str, &'t str)> {
    text.split_once('/')
        .with_context(|| format!("{text} is not <context>/<{what}>, such as {such_as}"))
}

/// The next steps after things were written into these files.
fn next(what: &str, files: &[String]) -> String {
    format!(
        "Next: write {what} in {}, and run `UPDATE=1 cargo test`. It writes what follows: template.yaml, samples in events/, \
         schemas/, docs/api/ and docs/map.*.\n",
        files.join(", ")
    )
}

impl NewSlice {
    fn write(&self) -> Result<String> {
        let Self { slices, on, in_order, after, of } = self;
        let (mut plan, mut files) = (Plan::new(root()?), Vec::new());
        for slice in slices {
            let (context, name) = place(slice, "slice", "orders/cancel-order")?;
            let begins = match (on, after, of) {
                (Some(on), ..) if *in_order => Begins::InOrder(on),
                (Some(on), ..) => Begins::On(on),
                (None, Some(after), Some(of)) => Begins::After(after.clone(), of),
                (None, ..) => Begins::WhenSent,
            };
            slice::add(&mut plan, context, name, begins)?;
            files.push(format!("functions/{context}/src/{}.rs", name.to_snake_case()));
        }
        write(plan, &next("rules and their cases", &files))
    }
}

impl NewReactor {
    fn write(&self) -> Result<String> {
        let Self { reactor, on, mail, .. } = self;
        let (context, name) = place(reactor, "reactor", "rooms/mail-confirmation")?;
        let mut plan = Plan::new(root()?);
        let sends = if *mail { Sends::Mail } else { Sends::Webhook };
        reactor::add(&mut plan, context, name, on, sends)?;
        let file = format!("functions/{context}/src/{}.rs", name.to_snake_case());
        write(plan, &next("what it sends, and its case,", &[file]))
    }
}

impl NewView {
    fn write(&self) -> Result<String> {
        let Self { views, on } = self;
        let (mut plan, mut files) = (Plan::new(root()?), Vec::new());
        for view in views {
            let (context, name) = place(view, "view", "rooms/bookings")?;
            view::add(&mut plan, context, name, on)?;
            files.push(format!("functions/{context}/src/views/{}.rs", name.to_snake_case()));
        }
        write(plan, &next("rows and their tests", &files))
    }
}

impl NewVersion {
    fn write(&self) -> Result<String> {
        let Self { event, write: is_written } = self;
        let (context, name) = place(event, "Event", "ordering/OrderPlaced")?;
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
             writes it: `cargo new-version {event} --write`.\n"
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

#[derive(Parser)]
#[command(name = "ringfence-new", version)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
/// Creates a new stack with one example context. In a stack, `cargo new-context` and the other commands add to it.
/// Status 0: all is there, 2: error, and nothing is written.
struct Arguments {
    #[command(flatten)]
    stack: NewStack,
    #[command(subcommand)]
    command: Option<NewCommand>,
}

/// Carries out the command line of `ringfence-new`.
#[must_use]
pub fn main() -> ExitCode {
    let Arguments { stack, command } = Arguments::parse();
    match command.map_or_else(|| stack.write(), |command| command.run()) {
        Ok(written) => {
            print!("{}", visible_lines(&written));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}", visible_lines(&format!("error: {error:#}")));
            ExitCode::from(2)
        }
    }
}
