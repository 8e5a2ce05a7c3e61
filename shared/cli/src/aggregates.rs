//! `ringfence aggregates`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ringfence_aggregate_log::{Report, Table, Wrong};
use ringfence_dynamo::Clock;
use serde_json::{Value, json};

use crate::layout::Layout;
use crate::progress;
use crate::say;
use crate::stack::name;
use crate::tables::Dynamo;

/// Progress is shown each time this many events are done.
const PROGRESS_EVENTS: u64 = 1_000;

#[derive(Args)]
#[command(after_help = "\
Reads the whole table with strong consistency, while writers go on. An aggregate that looks wrong is read once
more, alone. Nothing is changed. docs/runbook.md says what the lines mean and what to do.

Examples:
  ringfence aggregates verify --aggregate-table ringfence-prod-aggregates
  ringfence aggregates verify --json")]
pub(crate) struct Arguments {
    /// The table of the aggregate log.
    #[arg(long, env = "AGGREGATE_TABLE", value_parser = name)]
    aggregate_table: String,
    #[command(flatten)]
    dynamo: Dynamo,
    /// Prints one JSON document instead of lines for people.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn verify(arguments: &Arguments) -> Result<ExitCode> {
    let client = arguments.dynamo.client().await?;
    Layout::Aggregates.check(&client, &arguments.aggregate_table).await?;
    let table = Table::new(client, &arguments.aggregate_table, Clock::system());
    let report = table.verify(&show).await?;
    progress::clear();
    let in_order = report.wrong.is_empty();
    if arguments.json {
        say!("{}", json(&report));
    } else {
        for wrong in &report.wrong {
            say!("wrong    {wrong}");
        }
        let Report { events, aggregates, .. } = report;
        let end = if in_order { "all in order" } else { "not in order" };
        say!("{events} events, {aggregates} aggregates: {end}");
    }
    Ok(if in_order { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(events: u64) {
    if events.is_multiple_of(PROGRESS_EVENTS) {
        progress::show(format_args!("{events} events read"));
    }
}

fn json(report: &Report) -> Value {
    json!({
        "events": report.events,
        "aggregates": report.aggregates,
        "inOrder": report.wrong.is_empty(),
        "wrong": report.wrong.iter().map(wrong).collect::<Value>(),
    })
}

fn wrong(wrong: &Wrong) -> Value {
    match wrong {
        Wrong::Gap { key, after, found } => json!({
            "wrong": "gap", "aggregate": key.to_string(), "after": after, "found": found,
        }),
        Wrong::Order { key, version, timestamp } => json!({
            "wrong": "order", "aggregate": key.to_string(),
            "version": version, "timestamp": timestamp,
        }),
        Wrong::Listing { key, version, found } => json!({
            "wrong": "listing", "aggregate": key.to_string(), "version": version, "found": found,
        }),
        Wrong::Item(item) => json!({ "wrong": "item", "item": item }),
    }
}
