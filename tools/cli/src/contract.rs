//! `ringfence api`: the API for callers and the events for consumers, as documents for programs.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Args;
use ringfence_schemas::Lock;

use crate::Lists;
use crate::out;

/// The command line.
#[derive(Args)]
#[group(required = true, multiple = false)]
#[command(after_help = "\
Examples:
  ringfence api --openapi > openapi.json
  ringfence api --asyncapi > asyncapi.json")]
pub(crate) struct Arguments {
    /// The HTTP API, as a document of OpenAPI 3.1.
    #[arg(long)]
    openapi: bool,
    /// The events of the EventTopic, as a document of AsyncAPI 3.0. It takes the older versions of events from the
    /// folder `schemas` of the working directory.
    #[arg(long)]
    asyncapi: bool,
}

pub(crate) fn print(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let contract = lists.contract()?;
    let document = match arguments.openapi {
        true => contract.openapi(),
        false => {
            ensure!(
                Path::new(Lock::FOLDER).is_dir(),
                "there is no folder {} here: call this in the folder of the stack",
                Lock::FOLDER
            );
            contract.with_locks(Path::new("."))?.asyncapi()
        }
    };
    out::lines(&format!("{document:#}\n"));
    Ok(ExitCode::SUCCESS)
}
