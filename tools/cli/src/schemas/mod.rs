//! `ringfence schemas`.

mod base;
mod decode;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use crate::Lists;
use crate::machine::dynamo_client;
use crate::out::Output;
use crate::stack::name;
use crate::tables::{LogTables, index_of};

#[derive(Args)]
#[command(after_help = "\
Run it with the next build before a deploy. It decodes each event of the index, from all logs, with each slice, view and
automation of this build that reads it, and names the events that can't be read. A whole index costs half a read unit
for each 4 KB. `--last` ends earlier, as soon as it has that many events of each type of this build. If a type has
fewer, it reads to the beginning.

With `--base` it reads no stack on AWS or on this machine. It compares this build with a commit's locks of the stack in
the working directory. It names changes that break callers, readers or stored data, and events of this build that the
functions of that commit can't read. Those functions get such events in the middle of a deploy.

Examples:
  ringfence schemas check --stack ringfence-prod
  ringfence schemas check --stack ringfence-prod --last 1000
  ringfence schemas check --base origin/main")]
pub(crate) struct Arguments {
    /// The table of the index.
    #[arg(long, env = "INDEX_TABLE", value_parser = name)]
    index_table: Option<String>,
    #[command(flatten)]
    logs: LogTables,
    /// Decodes the last events of each type, this many.
    #[arg(long, value_name = "EVENTS", value_parser = clap::value_parser!(u64).range(1..))]
    last: Option<u64>,
    /// Compares with the locks of this branch, tag or commit of git, in place of an index.
    #[arg(long, value_name = "GIT REF", conflicts_with_all = ["last", "stack"])]
    base: Option<String>,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn check(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let Arguments { index_table, logs, last, base, output } = arguments;
    if let Some(base) = base {
        return base::check(base, lists, *output);
    }
    let index = index_table.as_ref().context(
        "name the index with --index-table, INDEX_TABLE or --stack, or a commit with --base",
    )?;
    let client = dynamo_client().await?;
    let index = index_of(client.clone(), index, logs.bodies(client)).await?;
    let decoded = decode::decode(&index, lists, *last).await?;
    Ok(output.end(&decoded, decoded.in_order()))
}
