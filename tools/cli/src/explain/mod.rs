//! `ringfence explain`: a dry run of a command. It writes nothing.

mod explanation;
mod print;
mod slices;

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ringfence_aws::Clock;
use ringfence_stack::Stack;

use crate::machine::dynamo_client;
use crate::out::Output;
use crate::send::{find, text};
use crate::tables::{KeyFlags, LogTables};

pub use explanation::{Explanation, Writing, Written};
pub use print::counted;
pub use ringfence_lambda::Issuers;
pub use ringfence_log::ReadBoundary;
pub use slices::{OfSlice, Slices};

#[derive(Args)]
#[command(after_help = "\
It reads the same events as the command's function, decides, and compares the condition of the append with the log. It
sends no request that writes, so it may run on a stack in production. It shows the cost for a function that has just
started. A function that read the same boundaries before reads only new events.

Examples:
  ringfence explain catalog/add-product --data @events/add-product/direct.json
  ringfence explain --stack ringfence-dev catalog/add-product --data @command.json --json")]
pub(crate) struct Arguments {
    /// The slice, as `<context>/<slice>`.
    slice: String,
    /// The command in JSON, or another payload of the slice's function, such as an event that it reacts to. `@<file>`
    /// reads it from a file, `@-` from standard input.
    #[arg(long, value_name = "JSON")]
    data: String,
    /// The issuers of tokens with their aliases, as in the variable of the functions, for a payload that is a request
    /// with a token.
    #[arg(long, env = "JWT_ISSUERS", value_name = "ALIAS=ISSUER,…", default_value = "")]
    jwt_issuers: Issuers,
    #[command(flatten)]
    tables: LogTables,
    #[command(flatten)]
    keys: KeyFlags,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn explain(
    arguments: &Arguments,
    stack: &Stack,
    slices: &Slices,
) -> Result<ExitCode> {
    let Arguments { slice, data, jwt_issuers, tables, keys, output } = arguments;
    find(slice, stack)?;
    let logs = keys.open(tables.logs(dynamo_client().await?, Clock::system())).await?;
    let explanations = slices.explain(&logs, slice, &text(data)?, jwt_issuers).await?;
    for explanation in &explanations {
        output.show(explanation);
    }
    let accepted = explanations.iter().all(|explanation| explanation.answer.accepted);
    Ok(if accepted { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
