//! `ringfence`: the command of those who run a stack. On AWS or on one machine, by the environment
//! and the same flags.

mod fences;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use ringfence::CatalogError;
use ringfence_dcb_log::DcbLog;
use ringfence_dynamo::{Clock, client_at};

/// The status of a command that could not do its work.
const FAILED: u8 = 2;

/// Ringfence: event sourcing with dynamic consistency boundaries.
#[derive(Parser)]
#[command(name = "ringfence", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compares every fence with the events. Status 0: all agree, 1: some differ, 2: error.
    Verify(fences::Arguments),
    /// Mends the fences that differ; writers may go on. Status 0: all agree now, 1: not all, 2: error.
    Repair(fences::Arguments),
}

/// Where the events are.
#[derive(Args)]
struct Table {
    /// The table of the events.
    #[arg(long)]
    table: String,
    /// Another DynamoDB than that of AWS, such as the one that `cargo local` prints.
    #[arg(long)]
    endpoint_url: Option<String>,
}

impl Table {
    async fn log(&self) -> Result<DcbLog, CatalogError> {
        let client = client_at(self.endpoint_url.as_deref()).await;
        Ok(DcbLog::new(client, &self.table, ringfence_stack::catalog()?, Clock::system()))
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let ended = match Arguments::parse().command {
        Command::Verify(arguments) => fences::verify(&arguments).await,
        Command::Repair(arguments) => fences::repair(&arguments).await,
    };
    ended.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(FAILED)
    })
}
