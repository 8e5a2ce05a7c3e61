//! `ringfence project push`: sends the commands that wait.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use ringfence_cli::api::{Api, url};
use ringfence_cli::{remark, say};

use super::act::post;
use super::folder::{Folder, OUTBOX};
use super::outbox::{Outbox, Queued};

#[derive(Args)]
#[command(after_help = "\
A command has an idempotency key, so it takes effect once, however often it is sent. A rejected command goes to a file
in `conflicts/`, with the answer and all later commands of its edge. If the stack is busy or does not answer, the
command and all later ones stay.

Example:
  ringfence project push --project shop")]
pub(crate) struct Push {
    /// The URL of the HTTP API. A request to `https://` is signed with the credentials of the environment.
    #[arg(long, env = "API_URL", value_name = "URL", value_parser = url)]
    api: String,
}

/// The result of a push.
#[derive(Default)]
struct Pushed {
    accepted: usize,
    rejected: usize,
    /// How many went to `conflicts/` behind an earlier one that was rejected.
    behind: usize,
}

pub(crate) async fn run(folder: &Folder, arguments: &Push) -> Result<ExitCode> {
    let _alone = folder.push()?;
    let mut outbox = {
        let folder = folder.write()?;
        let outbox = Outbox::read(&folder)?;
        if folder.text(OUTBOX)?.is_some() {
            // From now on a person may delete files in `conflicts/`, and their commands do not wait again.
            outbox.keep(&folder)?;
        }
        outbox
    };
    let mut pushed = Pushed::default();
    let api = Api::at(&arguments.api, None).await?;
    let ended = push(&api, folder, &mut outbox, &mut pushed).await;
    if let Ok(Some(why)) = &ended {
        remark!("warning: {why}");
    }
    let (Pushed { accepted, rejected, behind }, left) = (pushed, outbox.len());
    say!("{accepted} accepted, {rejected} rejected, {behind} put aside with them, {left} wait");
    ended?;
    Ok(if rejected + left == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Sends the commands in their order, until no command is left or the stack does not take one now. Returns the reason.
/// The folder is free for others while an answer is on its way, so the outbox is read again after each.
///
/// # Errors
/// The stack can't be used as it is. Commands that were not sent stay.
async fn push(
    api: &Api,
    folder: &Folder,
    outbox: &mut Outbox,
    pushed: &mut Pushed,
) -> Result<Option<String>> {
    while let Some(first) = outbox.first().cloned() {
        let Queued { slice, data, key, effective_at } = &first;
        let answer = match post(api, slice, data, key, Some(effective_at)).await {
            Ok(answer) => answer,
            Err(error) => return Ok(Some(format!("{error:#}"))),
        };
        // The answer must be noted, however long another program uses the folder.
        let folder = folder.write_at_last()?;
        *outbox = Outbox::read(&folder)?;
        let status = answer.status;
        let of_stack = answer.is_of_stack();
        let detail = match answer.document["detail"].as_str() {
            Some(detail) if of_stack => detail.to_owned(),
            _ => format!("the stack did not answer: {status} is from a server in front of it"),
        };
        match status {
            200..300 if of_stack => {
                outbox.accepted(&folder, key)?;
                pushed.accepted += 1;
            }
            // A mistake in the command stays.
            400 | 413 | 422 if of_stack => {
                let file = folder.path(&format!("conflicts/{}.json", key.as_str()));
                say!("rejected  {slice}: {detail} ({})", file.display());
                pushed.rejected += 1;
                pushed.behind += outbox.rejected(&folder, first, answer.document)?;
            }
            409 | 429 | 503 | 504 => return Ok(Some(format!("{slice}: {detail}"))),
            _ if of_stack => bail!("{slice}: {status} {detail}; {} commands wait", outbox.len()),
            _ => bail!("{slice}: {detail}; {} commands wait", outbox.len()),
        }
    }
    Ok(None)
}
