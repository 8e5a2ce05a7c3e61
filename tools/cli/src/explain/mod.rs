//! `ringfence explain`: what a command would do now. Nothing is written.

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
use crate::send::{check, text};
use crate::tables::LogTables;

pub use explanation::{Explanation, Writing, Written};
pub use print::counted;
pub use ringfence_lambda::Issuers;
pub use ringfence_log::ReadBoundary;
pub use slices::{OfSlice, Slices};

#[derive(Args)]
#[command(after_help = "\
It reads what the command's function would read, decides, and compares the condition of the append with the log. It
sends no request that writes, so it may run on a stack in production. The costs are those of a function that has just
started; one that has read the same boundaries before reads only what is new.

Examples:
  ringfence explain catalog/add-product --data @events/add-product/direct.json
  ringfence explain --stack ringfence-dev catalog/add-product --data @command.json --json")]
pub(crate) struct Arguments {
    /// The slice, as `<context>/<slice>`.
    slice: String,
    /// The command in JSON, or another payload of the slice's function, such as an event that it reacts to; `@<file>`
    /// reads it from a file, `@-` from standard input.
    #[arg(long, value_name = "JSON")]
    data: String,
    /// The issuers of tokens that have aliases, as the functions know them. A request over HTTP may come with a token.
    #[arg(long, env = "JWT_ISSUERS", value_name = "ALIAS=ISSUER,…", default_value = "")]
    jwt_issuers: Issuers,
    #[command(flatten)]
    tables: LogTables,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn explain(
    arguments: &Arguments,
    stack: &Stack,
    slices: &Slices,
) -> Result<ExitCode> {
    let Arguments { slice, data, jwt_issuers, tables, output } = arguments;
    check(slice, stack)?;
    let logs = tables.logs(dynamo_client().await?, Clock::system());
    let explanations = slices.explain(&logs, slice, &text(data)?, jwt_issuers).await?;
    for explanation in &explanations {
        output.show(explanation);
    }
    let accepted = explanations.iter().all(|explanation| explanation.answer.accepted);
    Ok(if accepted { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
