//! `ringfence import`: each origin has a file of its own.

mod items;
mod reventless;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::Lists;
use crate::out::Output;
use crate::stack::name;
use crate::tables::{DynamoEndpoint, EventTable};

#[derive(Args)]
#[command(after_help = "\
Reads the source strongly, and checks every event against the types, slices and views of this stack. If one does not
fit, the cause and the items are named, and nothing is written. Otherwise the events are imported one after another,
in the order of their positions and with their times. Each is imported once, so the command can be broken off and run
again. Tags that a type does not declare are left out, and counted. All events are held in memory.

publish-events takes imported events like all others, and rules act on them. docs/operations.md says what to do before
and after, and what becomes of each attribute.

Examples:
  ringfence import --from reventless shop-dcb-events --dry-run
  ringfence import --from reventless shop-dcb-events --table ringfence-prod-events")]
pub(crate) struct Arguments {
    /// The layout of the source.
    #[arg(long)]
    from: Origin,
    /// The table to import from.
    #[arg(value_parser = name)]
    source: String,
    #[command(flatten)]
    table: EventTable,
    #[command(flatten)]
    dynamo: DynamoEndpoint,
    /// Checks the events, and writes nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum Origin {
    /// The DCB log of Reventless on DynamoDB.
    Reventless,
}

pub(crate) async fn import(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    match arguments.from {
        Origin::Reventless => reventless::import(arguments, lists).await,
    }
}
