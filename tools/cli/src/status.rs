//! `ringfence status`: whether all is well with a stack, and what is not.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ringfence_aws::{Clock, client_of};
use ringfence_reactors::ReactorTable;
use ringfence_views::{DueReader, ViewReader};

use crate::Lists;
use crate::machine::sdk_config;
use crate::out::Output;
use crate::tables::{FeedTables, ViewTable};
use crate::verdict::{StackVerdict, VerdictFlags, VerdictSources};

#[derive(Args)]
#[command(after_help = "\
A view or reactor is late after five minutes, a queued command after ten, a deadline after an hour, as for the alarms.
Commands and failures are of the last 15 minutes. What no flag names is not looked at, and the output says so.

Examples:
  ringfence status --stack ringfence-dev
  ringfence status --stack ringfence-dev --json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    index: FeedTables,
    #[command(flatten)]
    views: ViewTable,
    #[command(flatten)]
    flags: VerdictFlags,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn status(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let Arguments { views, flags, output, .. } = arguments;
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
        flags,
    };
    let verdict = StackVerdict::find(&sources).await;
    Ok(output.end(&verdict, verdict.is_well()))
}
