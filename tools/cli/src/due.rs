//! `ringfence due`.

use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;
use ringfence_aws::Clock;
use ringfence_aws::http::Reply;
use ringfence_core::visible;
use ringfence_services::deadlines::{Sweep, Swept};
use serde_json::json;

use crate::Lists;
use crate::machine::{DYNAMO_ENDPOINT, dynamo_client, http, local_dynamo};
use crate::out::{Output, serialize_as, write_line};
use crate::stats::since;
use crate::tables::{KeyFlags, LogTables, ViewTable};

/// This is longer than a sweep of a stack on one machine takes.
const TIME: Duration = Duration::from_secs(300);
/// The path at which the port of a stack's data lets time pass.
const PASS_TIME: &str = "/ringfence/pass-time";
/// An answer to it is empty, or a sentence.
const ANSWER_BYTES_MAX: usize = 1_000;

#[derive(Args)]
#[command(after_help = "\
It does the work of the function fire-deadlines, which runs once a minute, with the decisions of this build. A command
that both send takes effect once. If a command did not clear its deadline, the function waits up to an hour before it
sends the command again. `ringfence due` does not wait, so use it when the cause is mended. `--in` is for the stack of
`cargo local`. It sets the clock of the whole stack forward, so a test need not wait.

Examples:
  ringfence due
  ringfence due --in 2h")]
pub(crate) struct Arguments {
    #[command(flatten)]
    tables: LogTables,
    #[command(flatten)]
    views: ViewTable,
    #[command(flatten)]
    keys: KeyFlags,
    /// Lets this time pass on the stack's clock first, such as 15m, 2h or 7d.
    #[arg(long = "in", value_name = "TIME", value_parser = since)]
    ahead: Option<Duration>,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn due(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let Arguments { tables, views, keys, ahead, output } = arguments;
    if let Some(ahead) = ahead {
        pass_time(*ahead).await?;
    }
    let logs = keys.open(tables.logs(dynamo_client().await?, Clock::system())).await?;
    let sweep = Sweep::new(&lists.deadlines, &logs, &views.view_table);
    let swept = sweep.map_err(|error| anyhow!(error))?.without_pauses().all(TIME).await;
    ensure!(swept.failures.is_empty(), "{}", swept.failures.join("; "));
    let is_well = swept.left == 0 && !swept.unfinished;
    Ok(output.end(&Report(swept), is_well))
}

/// Lets time pass on the stack of this machine.
async fn pass_time(time: Duration) -> Result<()> {
    let endpoint = local_dynamo().with_context(|| {
        format!("--in is for a stack on this machine: {DYNAMO_ENDPOINT} has to name its DynamoDB")
    })?;
    let url = format!("{}{PASS_TIME}", endpoint.trim_end_matches('/'));
    let ms = time.as_millis().to_string();
    let answer = http(None, false, ANSWER_BYTES_MAX)?.send("POST", &url, &[], ms.as_bytes()).await;
    match answer.with_context(|| format!("no time passes: {endpoint} does not answer"))? {
        Reply { status: 204, .. } => Ok(()),
        Reply { status: 422, body, .. } => {
            bail!("--in: {}", visible(&String::from_utf8_lossy(&body)))
        }
        _ => bail!(
            "--in needs a stack of `cargo local`: {endpoint} is another DynamoDB, and its clock can't be set"
        ),
    }
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
