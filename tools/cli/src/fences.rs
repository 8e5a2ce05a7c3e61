//! `ringfence verify` and `ringfence repair`.

use std::env;
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Result;
use clap::Args;
use ringfence_core::rfc3339;
use ringfence_dcb_log::{DcbLog, DcbReport, Difference, FenceDefect, VerifyOptions, VerifyStage};
use serde_json::{Value, json};

use crate::Lists;
use crate::machine::dynamo_client;
use crate::out::{Output, serialize_as, write_line};
use crate::progress;
use crate::tables::EventTable;

/// The number of items between two updates of the progress.
const PROGRESS_ITEMS: u64 = 1_000;

#[derive(Args)]
#[command(after_help = "\
It names an event whose time is far ahead of the clock, but counts it as in order. It names a missing slot, but can't
mend it: put the event back from a backup. docs/runbook.md explains the lines and says what to do.

Examples:
  ringfence verify --table ringfence-prod-events
  ringfence verify --stack ringfence-prod --passes 4
  ringfence repair --json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    table: EventTable,
    #[command(flatten)]
    output: Output,
    /// Reads the table this many times, each time for a part of the boundaries, which saves memory.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    passes: u64,
    /// Seconds to wait until every item of a committed transaction is visible.
    #[arg(long, default_value_t = 5)]
    settle_seconds: u64,
}

impl Arguments {
    fn options(&self) -> VerifyOptions<'static> {
        let settle = Duration::from_secs(self.settle_seconds);
        VerifyOptions { settle, passes: self.passes, progress: &show }
    }

    async fn log(&self, lists: &Lists) -> Result<DcbLog> {
        let client = dynamo_client().await?;
        self.table.check(&client).await?;
        Ok(self.table.log(client, &lists.stack.catalog))
    }
}

pub(crate) async fn verify(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let log = arguments.log(lists).await?;
    let report = log.verify_fences(&arguments.options()).await?;
    Ok(Verified(report).end(arguments))
}

pub(crate) async fn repair(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let log = arguments.log(lists).await?;
    let report = log.repair_fences(&arguments.options()).await?;
    Ok(Verified(report).end(arguments))
}

fn show(stage: VerifyStage, done: u64) {
    let what = match stage {
        VerifyStage::Fences => "fences read",
        VerifyStage::Events => "events counted",
        VerifyStage::Confirming => "events counted again",
        VerifyStage::Mending => "fences mended",
    };
    if done.is_multiple_of(PROGRESS_ITEMS) || stage == VerifyStage::Mending {
        progress::show(format_args!("{done} {what}"));
    }
}

/// The report of a check.
struct Verified(DcbReport);

impl Verified {
    fn end(&self, arguments: &Arguments) -> ExitCode {
        arguments.output.end(self, self.0.in_order())
    }
}

impl Display for Verified {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        for differs in &report.mended {
            write_line!(f, "mended   {differs}")?;
        }
        for (index, entries) in &report.indexed {
            write_line!(f, "indexed  {entries} entries of {index}")?;
        }
        for differs in &report.differences {
            write_line!(f, "differs  {differs}")?;
        }
        for (index, entries) in &report.unindexed {
            write_line!(f, "lacking  {entries} entries of {index}")?;
        }
        for (partition, slot) in &report.gaps {
            write_line!(f, "gap      {partition}: slot {slot} is missing")?;
        }
        for (item, why) in &report.broken {
            write_line!(f, "broken   {item}: {why}")?;
        }
        if report.broken.len() == DcbReport::BROKEN_MAX {
            write_line!(
                f,
                "broken   there may be more: only the first {} are named",
                DcbReport::BROKEN_MAX
            )?;
        }
        if !report.broken.is_empty() {
            write_line!(f, "         {}", of_this_build())?;
        }
        for (event, at) in &report.ahead {
            write_line!(f, "ahead    {event}: it is of {}, later than this clock", rfc3339(*at))?;
        }
        let (events, fences) = (report.events, report.fences);
        let end = if report.in_order() { "all in order" } else { "not in order" };
        write_line!(f, "{events} events, {fences} fences: {end}")
    }
}

/// The build that the findings are for: an item that one build can't read may be fine for the build that wrote it.
fn of_this_build() -> String {
    let program = env::current_exe();
    let built = |program: &PathBuf| {
        let since_1970 =
            program.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(format!(", built {}", rfc3339(u64::try_from(since_1970.as_millis()).ok()?)))
    };
    let program = program.map_or_else(
        |_| "this program".to_owned(),
        |program| format!("{}{}", program.display(), built(&program).unwrap_or_default()),
    );
    format!(
        "so it is for {program}. If the functions of the stack come from other sources, verify with a command line \
         from the same"
    )
}

serialize_as!(Verified, |Verified(report)| {
    let all = |differences: &[Difference]| differences.iter().map(difference).collect::<Value>();
    json!({
        "events": report.events,
        "fences": report.fences,
        "inOrder": report.in_order(),
        "broken": report.broken,
        "ahead": report.ahead,
        "differences": all(&report.differences),
        "unindexed": report.unindexed,
        "gaps": gaps(report),
        "mended": all(&report.mended),
        "indexed": report.indexed,
    })
});

fn gaps(report: &DcbReport) -> Value {
    let gaps = report.gaps.iter().map(|(partition, slot)| (partition.to_string(), json!(slot)));
    Value::Object(gaps.collect())
}

fn difference(differs: &Difference) -> Value {
    let wrong = differs.wrong.iter().map(|wrong| match wrong {
        FenceDefect::NoFence => json!({ "wrong": "noFence" }),
        FenceDefect::NoEvents => json!({ "wrong": "noEvents" }),
        FenceDefect::Count { event_type, counted, found } => {
            json!({ "wrong": "count", "type": event_type, "counted": counted, "found": found })
        }
        FenceDefect::Head { says, found } => {
            json!({ "wrong": "head", "says": says, "found": found })
        }
        FenceDefect::Copies { copies } => json!({ "wrong": "copies", "copies": copies }),
        FenceDefect::Undecided => json!({ "wrong": "undecided" }),
    });
    json!({ "boundary": differs.boundary.as_str(), "wrong": wrong.collect::<Value>() })
}
