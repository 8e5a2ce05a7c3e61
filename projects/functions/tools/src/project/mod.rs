//! `ringfence project`: the command line of the context `projects`, for agents and people who share a project.
//!
//! It keeps a copy of the project's events in a local folder, so that it can be read without a network, and an
//! outbox of the commands that were given without one.

mod act;
mod cache;
mod claim;
mod command;
mod compact;
mod decide;
mod export;
mod file_log;
mod folder;
mod foreign;
mod import;
mod importer;
mod json;
#[cfg(test)]
mod line_schema;
mod live;
mod outbox;
mod page;
mod publish;
mod pull;
mod push;
mod read;
mod standing;
mod taken;
mod zoom;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::{Args, Subcommand};
use projects::ProjectId;
use ringfence_cli::Lists;

pub use decide::{Decided, Slices, Undecided, envelope};
pub use page::PAGE;

use folder::Folder;

/// The commands of the shop, beside those for every stack.
#[derive(Subcommand)]
pub enum Own {
    /// Serves the console on this machine: pages about events and their causes, slices, boundaries, views, projects,
    /// and whether all is well. Ctrl-C ends it.
    Console(ringfence_console::Arguments),
    /// Works on a project that agents share, also without a network.
    Project(Arguments),
}

#[derive(Args)]
pub struct Arguments {
    /// The project; the only one in `.ringfence` need not be named.
    #[arg(long, global = true, env = "RINGFENCE_PROJECT", value_name = "NAME")]
    project: Option<ProjectId>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Copies the new events of the project from the index, or from an export. The index needs the right to read the
    /// events of all projects, an export only the right to read the project's folder. Status 0: all are there, 2:
    /// error.
    #[command(
        after_help = "Examples:\n  ringfence project pull --project shop\n  ringfence project pull --project shop --export s3://exports"
    )]
    Pull(pull::Source),
    /// Copies all events of the project again. Commands that wait stay. Status 0: all are there, 2: error, and the
    /// old copy stays.
    #[command(after_help = "Example:\n  ringfence project reconstruct --project shop")]
    Reconstruct(pull::Source),
    /// Folds the old events of features that are done, so that the copy gets smaller. Status 0: done, 2: error, and the
    /// old copy stays.
    Compact(compact::Compact),
    /// Gives a command to a slice. Status 0: accepted or queued, 1: rejected by the slice, 2: error.
    Do(act::Do),
    /// Claims an edge, or the next one that is ready. Status 0: accepted or queued, 1: rejected by the slice, 2: error.
    #[command(
        after_help = "Examples:\n  ringfence project claim --next --agent ada\n  ringfence project claim shop/REQ-F-AUTH-001/design_code --agent ada"
    )]
    Claim(claim::Claim),
    /// Sends the commands that wait, in their order. Status 0: all are sent, 1: some are left or rejected, 2: error.
    Push(push::Push),
    /// Takes work that another program has recorded into a local project, or into one of a stack. Status 0: all lines
    /// are there, 2: error, and nothing is written to a local project.
    Import(import::Import),
    /// Imports a local project into a stack that has no project of this name. Afterwards the file is a copy of the
    /// stack's. A run that broke off is repeated. Status 0: all events are in the stack, 2: error.
    Publish(publish::Publish),
    /// Shows how the project stands. Status 0: shown, 2: error.
    #[command(after_help = "Example:\n  ringfence project status")]
    Status,
    /// Lists the edges that can be claimed, the most urgent first. Status 0: shown, 2: error.
    #[command(after_help = "Example:\n  ringfence project ready --edge design_code")]
    Ready(read::Of),
    /// Lists the holders of edges. Status 0: shown, 2: error.
    #[command(after_help = "Example:\n  ringfence project claims --agent ada")]
    Claims(read::Claims),
    /// Lists for each requirement the work that answers to it, the edges where it is missing, its releases, how far it
    /// was met at the last comparison, and the events about it. Status 0: shown, 2: error.
    #[command(after_help = "Example:\n  ringfence project trace --feature REQ-F-AUTH-001")]
    Trace(read::Of),
    /// Shows the edges of a feature, the iterations of an edge, the events of an iteration, or an event. Status 0: shown, 2:
    /// error.
    Zoom(zoom::Zoom),
    /// Lists events, in the order of the index. Status 0: shown, 2: error.
    #[command(
        after_help = "Example:\n  ringfence project log --type iteration_completed --since 2026-11-22T00:00:00Z"
    )]
    Log(read::Log),
}

impl ringfence_cli::Own for Own {
    async fn run(&self, lists: Arc<Lists>) -> Result<ExitCode> {
        let Arguments { project, command } = match self {
            Self::Project(arguments) => arguments,
            Self::Console(arguments) => return arguments.serve(lists, &[PAGE]).await,
        };
        let folder = || Folder::find(project.as_ref());
        match command {
            Command::Pull(source) => pull::run_pull(&folder()?, source).await,
            Command::Reconstruct(source) => pull::run_reconstruct(&folder()?, source).await,
            Command::Compact(arguments) => compact::run(&folder()?, arguments),
            Command::Do(arguments) => act::run_do(project.as_ref(), arguments).await,
            Command::Claim(arguments) => claim::run(project.as_ref(), arguments).await,
            Command::Push(arguments) => push::run(&folder()?, arguments).await,
            Command::Import(arguments) => import::run(&folder()?, arguments).await,
            Command::Publish(arguments) => publish::run(&folder()?, arguments, &lists).await,
            Command::Status => read::run_status(&folder()?),
            Command::Ready(of) => read::run_ready(&folder()?, of),
            Command::Claims(arguments) => read::run_claims(&folder()?, arguments),
            Command::Trace(of) => read::run_trace(&folder()?, of),
            Command::Zoom(arguments) => zoom::run(&folder()?, arguments),
            Command::Log(arguments) => read::run_log(&folder()?, arguments),
        }
    }
}
