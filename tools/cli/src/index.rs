//! `ringfence index`.

use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use ringfence_aws::Clock;
use ringfence_core::{Catalog, LogKind};
use ringfence_feed::{CompareStage, IndexDefect, IndexReport, Indexer, Partition};
use serde_json::{Value, json};

use crate::Lists;
use crate::layout::Layout;
use crate::machine::dynamo_client;
use crate::out::{Output, serialize_as, write_line};
use crate::progress;
use crate::tables::{EventTable, IndexTable, StreamTables, sources};

/// The number of items between two updates of the progress.
const PROGRESS_ITEMS: u64 = 1_000;

#[derive(Args)]
#[command(after_help = "\
Reads the whole index and the tables of the logs, the events with strong consistency. It needs some 80 bytes of memory
for each partition, and some 200 more for each that is behind. It compares only the logs whose tables are named. The
newest events may not be indexed yet, so on a stack that is in use, rely on the result of `repair`. It can be broken off
and begun again.

Examples:
  ringfence index verify --table ringfence-prod-events --index-table ringfence-prod-index
  ringfence index repair --json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    table: EventTable,
    #[command(flatten)]
    streams: StreamTables,
    #[command(flatten)]
    index: IndexTable,
    #[command(flatten)]
    output: Output,
}

/// For each partition, the number of events that a repair indexed, or why it failed.
type Repaired = Vec<(Partition, Result<u64, String>)>;

impl Arguments {
    async fn indexer(&self, catalog: &Catalog) -> Result<Indexer> {
        let client = dynamo_client().await?;
        self.table.check(&client).await?;
        self.streams.check(&client).await?;
        Layout::check_index(&client, &self.index.index_table).await?;
        let logs = self.table.with(&self.streams).logs(client.clone(), Clock::system());
        let logs = logs.sources(&sources(), catalog);
        Ok(Indexer::new(logs, client, &self.index.index_table))
    }

    fn end(&self, report: IndexReport, repaired: Option<Repaired>, agree: bool) -> ExitCode {
        let missing = self.streams.missing();
        self.output.end(&Compared { report, repaired, missing, agree }, agree)
    }
}

pub(crate) async fn verify(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let report = arguments.indexer(&lists.stack.catalog).await?.verify(&show).await?;
    let agree = report.behind.is_empty() && report.wrong.is_empty();
    Ok(arguments.end(report, None, agree))
}

pub(crate) async fn repair(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let (report, outcomes) = arguments.indexer(&lists.stack.catalog).await?.repair(&show).await?;
    let outcomes = outcomes.into_iter().map(|(partition, outcome)| {
        let outcome = outcome.map_err(|error| format!("{:#}", anyhow::Error::new(error)));
        (partition, outcome)
    });
    let repaired: Repaired = outcomes.collect();
    let agree = report.wrong.is_empty() && repaired.iter().all(|(_, outcome)| outcome.is_ok());
    Ok(arguments.end(report, Some(repaired), agree))
}

fn show(stage: CompareStage, done: u64) {
    let what = match stage {
        CompareStage::Entries => "entries of the index read",
        CompareStage::Events => "events of the logs read",
        CompareStage::Indexing => "partitions indexed",
    };
    if done.is_multiple_of(PROGRESS_ITEMS) || stage == CompareStage::Indexing {
        progress::show(format_args!("{done} {what}"));
    }
}

/// The differences, and the repair.
struct Compared {
    report: IndexReport,
    /// `None` without a repair.
    repaired: Option<Repaired>,
    /// The logs that were not compared.
    missing: Vec<LogKind>,
    agree: bool,
}

impl Display for Compared {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { report, repaired, missing, agree } = self;
        for log in missing {
            let flag = match log {
                LogKind::Dcb => continue,
                LogKind::Aggregates => "the aggregate log is not compared: --aggregate-table",
                LogKind::Documents => "the document log is not compared: --document-table",
            };
            write_line!(f, "skipped  {flag} is not given")?;
        }
        if report.skipped > 0 {
            write_line!(f, "skipped  {} entries of logs that are not compared", report.skipped)?;
        }
        match repaired {
            None => {
                for (partition, events) in &report.behind {
                    write_line!(f, "behind   {partition}: {events} events are not indexed")?;
                }
            }
            Some(repaired) => {
                for (partition, outcome) in repaired {
                    match outcome {
                        Ok(events) => write_line!(f, "indexed  {partition}: {events} events")?,
                        Err(cause) => write_line!(f, "fails    {partition}: {cause}")?,
                    }
                }
            }
        }
        for wrong in &report.wrong {
            write_line!(f, "wrong    {wrong}")?;
        }
        let IndexReport { entries, events, .. } = report;
        let end = if *agree { "all in order" } else { "not in order" };
        write_line!(f, "{entries} entries, {events} events: {end}")
    }
}

serialize_as!(Compared, |Compared { report, repaired, missing, agree }| {
    let behind = report
        .behind
        .iter()
        .map(|(partition, events)| json!({ "partition": partition.id.as_str(), "events": events }));
    let repaired = repaired.iter().flatten().map(|(partition, outcome)| match outcome {
        Ok(events) => json!({ "partition": partition.id.as_str(), "indexed": events }),
        Err(cause) => json!({ "partition": partition.id.as_str(), "cause": cause }),
    });
    json!({
        "entries": report.entries,
        "events": report.events,
        "skipped": { "logs": missing, "entries": report.skipped },
        "inOrder": agree,
        "behind": behind.collect::<Value>(),
        "wrong": report.wrong.iter().map(wrong).collect::<Value>(),
        "repaired": repaired.collect::<Value>(),
    })
});

fn wrong(wrong: &IndexDefect) -> Value {
    match wrong {
        IndexDefect::Differs { partition, indexed, stored } => json!({
            "wrong": "differs", "partition": partition.id.as_str(),
            "indexed": indexed, "stored": stored,
        }),
        IndexDefect::Gone { partition, slot } => json!({
            "wrong": "gone", "partition": partition.id.as_str(), "slot": slot,
        }),
        IndexDefect::Replaced { partition, slot } => json!({
            "wrong": "replaced", "partition": partition.id.as_str(), "slot": slot,
        }),
        IndexDefect::Item(item) => json!({ "wrong": "item", "item": item }),
        IndexDefect::Entry { before, cause } => json!({
            "wrong": "entry", "checkpoint": before, "cause": cause,
        }),
        IndexDefect::Order { partition, checkpoint } => json!({
            "wrong": "order", "partition": partition.id.as_str(), "checkpoint": checkpoint,
        }),
    }
}
