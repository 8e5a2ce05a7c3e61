//! `ringfence aggregates`.

pub(crate) mod list;

use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ringfence_aggregate_log::{AggregateDefect, AggregateReport, AggregateTable};
use ringfence_aws::Clock;
use serde_json::{Value, json};

use crate::layout::Layout;
use crate::machine::dynamo_client;
use crate::out::{Output, serialize_as, write_line};
use crate::progress;
use crate::stack::name;

/// The number of events between two updates of the progress.
const PROGRESS_EVENTS: u64 = 1_000;

#[derive(Args)]
#[command(after_help = "\
Reads the whole table with strong consistency, while writers go on. An aggregate that looks wrong is read again,
alone. Nothing is changed. docs/runbook.md explains the lines and says what to do.

Examples:
  ringfence aggregates verify --aggregate-table ringfence-prod-aggregates
  ringfence aggregates verify --json")]
pub(crate) struct Arguments {
    /// The table of the aggregate log.
    #[arg(long, env = "AGGREGATE_TABLE", value_parser = name)]
    aggregate_table: String,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn verify(arguments: &Arguments) -> Result<ExitCode> {
    let client = dynamo_client().await?;
    Layout::Aggregates.check(&client, &arguments.aggregate_table).await?;
    let table = AggregateTable::new(client, &arguments.aggregate_table, Clock::system());
    let verified = Verified(table.verify(&show).await?);
    Ok(arguments.output.end(&verified, verified.0.wrong.is_empty()))
}

fn show(events: u64) {
    if events.is_multiple_of(PROGRESS_EVENTS) {
        progress::show(format_args!("{events} events read"));
    }
}

struct Verified(AggregateReport);

impl Display for Verified {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let AggregateReport { events, aggregates, wrong, .. } = &self.0;
        for wrong in wrong {
            write_line!(f, "wrong    {wrong}")?;
        }
        let end = if wrong.is_empty() { "all in order" } else { "not in order" };
        write_line!(f, "{events} events, {aggregates} aggregates: {end}")
    }
}

serialize_as!(Verified, |Verified(report)| json!({
    "events": report.events,
    "aggregates": report.aggregates,
    "inOrder": report.wrong.is_empty(),
    "wrong": report.wrong.iter().map(wrong).collect::<Value>(),
}));

fn wrong(wrong: &AggregateDefect) -> Value {
    match wrong {
        AggregateDefect::Gap { key, after, found } => json!({
            "wrong": "gap", "aggregate": key.to_string(), "after": after, "found": found,
        }),
        AggregateDefect::Order { key, version, timestamp } => json!({
            "wrong": "order", "aggregate": key.to_string(),
            "version": version, "timestamp": timestamp,
        }),
        AggregateDefect::Listing { key, version, found } => json!({
            "wrong": "listing", "aggregate": key.to_string(), "version": version, "found": found,
        }),
        AggregateDefect::Item(item) => json!({ "wrong": "item", "item": item }),
    }
}
