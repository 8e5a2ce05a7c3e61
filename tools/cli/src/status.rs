//! `ringfence status`: whether all is well with a stack, and what is not.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ringfence_aws::{Clock, client_of};
use ringfence_reactors::ReactorTable;
use ringfence_views::{DueReader, ViewReader};

use crate::Lists;
use crate::commands::CommandLines;
use crate::machine::sdk_config;
use crate::out::Output;
use crate::stack::{Named, name};
use crate::tables::{FeedTables, ViewTable};
use crate::verdict::{StackVerdict, VerdictSources};

#[derive(Args)]
#[command(after_help = "\
A view or reactor is late after five minutes, a deadline after an hour, as for the alarms. Commands are of the last 15
minutes. What no flag names is not looked at, and the output says so.

Examples:
  ringfence status --stack ringfence-dev
  ringfence status --stack ringfence-dev --json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    index: FeedTables,
    #[command(flatten)]
    views: ViewTable,
    /// The URL of the command queue.
    #[arg(long, env = "COMMAND_QUEUE_URL", value_name = "URL", value_parser = name)]
    command_queue: Option<String>,
    /// A dead-letter queue, with a name for people. Repeat the flag for several queues; --stack names all queues of the
    /// stack.
    #[arg(long = "queue", value_name = "NAME=URL")]
    queues: Vec<Named>,
    /// A bucket of failed batches, with the name of its function. Repeat the flag for several buckets; --stack names
    /// all buckets of the stack.
    #[arg(long = "bucket", value_name = "FUNCTION=NAME")]
    buckets: Vec<Named>,
    #[command(flatten)]
    commands: CommandLines,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn status(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let Arguments { views, queues, buckets, commands, output, .. } = arguments;
    let config = sdk_config().await?;
    let client = client_of(&config);
    let index = arguments.index.index(client.clone()).await?;
    let table = &views.view_table;
    let views = ViewReader::new(client.clone(), index.clone(), table, &lists.stack.rows());
    let reactors = ReactorTable::new(client.clone(), table, Clock::system());
    let sources = VerdictSources {
        stack: &lists.stack,
        index,
        views: Some((views, reactors, DueReader::new(client, table))),
        config: &config,
        queues,
        buckets,
        command_queue: arguments.command_queue.as_deref(),
        commands,
    };
    let verdict = StackVerdict::find(&sources).await;
    Ok(output.end(&verdict, verdict.is_well()))
}
