//! `ringfence api`: the API for callers and the events for consumers, as documents for programs, and as a page.

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
  ringfence api --html > api.html
  ringfence api --asyncapi > asyncapi.json")]
pub(crate) struct Arguments {
    /// The HTTP API, as a document of OpenAPI 3.1.
    #[arg(long)]
    openapi: bool,
    /// The same as a page for people. It is one file, which asks nothing of the network.
    #[arg(long)]
    html: bool,
    /// The events of the EventTopic, as a document of AsyncAPI 3.0. It takes the older versions of events from the
    /// folder `schemas` of the working directory.
    #[arg(long)]
    asyncapi: bool,
}

pub(crate) fn print(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let contract = lists.contract()?;
    if arguments.html {
        out::file(&contract.page("").html);
    } else if arguments.openapi {
        out::lines(&format!("{:#}\n", contract.openapi()));
    } else {
        let folder = Lock::FOLDER;
        ensure!(
            Path::new(folder).is_dir(),
            "there is no folder {folder} here: call this in the folder of the stack"
        );
        out::lines(&format!("{:#}\n", contract.with_locks(Path::new("."))?.asyncapi()));
    }
    Ok(ExitCode::SUCCESS)
}
