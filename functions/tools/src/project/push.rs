//! `ringfence project push`: sends the commands that wait.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use ringfence_cli::{Api, url};

use super::act::post;
use super::folder::{Folder, Writing};
use super::outbox::{OUTBOX, Outbox};

#[derive(Args)]
#[command(after_help = "\
A command takes effect once, however often it is sent: it has an idempotency key. A refused command goes to a file in
`conflicts/`, with the answer and with all later commands of its edge. Where the stack is busy or does not answer,
the command and all behind it stay.

Example:
  ringfence project push --project shop")]
pub(crate) struct Push {
    /// The URL of the HTTP API. A request to `https://` is signed with the credentials of the environment.
    #[arg(long, env = "API_URL", value_name = "URL", value_parser = url)]
    api: String,
}

/// What became of the commands.
#[derive(Default)]
struct Pushed {
    accepted: usize,
    refused: usize,
    /// How many went to `conflicts/` behind a refused one.
    behind: usize,
}

pub(crate) async fn run(folder: &Folder, arguments: &Push) -> Result<ExitCode> {
    let folder = folder.write()?;
    let mut outbox = Outbox::read(&folder)?;
    if folder.text(OUTBOX)?.is_some() {
        // Now a person may delete the files in `conflicts/`, and what was in them does not wait again.
        outbox.keep(&folder)?;
    }
    let mut pushed = Pushed::default();
    let api = Api::at(&arguments.api).await?;
    let stopped = push(&api, &folder, &mut outbox, &mut pushed).await?;
    if let Some(why) = stopped {
        eprintln!("warning: {why}");
    }
    let (Pushed { accepted, refused, behind }, left) = (pushed, outbox.len());
    println!("{accepted} accepted, {refused} refused, {behind} put aside with them, {left} wait");
    Ok(if refused + left == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Sends the commands in their order, until none is left or the stack does not take one now; says why not.
///
/// # Errors
/// The stack can't be used as it is. What was not sent stays.
async fn push(
    api: &Api,
    folder: &Writing<'_>,
    outbox: &mut Outbox,
    pushed: &mut Pushed,
) -> Result<Option<String>> {
    while let Some(first) = outbox.first() {
        let sent =
            post(api, &first.slice, &first.data, &first.key, Some(&first.effective_at)).await;
        let answer = match sent {
            Ok(answer) => answer,
            Err(error) => return Ok(Some(format!("{error:#}"))),
        };
        let (slice, key) = (first.slice.clone(), first.key.clone());
        let detail = answer.document["detail"].as_str().unwrap_or_default().to_owned();
        match answer.status {
            200..300 => {
                outbox.accepted(folder)?;
                pushed.accepted += 1;
            }
            // What is wrong with the command stays wrong.
            400 | 413 | 422 => {
                let behind = outbox.refused(folder, answer.document)?;
                pushed.refused += 1;
                pushed.behind += behind;
                let file = folder.path(&format!("conflicts/{}.json", key.as_str()));
                println!("refused  {slice}: {detail} ({})", file.display());
            }
            409 | 429 | 503 | 504 => return Ok(Some(format!("{slice}: {detail}"))),
            status => bail!("{slice}: {status} {detail}; {} commands wait", outbox.len()),
        }
    }
    Ok(None)
}
