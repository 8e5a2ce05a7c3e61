//! The `ringfence` command, for people who run a stack. The same flags work on AWS and on one machine; the environment
//! says which. An application adds its commands by [`Own`].
#![deny(clippy::print_stdout, clippy::print_stderr)] // only `out` prints
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod aggregates;
mod answer;
pub mod api;
pub mod boundary;
mod check_tables;
pub mod checkpoint;
pub mod commands;
mod contract;
mod cost;
pub mod dead_letter;
pub mod deployments;
mod doctor;
mod documents;
mod due;
pub mod explain;
mod export;
mod fences;
pub mod flow;
mod import;
mod index;
mod json;
pub mod kept;
pub mod lanes;
mod layout;
mod line;
mod lists;
pub mod machine;
mod map;
pub mod objects;
#[doc(hidden)]
pub mod out;
mod paced;
mod parked;
pub mod place;
mod progress;
mod read;
pub mod recorded;
mod redrive;
mod replay;
mod schema;
mod schemas;
pub mod send;
mod service;
pub mod shown;
mod sql;
pub mod stack;
pub mod stats;
mod status;
mod subjects;
pub mod tables;
mod tail;
mod template;
mod token;
mod topic;
mod trace;
pub mod verdict;
pub mod view;
pub mod work;

use std::future::ready;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use futures::{FutureExt, future::LocalBoxFuture};
use ringfence_stack::Members;

pub use lists::{Lists, listed, readable};

/// Ringfence: event sourcing with dynamic consistency boundaries.
///
/// Tables and bus come from flags, from the outputs of `--stack`, or from the variables that the functions have
/// (EVENT_TABLE, INDEX_TABLE, VIEW_TABLE, AGGREGATE_TABLE, DOCUMENT_TABLE, EVENT_BUS). The HTTP API comes from `--api`,
/// `--stack` or API_URL. Region, credentials and endpoints come from the environment, as for every AWS tool. For a
/// stack that `cargo local` runs, source the file that it names.
#[derive(Parser)]
#[command(name = "ringfence", version)]
struct Arguments<O: Own> {
    /// The CloudFormation stack whose outputs name tables, bus, queues and buckets. With it, EVENT_TABLE and
    /// the other variables are ignored.
    #[arg(long, global = true, value_name = "NAME", value_parser = stack::name)]
    stack: Option<String>,
    #[command(subcommand)]
    command: Command<O>,
}

#[derive(Subcommand)]
#[allow(clippy::large_enum_variant, reason = "a program has one")]
enum Command<O: Own> {
    #[command(flatten)]
    OfAll(OfAll),
    #[command(flatten)]
    Own(O),
}

/// The commands for every stack.
#[derive(Subcommand)]
enum OfAll {
    /// Sends a command to a slice over HTTP, and prints the answer. Status 0: accepted, 1: rejected by the slice, 2:
    /// error.
    Send(send::Arguments),
    /// Shows the answer of a queued command. Status 0: accepted, 1: rejected, 2: no answer yet, or error.
    Answer(answer::Arguments),
    /// Makes a token for a stack on this machine that was started with `cargo local --auth`. With --stack, gets one
    /// from the user pool of that stack, for its program.
    Token(token::Arguments),
    /// Makes a dry run of a command: shows what it would read, answer and write, and what that would cost. Writes
    /// nothing. Status 0: it would be accepted, 1: rejected by the slice, 2: error.
    Explain(explain::Arguments),
    /// Writes the part of template.yaml that follows from the list of the stack. Status 0: it is current now, 1: it has
    /// edits that would be lost, and nothing is written, 2: error.
    Template(template::Arguments),
    /// Prints what the stack costs a month, item by item.
    Cost(cost::Arguments),
    /// Shows which commands write which events, who reacts to them, and which views show them.
    Map(map::Arguments),
    /// Names the parts of the stack that are behind this release of Ringfence, each with the command that mends it.
    /// Status 0: none, 1: some, 2: error.
    Doctor(doctor::Arguments),
    /// Prints the tables that the stack needs, in the format of another tool.
    Schema(schema::Arguments),
    /// Checks existing tables that a stack shall use.
    #[command(subcommand)]
    Tables(Tables),
    /// Prints the API for callers, or the events for consumers, as a document for programs.
    Api(contract::Arguments),
    /// Shows a boundary: its latest events, its length, the slices that depend on it, and the conflicts on it.
    Boundary(boundary::Arguments),
    /// Shows the commands and events of a correlation id as a tree with times, also after years. Status 0: there are
    /// some, 1: no event has the id, 2: error.
    Trace(trace::Arguments),
    /// Shows what commands did and cost, and on which boundaries they had conflicts.
    Stats(stats::Arguments),
    /// Says whether all is well, and what is not. Status 0: all is well, 1: something is not, 2: error.
    Status(status::Arguments),
    /// Looks for missing slots, and compares every fence with the events. Status 0: all in order, 1: not, 2: error.
    Verify(fences::Arguments),
    /// Repairs the fences that differ from the events, while writers go on. Status 0: in order now, 1: not, 2: error.
    Repair(fences::Arguments),
    /// Prints the events of a query of the DCB log, or of one partition of any log.
    Read(read::Arguments),
    /// Writes the events of the index into files, in the order of the index. Run again, it continues where it was.
    Export(export::Arguments),
    /// Queries an export in SQL, with a view for each type of events. Status 0: the answer is printed, 2: error.
    Sql(sql::Arguments),
    /// Imports the events of an export or of another system. Status 0: all are there, 1: some can't be imported, and
    /// nothing is written, 2: error.
    Import(import::Arguments),
    /// Checks the aggregate log, and lists its aggregates.
    #[command(subcommand)]
    Aggregates(Aggregates),
    /// Checks and prunes the document log.
    #[command(subcommand)]
    Documents(Documents),
    /// Sends the commands that are due, or will be. Status 0: all took effect, 1: some did not and stay, or the time
    /// was over, 2: error.
    Due(due::Arguments),
    /// Prints the events of the index in their order, from any checkpoint on, until Ctrl-C.
    Tail(tail::Arguments),
    /// Sends events of the index again: to the bus, marked as a replay, or into a view.
    #[command(subcommand)]
    Replay(Replay),
    /// Compares the index with the logs, and repairs it.
    #[command(subcommand)]
    Index(Index),
    /// Shows and moves the checkpoints of the readers of the index.
    #[command(subcommand)]
    Checkpoint(Checkpoint),
    /// Shows and retries parked work: rows of views that could not be written and are served as errors, and lanes of
    /// reactors whose events failed.
    #[command(subcommand)]
    Parked(Parked),
    /// Checks whether this build can replace the deployed one.
    #[command(subcommand)]
    Schemas(Schemas),
    /// Forgets people, and shows what is known of them.
    #[command(subcommand)]
    Subjects(subjects::Subjects),
    /// Retries work that failed and was kept in a queue or a bucket. Status 0: nothing is left, 1: some failed again
    /// and stay, 2: error.
    Redrive(redrive::Arguments),
}

/// Commands beside those for every stack: the commands of an application, and the console.
pub trait Own: Subcommand {
    /// Carries out a command line on the stack of these lists. Returns the exit status.
    fn run(&self, lists: Arc<Lists>) -> impl Future<Output = anyhow::Result<ExitCode>>;
}

#[derive(Subcommand)]
enum Tables {
    /// Says what they lack, and how to mend it. Status 0: nothing, 1: something, 2: error.
    Check(check_tables::Arguments),
}

#[derive(Subcommand)]
enum Aggregates {
    /// Looks for gaps, and for first events that are missing in lists. Status 0: all in order, 1: not, 2: error.
    Verify(aggregates::Arguments),
    /// Lists the aggregates of a context by the times of their first events.
    List(aggregates::list::Arguments),
}

#[derive(Subcommand)]
enum Documents {
    /// Checks that the items of each stream fit together. Status 0: all do, 1: some do not, 2: error.
    Verify(documents::Arguments),
    /// Deletes old indexed events of documents that have a snapshot. Status 0: done, 1: some documents need all their
    /// events and stay whole, 2: error.
    Prune(documents::prune::Arguments),
}

#[derive(Subcommand)]
enum Replay {
    /// Sends events to the bus in the order of the index. Status 0: all are sent, 1: some are refused, 2: error.
    Bus(replay::Arguments),
    /// Builds a new generation of a view while the old one is served, then serves the new one. Status 0: it has all its
    /// rows, 1: some are parked, 2: error.
    View(view::Arguments),
    /// Moves a reactor back. It repeats no effect, unless --again is given.
    Reactor(lanes::Replay),
}

#[derive(Subcommand)]
enum Index {
    /// Compares the index with the logs. Status 0: they agree, 1: they differ, 2: error.
    Verify(index::Arguments),
    /// Indexes the events that the index lacks, while writers go on. Status 0: they agree now, 1: not yet,
    /// 2: error.
    Repair(index::Arguments),
}

#[derive(Subcommand)]
enum Checkpoint {
    /// Shows one reader, or every reader.
    Show(checkpoint::Show),
    /// Sets the checkpoint of a reader: back, to read events again, or forward, to skip some.
    Set(checkpoint::Set),
}

#[derive(Subcommand)]
enum Schemas {
    /// Decodes the events of the index with the readers of this build, or compares this build with a commit. Status 0:
    /// all is compatible, 1: not, 2: error.
    Check(schemas::Arguments),
}

#[derive(Subcommand)]
enum Parked {
    /// Lists the parked rows and events of views, with the cause. Status 0: none is parked, 1: some are, 2: error.
    Show(parked::Arguments),
    /// Folds the parked rows and the rows of the parked events again, from the first event on, and serves the rows that
    /// can be written now. Status 0: no row is left, 1: some are, 2: error.
    Retry(parked::Arguments),
    /// Makes a view skip a parked event for good.
    SkipEvent(parked::Skip),
    /// Lists the lanes of reactors and of ordered automations that wait or are parked, each with its cause. Status 0:
    /// no lane is parked, 1: some are, 2: error.
    Lanes(lanes::Show),
    /// Retries a parked lane, or all of a reactor, from the event that failed.
    RetryLane(lanes::Retry),
    /// Makes a parked lane go on after the event that failed.
    SkipLane(lanes::Skip),
}

/// Carries out the command line on the stack that `M` lists.
#[tokio::main]
pub async fn run<M: Members, O: Own>() -> ExitCode {
    match Lists::of::<M>() {
        Ok(lists) => carry_out::<O>(Arc::new(lists)).await,
        Err(error) => failed(&error),
    }
}

async fn carry_out<O: Own>(lists: Arc<Lists>) -> ExitCode {
    let arguments = match parse::<O>().await {
        Ok(arguments) => arguments,
        Err(error) => return failed(&error),
    };
    let ended = match &arguments.command {
        Command::OfAll(command) => command.run(&lists).await,
        Command::Own(own) => own.run(lists).boxed_local().await,
    };
    progress::clear();
    ended.unwrap_or_else(|error| failed(&error))
}

impl OfAll {
    /// Carries out the command.
    ///
    /// The futures are boxed, because together they nest deeper than the compiler can compute layouts. They are boxed
    /// here, where no type parameter is, so they are compiled once, and not in each program.
    fn run<'a>(&'a self, lists: &'a Lists) -> LocalBoxFuture<'a, anyhow::Result<ExitCode>> {
        match self {
            Self::Send(arguments) => send::send(arguments, &lists.stack).boxed_local(),
            Self::Answer(arguments) => answer::answer(arguments).boxed_local(),
            Self::Token(arguments) => token::token(arguments).boxed_local(),
            Self::Explain(arguments) => {
                explain::explain(arguments, &lists.stack, &lists.slices).boxed_local()
            }
            Self::Template(arguments) => ready(template::template(arguments, lists)).boxed_local(),
            Self::Cost(arguments) => ready(cost::cost(arguments, lists)).boxed_local(),
            Self::Map(arguments) => ready(map::map(arguments, lists)).boxed_local(),
            Self::Doctor(arguments) => ready(doctor::doctor(arguments, lists)).boxed_local(),
            Self::Schema(arguments) => ready(Ok(schema::schema(arguments, lists))).boxed_local(),
            Self::Tables(Tables::Check(arguments)) => {
                check_tables::check(arguments, lists).boxed_local()
            }
            Self::Api(arguments) => ready(contract::print(arguments, lists)).boxed_local(),
            Self::Boundary(arguments) => boundary::boundary(arguments, lists).boxed_local(),
            Self::Trace(arguments) => trace::trace(arguments).boxed_local(),
            Self::Stats(arguments) => stats::stats(arguments).boxed_local(),
            Self::Status(arguments) => status::status(arguments, lists).boxed_local(),
            Self::Verify(arguments) => fences::verify(arguments, lists).boxed_local(),
            Self::Repair(arguments) => fences::repair(arguments, lists).boxed_local(),
            Self::Read(arguments) => read::read(arguments, lists).boxed_local(),
            Self::Export(arguments) => export::export(arguments, lists).boxed_local(),
            Self::Sql(arguments) => ready(sql::sql(arguments, lists)).boxed_local(),
            Self::Import(arguments) => import::import(arguments, lists).boxed_local(),
            Self::Aggregates(Aggregates::Verify(it)) => aggregates::verify(it).boxed_local(),
            Self::Aggregates(Aggregates::List(arguments)) => {
                aggregates::list::list(arguments, lists).boxed_local()
            }
            Self::Documents(Documents::Verify(it)) => documents::verify(it).boxed_local(),
            Self::Documents(Documents::Prune(arguments)) => {
                documents::prune::prune(arguments, lists).boxed_local()
            }
            Self::Due(arguments) => due::due(arguments, lists).boxed_local(),
            Self::Tail(arguments) => tail::tail(arguments, lists).boxed_local(),
            Self::Replay(Replay::Bus(arguments)) => replay::replay(arguments, lists).boxed_local(),
            Self::Replay(Replay::View(arguments)) => view::rebuild(arguments, lists).boxed_local(),
            Self::Index(Index::Verify(arguments)) => index::verify(arguments, lists).boxed_local(),
            Self::Index(Index::Repair(arguments)) => index::repair(arguments, lists).boxed_local(),
            Self::Checkpoint(Checkpoint::Show(it)) => checkpoint::show(it).boxed_local(),
            Self::Checkpoint(Checkpoint::Set(it)) => checkpoint::set(it).boxed_local(),
            Self::Parked(Parked::Show(arguments)) => parked::show(arguments, lists).boxed_local(),
            Self::Parked(Parked::Retry(arguments)) => parked::retry(arguments, lists).boxed_local(),
            Self::Parked(Parked::SkipEvent(arguments)) => {
                parked::skip(arguments, lists).boxed_local()
            }
            Self::Parked(Parked::Lanes(arguments)) => lanes::show(arguments, lists).boxed_local(),
            Self::Parked(Parked::RetryLane(arguments)) => {
                lanes::retry(arguments, lists).boxed_local()
            }
            Self::Parked(Parked::SkipLane(arguments)) => {
                lanes::skip(arguments, lists).boxed_local()
            }
            Self::Replay(Replay::Reactor(arguments)) => {
                lanes::replay(arguments, lists).boxed_local()
            }
            Self::Schemas(Schemas::Check(arguments)) => {
                schemas::check(arguments, lists).boxed_local()
            }
            Self::Subjects(command) => subjects::subjects(command, lists).boxed_local(),
            Self::Redrive(arguments) => redrive::redrive(arguments, lists).boxed_local(),
        }
    }
}

/// How to load the variables of a stack on this machine into a shell.
const VARIABLES: &str =
    "In the folder of a stack that `cargo local` runs, this reads its variables:
  set -a; . target/local/3000/env; set +a";

/// The command line, with the outputs of the stack that it names. An error in it ends the program.
async fn parse<O: Own>() -> anyhow::Result<Arguments<O>> {
    let mut command = Arguments::<O>::command();
    let given = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    if let Some(name) = stack::named(given) {
        command = Arc::new(stack::Outputs::of(name).await?).fill(command);
    }
    let matches = command.try_get_matches().unwrap_or_else(|error| {
        // clap chooses where to print it. If that is closed, nobody reads it.
        let _ = error.print();
        if stack::would_name(&error) {
            remark!("\n--stack <NAME> names it, and so does a variable. {VARIABLES}");
        }
        std::process::exit(error.exit_code())
    });
    Ok(Arguments::from_arg_matches(&matches)?)
}

fn failed(error: &anyhow::Error) -> ExitCode {
    let error = format!("{error:#}");
    remark!("error: {error}");
    if error.contains("Connection refused") {
        remark!(
            "\nNothing listens there. A stack on this machine has other ports after each start. {VARIABLES}"
        );
    }
    ExitCode::from(out::FAILED)
}
