//! `ringfence due`.

use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use clap::Args;
use ringfence_aws::Clock;
use ringfence_services::deadlines::{Sweep, Swept};
use serde_json::json;

use crate::Lists;
use crate::machine::{DYNAMO_ENDPOINT, dynamo_client, is_dynamo_local};
use crate::out::{Output, serialize_as, write_line};
use crate::stats::since;
use crate::tables::{LogTables, ViewTable};

/// This is longer than a sweep of a stack on one machine takes.
const TIME: Duration = Duration::from_secs(300);
/// `--in` takes at most a hundred years.
const AHEAD_MAX: Duration = Duration::from_secs(36_500 * 24 * 3_600);

#[derive(Args)]
#[command(after_help = "\
It does the work of the function fire-deadlines, which runs once a minute, with the decisions of this build. A command
that both send takes effect once. If a command did not clear its deadline, the function waits up to an hour before it
sends the command again. `ringfence due` does not wait, so use it when the cause is mended. `--in` is for a stack on
this machine: decisions and events get the later time too, so a test need not wait.

Examples:
  ringfence due
  ringfence due --in 2h")]
pub(crate) struct Arguments {
    #[command(flatten)]
    tables: LogTables,
    #[command(flatten)]
    views: ViewTable,
    /// Sends what will be due within this time, such as 15m, 2h or 7d, as if the time had passed.
    #[arg(long = "in", value_name = "TIME", value_parser = ahead)]
    ahead: Option<Duration>,
    #[command(flatten)]
    output: Output,
}

/// The time of `--in`.
fn ahead(text: &str) -> Result<Duration, String> {
    let ahead = since(text)?;
    (ahead <= AHEAD_MAX).then_some(ahead).ok_or_else(|| "at most 36500d".to_owned())
}

pub(crate) async fn due(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let Arguments { tables, views, ahead, output } = arguments;
    ensure!(
        ahead.is_none() || is_dynamo_local(),
        "--in is for a stack on this machine: {DYNAMO_ENDPOINT} has to name its DynamoDB"
    );
    let clock = match ahead {
        None => Clock::system(),
        Some(ahead) => {
            let ahead_ms = u64::try_from(ahead.as_millis()).unwrap_or(u64::MAX);
            Clock::running(Clock::system().now_ms().saturating_add(ahead_ms))
        }
    };
    let logs = tables.logs(dynamo_client().await?, clock);
    let sweep = Sweep::new(&lists.deadlines, &logs, &views.view_table);
    let swept = sweep.map_err(|error| anyhow!(error))?.without_pauses().all(TIME).await;
    ensure!(swept.failures.is_empty(), "{}", swept.failures.join("; "));
    let is_well = swept.left == 0 && !swept.unfinished;
    Ok(output.end(&Report(swept), is_well))
}

struct Report(Swept);

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(Swept { fired, left, causes, unfinished, .. }) = self;
        for cause in causes {
            write_line!(f, "{cause}")?;
        }
        if *unfinished {
            let seconds = TIME.as_secs();
            write_line!(f, "{seconds} seconds were over before the last row: run it again")?;
        }
        write_line!(f, "{fired} took effect, {left} left")
    }
}

serialize_as!(Report, |Report(Swept { fired, left, causes, unfinished, .. })| {
    json!({ "fired": fired, "left": left, "causes": causes, "unfinished": unfinished })
});
